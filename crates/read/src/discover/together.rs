//! Which files were recorded together, if no session folder says so: the ranks of one job.
//!
//! One recording has overlapping times *and* is of one job.
//!
//! Names that differ in digits alone prove nothing: `workers_0` and `workers_4` are two runs, and so are two processes that ran
//! the same script. Files belong together if they say themselves which rank they are, in the name (`rank0`) or inside, unless
//! their recorded times contradict. Everything else is a separate run.

use std::collections::BTreeSet;

use stepscope_trace::Delivers;

use super::recognise::reader_of;
use super::{ProfileFile, SessionFiles, file_name, is_time, join, newest_first, numbers};
use crate::Recorded;
use crate::input::Input;

/// Words before a number that makes a file one of several.
const RANK_WORDS: &[&str] = &[
    "rank", "worker", "w", "host", "node", "process", "proc", "task", "replica", "machine", "gpu", "device",
    "shard", "dp", "tp", "pp", "ep",
];
/// Times below this are not since 1970: it is 2001 in nanoseconds.
const EPOCH_NS: i64 = 1_000_000_000_000_000_000;

/// Ranks of one job start their profilers at the same step. If nothing says how long a file was recorded, or if ranks that
/// name themselves were recorded one after the other, starts may differ by this much.
const START_TOGETHER_NS: i64 = 60_000_000_000;

/// The sessions of several paths that were given at once, each run as one, newest first: hosts of one job are joined, separate
/// runs are not. What complements a timeline belongs to the newest run.
pub(super) fn runs_of(sessions: Vec<SessionFiles>) -> Vec<SessionFiles> {
    let is_timeline = |file: &ProfileFile| file.format.delivers == Delivers::Timeline;
    let (timelines, others): (Vec<SessionFiles>, Vec<SessionFiles>) =
        sessions.into_iter().partition(|session| session.files.iter().any(is_timeline));
    let mut told: Vec<(Job, SessionFiles)> =
        timelines.into_iter().map(|session| (Job::of(&session), session)).collect();
    told.sort_by_key(|(job, _)| job.time.map(|time| time.start_ns));
    let mut runs: Vec<(Job, Vec<SessionFiles>)> = Vec::new();
    for (job, session) in told {
        match runs.iter_mut().rev().find(|(run, _)| run.is_of_one_recording(&job)) {
            Some((run, sessions)) => {
                run.add(job);
                sessions.push(session);
            }
            None => runs.push((job, vec![session])),
        }
    }
    let timed = runs.iter().all(|(job, _)| job.time.is_some());
    let runs: Vec<SessionFiles> = runs.into_iter().rev().filter_map(|(_, sessions)| join(sessions)).collect();
    let mut runs = if timed { runs } else { newest_first(runs) };
    if runs.is_empty() {
        return join(others).into_iter().collect();
    }
    let newest = runs.remove(0);
    let newest = join(std::iter::once(newest).chain(others).collect());
    newest.into_iter().chain(runs).collect()
}

/// What the files of a run say about its time and its job.
struct Job {
    /// When it was recorded; `None` if one of its files does not say so.
    time: Option<Recorded>,
    /// The ranks that name themselves, each with the number of all.
    ranks: BTreeSet<(u64, Option<u64>)>,
    /// The names of all hosts.
    hosts: BTreeSet<String>,
    /// The names of the session folders.
    folders: BTreeSet<String>,
}

impl Job {
    fn of(session: &SessionFiles) -> Self {
        // What was sampled beside a timeline says nothing about its job.
        let timelines = || session.files.iter().filter(|file| file.format.delivers == Delivers::Timeline);
        let origins: Vec<FileOrigin> = timelines().map(FileOrigin::in_full).collect();
        let times: Option<Vec<Recorded>> = origins.iter().map(FileOrigin::recorded).collect();
        let in_folder = super::is_session_folder(&session.folder);
        Job {
            time: times.and_then(|times| times.into_iter().reduce(hull)),
            ranks: origins.iter().filter_map(|origin| Some((origin.rank?, origin.world_size))).collect(),
            hosts: timelines().map(|file| file.host.clone()).collect(),
            folders: in_folder.then(|| session.name.clone()).into_iter().collect(),
        }
    }

