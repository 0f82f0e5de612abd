//! `docs/cli.md`, written from the command line. The test fails when the page is out of date; run it with
//! `STEPSCOPE_WRITE_DOCS=1` to renew the page, as `cargo xtask docs --write` does.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, Command, CommandFactory as _};

use crate::cli::Cli;

const HEAD: &str = "# The command line\n\n\
    <!-- Written from the program's own help by a test (crates/stepscope/src/reference.rs); do not edit. -->\n\n";

const PROMISES: &str = include_str!("reference.md");

/// The page.
fn page() -> String {
    let mut program = Cli::command();
    program.build();
    let mut page = format!("{HEAD}{PROMISES}\n## Options of every command\n\n");
    arguments(&mut page, program.get_arguments().filter(|arg| arg.is_global_set()));
    for command in program.get_subcommands() {
        section(&mut page, command, "##");
    }
    page
}

/// One command, and the commands below it.
fn section(page: &mut String, command: &Command, heading: &str) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let _ = writeln!(page, "\n{heading} `{name}`\n");
    let about = command.get_long_about().or(command.get_about());
    if let Some(about) = about {
        let _ = writeln!(page, "{}\n", plain(&about.to_string()));
    }
    let usage = command.clone().render_usage().to_string();
    let _ = writeln!(page, "```text\n{}\n```\n", usage.trim_start_matches("Usage: ").trim());
    arguments(page, command.get_arguments().filter(|arg| !arg.is_global_set()));
    if let Some(after) = command.get_after_help() {
        let after = after.to_string();
        let (title, lines) = after.split_once('\n').unwrap_or(("", &after));
        let _ = writeln!(page, "\n{title}\n\n```text\n{}\n```", unindented(lines));
    }
    for below in command.get_subcommands() {
        section(page, below, &format!("{heading}#"));
    }
}

fn arguments<'a>(page: &mut String, all: impl Iterator<Item = &'a Arg>) {
    for arg in all.filter(|arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str())) {
        let help = arg.get_long_help().or(arg.get_help()).map(|help| plain(&help.to_string()));
        let _ = write!(page, "- `{}`: {}", signature(arg), help.unwrap_or_default());
        let values = arg.get_possible_values();
        let named: Vec<String> = values.iter().map(|value| format!("`{}`", value.get_name())).collect();
        if !named.is_empty() && arg.get_action().takes_values() {
            let _ = write!(page, " One of {}.", named.join(", "));
        }
        let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        if !defaults.is_empty() && arg.get_action().takes_values() {
            let _ = write!(page, " Default: `{}`.", defaults.join(","));
        }
        page.push('\n');
    }
}

/// `-o, --output <FILE>` or `<PATH>...`, as the help shows it.
fn signature(arg: &Arg) -> String {
    let shown = arg.to_string();
    match arg.get_short().filter(|_| arg.get_long().is_some()) {
        Some(short) => format!("-{short}, {shown}"),
        None => shown,
    }
}

/// Ends with a full stop, and reads as one paragraph in Markdown.
fn plain(text: &str) -> String {
    let text = text.trim().replace('<', "\\<");
    if text.ends_with(['.', '!', '?', ':']) || text.is_empty() { text } else { format!("{text}.") }
}

fn unindented(lines: &str) -> String {
    let least = lines.lines().filter(|line| !line.trim().is_empty());
    let least = least.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    let cut: Vec<&str> = lines.lines().map(|line| line.get(least..).unwrap_or("").trim_end()).collect();
    cut.join("\n")
}

#[test]
fn docs_cli_md_is_what_the_command_line_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    if std::env::var_os("STEPSCOPE_WRITE_DOCS").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page(), "docs/cli.md is out of date; run cargo xtask docs --write");
}

#[test]
fn the_command_line_is_sound() {
    Cli::command().debug_assert();
}
