//! What a check left out, and how to run it. A machine without a browser, the corpus or the frameworks checks the rest and
//! says so; with `--all` nothing may be left out.

use std::fs;
use std::path::PathBuf;

use crate::run::Outcome;

/// Tests that were skipped write their names here; see `crates/testkit/src/skip.rs`.
const FILE: &str = "target/skipped-tests.txt";

/// Collects what was skipped.
#[derive(Debug, Default)]
pub(crate) struct Skips {
    /// Nothing may be skipped.
    all: bool,
    told: Vec<String>,
}

impl Skips {
    /// Nothing was skipped yet; `all`: nothing may be.
    pub(crate) fn new(all: bool) -> Self {
        Skips { all, told: Vec::new() }
    }

    /// Leaves a part out, or fails where none may be.
    pub(crate) fn skip(&mut self, what: &str, why: &str, how: &str) -> Outcome {
        if self.all {
            return Err(format!("{what} cannot run: {why}; {how}"));
        }
        self.note(what, why, how);
        Ok(())
    }

    /// Leaves a part out that no machine has to have.
    pub(crate) fn note(&mut self, what: &str, why: &str, how: &str) {
        println!("==> {what}\n    {what}: skipped, {why}");
        self.told.push(format!("{what}: {why}; {how}"));
    }

    /// Begins to count tests that skip themselves: the file in which they write it down.
    pub(crate) fn watch_tests(&self) -> Result<PathBuf, String> {
        let file = std::path::absolute(FILE).map_err(|error| error.to_string())?;
        // It is usually not there.
        let _ = fs::remove_file(&file);
        Ok(file)
    }

    /// Takes up what tests wrote down. `live`: those that need frameworks ran apart from the others.
    pub(crate) fn take_tests(&mut self, live: bool) {
        let text = fs::read_to_string(FILE).unwrap_or_default();
        let ran = |needs: &str| live && ["frameworks", "clients", "stores", "azurite"].contains(&needs);
        for (needs, tests) in by_need(&text).into_iter().filter(|(needs, _)| !ran(needs)) {
            let how = match needs.as_str() {
                "corpus" => "STEPSCOPE_CORPUS names a folder of real profiles",
                "frameworks" | "clients" | "stores" | "azurite" => "`cargo xtask live` runs them",
                _ => "install what they need",
            };
            let count = if tests.len() == 1 { "1 test".to_owned() } else { format!("{} tests", tests.len()) };
            self.told.push(format!("{count} without {needs} ({}); {how}", tests.join(", ")));
        }
    }

    /// The last lines of a check.
    pub(crate) fn summary(&self) -> String {
        if self.told.is_empty() {
            return "all checks passed".to_owned();
        }
        format!("skipped:\n    {}\nall other checks passed", self.told.join("\n    "))
    }
}

/// Tests by what they lack, each once.
fn by_need(text: &str) -> Vec<(String, Vec<String>)> {
    let mut all: Vec<(String, String)> = text
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(needs, test)| (needs.to_owned(), test.to_owned()))
        .collect();
    all.sort();
    all.dedup();
    all.chunk_by(|(a, _), (b, _)| a == b)
        .filter_map(|group| {
            let (needs, _) = group.first()?;
            Some((needs.clone(), group.iter().map(|(_, test)| test.clone()).collect()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_counts_once_for_what_it_lacks() {
        let grouped = by_need("corpus\tb\nframeworks\tc\ncorpus\ta\ncorpus\tb\n");
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            grouped,
            [("corpus".to_owned(), names(&["a", "b"])), ("frameworks".to_owned(), names(&["c"]))]
        );
    }

    #[test]
    fn nothing_is_skipped_where_all_is_wanted() {
        assert!(Skips::new(true).skip("page", "no npm", "install Node").is_err());
        let mut some = Skips::new(false);
        assert!(some.skip("page", "no npm", "install Node").is_ok());
        assert_eq!(some.summary(), "skipped:\n    page: no npm; install Node\nall other checks passed");
    }
}
