//! What there is to read: recordings (one job, one session) with their files, cut into pieces of work.
//!
//! Work is plain data that any scheduler can send anywhere. It names every host of a recording by count and id, so that
//! a merge knows when all of them are there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use stepscope_read::discover::{Discovery, ProfileFile, SessionFiles};
use stepscope_read::files;
use stepscope_text::{duration_ms, plural};

use crate::error::FleetError;
use crate::frame::id_of;
use crate::job::{Named, Namer};
use crate::partial::hangs;
use crate::search::{Searched, searched};

/// How to plan.
#[derive(Clone, Debug)]
pub struct Options {
    /// Named groups in a regular expression for paths: `job`, `session`, `host`, `date`; others become labels.
    pub job_pattern: Option<String>,
    /// Leaves out recordings that are older, in seconds since 1970.
    pub since: Option<i64>,
    /// How much a piece of work reads at most, unless one file is larger.
    pub group_bytes: u64,
    /// What does not answer a search for this long is planned as a host that cannot be read.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        let patience = Duration::from_secs(30);
        Options { job_pattern: None, since: None, group_bytes: 1 << 30, patience }
    }
}

/// One recording of one job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Recording {
    /// Its id, made of its inputs.
    pub id: String,
    /// Its job.
    pub job: String,
    /// Its session: one capture of the job.
    pub session: String,
    /// The folder that holds it.
    pub folder: String,
    /// How many inputs it has.
    pub hosts: u32,
    /// When it was recorded, in seconds since 1970, by its name; else when its files were written.
    pub at: i64,
    /// Does its name say so?
    pub dated: bool,
    /// Other named groups of the pattern.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// One file, or a folder that counts as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkInput {
    /// Its id: made of path, size and time of writing.
    pub id: String,
    /// The host that recorded it.
    pub host: String,
    /// Its path.
    pub path: String,
    /// Further files of the same recording.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
    /// Its size.
    pub bytes: u64,
    /// Why it cannot be read, if the plan knows already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// Inputs of one recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The recording.
    pub recording: Recording,
    /// All or some of its inputs.
    pub inputs: Vec<WorkInput>,
}

/// What one task reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Its id: made of its inputs.
    pub id: String,
    /// How much it reads.
    pub bytes: u64,
    /// What it reads.
    pub pieces: Vec<Piece>,
}

impl Work {
    /// The id of a whole plan.
    pub fn plan_id(works: &[Work]) -> String {
        id_of(&works.iter().map(|work| work.id.as_bytes()).collect::<Vec<_>>())
    }
}

/// A file with what its path says, and when it was written in seconds since 1970.
type Member = (Named, WorkInput, i64);
/// What makes a recording: job, session and folder.
type Key = (String, String, String);

/// Lists what there is to read below the paths. The same files give the same plan.
pub fn plan(paths: &[PathBuf], options: &Options) -> Result<Vec<Work>, FleetError> {
    let namer = Namer::new(options.job_pattern.as_deref())?;
    let mut found: BTreeMap<Key, Vec<Member>> = BTreeMap::new();
    let Searched { found: searched, stuck } = searched(paths, options.patience)?;
    for (root, path) in stuck {
        let (key, member) = unsearched(&namer, &paths[root], &path, options.patience);
        found.entry(key).or_default().push(member);
    }
    for (root, discovery) in searched {
        let root = &paths[root];
        let Discovery { sessions, unread, gave_up, .. } = discovery;
        if gave_up {
            return Err(FleetError::Usage(format!(
                "{} holds too many files for one search; the search ended early; give its subfolders one by one",
                root.display()
            )));
        }
        let unread = unread.into_iter().map(|path| (unread_session(&sessions, &path), unread_file(&path)));
        let unread = unread.map(|(session, file)| (session, 1, file));
        let files = numbered(&sessions).flat_map(|(session, number)| {
            session.files.iter().map(move |file| (session.name.clone(), number, of_file(file)))
        });
        for (session, number, (input, modified)) in files.chain(unread) {
            let path = PathBuf::from(&input.path);
            let mut named = namer.name(root, &path, &session);
            // The user's pattern says what belongs together; else discovery does.
            if number > 1 && !named.matched {
                named.session = format!("{} ({number})", named.session);
            }
            let folder =
                path.parent().map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default();
            found
                .entry((named.job.clone(), named.session.clone(), folder))
                .or_default()
                .push((named, input, modified));
        }
    }
    if let Some((_, input, _)) = found.values().flatten().next()
        && options.job_pattern.is_some()
        && !found.values().flatten().any(|(named, ..)| named.matched)
    {
        let files = found.values().map(Vec::len).sum::<usize>() as u64;
        return Err(FleetError::Usage(format!(
            "--job-pattern matches no path; found {}, for example {}; correct the pattern, which is matched \
             against whole paths",
            plural(files, "file", "files"),
            input.path
        )));
    }
    let recordings =
        found.into_iter().map(|((job, session, folder), members)| piece(job, session, folder, members));
    let wanted = recordings.filter(|piece| options.since.is_none_or(|since| piece.recording.at >= since));
    Ok(grouped(wanted, options.group_bytes.max(1)))
}

