//! Pages that are made of the source.

use std::path::PathBuf;
use std::process::Command;

use crate::run::{Outcome, cargo, run, target, the_cargo};

/// Tests that would call a page stale, and write it when they are told to.
const WRITERS: [(&str, &[&str]); 4] = [
    ("docs/findings.md", &["-p", "stepscope-render", "--test", "findings_doc"]),
    ("docs/sql.md", &["-p", "stepscope-query", "--test", "sql_doc"]),
    ("docs/cli.md", &["-p", "stepscope", "--lib", "reference"]),
    ("docs/json.md and docs/schema", &["-p", "stepscope", "--test", "schemas", "every_schema_that"]),
];

/// Writes the pages.
pub(crate) fn write() -> Outcome {
    for (page, args) in WRITERS {
        let mut test = the_cargo();
        run(page, test.args(["test", "--quiet"]).args(args).env("STEPSCOPE_WRITE_DOCS", "1"))?;
    }
    crate::types::write()
}

/// Records the examples that pages show: all, or those with these names. Uses the Python of `STEPSCOPE_TEST_PYTHON`, and the
/// program that `STEPSCOPE` names instead of a new build.
pub(crate) fn examples(names: &[&str]) -> Outcome {
    let program = match std::env::var_os("STEPSCOPE") {
        Some(program) => PathBuf::from(program),
        None => {
            cargo("program", &["build", "--quiet", "--release", "--package", "stepscope"])?;
            target().join("release/stepscope")
        }
    };
    let python = std::env::var_os("STEPSCOPE_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let mut record = Command::new(python);
    record.args(["-B", "tools/doc_examples.py", "--bin"]).arg(program).args(names);
    run("examples", &mut record)
}
