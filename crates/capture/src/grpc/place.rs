//! Location of profiles: `LOGDIR/plugins/profile/<session>/<host>.xplane.pb`, as TensorBoard and XProf expect.
//!
//! A session appears completely or not at all: it is written to a hidden folder, which is then renamed to the
//! session's name in one step. An existing name is never reused.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Extension of profiles.
pub(crate) const EXTENSION: &str = "xplane.pb";
/// Maximum number of sessions that start in the same second; more means a runaway loop.
const MOST_A_SECOND: u32 = 1000;

/// The folder of sessions in a log directory.
#[derive(Clone, Debug)]
pub struct SessionFolder {
    profiles: PathBuf,
}

/// A written session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenSession {
    /// Its name: its start time in UTC.
    pub name: String,
    /// Its folder.
    pub path: PathBuf,
    /// The files that were written, with their sizes.
    pub files: Vec<(PathBuf, u64)>,
}

impl WrittenSession {
    /// Its disk space.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, bytes)| bytes).sum()
    }
}

impl SessionFolder {
    /// The sessions below a log directory. Nothing is created before something is written.
    pub fn below(logdir: &Path) -> Self {
        SessionFolder { profiles: logdir.join("plugins").join("profile") }
    }

    /// A unique folder beside the sessions; not yet created.
    pub fn hidden(&self) -> PathBuf {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let parent = std::path::absolute(&self.profiles).unwrap_or_else(|_| self.profiles.clone());
        parent.join(format!(".stepscope-{}-{number}", std::process::id()))
    }

    /// Writes a session: host name and profile bytes, one per host.
    pub fn write<'p>(
        &self,
        began: SystemTime,
        profiles: impl IntoIterator<Item = (String, &'p [u8])>,
    ) -> io::Result<WrittenSession> {
        let hidden = Hidden::make(self.hidden())?;
        let mut files = Vec::new();
        for (host, bytes) in profiles {
            let name = format!("{host}.{EXTENSION}");
            let mut file = File::create_new(hidden.0.join(&name))?;
            file.write_all(bytes)?;
            file.sync_all()?;
            files.push((name, bytes.len() as u64));
        }
        let path = self.take_name(&hidden, &session_name(began))?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let files = files.into_iter().map(|(name, bytes)| (path.join(name), bytes)).collect();
        Ok(WrittenSession { name, path, files })
    }

    /// Renames the hidden folder to the first free name.
    fn take_name(&self, hidden: &Hidden, name: &str) -> io::Result<PathBuf> {
        for again in 0..MOST_A_SECOND {
            let path = match again {
                0 => self.profiles.join(name),
                again => self.profiles.join(format!("{name}_{}", again + 1)),
            };
            // Renaming silently replaces an empty folder.
            if path.symlink_metadata().is_ok() {
                continue;
            }
            match fs::rename(&hidden.0, &path) {
                Ok(()) => return Ok(path),
                Err(error) if is_taken(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{name} and the names after it are taken")))
    }
}

fn is_taken(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory
    )
}

/// A folder that is removed unless it was renamed.
struct Hidden(PathBuf);

impl Hidden {
    fn make(path: PathBuf) -> io::Result<Self> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::create_dir(&path)?;
        Ok(Hidden(path))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // Already gone if it has become the session.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// `2026_11_16_00_12_33`, in UTC.
pub(crate) fn session_name(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = date(seconds / 86_400);
    let second = seconds % 86_400;
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!("{year:04}_{month:02}_{day:02}_{hour:02}_{minute:02}_{:02}", second % 60)
}

/// Days since 1970 as year, month and day, counting months from March, so that leap days come last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use stepscope_testkit::corpus::names_in as names;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn sessions_are_named_after_their_second() {
        assert_eq!(session_name(at(0)), "1970_01_01_00_00_00");
        assert_eq!(session_name(at(1_709_210_096)), "2024_02_29_12_34_56");
        assert_eq!(session_name(at(4_107_542_399)), "2100_02_28_23_59_59");
    }

    #[test]
    fn a_session_never_takes_the_place_of_another() {
        let logdir = tempfile::tempdir().unwrap();
        let place = SessionFolder::below(logdir.path());
        let write = |bytes: &'static [u8]| place.write(at(5), [("a".to_owned(), bytes)]).unwrap();
        let (first, second) = (write(b"one"), write(b"two"));
        assert_eq!(
            (first.name.as_str(), second.name.as_str()),
            ("1970_01_01_00_00_05", "1970_01_01_00_00_05_2")
        );
        assert_eq!(fs::read(&first.files[0].0).unwrap(), b"one");
        assert_eq!(fs::read(second.path.join("a.xplane.pb")).unwrap(), b"two");
        // Not even of an empty folder that somebody made.
        fs::create_dir(first.path.with_file_name("1970_01_01_00_00_06")).unwrap();
        assert_eq!(place.write(at(6), [("a".to_owned(), &b""[..])]).unwrap().name, "1970_01_01_00_00_06_2");
    }

    #[test]
    fn a_session_that_cannot_be_written_leaves_nothing() {
        let logdir = tempfile::tempdir().unwrap();
        let place = SessionFolder::below(logdir.path());
        // The second file cannot be made: its name is taken by the first.
        let twice = [("a".to_owned(), &b"one"[..]), ("a".to_owned(), &b"two"[..])];
        assert!(place.write(at(5), twice).is_err());
        assert_eq!(names(&logdir.path().join("plugins/profile")), [""; 0]);
    }

    #[test]
    fn a_session_holds_its_hosts_and_nothing_else() {
        let logdir = tempfile::tempdir().unwrap();
        let place = SessionFolder::below(logdir.path());
        let session =
            place.write(at(5), [("a".to_owned(), &b"1"[..]), ("b".to_owned(), &b"22"[..])]).unwrap();
        assert_eq!(names(&session.path), ["a.xplane.pb", "b.xplane.pb"]);
        assert_eq!(names(&logdir.path().join("plugins/profile")), ["1970_01_01_00_00_05"]);
        assert_eq!(session.bytes(), 3);
    }
}
