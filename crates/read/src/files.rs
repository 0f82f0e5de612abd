//! Where files are: on this machine, or in a store that the program adds, such as object stores. Everything that looks for
//! files and opens them asks here, so that a URL works wherever a path does, and shows as itself in every message.
//!
//! A store answers from what it listed. A file of a store is opened as a local copy without a name, which vanishes with the
//! last reader. Knows nothing about formats, and nothing about networks.

use std::fs::{self, File};
use std::io::{self, Cursor, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

pub use stepscope_storage::is_url;

/// What is known about a file without opening it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileData {
    /// Whether it is a folder.
    pub is_folder: bool,
    /// Whether it is a file; pipes and devices are neither.
    pub is_file: bool,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was last written.
    pub modified: Option<SystemTime>,
    /// Identity of a folder, whatever links lead to it.
    pub(crate) id: Option<(u64, u64)>,
}

impl FileData {
    /// A folder of a store.
    pub fn folder() -> Self {
        FileData { is_folder: true, is_file: false, bytes: 0, modified: None, id: None }
    }

    /// A file of a store.
    pub fn file(bytes: u64, modified: SystemTime) -> Self {
        FileData { is_folder: false, is_file: true, bytes, modified: Some(modified), id: None }
    }
}

impl From<fs::Metadata> for FileData {
    fn from(data: fs::Metadata) -> Self {
        #[cfg(unix)]
        let id = {
            use std::os::unix::fs::MetadataExt as _;
            Some((data.dev(), data.ino()))
        };
        #[cfg(not(unix))]
        let id = None;
        FileData {
            is_folder: data.is_dir(),
            is_file: data.is_file(),
            bytes: data.len(),
            modified: data.modified().ok(),
            id,
        }
    }
}

/// Files that are not on this machine. Paths are URLs.
pub trait Store: Send + Sync {
    /// Gets ready for a search below a path; with `heads` for one that opens every file's beginning.
    fn search(&self, path: &Path, heads: bool) -> Result<(), StoreError>;
    /// What is known about a file or a folder.
    fn data(&self, path: &Path) -> Result<FileData, StoreError>;
    /// What a folder holds, as far as it matters.
    fn entries(&self, folder: &Path) -> Result<Vec<PathBuf>, StoreError>;
    /// The first bytes of a file, as many as there are.
    fn head(&self, path: &Path, bytes: usize) -> Result<Vec<u8>, StoreError>;
    /// A local copy.
    fn open(&self, path: &Path) -> Result<File, StoreError>;
    /// How far transfers are.
    fn moved(&self) -> Moved;
}

/// How far the transfers of stores are.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes that were copied.
    pub done: u64,
    /// Bytes of all files whose copies have begun.
    pub total: u64,
    /// Names that were listed.
    pub listed: u64,
}

/// Why a store cannot give a file: what was found, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found}; {todo}")]
pub struct StoreError {
    /// Whether the file was replaced while it was read.
    pub changed: bool,
    /// Whether there is nothing of that name.
    pub missing: bool,
    /// What was found.
    pub found: String,
    /// What to do.
    pub todo: String,
}

impl StoreError {
    /// The error of a store inside an error of a file.
    pub fn of(error: &io::Error) -> Option<&StoreError> {
        error.get_ref()?.downcast_ref()
    }
}

impl From<StoreError> for io::Error {
    fn from(error: StoreError) -> Self {
        let kind = if error.missing { io::ErrorKind::NotFound } else { io::ErrorKind::Other };
        io::Error::new(kind, error)
    }
}

static STORE: OnceLock<Box<dyn Store>> = OnceLock::new();

/// Adds the store that URLs are looked up in. A setting of the process, made once: files are opened in many places.
pub fn add_store(store: Box<dyn Store>) {
    // The first one stays.
    let _ = STORE.set(store);
}

/// How far the transfers of the store are; nothing if there is none.
pub fn moved() -> Moved {
    STORE.get().map_or_else(Moved::default, |store| store.moved())
}

/// The store of a URL; `None` for a local path.
fn store(path: &Path) -> Option<Result<&'static dyn Store, StoreError>> {
    is_url(path).then(|| STORE.get().map(|store| &**store).ok_or_else(|| without(path)))
}

/// What a program without a store says.
fn without(path: &Path) -> StoreError {
    let copy = copying(path, true);
    StoreError {
        changed: false,
        missing: false,
        found: "this build of stepscope reads local files only".to_owned(),
        todo: format!(
            "use the Python package (`pip install stepscope`), build with `cargo install stepscope --features remote`, or \
             copy the files first: `{copy}`"
        ),
    }
}

/// A path quoted for a shell.
pub(crate) fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// The command that copies from a store: a file into this folder, or all of a folder into `logs`.
pub(crate) fn copying(path: &Path, folder: bool) -> String {
    let url = shell_word(path);
    let (all, to) = if folder { (" --recursive", "logs/") } else { ("", ".") };
    match path.to_str().and_then(|text| text.split_once("://")).map(|(scheme, _)| scheme) {
        Some("s3" | "s3a") => format!("aws s3 cp{all} {url} {to}"),
        Some("gs") => format!("gcloud storage cp{all} {url} {to}"),
        Some("az" | "abfs" | "abfss") => format!("azcopy copy{all} URL {to}"),
        _ => format!("curl -O {url}"),
    }
}