    fn add(&mut self, other: Job) {
        self.time = self.time.zip(other.time).map(|(a, b)| hull(a, b));
        self.ranks.extend(other.ranks);
        self.hosts.extend(other.hosts);
        self.folders.extend(other.folders);
    }

    /// Are both of one job, recorded at the same time? Where the times are not known, the names must say that they are
    /// ranks, or hosts of one session.
    fn is_of_one_recording(&self, other: &Job) -> bool {
        let worlds: BTreeSet<Option<u64>> =
            self.ranks.iter().chain(&other.ranks).map(|(_, world)| *world).collect();
        let ranked = !self.ranks.is_empty() && !other.ranks.is_empty();
        if ranked && (worlds.len() > 1 || !self.ranks.is_disjoint(&other.ranks)) {
            return false;
        }
        match (self.time, other.time) {
            (Some(a), Some(b)) => overlap(a, b, ranked),
            _ => {
                let hosts: BTreeSet<&str> =
                    self.hosts.iter().chain(&other.hosts).map(String::as_str).collect();
                let apart = self.hosts.is_disjoint(&other.hosts);
                let one_session = !self.folders.is_empty() && self.folders == other.folders;
                ranked || (apart && (one_session || are_ranks(&hosts)))
            }
        }
    }
}

fn hull(a: Recorded, b: Recorded) -> Recorded {
    let end_ns = a.end_ns.zip(b.end_ns).map(|(a, b)| a.max(b));
    Recorded { start_ns: a.start_ns.min(b.start_ns), end_ns }
}

/// Do both times overlap? Files that do not say when they end, and ranks that name themselves, only have to start together.
fn overlap(a: Recorded, b: Recorded, ranked: bool) -> bool {
    let (first, second) = if a.start_ns <= b.start_ns { (a, b) } else { (b, a) };
    let within = first.end_ns.is_some_and(|end| second.start_ns <= end);
    let lenient = ranked || first.end_ns.is_none();
    within || (lenient && second.start_ns.saturating_sub(first.start_ns) <= START_TOGETHER_NS)
}

/// Splits files whose names differ in digits alone into those that were recorded together.
pub(super) fn recorded_together(files: Vec<ProfileFile>) -> Vec<Vec<ProfileFile>> {
    let timelines = files.iter().all(|file| file.format.delivers == Delivers::Timeline);
    let hosts: BTreeSet<&str> = files.iter().map(|file| file.host.as_str()).collect();
    let named = are_ranks(&hosts);
    if hosts.len() >= 2 && !named && files.iter().all(|file| file.format.delivers == Delivers::Memory) {
        // States of one program at several times.
        return files.into_iter().map(|file| vec![file]).collect();
    }
    if hosts.len() < 2 || !timelines {
        return vec![files];
    }
    let mut origins: Vec<(FileOrigin, ProfileFile)> =
        files.into_iter().map(|file| (FileOrigin::of(&file), file)).collect();
    let world_size = origins.first().and_then(|(first, _)| first.world_size);
    if origins.iter().all(|(origin, _)| origin.rank.is_some() && origin.world_size == world_size) {
        origins.sort_by_key(|(origin, _)| origin.end_ns.or(origin.start_ns));
        return rounds(origins);
    }
    if named { overlapping(origins) } else { origins.into_iter().map(|(_, file)| vec![file]).collect() }
}

