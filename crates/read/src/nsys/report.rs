//! Reports (`.nsys-rep`, `.qdrep`): the format is not public, but NVIDIA's tool exports it. If the tool is
//! installed, it is called and its output is kept in stepscope's cache; otherwise the message contains the
//! exact command to run.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustc_hash::FxHasher;
use stepscope_trace::{Delivers, Format, Trace};

use super::NsysReader;
use crate::files::shell_word;
use crate::{Input, Progress, ReadError, Reader, files};
use stepscope_storage::{cache_folder, create_cache, restrict};

/// First bytes of every report.
const MAGIC: &[u8] = b"NVIDIA Tegra Profiler Report";

/// How long the tool may take. It needs seconds for most reports and minutes for the largest.
const LIMIT: Duration = Duration::from_secs(15 * 60);
/// How often to look whether it has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Reports of Nsight Systems.
pub(super) static FORMAT: Format = Format {
    endings: &[".nsys-rep", ".qdrep"],
    copies: &[&super::FORMAT],
    numbered: super::FORMAT.numbered,
    ..Format::new("nsys-rep", "nsys-rep", Delivers::Timeline)
};

/// Reads the reports of Nsight Systems through its own export.
#[derive(Debug)]
pub struct NsysReportReader;

impl Reader for NsysReportReader {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn recognises(&self, head: &[u8]) -> bool {
        head.starts_with(MAGIC)
    }

    fn read(&self, input: &Input, progress: &Progress) -> Result<Trace, ReadError> {
        let cache = cache();
        let export = exported(input, find_tool().as_deref(), &cache, LIMIT, progress)?;
        crate::read_with(&NsysReader, &Input::open(&export)?, progress)
    }
}

/// Where exports are kept.
fn cache() -> PathBuf {
    cache_folder().unwrap_or_else(|| env::temp_dir().join("stepscope")).join("nsys")
}

/// The export of a report that was read before.
pub(super) fn known_export(report: &Path) -> Option<PathBuf> {
    let export = cache().join(cached_name(report).ok()?);
    is_whole(&export).then_some(export)
}

/// The version that wrote a report. It stands behind the first words; everything else in the file is NVIDIA's own.
fn version(head: &[u8]) -> Option<String> {
    let rest = head.strip_prefix(MAGIC)?.strip_prefix(b" ")?;
    let end = rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && !b".-_".contains(byte))?;
    let text = std::str::from_utf8(rest.get(..end.min(64))?).ok()?.trim_end_matches('.');
    text.starts_with(|c: char| c.is_ascii_digit()).then(|| text.to_owned())
}

/// The command that exports `report`, for the user to run.
fn command_for(report: &Path) -> String {
    if files::is_url(report) {
        let local = report.file_name().map_or(report, Path::new);
        return format!("{} && {}", files::copying(report, false), command_for(local));
    }
    let export = report.with_extension("sqlite");
    format!("nsys export --type sqlite --output {} {}", shell_word(&export), shell_word(report))
}

/// The export of a report in `cache`, created by `tool` unless it exists already.
fn exported(
    input: &Input,
    tool: Option<&Path>,
    cache: &Path,
    limit: Duration,
    progress: &Progress,
) -> Result<PathBuf, ReadError> {
    let report = input.path();
    let io = |path: &Path| {
        let path = path.to_owned();
        move |error| ReadError::Io { path, error }
    };
    let needed = || ReadError::NeedsExport {
        path: report.to_owned(),
        by: version(&input.head()).map(|version| format!("Nsight Systems {version}")),
        command: command_for(report),
    };
    let export = cache.join(cached_name(report).map_err(io(report))?);
    if is_whole(&export) {
        return Ok(export);
    }
    let tool = tool.ok_or_else(needed)?;
    create_cache(cache).map_err(io(cache))?;
    // Two processes may export at once: each writes its own file and renames it when it is complete.
    let unfinished = export.with_extension(format!("{}.sqlite", std::process::id()));
    // What the tool says goes to a file: a child that it leaves behind cannot keep a pipe open, nor fill it.
    let log = Unfinished(export.with_extension(format!("{}.log", std::process::id())));
    let unfinished = Unfinished(unfinished);
    let said = fs::File::create(&log.0).map_err(io(&log.0))?;
    let copy = files::is_url(report).then(|| copied(input, &export)).transpose()?;
    let local = copy.as_ref().map_or(report, |copy| &copy.0);
    let child = Command::new(tool)
        .args(["export", "--type", "sqlite", "--force-overwrite", "true", "--output"])
        .args([unfinished.0.as_path(), local])
        .stdin(Stdio::null())
        .stdout(said.try_clone().map_err(io(&log.0))?)
        .stderr(said)
        .spawn()
        .map_err(io(tool))?;
    let Some(status) = Running(child).wait(limit, progress).map_err(io(tool))? else {
        let (path, tool) = (report.to_owned(), tool.to_owned());
        return Err(ReadError::ExportTimedOut { path, tool, seconds: limit.as_secs() });
    };
    if status.success() && unfinished.0.is_file() {
        restrict(&unfinished.0);
        fs::rename(&unfinished.0, &export).map_err(io(&export))?;
        return Ok(export);
    }
    Err(ReadError::ExportFailed { path: report.to_owned(), tool: tool.to_owned(), said: last_words(&log.0) })
}

