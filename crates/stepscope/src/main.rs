//! The binary: arguments in, exit code out. Each command is a file below `commands/`. It loads the given paths
//! ([`load`]), runs the analyses it needs and passes the result to `stepscope-render`.
//!
//! Data goes to standard output, messages to standard error.

mod cli;
mod commands;
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
mod whole;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let cli = cli::Cli::parse_from(commands::with_two_dashes(std::env::args_os()));
    let terminal = output::Terminal::new(cli.color);
    match cli.command.run(&terminal) {
        Ok(code) => code.into(),
        Err(failure::Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure::Failure::Start(code, problem)) => {
            terminal.report(&problem);
            exit::Exit::OfCommand(code).into()
        }
        Err(failure) => terminal.report(&failure.into_problem()),
    }
}
