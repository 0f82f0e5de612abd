//! What packages carry beside the program: completions for shells, and manual pages.

mod support;

use std::fs;

use support::{code, stepscope};

#[test]
fn completions_know_every_command_and_its_options() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let output = stepscope().args(["completions", shell]).output().unwrap();
        assert_eq!(code(&output), 0);
        let script = String::from_utf8(output.stdout).unwrap();
        for word in ["report", "kernels", "journal", "markdown", "max-regression"] {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
    }
    assert_eq!(code(&stepscope().args(["completions", "cmd.exe"]).output().unwrap()), 2);
}

#[test]
fn there_is_a_manual_page_for_every_command() {
    let output = stepscope().arg("man").output().unwrap();
    assert_eq!(code(&output), 0);
    let page = String::from_utf8(output.stdout).unwrap();
    assert!(page.contains(".TH stepscope 1") && page.contains("stepscope\\-report(1)"), "{page}");

    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    let output = stepscope().args(["man", "--dir"]).arg(&pages).output().unwrap();
    assert_eq!((code(&output), output.stdout.len()), (0, 0));
    for page in ["stepscope.1", "stepscope-report.1", "stepscope-ops.1", "stepscope-journal-add.1"] {
        assert!(fs::metadata(pages.join(page)).unwrap().len() > 100, "{page}");
    }
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let output = stepscope().args(["man", "--dir"]).arg(&file).output().unwrap();
    assert_eq!(code(&output), 2);
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: cannot write manual pages into"));
}
