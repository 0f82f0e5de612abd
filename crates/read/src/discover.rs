//! Finds profiles below a path: a file, a session folder, a whole log directory, or several of these.
//!
//! Users point at whatever they have, and the folder usually contains more than profiles: event files, caches
//! of other tools, several sessions, the same session in two formats. Therefore files are recognised by content
//! and grouped into sessions, newest first. Everything else is counted by kind, so that a message can say what
//! was found instead of a profile.

mod foreign;
mod forms;
mod jobs;
mod known;
mod names;
mod parts;
mod recognise;
mod together;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use stepscope_trace::{Delivers, Format};

use crate::error::ReadError;
use crate::files::{self, FileData};
use crate::folder;
use crate::input::Input;
use crate::{NsysReader, Progress, READERS, Reader};

pub use foreign::Foreign;
use forms::one_per_report;
use jobs::joined;
pub use known::Known;
pub use names::{head_bytes, may_be_profile, may_hold_profiles};
use parts::name_parts;
use together::{recorded_together, runs_of};
use walk::walk;

/// The file that makes a folder a saved run.
pub const RUN_FILE: &str = "run.json";

/// A readable file, or a folder that counts as one.
#[derive(Clone, Debug)]
pub struct ProfileFile {
    /// Its path.
    pub path: PathBuf,
    /// True if it is a folder with one file per table.
    pub is_folder: bool,
    /// Its format.
    pub format: &'static Format,
    /// Its size in bytes.
    pub bytes: u64,
    /// Host on which it was recorded, taken from the file name.
    pub host: String,
    /// Further files of the same recording: runs of one program, one file each.
    pub parts: Vec<PathBuf>,
    /// When it was last written.
    pub modified: SystemTime,
}

impl ProfileFile {
    /// Opens it, with all files of the recording.
    pub fn open(&self) -> Result<Input, ReadError> {
        let parts = self.parts.iter().map(|path| Input::open(path)).collect::<Result<_, _>>()?;
        Ok(Input::open(&self.path)?.with_parts(parts))
    }

    /// When it was last written.
    pub fn modified(&self) -> SystemTime {
        self.modified
    }
}

/// Files that were recorded together, one per host.
#[derive(Clone, Debug)]
pub struct SessionFiles {
    /// Name of the session: that of its folder, or of its only file.
    pub name: String,
    /// The folder.
    pub folder: PathBuf,
    /// Its files, by host.
    pub files: Vec<ProfileFile>,
    /// Files with the same events in another format; they are not read.
    pub duplicates: Vec<PathBuf>,
}

/// A file that is not a profile, but is often mistaken for one.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lookalike {
    /// A TensorBoard event file: scalars, not a profile.
    EventFile,
    /// An Nsight Systems report that must be exported first.
    NsightSystemsReport,
    /// A database, possibly an Nsight Systems export.
    Database,
    /// An Nsight Systems export in an unsupported format.
    NsightSystemsExport,
    /// Progress output of Nsight Compute, without counters.
    NsightComputeProgress,
    /// Some other table: data sets are often stored beside logs.
    Table,
    /// A pickle that would run code when it is loaded.
    RunsCode,
    /// Another pickle than a memory snapshot.
    Pickle,
    /// A result file of a profiler's own tools.
    ToolResult,
    /// A file of another profiler.
    Foreign(Foreign),
    /// An empty file.
    Empty,
    /// A file that could not be opened.
    Unreadable,
    /// Anything else.
    Other,
}

/// What was found below the paths.
#[derive(Debug, Default)]
pub struct Discovery {
    /// Sessions, newest first.
    pub sessions: Vec<SessionFiles>,
    /// Files that are not profiles: how many of each kind, with one example.
    pub others: BTreeMap<Lookalike, (u64, PathBuf)>,
    /// Files that are named like a profile, but hold nothing that can be read.
    pub unread: Vec<PathBuf>,
    /// Number of files examined.
    pub files: u64,
    /// Number of folders searched.
    pub folders: u64,
    /// True if the search ended early because there was too much.
    pub gave_up: bool,
}

/// Searches `paths`. A path that does not exist is an error; a path without profiles is not.
///
/// Several paths form one session if they were recorded together: users who list hosts of one job want them together. Of each
/// path, the newest session counts. Separate runs remain separate sessions.
pub fn discover(paths: &[PathBuf]) -> Result<Discovery, ReadError> {
    discover_within(paths, &[])
}

/// The same, but only below `roots`, which are canonical: links that lead out of them are not followed. Without roots, all
/// links are.
pub fn discover_within(paths: &[PathBuf], roots: &[PathBuf]) -> Result<Discovery, ReadError> {
    let mut known = Known::default();
    let found = walk(paths, &mut known, roots)?;
    Ok(found.grouped(paths.len() > 1))
}

