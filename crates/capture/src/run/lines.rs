//! A stream of bytes → visible lines: carriage returns also end a line, escape sequences are removed, and a
//! line of any length takes bounded memory.

/// Longer lines are not about steps.
const LONGEST: usize = 4 << 10;

/// A stream being read.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Bytes since the last end of a line.
    open: Vec<u8>,
    /// True if the current line was too long; the rest of it is skipped.
    too_long: bool,
}

/// A line, or its content so far.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Line<'t> {
    /// A complete line.
    Whole(&'t str),
    /// Nothing follows it yet. Progress bars put the end of a line before its text.
    Open(&'t str),
}

impl Lines {
    /// Reads bytes that arrived together.
    pub(super) fn feed(&mut self, bytes: &[u8], each: &mut dyn FnMut(Line<'_>)) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, after) = rest.split_at(end);
            self.keep(line);
            if !self.too_long && !self.open.is_empty() {
                each(Line::Whole(&visible(&self.open)));
            }
            self.open.clear();
            self.too_long = false;
            rest = after.get(1..).unwrap_or_default();
        }
        self.keep(rest);
        if !self.too_long && !self.open.is_empty() {
            each(Line::Open(&visible(&self.open)));
        }
    }

    /// Ends the stream, and with it the current line.
    pub(super) fn end(&mut self, each: &mut dyn FnMut(Line<'_>)) {
        if !self.too_long && !self.open.is_empty() {
            each(Line::Whole(&visible(&self.open)));
        }
        self.open.clear();
    }

    fn keep(&mut self, part: &[u8]) {
        if self.open.len() + part.len() > LONGEST {
            self.too_long = true;
            self.open.clear();
        } else if !self.too_long {
            self.open.extend_from_slice(part);
        }
    }
}

/// The text without escape sequences and control characters.
fn visible(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        match byte {
            0x1b => match rest.next() {
                // `ESC [ … letter` styles text or moves the cursor, `ESC ] … BEL` sets the window title.
                Some(b'[') => while rest.next().is_some_and(|byte| !(0x40..=0x7e).contains(&byte)) {},
                Some(b']') => while rest.next().is_some_and(|byte| byte != 0x07) {},
                _ => {}
            },
            b'\t' => out.push(b' '),
            byte if byte < 0x20 => {}
            byte => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: &[&[u8]]) -> Vec<String> {
        let (mut lines, mut seen) = (Lines::default(), Vec::new());
        for piece in pieces {
            lines.feed(piece, &mut |line| match line {
                Line::Whole(text) => seen.push(text.to_owned()),
                Line::Open(text) => seen.push(format!("{text}…")),
            });
        }
        seen
    }

    #[test]
    fn carriage_returns_end_lines_and_escapes_vanish() {
        let bar = b"\r\x1b[1m 2/10\x1b[0m \x1b[32m\xe2\x94\x81\x1b[0m 1s\r\x1b[1m 3/10\x1b[0m";
        assert_eq!(all(&[b"a\r\nb\n", bar]), ["a", "b", " 2/10 ━ 1s", " 3/10…"]);
    }

    #[test]
    fn lines_come_together_from_pieces() {
        assert_eq!(all(&[b"st", b"ep 1\nst", b"ep 2\n"]), ["st…", "step 1", "st…", "step 2"]);
    }

    #[test]
    fn endless_lines_take_no_memory_and_end_with_their_end() {
        let flood = vec![b'x'; 3 * LONGEST];
        let mut lines = Lines::default();
        let mut seen = 0;
        for _ in 0..100 {
            lines.feed(&flood, &mut |_| seen += 1);
        }
        assert_eq!(seen, 0);
        assert!(lines.open.capacity() <= 2 * LONGEST);
        lines.feed(b"\nstep 1\n", &mut |line| assert_eq!(line, Line::Whole("step 1")));
    }

    #[test]
    fn what_is_no_text_does_no_harm() {
        assert_eq!(all(&[b"\xff\xfe\0step 3\x1b[\n"]), ["\u{fffd}\u{fffd}step 3"]);
    }
}
