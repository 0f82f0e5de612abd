//! Sessions that are one recording of a job. Workers that record themselves into one log directory get a session folder each,
//! named by the second in which they stopped. They belong together if they were recorded at the same time *and* took part in
//! the same collectives: the numbers that TensorFlow and XLA give these are equal on all workers, and so is their rhythm.
//!
//! Only sessions that stopped within a minute of each other are looked into, and only files of moderate size: reading them is
//! the only way to see their collectives.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use stepscope_trace::{Delivers, Time, Trace, TrackKind};

use super::recognise::reader_of;
use super::{ProfileFile, SessionFiles, is_session_folder, join, newest_first};
use crate::input::Input;
use crate::{Progress, Recorded};

/// Workers of one job stop recording at the same step.
const TOGETHER: Duration = Duration::from_secs(60);
/// Larger files are not read just to find out whether they belong together.
const LARGEST: u64 = 64 << 20;
/// Collectives that are compared.
const KEPT: usize = 4_096;
/// Fewer common collectives prove nothing.
const FEWEST: usize = 3;
/// Recordings overlap by this share of the shorter one.
const OVERLAP: f64 = 0.5;
/// Ends of common collectives keep their distance up to this share of the time that they cover …
const STEADY: f64 = 0.1;
/// … in this share of them.
const MOST: f64 = 0.8;
/// Sessions that are looked into at most, so that a folder of thousands is not read.
const LOOKED_INTO: usize = 64;

/// Joins sessions that are workers of one job; the others stay as they are. Sessions are newest first.
pub(super) fn joined(sessions: Vec<SessionFiles>) -> Vec<SessionFiles> {
    let candidates = near(&sessions);
    if candidates.is_empty() {
        return sessions;
    }
    let signs: BTreeMap<usize, Signs> = candidates
        .into_iter()
        .take(LOOKED_INTO)
        .filter_map(|place| Some((place, Signs::of(&sessions[place])?)))
        .collect();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (place, own) in &signs {
        let fits = |group: &&mut Vec<usize>| {
            group.iter().any(|other| signs.get(other).is_some_and(|other| own.is_of_one_job(other)))
        };
        match groups.iter_mut().find(fits) {
            Some(group) => group.push(*place),
            None => groups.push(vec![*place]),
        }
    }
    let mut left: Vec<Option<SessionFiles>> = sessions.into_iter().map(Some).collect();
    let mut all = Vec::new();
    for group in groups.into_iter().filter(|group| group.len() > 1) {
        let mut parts: Vec<SessionFiles> = group.into_iter().filter_map(|place| left[place].take()).collect();
        parts.sort_by(|a, b| a.folder.cmp(&b.folder));
        all.extend(join(parts));
    }
    all.extend(left.into_iter().flatten());
    newest_first(all)
}

