//! Limits the disk space of a long sampling run: removes the oldest sessions, and only those of this run.

use std::collections::VecDeque;
use std::fs;
use std::io;

use super::place::WrittenSession;

/// How much to keep.
#[derive(Copy, Clone, Debug, Default)]
pub struct Limits {
    /// Maximum number of sessions.
    pub sessions: Option<usize>,
    /// Maximum total size in bytes.
    pub bytes: Option<u64>,
}

/// The sessions of one run that are still on disk, oldest first.
#[derive(Debug)]
pub struct Keep {
    limits: Limits,
    kept: VecDeque<WrittenSession>,
}

impl Keep {
    /// None yet.
    pub fn new(limits: Limits) -> Self {
        Keep { limits, kept: VecDeque::new() }
    }

    /// Disk space of the kept sessions.
    pub fn bytes(&self) -> u64 {
        self.kept.iter().map(WrittenSession::bytes).sum()
    }

    /// Number of kept sessions.
    pub fn sessions(&self) -> usize {
        self.kept.len()
    }

    /// Adds a session and removes the oldest ones that no longer fit; the new one always stays. Returns the
    /// removed sessions.
    pub fn add(&mut self, session: WrittenSession) -> io::Result<Vec<WrittenSession>> {
        self.kept.push_back(session);
        let mut gone = Vec::new();
        while self.kept.len() > 1 && self.is_over() {
            if let Some(oldest) = self.kept.pop_front() {
                remove(&oldest)?;
                gone.push(oldest);
            }
        }
        Ok(gone)
    }

    fn is_over(&self) -> bool {
        self.limits.sessions.is_some_and(|most| self.kept.len() > most)
            || self.limits.bytes.is_some_and(|most| self.bytes() > most)
    }
}

/// Removes the files that were written, then the folder, unless it contains other files.
fn remove(session: &WrittenSession) -> io::Result<()> {
    for (file, _) in &session.files {
        absent_is_fine(fs::remove_file(file))?;
    }
    match fs::remove_dir(&session.path) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        done => absent_is_fine(done),
    }
}

fn absent_is_fine(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::super::place::SessionFolder;
    use super::*;
    use std::path::Path;
    use std::time::{Duration, UNIX_EPOCH};

    fn write(logdir: &Path, second: u64, bytes: usize) -> WrittenSession {
        let bytes = vec![0; bytes];
        let began = UNIX_EPOCH + Duration::from_secs(second);
        SessionFolder::below(logdir).write(began, [("a".to_owned(), &bytes[..])]).unwrap()
    }

    #[test]
    fn the_oldest_goes_when_there_are_too_many() {
        let logdir = tempfile::tempdir().unwrap();
        let foreign = write(logdir.path(), 1, 10);
        let mut keep = Keep::new(Limits { sessions: Some(2), bytes: None });
        let all: Vec<WrittenSession> = (2..5).map(|second| write(logdir.path(), second, 10)).collect();
        let gone: Vec<WrittenSession> =
            all.iter().flat_map(|session| keep.add(session.clone()).unwrap()).collect();
        assert_eq!(gone, all[..1]);
        assert!(!all[0].path.exists() && all[1].path.exists() && all[2].path.exists());
        assert!(foreign.path.exists(), "others' sessions are none of ours");
    }

    #[test]
    fn the_budget_holds_and_the_newest_stays_even_when_it_alone_is_over() {
        let logdir = tempfile::tempdir().unwrap();
        let mut keep = Keep::new(Limits { sessions: None, bytes: Some(100) });
        for second in 0..5 {
            keep.add(write(logdir.path(), second, 40)).unwrap();
            assert!(keep.bytes() <= 100);
        }
        assert_eq!(keep.sessions(), 2);
        let large = write(logdir.path(), 9, 1000);
        assert_eq!(keep.add(large.clone()).unwrap().len(), 2);
        assert!(large.path.exists());
    }

    #[test]
    fn what_others_put_into_a_session_stays() {
        let logdir = tempfile::tempdir().unwrap();
        let session = write(logdir.path(), 1, 10);
        let note = session.path.join("notes.txt");
        fs::write(&note, "mine").unwrap();
        let mut keep = Keep::new(Limits { sessions: Some(1), bytes: None });
        keep.add(session.clone()).unwrap();
        keep.add(write(logdir.path(), 2, 10)).unwrap();
        assert!(note.exists() && !session.files[0].0.exists());
    }
}
