//! The direction of the data inside the analyses: names → states → steps → breakdown → context → one question each →
//! all hosts. A room uses the ones before it; this check fails if a module names one that comes after its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::run::{Outcome, rust_files};

const SOURCES: &str = "crates/analyze/src";

/// The rooms in the order of the data. Rooms in one line do not know one another.
const ORDER: &[&[&str]] = &[
    &["stored"],
    &["vocabulary", "curves"],
    &["states"],
    &["host_trace"],
    &["steps"],
    &["breakdown"],
    &["context"],
    &["analysis", "coverage", "job", "window"],
    &["work"],
    &["time"],
    &["input", "memory", "devices", "recording"],
    &["replay"],
    &["ranks"],
    &["session"],
];

/// Examines the sources.
pub(crate) fn check() -> Outcome {
    let mut wrong = Vec::new();
    for file in rust_files(Path::new(SOURCES))?.iter().filter(|file| !file.ends_with("tests.rs")) {
        let text =
            fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        wrong.extend(
            wrong_uses(&room_of(file), &text).into_iter().map(|to| format!("{} → {to}", file.display())),
        );
    }
    if wrong.is_empty() {
        println!("==> rooms\n    rooms: no module of the analyses uses one that comes after it");
        return Ok(());
    }
    Err(format!("modules of the analyses point the wrong way: {}; see {SOURCES}/lib.rs", wrong.join(", ")))
}

/// `crates/analyze/src/steps/outer.rs` is in `steps`.
fn room_of(file: &Path) -> String {
    let inside = file.strip_prefix(SOURCES).unwrap_or(file);
    let first = inside.components().next().map(|part| part.as_os_str().to_string_lossy().into_owned());
    first.unwrap_or_default().trim_end_matches(".rs").to_owned()
}

/// The rooms that `text`, without its tests, uses and should not.
fn wrong_uses(room: &str, text: &str) -> Vec<String> {
    let places: BTreeMap<&str, usize> = ORDER
        .iter()
        .enumerate()
        .flat_map(|(place, rooms)| rooms.iter().map(move |room| (*room, place)))
        .collect();
    let Some(&own) = places.get(room) else {
        return if ["lib", "sketch", "tests"].contains(&room) {
            Vec::new()
        } else {
            vec!["(not in the list of rooms)".to_owned()]
        };
    };
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text);
    let mut wrong: Vec<String> = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.split("crate::").skip(1))
        .map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default())
        .filter(|to| *to != room && places.get(to).is_some_and(|place| *place >= own))
        .map(str::to_owned)
        .collect();
    wrong.dedup();
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_that_uses_a_later_one_is_found() {
        assert_eq!(wrong_uses("steps", "use crate::states::State;\n"), [""; 0]);
        assert_eq!(wrong_uses("steps", "use crate::breakdown::Shares;\n"), ["breakdown"]);
        assert_eq!(
            wrong_uses("memory", "fn f() { crate::devices::place() }\n"),
            ["devices"],
            "rooms in one line"
        );
        assert_eq!(wrong_uses("steps", "//! See [`crate::breakdown`].\n"), [""; 0]);
        assert_eq!(
            wrong_uses("steps", "#[cfg(test)]\nmod tests {\n    use crate::context::Context;\n"),
            [""; 0]
        );
        assert_eq!(wrong_uses("new", ""), ["(not in the list of rooms)"]);
        assert_eq!(room_of(Path::new("crates/analyze/src/steps/outer.rs")), "steps");
        assert_eq!(room_of(Path::new("crates/analyze/src/window.rs")), "window");
    }
}
