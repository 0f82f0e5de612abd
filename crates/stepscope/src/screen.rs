//! The one place where text leaves the program: whatever a command writes, only text, ends of lines and colours get through,
//! to a terminal and to a pipe, behind which there may be one.
//!
//! Names are made printable where they are shown. This catches what is written as it is, such as the text of tfprof and
//! notes. What is written for programs, such as JSON, keeps every byte in a pipe. `cargo xtask arrows` keeps all other code
//! from writing to standard output.

use std::io::{self, StdoutLock, Write};

/// Standard output.
#[derive(Debug)]
pub(crate) struct Screen {
    out: StdoutLock<'static>,
    /// `None` if every byte counts.
    guard: Option<Guard>,
}

impl Screen {
    pub(crate) fn new(guarded: bool) -> Self {
        Screen { out: io::stdout().lock(), guard: guarded.then(Guard::default) }
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(guard) = &mut self.guard else { return self.out.write(bytes) };
        let mut safe = Vec::with_capacity(bytes.len());
        guard.pass(bytes, &mut safe);
        self.out.write_all(&safe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Text in which nothing but colours steers a terminal.
#[cfg(any(unix, test))]
pub(crate) fn guarded(bytes: &[u8]) -> Vec<u8> {
    let mut safe = Vec::with_capacity(bytes.len());
    let mut guard = Guard::default();
    guard.pass(bytes, &mut safe);
    safe.extend_from_slice(&guard.held);
    safe
}

/// Passes text on, piece by piece.
#[derive(Debug, Default)]
struct Guard {
    /// The start of a character or of a colour, until its end is there.
    held: Vec<u8>,
}

/// Longer sequences are no colours.
const LONGEST: usize = 24;

impl Guard {
    fn pass(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while let Some((&byte, rest)) = bytes.split_first() {
            if self.held.is_empty() {
                // Nearly all text is plain.
                let plain = bytes.iter().position(|&byte| !is_plain(byte)).unwrap_or(bytes.len());
                if plain > 0 {
                    let (text, rest) = bytes.split_at(plain);
                    out.extend_from_slice(text);
                    bytes = rest;
                    continue;
                }
            }
            bytes = rest;
            self.held.push(byte);
            match judge(&self.held) {
                Judged::Incomplete => {}
                Judged::Passes => out.append(&mut self.held),
                Judged::Steers => self.held.clear(),
                Judged::Broken => {
                    // What began here is no sequence: without its first byte, the rest is text.
                    let rest: Vec<u8> = self.held.drain(..).skip(1).collect();
                    self.pass(&rest, out);
                }
            }
        }
    }
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\t' | 0x20..=0x7e)
}

enum Judged {
    Incomplete,
    Passes,
    Steers,
    Broken,
}

fn judge(held: &[u8]) -> Judged {
    match *held {
        [byte] if is_plain(byte) => Judged::Passes,
        [0x1b] | [0x1b, b'['] => Judged::Incomplete,
        // A colour: digits between `[` and `m`.
        [0x1b, b'[', ref rest @ ..] => match rest.split_last() {
            Some((b'm', _)) => Judged::Passes,
            Some((b'0'..=b'9' | b';', _)) if rest.len() < LONGEST => Judged::Incomplete,
            _ => Judged::Broken,
        },
        [0x1b, _] => Judged::Broken,
        [0..=0x1f | 0x7f] => Judged::Steers,
        [0xc2..=0xdf]
        | [0xe0..=0xef]
        | [0xe0..=0xef, _]
        | [0xf0..=0xf4]
        | [0xf0..=0xf4, _]
        | [0xf0..=0xf4, _, _] => Judged::Incomplete,
        // Controls of the second set, and marks that turn text around.
        [0xc2, 0x80..=0x9f] | [0xd8, 0x9c] => Judged::Steers,
        [0xe2, 0x80, 0x8e | 0x8f | 0xaa..=0xae] | [0xe2, 0x81, 0xa6..=0xa9] => Judged::Steers,
        ref whole if std::str::from_utf8(whole).is_ok() => Judged::Passes,
        _ => Judged::Broken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        String::from_utf8(guarded(text.as_bytes())).unwrap()
    }

    #[test]
    fn text_and_colours_pass_and_nothing_else() {
        let fine = "step 12 ms → ünï\t日本 😀\n\u{1b}[1;32mgreen\u{1b}[0m";
        assert_eq!(shown(fine), fine);
        assert_eq!(shown("a\u{1b}[2Jb\u{1b}]0;title\u{7}c"), "a[2Jb]0;titlec");
        assert_eq!(shown("a\u{9b}31mb\u{202e}c\u{2066}d\u{61c}e\rf\u{8}g"), "a31mbcdefg");
    }

    #[test]
    fn pieces_are_put_together_and_broken_text_is_harmless() {
        let text = "ü\u{1b}[31mx\u{202e}".as_bytes();
        let (mut guard, mut out) = (Guard::default(), Vec::new());
        text.iter().for_each(|byte| guard.pass(&[*byte], &mut out));
        assert_eq!(out, "ü\u{1b}[31mx".as_bytes());
        assert_eq!(guarded(b"a\xffb\x9bc\xe2\x28d"), b"abc(d");
    }
}
