//! The command line: arguments in, exit code out. Each command is a file below `commands/`. It loads the given paths
//! ([`load`]), runs the analyses it needs and passes the result to `stepscope-render`.
//!
//! Data goes to standard output, messages to standard error. The binary and the Python package's `stepscope` command
//! both call [`run`].

mod cli;
mod commands;
mod editor;
mod exit;
mod failure;
mod load;
mod near;
mod output;
mod progress;
mod quantity;
#[cfg(all(test, unix))]
mod reference;
mod screen;
#[cfg(feature = "remote")]
mod stores;
mod write_file;

use std::ffi::OsString;

use clap::Parser as _;

/// Lets URLs of object stores and web servers stand for paths from now on, in a build with the feature `remote`.
pub fn add_stores() {
    #[cfg(feature = "remote")]
    stores::add();
}

/// Runs one command line, program name first, and returns the exit code.
pub fn run(args: impl Iterator<Item = OsString>) -> u8 {
    stepscope_storage::survive_file_limit();
    #[cfg(feature = "remote")]
    let args = args.map(stores::unsigned);
    let cli = match cli::Cli::try_parse_from(commands::with_two_dashes(with_help(args))) {
        Ok(cli) => cli,
        Err(told) => {
            // Help and version come this way too.
            let told_all = told.print().and_then(|()| output::flush());
            return match told_all {
                Err(error) if told.exit_code() == 0 && error.kind() != std::io::ErrorKind::BrokenPipe => {
                    let failure = failure::Failure::Output(error);
                    output::Terminal::new(output::Color::Auto).report(&failure.into_problem()).code()
                }
                _ => u8::try_from(told.exit_code()).unwrap_or(u8::MAX),
            };
        }
    };
    add_stores();
    let terminal = output::Terminal::new(cli.color);
    if let Some(bytes) = cli.budget {
        stepscope_read::allow_inflated_bytes(bytes);
    }
    let exit = match cli.command.run(&terminal) {
        Ok(exit) => exit,
        Err(failure::Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            exit::Exit::Done
        }
        Err(failure::Failure::Start(code, problem)) => {
            terminal.report(&problem);
            exit::Exit::OfCommand(code)
        }
        Err(failure) => terminal.report(&failure.into_problem()),
    };
    exit.code()
}

/// `stepscope help COMMAND` is `stepscope COMMAND --help`, as in other programs.
fn with_help(args: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let mut args: Vec<OsString> = args.collect();
    if args.get(1).is_some_and(|word| word == "help") {
        args.remove(1);
        args.push("--help".into());
    }
    args.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_may_come_first() {
        let shown =
            |words: &[&str]| -> Vec<OsString> { with_help(words.iter().map(OsString::from)).collect() };
        assert_eq!(shown(&["stepscope", "help", "report"]), ["stepscope", "report", "--help"]);
        assert_eq!(shown(&["stepscope", "help"]), ["stepscope", "--help"]);
        assert_eq!(shown(&["stepscope", "report", "help"]), ["stepscope", "report", "help"]);
    }
}
