//! Lines of bounded length from a stream: a message is one line. Knows nothing of what is in it.

use std::io::{self, BufRead};

/// The longest line that is read, in bytes. Longer ones are skipped without being kept.
pub const LONGEST: usize = 1 << 20;

/// The next line of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line without its end.
    Text(Vec<u8>),
    /// A line beyond [`LONGEST`].
    TooLong,
    /// The stream ended.
    End,
}

/// Reads up to the end of a line. A last line without an end counts.
pub(crate) fn next(input: &mut impl BufRead) -> io::Result<Line> {
    let (mut line, mut too_long, mut any) = (Vec::new(), false, false);
    loop {
        let chunk = match input.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if chunk.is_empty() && !any {
            return Ok(Line::End);
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let text = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
        too_long |= line.len() + text.len() > LONGEST;
        if too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(text);
        }
        let (used, ended) = (end.map_or(chunk.len(), |end| end + 1), end.is_some() || chunk.is_empty());
        any = true;
        input.consume(used);
        if ended {
            return Ok(if too_long { Line::TooLong } else { Line::Text(line) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        loop {
            match next(&mut bytes).unwrap() {
                Line::End => return lines,
                line => lines.push(line),
            }
        }
    }

    #[test]
    fn lines_end_at_line_feeds_and_at_the_end() {
        let text = |text: &str| Line::Text(text.as_bytes().to_vec());
        assert_eq!(all(b"a\n\nbc"), [text("a"), text(""), text("bc")]);
        assert_eq!(all(b""), []);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_one_read() {
        let mut bytes = vec![b'x'; LONGEST + 1];
        bytes.extend_from_slice(b"\nnext\n");
        let mut small = io::BufReader::with_capacity(1000, bytes.as_slice());
        assert_eq!(next(&mut small).unwrap(), Line::TooLong);
        assert_eq!(next(&mut small).unwrap(), Line::Text(b"next".to_vec()));
        assert_eq!(next(&mut small).unwrap(), Line::End);
        let longest = vec![b'x'; LONGEST];
        assert_eq!(next(&mut longest.as_slice()).unwrap(), Line::Text(longest.clone()));
    }
}
