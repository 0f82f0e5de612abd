//! Line editor for prompts: cursor keys, persistent history, completion with Tab.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use crossterm::cursor::MoveToColumn;
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::queue;
use crossterm::terminal::{Clear, ClearType, disable_raw_mode, enable_raw_mode};
use stepscope_render::format::printable;

/// Number of history lines to keep.
const KEPT: usize = 1_000;

/// Completions of a word, from the words before it and its first letters.
pub(crate) type Complete = fn(&[&str], &str) -> Vec<String>;

/// Reads lines from a terminal.
pub(crate) struct Editor {
    history: Vec<String>,
    /// File name of the history.
    kept_in: &'static str,
    complete: Complete,
}

/// Effect of a key.
enum Outcome {
    More,
    Line,
    End,
    /// Candidates to list below the line.
    List(Vec<String>),
}

/// The line being edited. Positions count characters.
struct Editing {
    text: Vec<char>,
    at: usize,
    /// The history line being shown; the history's length for a new line.
    place: usize,
}

impl Editor {
    /// An editor with the history of this file.
    pub(crate) fn new(kept_in: &'static str, complete: Complete) -> Self {
        let kept = history_file(kept_in).and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        Editor { history: kept.lines().map(str::to_owned).collect(), kept_in, complete }
    }

    /// The next line; `None` at the end.
    pub(crate) fn line(&mut self, prompt: &str) -> io::Result<Option<String>> {
        enable_raw_mode()?;
        let line = self.edit(prompt);
        disable_raw_mode()?;
        let mut out = io::stdout();
        writeln!(out)?;
        let line = line?;
        if let Some(line) = line.as_deref().filter(|line| !line.trim().is_empty()) {
            self.remember(line);
        }
        Ok(line)
    }

    fn edit(&self, prompt: &str) -> io::Result<Option<String>> {
        let mut editing = Editing { text: Vec::new(), at: 0, place: self.history.len() };
        loop {
            draw(prompt, &editing)?;
            let Event::Key(key) = event::read()? else { continue };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            match self.press(&mut editing, key) {
                Outcome::More => {}
                Outcome::Line => return Ok(Some(editing.text.into_iter().collect())),
                Outcome::End => return Ok(None),
                Outcome::List(candidates) => {
                    // Names of nodes come from a file.
                    write!(io::stdout(), "\r\n{}\r\n", printable(&candidates.join("  ")))?;
                }
            }
        }
    }

    fn press(&self, editing: &mut Editing, key: KeyEvent) -> Outcome {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => return Outcome::Line,
            KeyCode::Char('d') if control && editing.text.is_empty() => return Outcome::End,
            KeyCode::Char('c') if control => return Outcome::End,
            KeyCode::Char('a') if control => editing.at = 0,
            KeyCode::Char('e') if control => editing.at = editing.text.len(),
            KeyCode::Char('u') if control => {
                editing.text.drain(..editing.at);
                editing.at = 0;
            }
            KeyCode::Char('k') if control => editing.text.truncate(editing.at),
            KeyCode::Char(c) if !control => editing.insert(c),
            KeyCode::Backspace if editing.at > 0 => {
                editing.at -= 1;
                editing.text.remove(editing.at);
            }
            KeyCode::Delete if editing.at < editing.text.len() => {
                editing.text.remove(editing.at);
            }
            KeyCode::Left => editing.at = editing.at.saturating_sub(1),
            KeyCode::Right => editing.at = (editing.at + 1).min(editing.text.len()),
            KeyCode::Home => editing.at = 0,
            KeyCode::End => editing.at = editing.text.len(),
            KeyCode::Up => self.recall(editing, editing.place.saturating_sub(1)),
            KeyCode::Down => self.recall(editing, editing.place + 1),
            KeyCode::Tab => return self.complete(editing),
            _ => {}
        }
        Outcome::More
    }

    fn recall(&self, editing: &mut Editing, place: usize) {
        editing.place = place.min(self.history.len());
        let line = self.history.get(editing.place).map(String::as_str).unwrap_or_default();
        editing.text = line.chars().collect();
        editing.at = editing.text.len();
    }

    /// Completes the word before the cursor as far as it is unambiguous; otherwise lists the candidates.
    fn complete(&self, editing: &mut Editing) -> Outcome {
        let before: String = editing.text.iter().take(editing.at).collect();
        let (words, word) = before.rsplit_once(' ').unwrap_or(("", &before));
        let words: Vec<&str> = words.split_whitespace().collect();
        let candidates = (self.complete)(&words, word);
        let common = common_beginning(&candidates);
        if common.len() > word.len() {
            common.chars().skip(word.chars().count()).for_each(|c| editing.insert(c));
        }
        match candidates.len() {
            0 | 1 => Outcome::More,
            _ if common.len() > word.len() => Outcome::More,
            _ => Outcome::List(candidates),
        }
    }

    fn remember(&mut self, line: &str) {
        if self.history.last().is_some_and(|last| last == line) {
            return;
        }
        self.history.push(line.to_owned());
        let kept = &self.history[self.history.len().saturating_sub(KEPT)..];
        // If the history cannot be saved, continue without it.
        if let Some(file) = history_file(self.kept_in) {
            let _ = file.parent().map(fs::create_dir_all);
            let _ = fs::write(file, kept.join("\n") + "\n");
        }
    }
}

impl Editing {
    fn insert(&mut self, c: char) {
        self.text.insert(self.at, c);
        self.at += 1;
    }
}

fn draw(prompt: &str, editing: &Editing) -> io::Result<()> {
    let mut out = io::stdout();
    let text = printable(&editing.text.iter().collect::<String>());
    queue!(out, MoveToColumn(0), Clear(ClearType::FromCursorDown))?;
    write!(out, "{prompt}{text}")?;
    let column = u16::try_from(prompt.len() + editing.at).unwrap_or(u16::MAX);
    queue!(out, MoveToColumn(column))?;
    out.flush()
}

/// The common prefix of all candidates.
fn common_beginning(candidates: &[String]) -> String {
    let Some((first, rest)) = candidates.split_first() else { return String::new() };
    let shared = |a: &str, b: &str| a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let len = rest.iter().map(|other| shared(first, other)).min().unwrap_or(first.chars().count());
    first.chars().take(len).collect()
}

/// Location of the history: with the user's other state, never beside the profiles.
fn history_file(name: &str) -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state")))?;
    Some(state.join("stepscope").join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(editor: &Editor, keys: &[KeyCode]) -> String {
        let mut editing = Editing { text: Vec::new(), at: 0, place: editor.history.len() };
        keys.iter().for_each(|key| {
            editor.press(&mut editing, KeyEvent::new(*key, KeyModifiers::NONE));
        });
        editing.text.iter().collect()
    }

    #[test]
    fn keys_edit_recall_and_complete() {
        use KeyCode::{Backspace, Char, Left, Tab, Up};
        let complete: Complete = |_, word| vec![format!("{word}pe"), format!("{word}per")];
        let editor = Editor { history: vec!["scope".into(), "op -step 1".into()], kept_in: "", complete };
        assert_eq!(typed(&editor, &[Char('a'), Char('c'), Left, Char('b')]), "abc");
        assert_eq!(typed(&editor, &[Up, Up, Backspace]), "scop");
        assert_eq!(typed(&editor, &[Char('s'), Tab]), "spe");
    }
}
