//! `stepscope completions` and `stepscope man`: what packages of the program carry beside it. Both come from the command
//! line itself, so that they are never out of date.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;
use stepscope_session::{Cause, Problem};

use crate::exit::Exit;

use crate::cli::Cli;
use crate::failure::Failure;
use crate::output::Terminal;

/// Print shell completions.
///
/// Source the script, or put it where the shell looks for completions.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope completions bash > ~/.local/share/bash-completion/completions/stepscope\n  \
    stepscope completions zsh > ~/.zfunc/_stepscope\n  \
    stepscope completions fish > ~/.config/fish/completions/stepscope.fish\n  \
    stepscope completions powershell >> $PROFILE")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

impl CompletionsArgs {
    pub(crate) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        // A closed pipe is not an error of the generator: it writes into memory.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "stepscope", &mut script);
        write(&script, terminal)
    }
}

/// Print the manual page, or write one page per command into a folder.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope man | man -l -                              read it\n  \
    stepscope man --dir /usr/local/share/man/man1         install all pages")]
pub(crate) struct ManArgs {
    /// Write the pages of all commands into this folder instead.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl ManArgs {
    pub(crate) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        if let Some(folder) = &self.dir {
            let made = std::fs::create_dir_all(folder);
            let written = made.and_then(|()| clap_mangen::generate_to(Cli::command(), folder));
            return written.map(|()| Exit::Done).map_err(|error| unwritable(folder, &error).into());
        }
        let mut page = Vec::new();
        Man::new(Cli::command()).render(&mut page)?;
        write(&page, terminal)
    }
}

fn write(bytes: &[u8], terminal: &Terminal) -> Result<Exit, Failure> {
    let mut out = terminal.stdout_as(true);
    out.write_all(bytes)?;
    out.flush()?;
    Ok(Exit::Done)
}

fn unwritable(folder: &Path, error: &std::io::Error) -> Problem {
    Problem::new(Cause::Usage, format!("cannot write manual pages into {}", folder.display()))
        .then(error.to_string())
        .then("name a folder that you may write to")
}
