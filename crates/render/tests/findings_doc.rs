//! docs/findings.md is what the rules' own documentation says.

#![expect(clippy::panic, reason = "a test that cannot go on has failed")]

use std::path::Path;

#[test]
fn the_page_of_findings_is_not_stale() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings.md");
    let page = stepscope_render::explain::page();
    if std::env::var_os("STEPSCOPE_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/findings.md is stale: run `cargo xtask docs --write`");
}