/// A path that does not answer, as a host that was to be read now. Only its name is known: asking for more would hang as
/// well.
fn unsearched(namer: &Namer, root: &Path, path: &Path, patience: Duration) -> (Key, Member) {
    let text = path.to_string_lossy().into_owned();
    let name = path.file_name().map_or_else(|| text.clone(), |name| name.to_string_lossy().into_owned());
    let host = name.split('.').next().filter(|host| !host.is_empty()).unwrap_or(&name).to_owned();
    // A name with an ending is a file among those of its recording; any other may be a mount, which is a job of its own.
    let (named, folder) = if path.extension().is_some() && path != root {
        let folder = path.parent().map(|folder| folder.to_string_lossy().into_owned());
        (namer.name(root, path, &name), folder.unwrap_or_default())
    } else {
        let below = path.strip_prefix(root).ok().filter(|below| !below.as_os_str().is_empty());
        let job = below.map_or_else(|| name.clone(), |below| below.to_string_lossy().into_owned());
        (Named { job, session: name, ..Named::default() }, text.clone())
    };
    let input = WorkInput {
        id: id_of(&[text.as_bytes()]),
        host,
        parts: Vec::new(),
        bytes: 0,
        trouble: Some(hangs(&text, &duration_ms(patience.as_secs_f64() * 1e3))),
        path: text,
    };
    let now = (since_epoch(SystemTime::now()) / 1_000_000_000) as i64;
    ((named.job.clone(), named.session.clone(), folder), (named, input, now))
}

fn piece(job: String, session: String, folder: String, members: Vec<Member>) -> Piece {
    let named = members.iter().find_map(|(named, ..)| named.at);
    let written = members.iter().map(|(_, _, modified)| *modified).max().unwrap_or(0);
    let labels = members.first().map(|(named, ..)| named.labels.clone()).unwrap_or_default();
    let mut inputs: Vec<WorkInput> = members
        .into_iter()
        .map(|(named, input, _)| WorkInput { host: named.host.unwrap_or(input.host), ..input })
        .collect();
    inputs.sort_by(|a, b| (&a.host, &a.id).cmp(&(&b.host, &b.id)));
    inputs.dedup_by(|a, b| a.id == b.id);
    let mut ids = vec![job.as_bytes(), session.as_bytes(), folder.as_bytes()];
    ids.extend(inputs.iter().map(|input| input.id.as_bytes()));
    let id = id_of(&ids);
    let hosts = u32::try_from(inputs.len()).unwrap_or(u32::MAX);
    let (at, dated) = (named.unwrap_or(written), named.is_some());
    Piece { recording: Recording { id, job, session, folder, hosts, at, dated, labels }, inputs }
}

/// Packs pieces into work of about the same size, in order; a recording that is too large is cut.
fn grouped(pieces: impl Iterator<Item = Piece>, most: u64) -> Vec<Work> {
    let mut works: Vec<Work> = Vec::new();
    let mut current = Work { id: String::new(), bytes: 0, pieces: Vec::new() };
    let mut close = |current: &mut Work| {
        if !current.pieces.is_empty() {
            let inputs = current.pieces.iter().flat_map(|piece| &piece.inputs);
            current.id = id_of(&inputs.map(|input| input.id.as_bytes()).collect::<Vec<_>>());
            works.push(std::mem::replace(current, Work { id: String::new(), bytes: 0, pieces: Vec::new() }));
        }
    };
    for Piece { recording, inputs } in pieces {
        let size: u64 = inputs.iter().map(|input| input.bytes).fold(0, u64::saturating_add);
        // A recording that fits stays whole, so that its task can finish it.
        if current.bytes.saturating_add(size) > most {
            close(&mut current);
        }
        let mut part = Piece { recording: recording.clone(), inputs: Vec::new() };
        for input in inputs {
            if current.bytes > 0
                && current.bytes.saturating_add(input.bytes) > most
                && !part.inputs.is_empty()
            {
                current.pieces.push(std::mem::replace(
                    &mut part,
                    Piece { recording: recording.clone(), inputs: Vec::new() },
                ));
                close(&mut current);
            }
            current.bytes = current.bytes.saturating_add(input.bytes);
            part.inputs.push(input);
        }
        current.pieces.push(part);
    }
    close(&mut current);
    works
}

fn of_file(file: &ProfileFile) -> (WorkInput, i64) {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let modified = since_epoch(file.modified);
    let path = text(&file.path);
    let id = id_of(&[path.as_bytes(), &file.bytes.to_le_bytes(), &modified.to_le_bytes()]);
    let parts = file.parts.iter().map(|part| text(part)).collect();
    let input = WorkInput { id, host: file.host.clone(), path, parts, bytes: file.bytes, trouble: None };
    (input, (modified / 1_000_000_000) as i64)
}

