//! A pull scanner for JSON as profilers write it: the first step of the Chrome reader, bytes → pieces.
//!
//! The same scanner handles valid and invalid text. It walks a slice, never copies and never recurses, and only
//! returns the location of each value ([`Piece`]). If the slice ends in the middle of something, it returns
//! [`Stop::More`], and the caller retries with a longer slice.
//!
//! Text that is not quite JSON is read as its writer meant it: bare words for values, missing or extra commas.
//! An unescaped quotation mark is the hard case. The quick mode accepts every mark that is followed by `,`,
//! `:`, `}` or `]`. If that fails, the caller scans the same event again in the *careful* mode, which accepts a
//! mark only if what follows looks like the next key.
//!
//! By hand, because a JSON library refuses what recorders really write (cut off, unescaped, bare words), and because it
//! would build values where positions are enough.

use memchr::memchr2;

use super::repair::{Repair, Repairs};

/// Values nested deeper than this are not read. No profiler nests deeper than ten levels.
const MAX_DEPTH: u32 = 128;

/// Maximum length of a key that the careful mode accepts.
const LONGEST_KEY: usize = 128;

/// Why a value could not be scanned. As wide as [`Sort`], whose place it takes in a result.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Stop {
    /// The slice ends first.
    More,
    /// Not JSON, not even approximately.
    Bad,
    /// It is nested too deep.
    Deep,
}

pub(crate) type Scan<T> = Result<T, Stop>;

/// The kind of a piece of text. As wide as its neighbours in [`Piece`]: written as a byte and copied as a word,
/// it would stall the processor at every string and cost a third of the speed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
#[repr(usize)]
pub(crate) enum Sort {
    /// Missing.
    #[default]
    Missing,
    /// A string without escapes.
    Text,
    /// A string with a backslash in it.
    Escaped,
    /// Digits, signs, a point, an exponent.
    Number,
    /// `true`, `null`, or a word that should have been quoted.
    Word,
    /// An object or an array.
    Nested,
}

/// Location of a value in the slice; a string without its quotation marks.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Piece {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) sort: Sort,
}

impl Piece {
    /// Its bytes as they appear in the text.
    #[inline]
    pub(crate) fn of<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        text.get(self.start..self.end).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn is_missing(&self) -> bool {
        self.sort == Sort::Missing
    }
}

/// The context of a string, which determines what may follow it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Within {
    Key,
    Member,
    Nested,
}

/// A position in a slice of text.
pub(crate) struct Scanner<'t> {
    pub(crate) text: &'t [u8],
    pub(crate) at: usize,
    pub(crate) careful: bool,
    pub(crate) repairs: Repairs,
}

impl<'t> Scanner<'t> {
    pub(crate) fn new(text: &'t [u8], at: usize) -> Self {
        Scanner { text, at, careful: false, repairs: Repairs::default() }
    }

    /// Skips white space and returns the next byte.
    #[inline]
    pub(crate) fn peek(&mut self) -> Scan<u8> {
        while let Some(&byte) = self.text.get(self.at) {
            if byte > b' ' {
                return Ok(byte);
            }
            self.at += 1;
        }
        Err(Stop::More)
    }

    /// The key of the next member of an object, after its `{` or a value; `None` at its end.
    #[inline]
    pub(crate) fn member(&mut self, first: bool) -> Scan<Option<Piece>> {
        let mut next = self.peek()?;
        if next == b',' {
            self.at += 1;
            next = self.peek()?;
            if first || next == b'}' || next == b',' {
                self.repairs.count(Repair::TrailingComma);
                while next == b',' {
                    self.at += 1;
                    next = self.peek()?;
                }
            }
        } else if !first && next == b'"' {
            self.repairs.count(Repair::MissingComma);
        }
        match next {
            b'}' => {
                self.at += 1;
                Ok(None)
            }
            b'"' => {
                let key = self.string(Within::Key)?;
                if self.peek()? != b':' {
                    return Err(Stop::Bad);
                }
                self.at += 1;
                Ok(Some(key))
            }
            _ => Err(Stop::Bad),
        }
    }

