//! Output: terminal capabilities, buffered standard output, messages on standard error.

use std::io::{self, BufWriter, IsTerminal, Write};

use clap::ValueEnum;
use stepscope_render::Style;

use stepscope_render::format::printable;
use stepscope_session::Problem;

use crate::exit::Exit;
use crate::screen::Screen;

/// When to use colour.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    Always,
    Never,
}

/// What is known about the terminal.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Terminal {
    /// For standard output.
    pub(crate) out: Style,
    /// For standard error.
    pub(crate) err: Style,
}

impl Terminal {
    pub(crate) fn new(color: Color) -> Self {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let wants = |is_terminal: bool| match color {
            Color::Auto => is_terminal && !no_color,
            Color::Always => true,
            Color::Never => false,
        };
        let (out, err) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        let terminal = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        let width = asked_width(std::env::var("COLUMNS").ok().as_deref());
        Terminal {
            out: Style { color: wants(out), width: width.or_else(|| terminal().filter(|_| out)) },
            err: Style { color: wants(err), width: None },
        }
    }

    /// Standard output for text, buffered: whatever names of files and recordings hold, nothing in it steers a terminal, also
    /// behind a pipe. Flush it at the end, so that a closed pipe is noticed.
    pub(crate) fn stdout(&self) -> BufWriter<Screen> {
        self.stdout_as(false)
    }

    /// Standard output for text, or for a program that reads it (JSON, tables of events), to which every byte counts. A
    /// terminal gets only text in any case.
    pub(crate) fn stdout_as(&self, for_program: bool) -> BufWriter<Screen> {
        let is_raw = for_program && !io::stdout().is_terminal();
        BufWriter::with_capacity(64 << 10, Screen::new(!is_raw))
    }

    /// Prints a note that is not an error, e.g. which of several sessions was used.
    pub(crate) fn remark(&self, text: &str) {
        self.say(&self.err.cyan("note:"), text);
    }

    /// Prints an error; returns the exit that it stands for.
    pub(crate) fn report(&self, problem: &Problem) -> Exit {
        self.say(&self.err.red("error:"), &problem.to_string());
        Exit::from(problem.cause)
    }

    fn say(&self, label: &str, text: &str) {
        // Paths and names come from elsewhere; only the ends of lines are ours.
        let text: Vec<String> = text.split('\n').map(printable).collect();
        // If standard error is closed, there is no way to report it.
        let _ = writeln!(io::stderr(), "{label} {}", text.join("\n"));
    }
}

/// Writes what standard output still holds: help and version are written by the parser of arguments.
pub(crate) fn flush() -> io::Result<()> {
    io::stdout().flush()
}

/// The width that the user asks for, in characters; fewer than a name and a figure need are a mistake.
fn asked_width(columns: Option<&str>) -> Option<usize> {
    columns?.trim().parse().ok().filter(|columns| *columns >= 20)
}

#[cfg(test)]
mod tests {
    use super::asked_width;

    #[test]
    fn only_a_usable_number_of_columns_counts() {
        assert_eq!(asked_width(Some("60")), Some(60));
        assert_eq!([Some(""), Some("0"), Some("wide"), None].map(asked_width), [None; 4]);
    }
}