/// A file that discovery could not use. Reading it gives the reason.
fn unread_file(path: &Path) -> (WorkInput, i64) {
    let data = files::data(path);
    let bytes = data.as_ref().map_or(0, |data| data.bytes);
    let modified = since_epoch(data.ok().and_then(|data| data.modified).unwrap_or(UNIX_EPOCH));
    let name = path.to_string_lossy().into_owned();
    let id = id_of(&[name.as_bytes(), &bytes.to_le_bytes(), &modified.to_le_bytes()]);
    let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let host = file.split('.').next().filter(|host| !host.is_empty()).unwrap_or(&file).to_owned();
    (
        WorkInput { id, host, path: name, parts: Vec::new(), bytes, trouble: None },
        (modified / 1_000_000_000) as i64,
    )
}

/// The session beside which such a file lies; else its own name.
/// The sessions, each with its number among those of the same name in the same folder, from the oldest on: separate runs of one
/// job may lie side by side.
fn numbered(sessions: &[SessionFiles]) -> impl Iterator<Item = (&SessionFiles, u32)> {
    let mut seen: BTreeMap<(&Path, &str), u32> = BTreeMap::new();
    sessions.iter().rev().map(move |session| {
        let number = seen.entry((session.folder.as_path(), session.name.as_str())).or_default();
        *number += 1;
        (session, *number)
    })
}

fn unread_session(sessions: &[SessionFiles], path: &Path) -> String {
    let beside = sessions.iter().find(|session| Some(session.folder.as_path()) == path.parent());
    let own = || path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    beside.map_or_else(own, |session| session.name.clone())
}

fn since_epoch(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).ok().and_then(|since| u64::try_from(since.as_nanos()).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(job: &str, sizes: &[u64]) -> Piece {
        let input = |(at, bytes): (usize, &u64)| {
            let input = WorkInput {
                id: format!("{job}{at}"),
                host: format!("h{at}"),
                path: format!("/{job}/{at}"),
                parts: Vec::new(),
                bytes: *bytes,
                trouble: None,
            };
            (Named::default(), input, 0)
        };
        piece(job.to_owned(), "s".to_owned(), "/".to_owned(), sizes.iter().enumerate().map(input).collect())
    }

    #[test]
    fn small_recordings_share_work_and_large_ones_are_cut() {
        let pieces = [of("a", &[10, 10]), of("b", &[10]), of("c", &[40, 40, 40]), of("d", &[5])];
        let works = grouped(pieces.into_iter(), 50);
        let shape: Vec<Vec<(String, usize)>> = works
            .iter()
            .map(|work| work.pieces.iter().map(|it| (it.recording.job.clone(), it.inputs.len())).collect())
            .collect();
        let named =
            |all: &[(&str, usize)]| all.iter().map(|(job, n)| ((*job).to_owned(), *n)).collect::<Vec<_>>();
        let expected = [
            named(&[("a", 2), ("b", 1)]),
            named(&[("c", 1)]),
            named(&[("c", 1)]),
            named(&[("c", 1), ("d", 1)]),
        ];
        assert_eq!(shape, expected);
        assert!(
            works
                .iter()
                .flat_map(|work| &work.pieces)
                .all(|it| it.recording.job != "c" || it.recording.hosts == 3)
        );
        assert!(grouped(std::iter::empty(), 50).is_empty());
    }

    #[test]
    fn separate_runs_in_one_folder_are_separate_recordings() {
        let folder = tempfile::tempdir().unwrap();
        for (minute, ranks) in [(0, [0, 1]), (9, [1, 0])] {
            for rank in ranks {
                let start = 1_700_000_000_000_000_u64 + minute * 60_000_000;
                let text = format!(
                    "{{\"schemaVersion\": 1, \"distributedInfo\": {{\"rank\": {rank}, \"world_size\": 2}}, \"traceEvents\": \
                     [{{\"ph\": \"X\", \"name\": \"aten::add\", \"pid\": 1, \"tid\": 1, \"ts\": {start}, \"dur\": 5}}]}}"
                );
                let name = format!("box_{rank}{minute}.{}.pt.trace.json", start / 1_000 + 10);
                std::fs::write(folder.path().join(name), text).unwrap();
            }
        }
        let works = plan(&[folder.path().to_owned()], &Options::default()).unwrap();
        let recordings: Vec<(u32, &str)> = works
            .iter()
            .flat_map(|work| &work.pieces)
            .map(|piece| (piece.recording.hosts, piece.recording.session.as_str()))
            .collect();
        assert_eq!(recordings.len(), 2, "{recordings:?}");
        assert!(recordings.iter().all(|(hosts, _)| *hosts == 2), "{recordings:?}");
        assert!(recordings.iter().any(|(_, session)| session.ends_with(" (2)")), "{recordings:?}");
    }
}