    /// The next value of an array, after its `[` or a value; `None` at its end.
    pub(crate) fn element(&mut self, first: bool) -> Scan<Option<Piece>> {
        let mut next = self.peek()?;
        if next == b',' {
            self.at += 1;
            next = self.peek()?;
            if first || next == b']' {
                self.repairs.count(Repair::TrailingComma);
            }
        } else if !first && next != b']' {
            self.repairs.count(Repair::MissingComma);
        }
        if next == b']' {
            self.at += 1;
            return Ok(None);
        }
        let start = self.at;
        let value = self.value(Within::Nested)?;
        // Nothing before a comma is a missing value; nothing before a brace would loop forever.
        if self.at == start && self.peek()? != b',' {
            return Err(Stop::Bad);
        }
        Ok(Some(value))
    }

    /// The value that starts here.
    #[inline]
    pub(crate) fn value(&mut self, place: Within) -> Scan<Piece> {
        match self.peek()? {
            b'"' => self.string(place),
            b'{' | b'[' => self.nested(),
            _ => self.token(),
        }
    }

    /// The string whose opening mark is here. Leaves the scanner at the next byte that is not white space.
    #[inline]
    pub(crate) fn string(&mut self, place: Within) -> Scan<Piece> {
        let start = self.at + 1;
        let mut from = start;
        let mut sort = Sort::Text;
        loop {
            let rest = self.text.get(from..).unwrap_or_default();
            let at = from + find_mark(rest).ok_or(Stop::More)?;
            let escape = self.text[at] == b'\\';
            let mark = if escape { at + 1 } else { at };
            if escape {
                sort = Sort::Escaped;
                from = at + 2;
                // A path that ends in a backslash makes its closing mark look escaped.
                if !self.careful || self.text.get(mark) != Some(&b'"') || !self.surely_ends(mark, place)? {
                    continue;
                }
            }
            if self.careful && !escape && !self.surely_ends(mark, place)? {
                self.repairs.count(Repair::BareQuote);
                from = at + 1;
                continue;
            }
            self.at = mark + 1;
            return match self.peek()? {
                b',' | b'}' | b']' | b':' => Ok(Piece { start, end: mark, sort }),
                _ if self.careful => Ok(Piece { start, end: mark, sort }),
                _ => Err(Stop::Bad),
            };
        }
    }

    /// Whether the text after the mark at `mark` looks like what follows a string in this context.
    fn surely_ends(&self, mark: usize, place: Within) -> Scan<bool> {
        let (at, next) = self.solid_from(mark + 1)?;
        Ok(match (next, place) {
            (b':', Within::Key | Within::Nested) => true,
            (b'}', Within::Member) | (b'}' | b']', Within::Nested) => true,
            (b',', Within::Nested) => true,
            (b',', Within::Member) => {
                let (at, next) = self.solid_from(at + 1)?;
                next == b'}' || self.is_key(at)
            }
            (b'"', Within::Member) => self.is_key(at),
            _ => false,
        })
    }

    fn solid_from(&self, from: usize) -> Scan<(usize, u8)> {
        let rest = self.text.get(from..).unwrap_or_default();
        let skipped = rest.iter().position(|&byte| byte > b' ').ok_or(Stop::More)?;
        Ok((from + skipped, rest[skipped]))
    }

    /// Whether a string followed by a colon starts here.
    pub(crate) fn is_key(&self, at: usize) -> bool {
        key_at(self.text, at).is_some()
    }

