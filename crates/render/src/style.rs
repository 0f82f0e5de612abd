//! What the terminal can show: its width, and whether to use colour.

use std::borrow::Cow;

use stepscope_results::table::Tone;

/// Text style. Decided once, by the caller that knows where the text goes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Style {
    /// True if colour escape sequences may be written.
    pub color: bool,
    /// Maximum number of columns per line; `None` for any length, e.g. in a file.
    pub width: Option<usize>,
}

impl Style {
    /// For files and pipes: no colour, lines of any length.
    pub const PLAIN: Style = Style { color: false, width: None };

    /// For headings and the verdict.
    pub fn bold<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.wrap("1", text)
    }

    /// For less important text.
    pub fn dim<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.wrap("2", text)
    }

    /// For errors.
    pub fn red<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.wrap("31;1", text)
    }

    /// For warnings.
    pub fn yellow<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.wrap("33;1", text)
    }

    /// For success.
    pub fn green<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.wrap("32;1", text)
    }

    /// For hints and information.
    pub fn cyan<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.wrap("36", text)
    }

    /// For the beginning of a row in words.
    pub fn tone<'a>(&self, tone: Tone, text: &'a str) -> Cow<'a, str> {
        match tone {
            Tone::Error => self.red(text),
            Tone::Warning => self.yellow(text),
            Tone::Info => self.cyan(text),
            Tone::None => Cow::Borrowed(text),
        }
    }

    fn wrap<'a>(&self, code: &str, text: &'a str) -> Cow<'a, str> {
        if self.color { Cow::Owned(format!("\x1b[{code}m{text}\x1b[0m")) } else { Cow::Borrowed(text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_carries_no_escapes() {
        assert_eq!(Style::PLAIN.red("x"), "x");
        assert_eq!(Style { color: true, width: None }.red("x"), "\x1b[31;1mx\x1b[0m");
    }
}