/// Whether there is a database. Anything else in its place, such as half a file, is made again.
fn is_whole(export: &Path) -> bool {
    let mut head = [0; DATABASE.len()];
    files::open(export).and_then(|mut file| file.read_exact(&mut head)).is_ok_and(|()| head == *DATABASE)
}

/// What every database begins with.
const DATABASE: &[u8; 16] = b"SQLite format 3\0";

/// A copy of a report in a store. The tool opens files by their name, so that it needs one, beside the export and readable
/// by nobody else.
fn copied(input: &Input, export: &Path) -> Result<Unfinished, ReadError> {
    let ending = input.path().extension().unwrap_or(OsStr::new("nsys-rep")).to_string_lossy();
    let copy = Unfinished(export.with_extension(format!("{}.{ending}", std::process::id())));
    // What a killed process of the same number left; usually nothing.
    let _ = fs::remove_file(&copy.0);
    let mut options = fs::File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&copy.0).and_then(|mut to| to.write_all(input.raw()));
    written.map_err(|error| ReadError::Io { path: copy.0.clone(), error })?;
    Ok(copy)
}

/// A file that is removed unless it was renamed by then; whether it exists depends on how far the tool got.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A tool at work; it is stopped when it is dropped.
struct Running(Child);

impl Running {
    /// How it ended; `None` if it did not within `limit`.
    fn wait(mut self, limit: Duration, progress: &Progress) -> std::io::Result<Option<ExitStatus>> {
        let began = Instant::now();
        while began.elapsed() < limit {
            progress.check();
            if let Some(status) = self.0.try_wait()? {
                return Ok(Some(status));
            }
            std::thread::sleep(LOOK);
        }
        Ok(None)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Neither does anything to a tool that has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The last line of a failed tool's output: its own reason.
fn last_words(log: &Path) -> String {
    const TAIL: u64 = 4 << 10;
    let mut bytes = Vec::new();
    if let Ok(mut file) = files::open(log) {
        let from = file.metadata().map_or(0, |data| data.len().saturating_sub(TAIL));
        let _ = file.seek(SeekFrom::Start(from)).and_then(|_| file.take(TAIL).read_to_end(&mut bytes));
    }
    let text = String::from_utf8_lossy(&bytes);
    let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
    last.unwrap_or("nothing").chars().take(300).collect()
}

/// A name that changes when the report does.
fn cached_name(report: &Path) -> std::io::Result<String> {
    let data = files::data(report)?;
    let mut hasher = FxHasher::default();
    files::canonical(report)?.hash(&mut hasher);
    data.bytes.hash(&mut hasher);
    data.modified.hash(&mut hasher);
    let stem = report.file_stem().unwrap_or(OsStr::new("report")).to_string_lossy();
    Ok(format!("{stem}-{:016x}.sqlite", hasher.finish()))
}

/// Location of NVIDIA's tool: `NSYS_PATH`, then `PATH`, then the usual installation folders.
fn find_tool() -> Option<PathBuf> {
    let named = env::var_os("NSYS_PATH").map(PathBuf::from).into_iter();
    let named = named.flat_map(|path| [path.join("nsys"), path.join("bin/nsys"), path]);
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).map(|folder| folder.join("nsys")).collect::<Vec<_>>();
    named.chain(on_path).chain(installed()).find(|candidate| candidate.is_file())
}

fn installed() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for product in children(Path::new("/opt/nvidia"), "nsight-systems") {
        found.push(product.join("bin/nsys"));
        // One folder per version; the newest reads what the others cannot.
        for version in children(&product, "") {
            found.extend(["bin/nsys", "target-linux-x64/nsys"].map(|place| version.join(place)));
        }
    }
    found.extend(children(Path::new("/usr/local"), "cuda").into_iter().map(|cuda| cuda.join("bin/nsys")));
    found
}

/// Entries of a folder that start with `start`, in descending order by name.
fn children(folder: &Path, start: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(start));
    let mut paths: Vec<PathBuf> = named.map(|entry| entry.path()).collect();
    paths.sort();
    paths.reverse();
    paths
}