/// Whether names differ only in numbers that follow a word such as `rank`.
fn are_ranks(hosts: &BTreeSet<&str>) -> bool {
    let pieces: Vec<Vec<(String, u64)>> = hosts.iter().map(|host| numbers(host)).collect();
    let Some((first, others)) = pieces.split_first() else { return false };
    let same_shape = |other: &&Vec<(String, u64)>| {
        other.len() == first.len() && other.iter().zip(first).all(|(other, first)| other.0 == first.0)
    };
    others.iter().all(|other| same_shape(&other))
        && first.iter().enumerate().all(|(at, (text, number))| {
            let differs = others.iter().filter_map(|other| other.get(at)).any(|other| other.1 != *number);
            !differs || RANK_WORDS.contains(&last_word(text).as_str())
        })
}

fn last_word(text: &str) -> String {
    let text = text.trim_end_matches(|c: char| !c.is_alphabetic());
    text.rsplit(|c: char| !c.is_alphabetic()).next().unwrap_or("").to_lowercase()
}

/// Ranks in the order in which they were written: a rank that comes again starts the next recording.
fn rounds(origins: Vec<(FileOrigin, ProfileFile)>) -> Vec<Vec<ProfileFile>> {
    let mut rounds: Vec<(BTreeSet<Option<u64>>, Vec<ProfileFile>)> = Vec::new();
    for (origin, file) in origins {
        match rounds.last_mut() {
            Some((ranks, files)) if !ranks.contains(&origin.rank) => {
                ranks.insert(origin.rank);
                files.push(file);
            }
            _ => rounds.push((BTreeSet::from([origin.rank]), vec![file])),
        }
    }
    rounds.into_iter().map(|(_, files)| files).collect()
}

/// Splits files where their times have a gap. If the times of one are unknown, nothing contradicts.
fn overlapping(mut origins: Vec<(FileOrigin, ProfileFile)>) -> Vec<Vec<ProfileFile>> {
    if origins.iter().any(|(origin, _)| origin.start_ns.is_none() || origin.end_ns.is_none()) {
        return vec![origins.into_iter().map(|(_, file)| file).collect()];
    }
    origins.sort_by_key(|(origin, _)| origin.start_ns);
    let mut groups: Vec<(Option<i64>, Vec<ProfileFile>)> = Vec::new();
    for (origin, file) in origins {
        match groups.last_mut() {
            Some((end, files)) if origin.start_ns <= *end => {
                *end = origin.end_ns.max(*end);
                files.push(file);
            }
            _ => groups.push((origin.end_ns, vec![file])),
        }
    }
    groups.into_iter().map(|(_, files)| files).collect()
}

/// What a file says of itself at its beginning and in its name.
#[derive(Default)]
struct FileOrigin {
    rank: Option<u64>,
    world_size: Option<u64>,
    /// When its first events started, in nanoseconds since 1970.
    start_ns: Option<i64>,
    /// When it was written, after its last event.
    end_ns: Option<i64>,
}

impl FileOrigin {
    /// With what the reader of the file knows. Only local files are opened for it: others would be copied as a whole.
    fn in_full(file: &ProfileFile) -> FileOrigin {
        let origin = FileOrigin::of(file);
        let ask = || {
            let (reader, _) = reader_of(&file.path).ok().filter(|_| file.path.is_file())?;
            reader?.recorded(&Input::open(&file.path).ok()?)
        };
        match origin.recorded().filter(|time| time.end_ns.is_some()).or_else(ask) {
            Some(time) => FileOrigin { start_ns: Some(time.start_ns), end_ns: time.end_ns, ..origin },
            None => origin,
        }
    }

    fn recorded(&self) -> Option<Recorded> {
        Some(Recorded { start_ns: self.start_ns?, end_ns: self.end_ns })
    }