    /// A number or a word: everything up to the next delimiter.
    #[inline]
    fn token(&mut self) -> Scan<Piece> {
        let start = self.at;
        let rest = self.text.get(start..).unwrap_or_default();
        if let Some(len) = plain_number(rest).filter(|_| !self.careful) {
            self.at = start + len;
            return Ok(Piece { start, end: self.at, sort: Sort::Number });
        }
        let len = rest.iter().position(|&byte| ENDS_TOKEN[usize::from(byte)]).ok_or(Stop::More)?;
        let mut end = start + len;
        if self.careful {
            // Words separated by spaces, up to the end of a value.
            let closes = |&byte: &u8| matches!(byte, b',' | b'}' | b']' | b'"' | b'\n');
            let len = rest.iter().position(closes).ok_or(Stop::More)?;
            end = start + rest[..len].trim_ascii_end().len();
        }
        self.at = end;
        let bytes = &self.text[start..end];
        let sort = if is_number(bytes) { Sort::Number } else { Sort::Word };
        if sort == Sort::Word && !matches!(bytes, b"true" | b"false" | b"null") {
            let empty = bytes.is_empty();
            self.repairs.count(if empty { Repair::MissingValue } else { Repair::BareWord });
            if empty && !matches!(self.text.get(self.at), Some(b',' | b'}' | b']')) {
                return Err(Stop::Bad);
            }
        }
        Ok(Piece { start, end, sort })
    }

    /// Skips an object or array. Brackets are counted, not matched.
    fn nested(&mut self) -> Scan<Piece> {
        let start = self.at;
        let mut depth = 0;
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            self.at += rest.iter().position(|&byte| SHAPES[usize::from(byte)]).ok_or(Stop::More)?;
            match self.text[self.at] {
                b'"' => {
                    self.string(Within::Nested)?;
                    continue;
                }
                b'{' | b'[' => {
                    depth += 1;
                    if depth > MAX_DEPTH {
                        return Err(Stop::Deep);
                    }
                }
                _ => {
                    depth -= 1;
                    if depth == 0 {
                        self.at += 1;
                        return Ok(Piece { start, end: self.at, sort: Sort::Nested });
                    }
                }
            }
            self.at += 1;
        }
    }
}

/// The key at `at`, if a string followed by a colon starts there.
pub(crate) fn key_at(text: &[u8], at: usize) -> Option<&[u8]> {
    let rest = text.get(at..)?.strip_prefix(b"\"")?;
    let rest = &rest[..rest.len().min(LONGEST_KEY)];
    let len = memchr2(b'"', b'\n', rest)?;
    let colon = rest[len..].strip_prefix(b"\"")?.trim_ascii_start();
    colon.starts_with(b":").then(|| &rest[..len])
}

/// Bytes that determine the shape of a nested value.
const SHAPES: [bool; 256] = table(b"\"{}[]");

/// Bytes that end a number or a word; white space does too.
const ENDS_TOKEN: [bool; 256] = {
    let mut table = table(b",}]\"{[:");
    let mut byte = 0;
    while byte <= b' ' as usize {
        table[byte] = true;
        byte += 1;
    }
    table
};

const fn table(bytes: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut i = 0;
    while i < bytes.len() {
        table[bytes[i] as usize] = true;
        i += 1;
    }
    table
}