/// The places of sessions that stopped shortly before or after another one, in log directories of a profiler.
fn near(sessions: &[SessionFiles]) -> Vec<usize> {
    let fits = |session: &SessionFiles| {
        is_session_folder(&session.folder)
            && timelines(session).next().is_some()
            && timelines(session).all(|file| file.bytes <= LARGEST && file.path.is_file())
    };
    let mut stops: Vec<(u64, usize)> = sessions
        .iter()
        .enumerate()
        .filter(|(_, session)| fits(session))
        .filter_map(|(place, session)| Some((stopped(session)?, place)))
        .collect();
    stops.sort_unstable();
    let mut found: Vec<usize> = Vec::new();
    for two in stops.windows(2) {
        if two[1].0 - two[0].0 <= TOGETHER.as_secs() {
            found.extend([two[0].1, two[1].1]);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The files that show what ran when; samples and snapshots of memory may lie beside them.
fn timelines(session: &SessionFiles) -> impl Iterator<Item = &ProfileFile> {
    session.files.iter().filter(|file| file.format.delivers == Delivers::Timeline)
}

/// The second in which a session stopped: its name, else when its files were written.
fn stopped(session: &SessionFiles) -> Option<u64> {
    let numbers: Vec<u64> = session.name.split('_').filter_map(|part| part.parse().ok()).collect();
    if let [year, month, day, hour, minute, second] = numbers[..] {
        // Only differences matter, and only small ones.
        let days = (year.saturating_mul(12) + month).saturating_mul(31) + day;
        return Some((days.saturating_mul(24) + hour).saturating_mul(3_600) + minute * 60 + second);
    }
    let written = session.files.iter().map(|file| file.modified).max()?;
    written.duration_since(SystemTime::UNIX_EPOCH).ok().map(|since| since.as_secs())
}

/// What a session says about its job.
struct Signs {
    time: Recorded,
    /// When collectives ended, in nanoseconds since 1970, by their numbers.
    ends: BTreeMap<(u64, i64), i64>,
}

impl Signs {
    fn of(session: &SessionFiles) -> Option<Self> {
        let file = timelines(session).next()?;
        let (reader, _) = reader_of(&file.path).ok()?;
        let input = Input::open(&file.path).ok()?;
        let time = reader?.recorded(&input)?;
        let trace = reader?.read(&input, &Progress::new()).ok()?;
        let ends = collectives(&trace);
        (ends.len() >= FEWEST).then_some(Signs { time, ends })
    }

    fn is_of_one_job(&self, other: &Signs) -> bool {
        let common: Vec<(i64, i64)> =
            self.ends.iter().filter_map(|(key, own)| Some((*own, *other.ends.get(key)?))).collect();
        if common.len() < FEWEST || !overlap(self.time, other.time) {
            return false;
        }
        let mut apart: Vec<i64> = common.iter().map(|(own, other)| own.saturating_sub(*other)).collect();
        apart.sort_unstable();
        let middle = apart[apart.len() / 2];
        let first = common.iter().map(|(own, _)| *own).min().unwrap_or(0);
        let last = common.iter().map(|(own, _)| *own).max().unwrap_or(0);
        let most = (last.saturating_sub(first) as f64 * STEADY).max(1.0);
        let steady = apart.iter().filter(|apart| (apart.saturating_sub(middle)).abs() as f64 <= most).count();
        steady as f64 >= MOST * apart.len() as f64
    }
}

/// Do both times overlap enough? One that does not say when it ended only has to start within the other.
fn overlap(a: Recorded, b: Recorded) -> bool {
    let (Some(a_end), Some(b_end)) = (a.end_ns, b.end_ns) else {
        return a.start_ns.abs_diff(b.start_ns) <= TOGETHER.as_nanos() as u64;
    };
    let common = a_end.min(b_end).saturating_sub(a.start_ns.max(b.start_ns));
    let shorter = a_end.saturating_sub(a.start_ns).min(b_end.saturating_sub(b.start_ns));
    common as f64 >= OVERLAP * shorter as f64 && common > 0
}

/// When collectives with a number of their own ended.
fn collectives(trace: &Trace) -> BTreeMap<(u64, i64), i64> {
    let key = |name: &str| trace.strings().find(name);
    let origin = trace.clock().wall_ns_at_origin.unwrap_or(0);
    let mut ends = BTreeMap::new();
    let numbers = [(0_u64, key("instance_key")), (1, key("run_id"))];
    for (sort, number) in numbers.into_iter().filter_map(|(sort, key)| Some((sort, key?))) {
        let kinds = trace.kinds_where(|kind| {
            let name = trace.kind_name(kind).to_ascii_lowercase();
            let exchanges = ["collective", "reduce", "gather", "permute", "psum", "all-to-all"];
            exchanges.iter().any(|part| name.contains(part))
        });
        for track in trace.tracks().iter().filter(|track| track.kind == TrackKind::Thread) {
            for (index, _) in track.events_of(&kinds) {
                let Some(value) = trace.args_at(track, index).get(number).and_then(|value| value.as_i64())
                else {
                    continue;
                };
                if ends.len() < KEPT {
                    let end = origin.saturating_add((track.end(index) - Time::ZERO).ps() / 1_000);
                    let last = ends.entry((sort, value)).or_insert(end);
                    *last = end.max(*last);
                }
            }
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs(start_s: i64, keys: std::ops::Range<i64>, pace_ms: i64) -> Signs {
        let start_ns = start_s * 1_000_000_000;
        let end = |key: i64| start_ns + (key - keys.start) * pace_ms * 1_000_000;
        let ends = keys.clone().map(|key| ((0, key), end(key))).collect();
        Signs { time: Recorded { start_ns, end_ns: Some(end(keys.end)) }, ends }
    }

    #[test]
    fn the_same_collectives_at_the_same_time_are_one_job() {
        let one = signs(1_000, 100..160, 100);
        assert!(one.is_of_one_job(&signs(1_000, 100..160, 100)));
        // Another machine's clock is two seconds off, and its recording began ten collectives later.
        assert!(one.is_of_one_job(&signs(1_003, 110..160, 100)));
    }

    #[test]
    fn other_times_other_numbers_and_another_pace_are_other_jobs() {
        let one = signs(1_000, 100..160, 100);
        assert!(!one.is_of_one_job(&signs(1_010, 100..160, 100)), "one after the other");
        assert!(!one.is_of_one_job(&signs(1_000, 300..360, 100)), "no common collective");
        assert!(!one.is_of_one_job(&signs(1_000, 100..160, 210)), "the same numbers, half as fast");
    }
}