/// The same for somebody who watches: `progress` shows that the search is not stuck, and may stop it.
pub fn discover_watched(paths: &[PathBuf], progress: &Arc<Progress>) -> Result<Discovery, ReadError> {
    let found = walk(paths, &mut Known::watched(progress.clone()), &[])?;
    Ok(found.grouped(paths.len() > 1))
}

/// The same with what earlier searches learned; `None` if nothing changed since the last one. A caller who wants the
/// answer in any case passes `anyway`.
pub fn discover_again(
    paths: &[PathBuf],
    known: &mut Known,
    anyway: bool,
) -> Result<Option<Discovery>, ReadError> {
    known.begin();
    let walked = walk(paths, known, &[]);
    let changed = known.end();
    let walked = walked?;
    Ok((changed || anyway).then(|| walked.grouped(paths.len() > 1)))
}

/// The format of one file, from its first 64 KiB.
pub fn format_of(path: &Path) -> Option<&'static Format> {
    let is_file = files::is_file(path);
    let (reader, _) = is_file.then(|| recognise::reader_of(path).ok()).flatten()?;
    reader.map(Reader::format)
}

/// Runs of one program are in separate files; they are the steps of one recording, ordered by number.
fn join_runs(session: &mut SessionFiles) {
    let is_run = |file: &ProfileFile| file.format.delivers == Delivers::Runs;
    if session.files.iter().filter(|file| is_run(file)).count() < 2 {
        return;
    }
    let (mut runs, others): (Vec<_>, Vec<_>) =
        std::mem::take(&mut session.files).into_iter().partition(is_run);
    runs.sort_by_cached_key(|file| (file.path.parent().map(Path::to_owned), numbers_of(&file.path)));
    let mut runs = runs.into_iter();
    if let Some(mut first) = runs.next() {
        for run in runs {
            first.bytes += run.bytes;
            first.modified = first.modified.max(run.modified);
            first.parts.push(run.path);
        }
        first.host = first.host.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_').to_owned();
        session.files.push(first);
    }
    session.files.extend(others);
}

/// The parts of a file name, so that 10 sorts after 9.
fn numbers_of(path: &Path) -> Vec<(String, u64)> {
    numbers(&file_name(path))
}

/// Each number of a name, behind the text before it.
fn numbers(name: &str) -> Vec<(String, u64)> {
    let (mut pieces, mut text, mut digits) = (Vec::new(), String::new(), String::new());
    for c in name.chars() {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        if !digits.is_empty() {
            pieces.push((std::mem::take(&mut text), digits.parse().unwrap_or(u64::MAX)));
            digits.clear();
        }
        text.push(c);
    }
    pieces.push((text, digits.parse().unwrap_or(0)));
    pieces
}

/// Whether a path, with all links resolved, lies below one of the canonical roots; without roots, all paths do.
pub fn is_within(path: &Path, roots: &[PathBuf]) -> bool {
    roots.is_empty()
        || files::canonical(path).is_ok_and(|real| roots.iter().any(|root| real.starts_with(root)))
}

fn table_folder(folder: &Path, files: &[PathBuf]) -> ProfileFile {
    let path = folder::named(folder);
    let (bytes, modified) = folder::size_and_time(files);
    let host = host_of(&path);
    let format = NsysReader.format();
    ProfileFile { path, is_folder: true, format, bytes, host, parts: Vec::new(), modified }
}

/// Parts of the names of files that profilers' own tools write beside a profile.
const TOOL_RESULTS: &[&str] = &[
    ".overview_page.",
    ".input_pipeline",
    ".tensorflow_stats.",
    ".framework_op_stats.",
    ".kernel_stats.",
    ".memory_profile.",
    ".op_stats",
    ".hlo_proto.pb",
    ".SSTABLE",
    ".cached_tools.json",
];

/// Parts of the names that only profiles have.
const PROFILE_NAMES: &[&str] = &[".xplane.pb", ".trace.json", "_trace.json"];

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Endings of compressed files.
const COMPRESSED: &[&str] = &[".gz", ".zst"];

/// The name without endings that describe the file, not the host.
fn stem(path: &Path) -> String {
    let name = file_name(path);
    let mut stem = name.as_str();
    let endings = || READERS.iter().flat_map(|reader| reader.format().endings).chain(COMPRESSED);
    while let Some(shorter) = endings().find_map(|ending| stem.strip_suffix(ending)) {
        stem = shorter;
    }
    if stem.is_empty() { name } else { stem.to_owned() }
}