#[cfg(all(test, unix))]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    struct Installed {
        folder: tempfile::TempDir,
        report: PathBuf,
    }

    impl Installed {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let report = folder.path().join("my run.nsys-rep");
            fs::write(&report, b"NVIDIA Tegra Profiler Report 2026.1.3.\0").unwrap();
            Installed { folder, report }
        }

        /// A tool that runs `script`; `$7` is the output file, `$8` the report.
        fn tool(&self, script: &str) -> PathBuf {
            let tool = self.folder.path().join("nsys");
            fs::write(&tool, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
            tool
        }

        fn input(&self) -> Input {
            Input::open(&self.report).unwrap()
        }

        fn export(&self, tool: Option<&Path>) -> Result<PathBuf, ReadError> {
            exported(&self.input(), tool, &self.folder.path().join("cache"), LIMIT, &Progress::new())
        }
    }

    #[test]
    fn the_tool_is_called_once_for_a_report() {
        let place = Installed::new();
        let log = place.folder.path().join("calls");
        let write = "(printf 'SQLite format 3\\0'; cat \"$8\") > \"$7\"";
        let tool = place.tool(&format!("echo \"$@\" >> {}\n{write}", log.display()));
        let export = place.export(Some(&tool)).unwrap();
        assert!(fs::read(&export).unwrap().ends_with(&fs::read(&place.report).unwrap()));
        assert_eq!(place.export(Some(&tool)).unwrap(), export);
        let calls = || fs::read_to_string(&log).unwrap();
        assert_eq!(calls().lines().count(), 1);
        assert!(calls().starts_with("export --type sqlite --force-overwrite true --output "));
        assert_eq!(fs::metadata(&export).unwrap().permissions().mode() & 0o077, 0, "only for this user");
        // What is no export any more is made again.
        for times in [2, 3] {
            fs::remove_file(&export).unwrap();
            match times {
                2 => fs::write(&export, "half").unwrap(),
                _ => std::os::unix::fs::symlink("/dev/zero", &export).unwrap(),
            }
            assert_eq!(place.export(Some(&tool)).unwrap(), export);
            assert!(is_whole(&export) && calls().lines().count() == times);
        }
    }

    #[test]
    fn without_the_tool_the_command_is_told() {
        let place = Installed::new();
        let message = place.export(None).unwrap_err().to_string();
        assert!(message.contains("nsys export --type sqlite --output '"), "{message}");
        assert!(message.contains("my run.sqlite"), "{message}");
    }

    #[test]
    fn a_report_in_a_store_is_copied_first() {
        let command = command_for(Path::new("s3://bucket/my runs/a.nsys-rep"));
        let copy = "aws s3 cp 's3://bucket/my runs/a.nsys-rep' .";
        assert_eq!(command, format!("{copy} && nsys export --type sqlite --output a.sqlite a.nsys-rep"));
        let place = Installed::new();
        let export = place.folder.path().join("a-0123.sqlite");
        let copy = copied(&place.input(), &export).unwrap();
        assert_eq!(copy.0.extension(), Some(OsStr::new("nsys-rep")));
        assert_eq!(fs::read(&copy.0).unwrap(), fs::read(&place.report).unwrap());
        assert_eq!(fs::metadata(&copy.0).unwrap().permissions().mode() & 0o077, 0, "only for this user");
        let path = copy.0.clone();
        drop(copy);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_failed_tool_said_is_passed_on_and_nothing_is_left() {
        let place = Installed::new();
        let tool = place.tool("echo half > \"$7\"; echo 'created in a newer version' >&2; exit 1");
        let message = place.export(Some(&tool)).unwrap_err().to_string();
        assert!(message.contains("created in a newer version"), "{message}");
        assert_eq!(fs::read_dir(place.folder.path().join("cache")).unwrap().count(), 0);
    }

    #[test]
    fn a_tool_that_hangs_is_stopped() {
        let place = Installed::new();
        let tool = place.tool("exec sleep 600");
        let cache = place.folder.path().join("cache");
        let began = Instant::now();
        let limit = Duration::from_millis(100);
        let message = exported(&place.input(), Some(&tool), &cache, limit, &Progress::new()).unwrap_err();
        assert!(matches!(message, ReadError::ExportTimedOut { .. }), "{message}");
        assert!(began.elapsed() < Duration::from_secs(60), "nobody waits for its end");
        assert_eq!(fs::read_dir(cache).unwrap().count(), 0, "nothing is left");
    }

    #[test]
    fn a_tool_is_stopped_with_the_reading_that_wants_it() {
        let place = Installed::new();
        let tool = place.tool("exec sleep 600");
        let cache = place.folder.path().join("cache");
        let progress = Progress::new();
        progress.stop();
        let reading = || exported(&place.input(), Some(&tool), &cache, LIMIT, &progress);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(reading)).unwrap_err();
        assert!(Progress::is_stop(&*caught));
    }
}
