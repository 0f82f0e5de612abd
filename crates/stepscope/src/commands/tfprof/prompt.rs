//! The prompt: one view per line, persistent options (`set`), history and completion. Lines can also come from
//! a pipe.

use std::io::{self, BufRead, Write};

use stepscope_session::{Cause, Problem};

use crate::exit::Exit;
use stepscope_tfprof::{Column, OPTION_NAMES, Options, OrderBy, parse_line};

use super::Query;
use super::show::{Subject, show};
use crate::editor::Editor;
use crate::failure::Failure;
use crate::output::Terminal;

const PROMPT: &str = "tfprof> ";
const COMMANDS: [&str; 8] = ["scope", "graph", "op", "code", "advise", "set", "help", "quit"];

const HELP: &str = "\
scope   by name scope             graph   from nodes to their inputs
op      by operation type         code    by line of code
advise  tfprof's advice           set     keep options for the following lines
quit    end (or Ctrl-D)           an empty line shows the options

A line is a view and its options: scope -max_depth 3 -select micros,bytes -order_by micros
";

/// Source of the lines.
enum Lines {
    Terminal(Box<Editor>),
    Pipe(io::Lines<io::StdinLock<'static>>),
}

impl Lines {
    fn next(&mut self) -> io::Result<Option<String>> {
        match self {
            Lines::Terminal(editor) => editor.line(PROMPT),
            Lines::Pipe(lines) => lines.next().transpose(),
        }
    }
}

/// Runs lines until there are no more. A wrong line ends input from a pipe.
pub(crate) fn run(
    subject: &Subject<'_>,
    coverage: &[f64],
    mut options: Options,
    interactive: bool,
    terminal: &Terminal,
) -> Result<Exit, Failure> {
    let mut lines = match interactive {
        true => Lines::Terminal(Box::new(Editor::new("tfprof_history", candidates)?)),
        false => Lines::Pipe(io::stdin().lock().lines()),
    };
    if interactive {
        for (step, coverage) in coverage.iter().enumerate() {
            terminal.remark(&format!("step {step}: run graph coverage {coverage:.2}"));
        }
    }
    while let Some(line) = lines.next()? {
        match step(subject, &line, &mut options, terminal) {
            Ok(true) => {}
            Ok(false) => break,
            Err(Failure::Problem(problem)) if interactive => {
                terminal.report(&problem);
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(Exit::Done)
}

/// Runs one line. Returns whether to continue.
fn step(
    subject: &Subject<'_>,
    line: &str,
    options: &mut Options,
    terminal: &Terminal,
) -> Result<bool, Failure> {
    let parsed =
        parse_line(line.trim(), options).map_err(|error| Problem::new(Cause::Usage, error.to_string()))?;
    let mut out = terminal.stdout();
    match parsed.command.as_str() {
        "" => out.write_all(options.echo().as_bytes())?,
        "set" => *options = parsed.options,
        "help" => out.write_all(HELP.as_bytes())?,
        "quit" | "exit" => return Ok(false),
        word => {
            let Some(wanted) = Query::named(word) else { return Err(unknown(word).into()) };
            drop(out);
            show(subject, wanted, &parsed.options, terminal)?;
            return Ok(true);
        }
    }
    out.flush()?;
    Ok(true)
}

fn unknown(word: &str) -> Problem {
    Problem::new(Cause::Usage, "First string must be a valid command")
        .then(format!("`{word}` is not a command"))
        .then(format!("the commands are {}", COMMANDS.join(", ")))
}

/// Completions for the word at the cursor: a command, an option, or an option's value.
fn candidates(before: &[&str], word: &str) -> Vec<String> {
    let begins = |name: &&str| name.starts_with(word);
    let Some(last) = before.last() else {
        return COMMANDS.iter().filter(|name| begins(name)).map(|name| (*name).to_owned()).collect();
    };
    let option = last.trim_start_matches('-');
    let values: Vec<&str> = match option {
        "order_by" => OrderBy::ALL.iter().map(|it| it.name()).collect(),
        "select" => Column::ALL.iter().map(|it| it.name()).collect(),
        "output" => vec!["stdout", "none", "file:outfile=", "timeline:outfile=", "pprof:outfile="],
        "account_displayed_op_only" => vec!["true", "false"],
        _ => Vec::new(),
    };
    if values.is_empty() || word.starts_with('-') {
        let word = word.trim_start_matches('-');
        return OPTION_NAMES.iter().filter(|it| it.starts_with(word)).map(|it| format!("-{it}")).collect();
    }
    // Columns are a list: keep everything before the last comma.
    let (kept, part) = word.rsplit_once(',').unwrap_or(("", word));
    let comma = if kept.is_empty() { "" } else { "," };
    values.iter().filter(|it| it.starts_with(part)).map(|it| format!("{kept}{comma}{it}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_completed_by_where_they_stand() {
        assert_eq!(candidates(&[], "s"), ["scope", "set"]);
        assert_eq!(candidates(&["op"], "-max"), ["-max_depth"]);
        assert_eq!(candidates(&["op", "-order_by"], "acc"), ["accelerator_micros"]);
        assert_eq!(candidates(&["op", "-select"], "bytes,mic"), ["bytes,micros"]);
        assert!(candidates(&["op", "-max_depth"], "").len() == OPTION_NAMES.len());
    }
}
