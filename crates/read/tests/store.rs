//! A store in place of the file system: everything that finds and reads files takes its URLs.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use stepscope_read::discover::discover;
use stepscope_read::files::{FileData, Moved, Store, StoreError, add_store, canonical, is_folder};
use stepscope_read::tfevents::find_runs;
use stepscope_read::{Progress, open};
use stepscope_testkit::corpus::repository;

static OPENED: AtomicUsize = AtomicUsize::new(0);
static SEARCHED: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Shelf(BTreeMap<PathBuf, Vec<u8>>);

fn missing() -> StoreError {
    StoreError {
        changed: false,
        missing: true,
        found: "nothing".to_owned(),
        todo: "look elsewhere".to_owned(),
    }
}

impl Store for Shelf {
    fn search(&self, path: &Path, _: bool) -> Result<(), StoreError> {
        SEARCHED.lock().unwrap().push(path.display().to_string());
        Ok(())
    }

    fn data(&self, path: &Path) -> Result<FileData, StoreError> {
        match self.0.get(path) {
            Some(bytes) => Ok(FileData::file(bytes.len() as u64, SystemTime::UNIX_EPOCH)),
            None if self.0.keys().any(|key| key.starts_with(path)) => Ok(FileData::folder()),
            None => Err(missing()),
        }
    }

    fn entries(&self, folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
        let below = self.0.keys().filter_map(|key| key.strip_prefix(folder).ok()?.components().next());
        let mut entries: Vec<PathBuf> = below.map(|name| folder.join(name)).collect();
        entries.dedup();
        Ok(entries)
    }

    fn head(&self, path: &Path, bytes: usize) -> Result<Vec<u8>, StoreError> {
        let all = self.0.get(path).ok_or_else(missing)?;
        Ok(all.get(..bytes).unwrap_or(all).to_vec())
    }

    fn open(&self, path: &Path) -> Result<File, StoreError> {
        OPENED.fetch_add(1, Ordering::Relaxed);
        let mut file = tempfile::tempfile().unwrap();
        // The readers begin at the start, wherever the copy left its end.
        file.write_all(self.0.get(path).ok_or_else(missing)?).unwrap();
        Ok(file)
    }

    fn moved(&self) -> Moved {
        Moved::default()
    }
}

#[test]
fn profiles_of_a_store_are_found_and_read_under_their_urls() {
    let session = "plugins/profile/2026_01_01_00_00_00";
    let folder = repository().join("fixtures/tf-train").join(session);
    let mut files = BTreeMap::new();
    let mut profile = None;
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let url = PathBuf::from(format!("s3://bucket/logs/run/{session}")).join(entry.file_name());
        if url.to_string_lossy().ends_with(".xplane.pb") {
            profile = Some((url.clone(), entry.path()));
        }
        files.insert(url, std::fs::read(entry.path()).unwrap());
    }
    files.insert(PathBuf::from("s3://bucket/logs/run/events.out.tfevents.1.vm"), b"not whole".to_vec());
    let (profile, local) = profile.unwrap_or_else(|| panic!("the fixture has no profile"));
    add_store(Box::new(Shelf(files)));

    let root = PathBuf::from("s3://bucket/logs");
    let found = discover(std::slice::from_ref(&root)).unwrap();
    let files: Vec<&Path> = found.sessions[0].files.iter().map(|file| file.path.as_path()).collect();
    assert_eq!(files, [profile.as_path()]);
    assert_eq!(profile.display().to_string().get(..17), Some("s3://bucket/logs/"), "both slashes");
    assert_eq!(found.sessions[0].name, "2026_01_01_00_00_00");
    assert_eq!(OPENED.load(Ordering::Relaxed), 0, "beginnings are enough to recognise");

    let (there, here) = (open(&profile, &Progress::new()).unwrap(), open(&local, &Progress::new()).unwrap());
    assert_eq!((there.trace.events(), there.bytes), (here.trace.events(), here.bytes));
    assert_eq!(OPENED.load(Ordering::Relaxed), 1);

    let runs = find_runs(&root);
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].0, "run");
    assert!(is_folder(&root) && canonical(&root.join("run")).is_ok() && canonical(&root.join("no")).is_err());
    assert_eq!(*SEARCHED.lock().unwrap(), ["s3://bucket/logs", "s3://bucket/logs"]);
    let error = discover(&[PathBuf::from("s3://bucket/nothing")]).unwrap_err().to_string();
    assert_eq!(error, "cannot read s3://bucket/nothing: nothing; look elsewhere");
}
