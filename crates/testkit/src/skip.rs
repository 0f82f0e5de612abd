//! Tests that cannot run everywhere. What such a test needs is missing on many machines, and Rust's test runner knows no
//! skipping at run time, so a skipped test says so itself: in a line on standard error that the runner does not swallow,
//! and in the file that `STEPSCOPE_SKIPPED` names, from which `cargo xtask check` counts. Where `STEPSCOPE_EXPECT` lists
//! what is missing (`corpus,frameworks`), the test fails instead.
#![expect(clippy::panic, reason = "a test that must run and cannot has failed")]

use std::fs::OpenOptions;
use std::io::Write as _;

/// What a test may need beyond the repository.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Real profiles.
    Corpus,
    /// A Python with TensorFlow and JAX.
    Frameworks,
    /// A Python with the clients and servers that stepscope speaks to.
    Clients,
    /// A Python with a server of an object store.
    Stores,
    /// Azurite, the emulator of Azure's object store.
    Azurite,
    /// A C compiler.
    Compiler,
}

impl Needs {
    /// Its name in `STEPSCOPE_EXPECT`.
    pub fn key(self) -> &'static str {
        match self {
            Needs::Corpus => "corpus",
            Needs::Frameworks => "frameworks",
            Needs::Clients => "clients",
            Needs::Stores => "stores",
            Needs::Azurite => "azurite",
            Needs::Compiler => "compiler",
        }
    }
}

/// Skips the running test, which returns right after. Panics where what it needs is expected to be there.
pub fn skip(needs: Needs, why: &str) {
    let expected = std::env::var("STEPSCOPE_EXPECT").unwrap_or_default();
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    if is_expected(&expected, needs) {
        panic!("{test} cannot run: {why}; STEPSCOPE_EXPECT={expected} wants it to");
    }
    let line = format!("skipped {test}: {why}\n");
    // Written past the macros, whose output the test runner keeps to itself. Nothing can be done where it fails.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(file) = std::env::var_os("STEPSCOPE_SKIPPED") {
        let opened = OpenOptions::new().create(true).append(true).open(file);
        let _ = opened.and_then(|mut file| file.write_all(format!("{}\t{test}\n", needs.key()).as_bytes()));
    }
}

fn is_expected(list: &str, needs: Needs) -> bool {
    list.split(',').any(|name| name.trim() == needs.key())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_is_expected() {
        assert!(is_expected("frameworks, corpus", Needs::Corpus));
        assert!(!is_expected("frameworks", Needs::Corpus));
        assert!(!is_expected("", Needs::Corpus) && !is_expected("corpus2", Needs::Corpus));
    }
}