/// Position of the next quotation mark or backslash. Most strings are short keys, so the first bytes are
/// checked eight at a time without a call.
#[inline]
fn find_mark(text: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    const MARKS: u64 = u64::from_ne_bytes([b'"'; 8]);
    const BACKSLASHES: u64 = u64::from_ne_bytes([b'\\'; 8]);
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    let mut at = 0;
    while at < 32 {
        let Some(eight) = text.get(at..).and_then(|rest| rest.first_chunk::<8>()) else { break };
        let word = u64::from_le_bytes(*eight);
        let found = zeros(word ^ MARKS) | zeros(word ^ BACKSLASHES);
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    memchr2(b'"', b'\\', &text[at..]).map(|found| at + found)
}

/// Length of the number that starts here, if it has digits and a point only, and what follows ends it. Nearly all values
/// that are not strings are such numbers, and this sees each of their bytes once.
#[inline]
fn plain_number(text: &[u8]) -> Option<usize> {
    let mut at = usize::from(text.first() == Some(&b'-'));
    let digits = |from: usize| {
        let digit = |&byte: &u8| byte.wrapping_sub(b'0') < 10;
        text.get(from..).map_or(from, |rest| from + rest.iter().take_while(|byte| digit(byte)).count())
    };
    let first = at;
    at = digits(at);
    if at == first {
        return None;
    }
    if text.get(at) == Some(&b'.') {
        at = digits(at + 1);
    }
    text.get(at).filter(|&&byte| ENDS_TOKEN[usize::from(byte)]).map(|_| at)
}

/// Whether it is a JSON number, allowing a leading `+`, zero or point.
#[inline]
fn is_number(bytes: &[u8]) -> bool {
    let digits = match bytes {
        [b'-' | b'+', rest @ ..] => rest,
        all => all,
    };
    let starts = matches!(digits, [b'0'..=b'9', ..] | [b'.', b'0'..=b'9', ..]);
    if !starts || digits.iter().all(u8::is_ascii_digit) {
        return starts;
    }
    let mut seen = (false, false);
    for (i, &byte) in digits.iter().enumerate() {
        let fits = match byte {
            b'0'..=b'9' => true,
            b'.' => !std::mem::replace(&mut seen.0, true) && !seen.1,
            b'e' | b'E' => !std::mem::replace(&mut seen.1, true) && i + 1 < digits.len(),
            b'-' | b'+' => matches!(digits[i - 1], b'e' | b'E') && i + 1 < digits.len(),
            _ => false,
        };
        if !fits {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str, careful: bool) -> Scan<Vec<(String, String)>> {
        let mut scanner = Scanner::new(text.as_bytes(), 1);
        scanner.careful = careful;
        let mut all = Vec::new();
        while let Some(key) = scanner.member(all.is_empty())? {
            let value = scanner.value(Within::Member)?;
            let show = |piece: Piece| String::from_utf8_lossy(piece.of(text.as_bytes())).into_owned();
            all.push((show(key), show(value)));
        }
        Ok(all)
    }

    #[test]
    fn numbers_are_told_from_words() {
        for good in ["0", "-1", "1.5", "1e9", "-1.5E-3", "007", "+3", ".5", "9.", "1.e5"] {
            assert!(is_number(good.as_bytes()), "{good}");
        }
        for bad in ["", "-", "nan", "-nan", "1.2.3", "1e", "1e+", "N/A", "0x1f", "1-2", ".", "+."] {
            assert!(!is_number(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn plain_numbers_are_numbers_and_end_where_tokens_do() {
        for (text, len) in [("0,", 1), ("-12.5}", 5), ("7.]", 2), ("62.817 ", 6), ("1\n", 1)] {
            assert_eq!(plain_number(text.as_bytes()), Some(len), "{text}");
            assert!(is_number(&text.as_bytes()[..len]));
        }
        for other in ["12", "1e9,", ".5,", "-,", "+3,", "1.2.3,", "0x1f,", "", "-", "1a,"] {
            assert_eq!(plain_number(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_slice_that_ends_early_asks_for_more() {
        let whole = r#"{"a": [1, {"b": "c\"d"}], "e": 12, "f": "g"}"#;
        assert_eq!(members(whole, false).unwrap().len(), 3);
        for cut in 1..whole.len() {
            assert_eq!(members(&whole[..cut], false), Err(Stop::More), "{}", &whole[..cut]);
        }
    }

    #[test]
    fn the_careful_mode_reads_through_bare_marks() {
        let text = r#"{"name": "f("a", "b")", "path": "C:\dir\", "n": 1, "s": "x" "t": 2}"#;
        assert_eq!(members(text, false), Err(Stop::Bad));
        let all = members(text, true).unwrap();
        assert_eq!(all[0].1, r#"f("a", "b")"#);
        assert_eq!(all[1].1, r"C:\dir\");
        assert_eq!(all[4], ("t".into(), "2".into()));
    }

    #[test]
    fn deep_nesting_stops_the_scan() {
        let text = format!("{{\"a\": {}", "[".repeat(100_000));
        assert_eq!(members(&text, false), Err(Stop::Deep));
    }
}
