//! Lines from a terminal, with persistent history and completion with Tab.
//!
//! By rustyline: queries wrap over several rows, and names have letters of any width. It costs 9 s of processor time in a
//! clean build and 0.4 MB of the binary.

use std::fs;
use std::io;
use std::path::PathBuf;

use rustyline::completion::{Completer, Pair};
use rustyline::config::{CompletionType, Config};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use stepscope_render::format::printable;

/// Number of history lines to keep.
const KEPT: usize = 1_000;

/// Completions of a word, from the words before it and its first letters.
pub(crate) type Complete = fn(&[&str], &str) -> Vec<String>;

/// Reads lines from a terminal.
pub(crate) struct Editor {
    lines: rustyline::Editor<Words, DefaultHistory>,
    history: Option<PathBuf>,
}

impl Editor {
    /// An editor with the history of this file.
    pub(crate) fn new(history: &str, complete: Complete) -> io::Result<Self> {
        let config =
            Config::builder().max_history_size(KEPT).and_then(|config| config.history_ignore_dups(true));
        let config = config.map_err(as_io)?.completion_type(CompletionType::List).build();
        let mut lines = rustyline::Editor::with_config(config).map_err(as_io)?;
        lines.set_helper(Some(Words(complete)));
        let history = history_file(history);
        if let Some(file) = &history {
            // A first run has no history yet.
            let _ = lines.load_history(file);
        }
        Ok(Editor { lines, history })
    }

    /// The next line; `None` at the end.
    pub(crate) fn line(&mut self, prompt: &str) -> io::Result<Option<String>> {
        let line = match self.lines.readline(prompt) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted | ReadlineError::Eof) => return Ok(None),
            Err(error) => return Err(as_io(error)),
        };
        if !line.trim().is_empty() {
            self.remember(&line);
        }
        Ok(Some(line))
    }

    /// If the history cannot be saved, continue without it.
    fn remember(&mut self, line: &str) {
        let _ = self.lines.add_history_entry(line);
        if let Some(file) = &self.history {
            let _ = file.parent().map(fs::create_dir_all);
            let _ = self.lines.append_history(file);
        }
    }
}

fn as_io(error: ReadlineError) -> io::Error {
    match error {
        ReadlineError::Io(error) => error,
        other => io::Error::other(other),
    }
}

/// Location of the history: with the user's other state, never beside the profiles.
fn history_file(name: &str) -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state")))?;
    Some(state.join("stepscope").join(name))
}

/// Completes words.
struct Words(Complete);

impl Words {
    /// Where the word before the cursor begins, and its completions.
    fn candidates(&self, before: &str) -> (usize, Vec<String>) {
        let (words, word) = before.rsplit_once(' ').unwrap_or(("", before));
        let words: Vec<&str> = words.split_whitespace().collect();
        // Names of nodes come from a file.
        let found = (self.0)(&words, word).iter().map(|name| printable(name)).collect();
        (before.len() - word.len(), found)
    }
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, found) = self.candidates(line.get(..at).unwrap_or(line));
        let pair = |name: String| Pair { display: name.clone(), replacement: name };
        Ok((start, found.into_iter().map(pair).collect()))
    }
}

impl Helper for Words {}
impl Highlighter for Words {}
impl Hinter for Words {
    type Hint = String;
}
impl Validator for Words {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_before_the_cursor_is_completed() {
        let words = Words(|words, word| vec![format!("{}{word}pe", words.len()), "\u{1b}[31m".to_owned()]);
        let (start, found) = words.candidates("op -step sco");
        assert_eq!((start, found[0].as_str()), (9, "2scope"));
        assert!(!found[1].contains('\u{1b}'), "a name cannot control the terminal");
        assert_eq!(words.candidates("ä").0, 0);
    }
}