/// The host in a file name. PyTorch appends a time: `worker0.1623143089861.pt.trace.json`.
pub(crate) fn host_of(path: &Path) -> String {
    let stem = stem(path);
    match stem.rsplit_once('.') {
        Some((host, time)) if is_time(time) && !host.is_empty() => host.to_owned(),
        _ => stem,
    }
}

/// Milliseconds or nanoseconds since 1970, as PyTorch writes them into file names.
fn is_time(text: &str) -> bool {
    text.len() >= 12 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Groups files into sessions.
///
/// Profiles in one folder below `plugins/profile` are one session, whatever their names. Elsewhere a folder may
/// contain unrelated files, so only files whose names differ in digits alone and that are ranks of one job are grouped.
fn sessions_of(files: Vec<ProfileFile>) -> Vec<SessionFiles> {
    let mut groups: BTreeMap<(PathBuf, String), Vec<ProfileFile>> = BTreeMap::new();
    for file in one_per_report(files) {
        let folder = file.path.parent().map(Path::to_owned).unwrap_or_default();
        let together = if is_session_folder(&folder) {
            String::new()
        } else if file.format.numbered.contains(&without_digits(&file.host).as_str()) {
            file.host.clone()
        } else {
            without_digits(&file.host)
        };
        groups.entry((folder, together)).or_default().push(file);
    }
    let parted = groups.into_iter().flat_map(|((folder, _), files)| {
        let parts = if is_session_folder(&folder) { vec![files] } else { recorded_together(files) };
        parts.into_iter().map(move |files| (folder.clone(), files))
    });
    let sessions = parted.flat_map(|(folder, files)| split_repeats(folder, files)).collect();
    with_samples(completed(sessions))
}

/// A file that cannot be opened, or holds nothing that can be read; its format is not known.
fn closed(path: &Path, data: &FileData) -> ProfileFile {
    ProfileFile {
        path: path.to_owned(),
        is_folder: false,
        format: &CLOSED,
        bytes: data.bytes,
        host: host_of(path),
        parts: Vec::new(),
        modified: data.modified.unwrap_or(SystemTime::UNIX_EPOCH),
    }
}

/// The format of files that cannot be read.
static CLOSED: Format = Format::new("unreadable", "unreadable file", Delivers::Timeline);

/// Adds files that cannot be read to the sessions that they belong to by their names, so that a missing host is named and
/// not passed over. Returns those that were added.
fn add_closed(sessions: &mut [SessionFiles], closed: Vec<ProfileFile>) -> BTreeSet<PathBuf> {
    let mut added = BTreeSet::new();
    for file in closed {
        let folder = file.path.parent().unwrap_or(Path::new(""));
        let is_host = |known: &ProfileFile| {
            let is_timeline = matches!(known.format.delivers, Delivers::Timeline | Delivers::Runs);
            let same_ending =
                known.format.endings.iter().any(|ending| file_name(&file.path).ends_with(ending));
            let numbered = known.format.numbered.contains(&without_digits(&known.host).as_str());
            let same_name = !numbered && without_digits(&known.host) == without_digits(&file.host);
            let beside = known.path.parent() == Some(folder);
            beside && is_timeline && (same_name || (same_ending && is_session_folder(folder)))
        };
        let is_new = |session: &SessionFiles| session.files.iter().all(|known| known.host != file.host);
        let session = sessions.iter_mut().find(|it| is_new(it) && it.files.iter().any(is_host));
        if let Some(session) = session {
            added.insert(file.path.clone());
            session.files.push(file);
            session.files.sort_by(|a, b| a.host.cmp(&b.host));
        }
    }
    added
}

/// Counters of single kernels and samples complement a timeline: if a folder contains exactly one timeline,
/// they belong to it. With several timelines, the right one is unknown.
fn completed(sessions: Vec<SessionFiles>) -> Vec<SessionFiles> {
    let completing =
        |file: &ProfileFile| matches!(file.format.delivers, Delivers::Counters | Delivers::Samples);
    let completes = |session: &SessionFiles| session.files.iter().all(completing);
    let is_timeline = |file: &ProfileFile| file.format.delivers == Delivers::Timeline;
    let (completing, mut timelines): (Vec<SessionFiles>, Vec<SessionFiles>) =
        sessions.into_iter().partition(completes);
    let mut alone = Vec::new();
    for session in completing {
        let mut beside =
            timelines.iter_mut().filter(|it| it.folder == session.folder && it.files.iter().any(is_timeline));
        match (beside.next(), beside.next()) {
            (Some(only), None) => only.files.extend(session.files),
            _ => alone.push(session),
        }
    }
    timelines.extend(alone);
    timelines
}

/// The samples of a saved run belong to every profile below its folder, because they were taken throughout the
/// run. Alone they are a separate session.
fn with_samples(sessions: Vec<SessionFiles>) -> Vec<SessionFiles> {
    let of_run = |session: &SessionFiles| {
        session.files.iter().all(|file| file.format.delivers == Delivers::RunSamples)
            && files::is_file(&session.folder.join(RUN_FILE))
    };
    let (samples, mut profiles): (Vec<SessionFiles>, Vec<SessionFiles>) =
        sessions.into_iter().partition(of_run);
    let mut alone = Vec::new();
    for run in samples {
        let mut below = profiles.iter_mut().filter(|it| it.folder.starts_with(&run.folder)).peekable();
        if below.peek().is_none() {
            alone.push(run);
        } else {
            below.for_each(|session| session.files.extend(run.files.iter().cloned()));
        }
    }
    profiles.extend(alone);
    profiles
}

fn is_session_folder(folder: &Path) -> bool {
    folder.parent().is_some_and(|parent| parent.ends_with("plugins/profile"))
}

fn without_digits(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// A host that appears twice in a folder was recorded twice, or once in two formats. The latter is a duplicate
/// (profilers write a Chrome trace beside the XPlane file, a report beside its export, the same export in
/// another format); the former is a separate session.
fn split_repeats(folder: PathBuf, mut files: Vec<ProfileFile>) -> Vec<SessionFiles> {
    let mut hosts: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for file in &files {
        hosts.entry(file.format.name).or_default().insert(file.host.clone());
    }
    let mut forms = BTreeSet::new();
    files.sort_by_cached_key(|file| {
        (file.is_folder, !file_name(&file.path).ends_with(".sqlite"), file.path.clone())
    });
    let (copies, kept): (Vec<_>, Vec<_>) = files.drain(..).partition(|file| {
        let nameless = file.format.nameless.iter().any(|start| file.host.starts_with(start));
        let originals = file.format.copies.iter().filter_map(|format| hosts.get(format.name));
        let mut copied = originals.map(|hosts| hosts.contains(&file.host) || (nameless && hosts.len() == 1));
        copied.any(|copied| copied) || (file.format.several_forms && !forms.insert(stem(&file.path)))
    });
    let mut rounds: Vec<BTreeMap<String, ProfileFile>> = Vec::new();
    for file in kept {
        match rounds.iter_mut().find(|round| !round.contains_key(&file.host)) {
            Some(round) => drop(round.insert(file.host.clone(), file)),
            None => rounds.push(BTreeMap::from([(file.host.clone(), file)])),
        }
    }
    let duplicates: Vec<PathBuf> = copies.into_iter().map(|file| file.path).collect();
    rounds
        .into_iter()
        .map(|round| session(&folder, round.into_values().collect(), duplicates.clone()))
        .collect()
}

fn session(folder: &Path, files: Vec<ProfileFile>, duplicates: Vec<PathBuf>) -> SessionFiles {
    let name = match &files[..] {
        [only] if !is_session_folder(folder) => file_name(&only.path),
        _ => file_name(folder),
    };
    SessionFiles { name, folder: folder.to_owned(), files, duplicates }
}

/// Files about memory alone come behind all others: beside a timeline, they are details of it.
fn newest_first(mut sessions: Vec<SessionFiles>) -> Vec<SessionFiles> {
    let about_memory =
        |session: &SessionFiles| session.files.iter().all(|file| file.format.delivers == Delivers::Memory);
    sessions.sort_by_key(|session| (about_memory(session), std::cmp::Reverse(age_key(session))));
    sessions
}

/// Profilers name sessions by local time (`2026_11_15_19_29_44`), which survives copying; file times often do
/// not.
fn age_key(session: &SessionFiles) -> (Option<String>, SystemTime, String) {
    let stamp = session.name.get(..19).filter(|stamp| {
        stamp.bytes().enumerate().all(|(i, byte)| match i {
            4 | 7 | 10 | 13 | 16 => byte == b'_',
            _ => byte.is_ascii_digit(),
        })
    });
    let modified = session.files.iter().map(|file| file.modified).max().unwrap_or(SystemTime::UNIX_EPOCH);
    (stamp.map(str::to_owned), modified, session.name.clone())
}

/// Several paths as one session; hosts with equal names get a number.
fn join(sessions: Vec<SessionFiles>) -> Option<SessionFiles> {
    let mut all = sessions.into_iter();
    let mut joined = all.next()?;
    for session in all {
        joined.files.extend(session.files);
        joined.duplicates.extend(session.duplicates);
    }
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for file in &mut joined.files {
        let times = seen.entry(file.host.clone()).or_default();
        *times += 1;
        if *times > 1 {
            file.host = format!("{} ({times})", file.host);
        }
    }
    Some(joined)
}

#[cfg(test)]
mod tests;