    fn of(file: &ProfileFile) -> FileOrigin {
        let end_ns = written_ns(&file_name(&file.path));
        let Ok((_, head)) = reader_of(&file.path) else {
            return FileOrigin { end_ns, ..FileOrigin::default() };
        };
        let info = after(&head, b"\"distributedInfo\"").map(|at| &at[..at.len().min(4_096)]);
        let number = |key: &[u8]| info.and_then(|info| after(info, key)).and_then(leading_number);
        let count = |key: &[u8]| number(key).filter(|count| *count >= 0.0).map(|count| count as u64);
        let base = after(&head, b"\"baseTimeNanoseconds\"").and_then(leading_number).unwrap_or(0.0);
        let first = after(&head, b"\"ts\"").and_then(leading_number);
        let start_ns = first.map(|ts| (base + ts * 1e3) as i64).filter(|start| *start >= EPOCH_NS);
        FileOrigin { rank: count(b"\"rank\""), world_size: count(b"\"world_size\""), start_ns, end_ns }
    }
}

/// The time in a name, in nanoseconds; PyTorch writes milliseconds, or nanoseconds since 2.1.
fn written_ns(name: &str) -> Option<i64> {
    let text = name.split('.').find(|part| is_time(part))?;
    let time: i64 = text.parse().ok()?;
    match text.len() {
        12..=13 => time.checked_mul(1_000_000),
        16 => time.checked_mul(1_000),
        19 => Some(time),
        _ => None,
    }
}

/// What follows the first occurrence of `key`.
fn after<'t>(text: &'t [u8], key: &[u8]) -> Option<&'t [u8]> {
    let at = text.windows(key.len()).position(|window| window == key)?;
    text.get(at + key.len()..)
}

