//! Things that are done in one place: this check reads the sources and fails if another place does them, too.
//!
//! Text leaves the program through `output` and `screen`, which let nothing through that steers a terminal. Files are opened by
//! `stepscope_read::files`, which refuses pipes and devices. Tests may do as they like.

use std::fs;
use std::path::Path;

use crate::run::{Outcome, rust_files};

/// Something that only some files may do.
struct Door {
    /// How it is written.
    calls: &'static [&'static str],
    /// What may follow such a call anywhere: asking does no harm.
    harmless: &'static str,
    /// Ends of the paths of files that may do it, and why.
    allowed: &'static [(&'static str, &'static str)],
    /// What everybody else does.
    instead: &'static str,
}

const DOORS: &[Door] = &[
    Door {
        calls: &["io::stdout()", "io::stderr()"],
        harmless: ".is_terminal()",
        allowed: &[
            ("stepscope/src/output.rs", "is the place"),
            ("stepscope/src/screen.rs", "is the place"),
            ("stepscope/src/commands/mcp.rs", "messages of a protocol, in JSON"),
            ("stepscope/src/commands/run.rs", "passes the summary through the guard itself"),
            ("stepscope/src/commands/monitor.rs", "gives a command its output"),
            ("stepscope/src/commands/gate/again.rs", "gives a command its output"),
            ("capture/src/run/pipes.rs", "passes on what the user's own command prints"),
            ("capture/src/run/signals.rs", "asks for the size of the terminal"),
            ("testkit/src/skip.rs", "speaks to the person who runs the tests"),
        ],
        instead: "`Terminal::stdout` or `Terminal::remark`",
    },
    Door {
        calls: &["fs::read(", "fs::read_to_string(", "File::open("],
        harmless: "\0",
        allowed: &[
            ("read/src/files.rs", "is the place"),
            ("capture/src/sample/file.rs", "files of the system"),
            ("capture/src/bench/command.rs", "files of the system"),
            ("capture/src/run/signals.rs", "the terminal itself"),
            ("serve/src/store/limits.rs", "files of the system"),
            ("stepscope/src/reference.rs", "a test"),
        ],
        instead: "`stepscope_read::files`",
    },
];

/// What tests begin with.
const TESTS: [&str; 3] = ["#[cfg(test)]", "#[cfg(all(test", "#[cfg(all(unix, test"];

/// Looks through the sources.
pub(crate) fn check() -> Outcome {
    let mut wrong = Vec::new();
    let crates = fs::read_dir("crates").map_err(|error| error.to_string())?.flatten();
    for folder in crates.map(|entry| entry.path().join("src")) {
        if folder.starts_with("crates/testkit") {
            continue;
        }
        for file in rust_files(&folder)? {
            let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            wrong.extend(found(&file, &text));
        }
    }
    if wrong.is_empty() {
        println!("==> doors\n    doors: text and files go through one place each");
        return Ok(());
    }
    Err(format!("only one place does this: {}", wrong.join("; ")))
}

/// What a source does that it may not.
fn found(file: &Path, text: &str) -> Vec<String> {
    let is_test = file.file_name().is_some_and(|name| name == "tests.rs");
    let tests = TESTS.iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
    let code = text.get(..tests).unwrap_or(text);
    let lines = || (1..).zip(code.lines()).filter(|(_, line)| !line.trim_start().starts_with("//"));
    let mut wrong = Vec::new();
    for door in DOORS.iter().filter(|_| !is_test) {
        if door.allowed.iter().any(|(path, _)| file.ends_with(path)) {
            continue;
        }
        for (number, line) in lines() {
            let calls = door
                .calls
                .iter()
                .filter(|call| line.split(**call).skip(1).any(|after| !after.starts_with(door.harmless)));
            wrong.extend(
                calls.map(|call| format!("{}:{number} uses {call}; use {}", file.display(), door.instead)),
            );
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_places_themselves_write_and_open() {
        let uses = |path: &str, text: &str| found(Path::new(path), text).len();
        assert_eq!(uses("crates/render/src/x.rs", "let mut out = io::stdout().lock();"), 1);
        assert_eq!(uses("crates/render/src/x.rs", "if io::stdout().is_terminal() {"), 0);
        assert_eq!(uses("crates/render/src/x.rs", "io::stderr().is_terminal(); io::stderr().flush()"), 1);
        assert_eq!(uses("crates/stepscope/src/screen.rs", "io::stdout().lock()"), 0);
        assert_eq!(uses("crates/fleet/src/x.rs", "// fs::read(path)\nlet a = fs::read(path)?;"), 1);
        assert_eq!(uses("crates/fleet/src/x.rs", "#[cfg(test)]\nmod tests { fn a() { fs::read(p); } }"), 0);
        assert_eq!(
            uses("crates/fleet/src/x.rs", "#[cfg(all(test, unix))]\nmod tests { fn a() { fs::read(p); } }"),
            0
        );
    }
}