/// What is known about a file or a folder.
pub fn data(path: &Path) -> io::Result<FileData> {
    match store(path) {
        None => Ok(fs::metadata(path)?.into()),
        Some(store) => Ok(store?.data(path)?),
    }
}

/// Whether it is a file.
pub fn is_file(path: &Path) -> bool {
    data(path).is_ok_and(|data| data.is_file)
}

/// Whether it is a folder.
pub fn is_folder(path: &Path) -> bool {
    data(path).is_ok_and(|data| data.is_folder)
}

/// Gets ready for a search below a path; with `heads` for one that opens every file's beginning.
pub(crate) fn search(path: &Path, heads: bool) -> io::Result<()> {
    match store(path) {
        None => Ok(()),
        Some(store) => Ok(store?.search(path, heads)?),
    }
}

/// What a folder holds, in no order.
pub fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match store(folder) {
        None => Ok(fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect()),
        Some(store) => Ok(store?.entries(folder)?),
    }
}

/// Opens a file for reading. Pipes and devices are refused.
pub fn open(path: &Path) -> io::Result<File> {
    match store(path) {
        None => open_local(path),
        Some(store) => {
            let mut file = store?.open(path)?;
            file.rewind()?;
            Ok(file)
        }
    }
}

/// All bytes of a file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// All bytes of a file; an error if there are more than `most`.
pub fn read_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

/// All text of a file; an error if there are more than `most` bytes, or if it is no text.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let no_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text");
    String::from_utf8(read_at_most(path, most)?).map_err(no_text)
}

/// Opens a file of this machine. A pipe or a device, such as a link to `/dev/zero` in a cloned repository, may never end.
fn open_local(path: &Path) -> io::Result<File> {
    let checked = |data: fs::Metadata| {
        let refused =
            || io::Error::new(io::ErrorKind::InvalidInput, "it is a folder, a pipe, a socket or a device");
        if data.is_file() { Ok(()) } else { Err(refused()) }
    };
    checked(fs::metadata(path)?)?;
    let mut options = File::options();
    options.read(true);
    // The path may lead to something else by now: opening a pipe would wait for somebody who writes to it.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = match options.open(path) {
        // Another process has a lease on the file, which no pipe and no device can have: wait until it gives it back.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => File::open(path)?,
        opened => opened?,
    };
    checked(file.metadata()?)?;
    Ok(file)
}

/// The beginning of a file that can be read at any place: all of a local file, the first bytes of one in a store.
pub(crate) trait Beginning: Read + Seek {}

impl Beginning for File {}
impl Beginning for Cursor<Vec<u8>> {}

/// Opens a file to recognise it, with at least this many bytes.
pub(crate) fn beginning(path: &Path, bytes: usize) -> io::Result<Box<dyn Beginning>> {
    match store(path) {
        None => Ok(Box::new(open_local(path)?)),
        Some(store) => Ok(Box::new(Cursor::new(store?.head(path, bytes)?))),
    }
}

/// The path without links. A URL has none; it must lead to something, and must not contain `..`.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    match store(path) {
        None => fs::canonicalize(path),
        Some(store) => store?.data(path).map(|_| path.to_owned()).map_err(io::Error::from),
    }
}

#[cfg(test)]
mod tests {
    use stepscope_storage::refuse_url;

    use super::*;

    #[test]
    fn only_urls_are_looked_up_elsewhere() {
        for url in ["s3://bucket/x", "gs://b", "https://host/x.json", "abfss://c@a/x"] {
            assert!(is_url(Path::new(url)), "{url}");
        }
        for path in ["/logs/x", "logs", "C://x", "a b://x", "./s3://x", "S3:/x", ""] {
            assert!(!is_url(Path::new(path)), "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn pipes_and_devices_are_refused_at_once_and_long_files_after_their_limit() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, zero, long) =
            (folder.path().join("pipe"), folder.path().join("zero"), folder.path().join("long"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", &zero).unwrap();
        for path in [&pipe, &zero, &folder.path().to_owned()] {
            assert_eq!(read(path).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{}", path.display());
        }
        fs::write(&long, "text").unwrap();
        assert_eq!(read_at_most(&long, 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_text(&long, 4).unwrap(), "text");
        fs::write(&long, b"\xff").unwrap();
        assert_eq!(read_text(&long, 4).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_program_without_a_store_says_how_to_get_one_or_to_copy() {
        let error = data(Path::new("s3://bucket/logs")).unwrap_err();
        let said = StoreError::of(&error).unwrap();
        assert_eq!(said.found, "this build of stepscope reads local files only");
        assert!(
            said.todo.contains("--features remote")
                && said.todo.contains("aws s3 cp --recursive s3://bucket/logs")
        );
        assert!(entries(Path::new("gs://b")).unwrap_err().to_string().contains("gcloud storage cp"));
        assert!(!is_folder(Path::new("az://c/x")) && open(Path::new("az://c/x")).is_err());
        assert!(refuse_url(Path::new("s3://b/out")).is_err() && refuse_url(Path::new("out")).is_ok());
    }
}