/// The number behind a colon.
fn leading_number(text: &[u8]) -> Option<f64> {
    let start = text.iter().position(|byte| !matches!(byte, b':' | b' ' | b'\n' | b'"'))?;
    let rest = text.get(start..)?;
    let end = rest.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b'.' | b'-')).unwrap_or(rest.len());
    std::str::from_utf8(rest.get(..end)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::super::{SessionFiles, discover};

    fn found(folder: &Path) -> Vec<Vec<String>> {
        let names = |session: &SessionFiles| session.files.iter().map(|file| file.host.clone()).collect();
        let mut all: Vec<Vec<String>> =
            discover(&[folder.to_owned()]).unwrap().sessions.iter().map(names).collect();
        all.sort();
        all
    }

    fn trace(folder: &Path, name: &str, start_us: u64, info: &str) {
        let text = format!(
            "{{\"schemaVersion\": 1, {info} \"traceEvents\": [{{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::add\", \
             \"pid\": 1, \"tid\": 1, \"ts\": {start_us}, \"dur\": 5}}]}}"
        );
        fs::write(folder.join(name), text).unwrap();
    }

    #[test]
    fn runs_that_differ_in_a_setting_are_not_the_ranks_of_one_job() {
        let folder = tempfile::tempdir().unwrap();
        trace(folder.path(), "workers_0_worker0.1623143089861.pt.trace.json", 1_623_142_623_460_111, "");
        trace(folder.path(), "workers_4_worker0.1623212756351.pt.trace.json", 1_623_212_700_000_000, "");
        assert_eq!(found(folder.path()), [["workers_0_worker0"], ["workers_4_worker0"]]);
    }

    #[test]
    fn ranks_in_names_are_one_job_unless_their_times_contradict() {
        let folder = tempfile::tempdir().unwrap();
        let hour = 3_600_000_000;
        for (rank, hours) in [(0, 0), (1, 0), (2, 19)] {
            let start = 1_623_142_623_000_000 + hours * hour;
            let name = format!("rank{rank}.{}.pt.trace.json", (start + 60_000_000) / 1_000);
            trace(folder.path(), &name, start + 1_000_000 * rank, "");
        }
        assert_eq!(found(folder.path()), [vec!["rank0", "rank1"], vec!["rank2"]]);
    }

    #[test]
    fn processes_are_one_job_if_they_say_their_ranks_and_each_rank_once() {
        let folder = tempfile::tempdir().unwrap();
        let info = |rank| {
            format!("\"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {rank}, \"world_size\": 2}},")
        };
        for (pid, rank, minute) in [(11, 0, 0), (12, 1, 0), (13, 1, 9), (14, 0, 9)] {
            let start = 1_700_000_000_000_000_u64 + minute * 60_000_000;
            let name = format!("box_{pid}.{}.pt.trace.json", start / 1_000 + 10);
            trace(folder.path(), &name, start, &info(rank));
        }
        assert_eq!(found(folder.path()), [["box_11", "box_12"], ["box_13", "box_14"]]);
        let other = tempfile::tempdir().unwrap();
        for pid in [11, 12] {
            trace(other.path(), &format!("box_{pid}.json"), 1_700_000_000_000_000, "");
        }
        assert_eq!(found(other.path()), [["box_11"], ["box_12"]], "the same script, run twice");
    }

    /// The runs among paths that are given at once, each as its files; the newest first.
    fn runs(folder: &Path, names: &[&str]) -> Vec<Vec<String>> {
        let paths: Vec<_> = names.iter().map(|name| folder.join(name)).collect();
        let names =
            |session: &SessionFiles| session.files.iter().map(|file| super::file_name(&file.path)).collect();
        discover(&paths).unwrap().sessions.iter().map(names).collect()
    }

    const START_US: u64 = 1_700_000_000_000_000;

    #[test]
    fn paths_that_were_recorded_one_after_the_other_are_separate_runs() {
        let folder = tempfile::tempdir().unwrap();
        for (name, minutes) in [("first", 0), ("second", 5), ("third", 9)] {
            let start = START_US + minutes * 60_000_000;
            trace(folder.path(), &format!("{name}.{}.pt.trace.json", start / 1_000 + 20_000), start, "");
        }
        let all: Vec<String> =
            [20, 320, 560].iter().map(|s| (START_US / 1_000 + s * 1_000).to_string()).collect();
        let names: Vec<String> = ["first", "second", "third"]
            .iter()
            .zip(&all)
            .map(|(name, end)| format!("{name}.{end}.pt.trace.json"))
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(runs(folder.path(), &names), [[names[2]], [names[1]], [names[0]]]);
    }

    #[test]
    fn paths_that_were_recorded_at_the_same_time_are_hosts_of_one_recording() {
        let folder = tempfile::tempdir().unwrap();
        trace(folder.path(), "trainer.json", START_US, "");
        trace(folder.path(), "evaluator.json", START_US + 2_000_000, "");
        trace(folder.path(), "later.json", START_US + 3_600_000_000, "");
        let found = runs(folder.path(), &["trainer.json", "evaluator.json", "later.json"]);
        assert_eq!(found, [vec!["later.json"], vec!["trainer.json", "evaluator.json"]]);
    }

    #[test]
    fn one_rank_twice_or_of_another_job_is_a_separate_run() {
        let folder = tempfile::tempdir().unwrap();
        let info =
            |rank, world| format!("\"distributedInfo\": {{\"rank\": {rank}, \"world_size\": {world}}},");
        for (name, rank, world) in [("a", 0, 2), ("b", 1, 2), ("c", 1, 2), ("d", 1, 8)] {
            trace(folder.path(), &format!("{name}.json"), START_US, &info(rank, world));
        }
        assert_eq!(runs(folder.path(), &["a.json", "b.json"]), [["a.json", "b.json"]]);
        assert_eq!(runs(folder.path(), &["b.json", "c.json"]).len(), 2);
        assert_eq!(runs(folder.path(), &["a.json", "d.json"]).len(), 2);
    }

    #[test]
    fn without_a_clock_names_must_say_that_they_are_ranks() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["rank0.json", "rank1.json", "before.json", "after.json"] {
            trace(folder.path(), name, 5, "");
        }
        assert_eq!(runs(folder.path(), &["rank0.json", "rank1.json"]), [["rank0.json", "rank1.json"]]);
        assert_eq!(runs(folder.path(), &["before.json", "after.json"]).len(), 2);
    }
}
