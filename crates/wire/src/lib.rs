//! The protobuf wire format, hand-written over the file's bytes: tags, varints, lengths, and nothing else.
//!
//! A cursor always holds the whole file, so every position is a position in the file, and a varint can be read
//! with one eight-byte load even at the end of a message. All reads are checked; invalid data is [`Broken`],
//! with its position.
//!
//! By hand, because a generated decoder builds an object per message: it reads the same file ten times slower and needs
//! seven times its size. And it stops at the first damaged byte, where this one keeps all that came before.

use std::ops::Range;

/// Why and where the bytes are invalid.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// One of the constants below.
    pub what: &'static str,
    /// Position in the file.
    pub at: usize,
}

impl Broken {
    /// A length-delimited field claims more bytes than exist.
    pub const OVERRUN: &'static str = "length runs past the end";
    /// A varint of more than ten bytes, or one that the message ends in.
    pub const VARINT: &'static str = "number does not end";
    /// A wire type that is reserved or out of use.
    pub const WIRE_TYPE: &'static str = "unknown wire type";
    /// Field 0, or more than 29 bits.
    pub const NUMBER: &'static str = "field number out of range";
    /// A number of fixed size that the message ends in.
    pub const FIXED: &'static str = "number is truncated";
}

/// The content of a field. `Cut` is a length-delimited field that claims more bytes than exist: its range ends
/// with the enclosing message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Integers, booleans and enums.
    Varint(u64),
    /// Doubles and fixed 64-bit integers.
    Fixed64(u64),
    /// Floats and fixed 32-bit integers.
    Fixed32(u32),
    /// Where a message, text or packed list is.
    Len(Range<usize>),
    /// What is left of one.
    Cut(Range<usize>),
}

/// One field of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// As in the schema.
    pub number: u32,
    /// Position of its tag.
    pub at: usize,
    /// What it holds.
    pub value: Payload,
}

/// A position in a message.
#[derive(Copy, Clone, Debug)]
pub struct Cursor<'a> {
    file: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    /// Starts at the message in `range`; anything outside the file is cut off.
    #[inline]
    pub fn new(file: &'a [u8], range: Range<usize>) -> Self {
        let end = range.end.min(file.len());
        Cursor { file, at: range.start.min(end), end }
    }

    /// Where it is, from the start of the file.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Continues at a later position of the message.
    #[inline]
    pub fn jump(&mut self, at: usize) {
        self.at = at.clamp(self.at, self.end);
    }

    /// Whether the message is over.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.at >= self.end
    }

    /// A varint of up to ten bytes. Most have one.
    #[inline(always)]
    pub fn varint(&mut self) -> Result<u64, Broken> {
        match self.file.get(self.at) {
            Some(&byte) if byte < 0x80 && self.at < self.end => {
                self.at += 1;
                Ok(u64::from(byte))
            }
            _ => self.long_varint(),
        }
    }

    #[inline]
    fn long_varint(&mut self) -> Result<u64, Broken> {
        let word = self.file.get(self.at..).and_then(<[u8]>::first_chunk::<8>);
        match word.and_then(|word| unpack(u64::from_le_bytes(*word))) {
            Some((value, len)) if self.at + len <= self.end => {
                self.at += len;
                Ok(value)
            }
            _ => self.slow_varint(),
        }
    }

    #[cold]
    fn slow_varint(&mut self) -> Result<u64, Broken> {
        let rest = self.file.get(self.at..self.end).unwrap_or_default();
        let mut v = 0u64;
        for (i, &byte) in rest.iter().enumerate().take(10) {
            v |= u64::from(byte & 0x7f) << (7 * i);
            if byte < 0x80 {
                self.at += i + 1;
                return Ok(v);
            }
        }
        Err(Broken { what: Broken::VARINT, at: self.at })
    }

    /// Skips the message after `tag`, if that is the next tag and the message is shorter than 128 bytes.
    #[inline(always)]
    pub fn short_after(&mut self, tag: u8) -> Option<Range<usize>> {
        let [first, len] = *self.file.get(self.at..)?.first_chunk()?;
        if first != tag || len >= 0x80 {
            return None;
        }
        let start = self.at + 2;
        let next = start + usize::from(len);
        if next > self.end {
            return None;
        }
        self.at = next;
        Some(start..next)
    }

    /// Skips a byte that is known to exist.
    #[inline(always)]
    pub fn step(&mut self) {
        self.at += 1;
    }

    /// The byte under the cursor.
    #[inline(always)]
    pub fn peek(&self) -> Option<u8> {
        if self.at < self.end { self.file.get(self.at).copied() } else { None }
    }

    /// Reads a length, skips as many bytes, and returns their range.
    #[inline(always)]
    pub fn skip_len(&mut self) -> Result<Range<usize>, Broken> {
        let at = self.at;
        let len = self.varint()?;
        let start = self.at;
        if len > (self.end - start) as u64 {
            return Err(Broken { what: Broken::OVERRUN, at });
        }
        self.at = start + len as usize;
        Ok(start..self.at)
    }

    /// The next field; `None` at the end of the message.
    #[inline]
    pub fn field(&mut self) -> Result<Option<Field>, Broken> {
        if self.is_done() {
            return Ok(None);
        }
        let at = self.at;
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|&n| n > 0 && n < 1 << 29);
        let number = number.ok_or(Broken { what: Broken::NUMBER, at })?;
        let value = match tag & 7 {
            0 => Payload::Varint(self.varint()?),
            1 => Payload::Fixed64(u64::from_le_bytes(self.fixed()?)),
            2 => self.length_delimited()?,
            5 => Payload::Fixed32(u32::from_le_bytes(self.fixed()?)),
            _ => return Err(Broken { what: Broken::WIRE_TYPE, at }),
        };
        Ok(Some(Field { number, at, value }))
    }

    #[inline]
    fn length_delimited(&mut self) -> Result<Payload, Broken> {
        let len = self.varint()?;
        let start = self.at;
        if len > (self.end - start) as u64 {
            self.at = self.end;
            return Ok(Payload::Cut(start..self.end));
        }
        self.at = start + len as usize;
        Ok(Payload::Len(start..self.at))
    }

    #[inline]
    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        let rest = self.file.get(self.at..self.end).unwrap_or_default();
        let bytes = rest.first_chunk::<N>().ok_or(Broken { what: Broken::FIXED, at: self.at })?;
        self.at += N;
        Ok(*bytes)
    }
}

/// The varint at the start of eight bytes, and its length; `None` if it does not end there. All bytes are
/// processed at once: find the first byte without the top bit, clear what follows it, then close the gaps
/// between the groups of seven bits, pairs first. Ids have one byte and durations up to four, which need only
/// half the work.
#[inline(always)]
pub fn unpack(word: u64) -> Option<(u64, usize)> {
    if word & 0x80 == 0 {
        return Some((word & 0x7f, 1));
    }
    let low = word as u32;
    let stops = !low & 0x8080_8080;
    if stops != 0 {
        let v = low & (stops ^ (stops - 1)) & 0x7f7f_7f7f;
        let v = (v & 0x007f_007f) | ((v & 0x7f00_7f00) >> 1);
        let v = (v & 0x0000_3fff) | ((v & 0x3fff_0000) >> 2);
        return Some((u64::from(v), (stops.trailing_zeros() / 8 + 1) as usize));
    }
    unpack_any(word)
}

/// The same without a branch on the length.
#[inline(always)]
pub fn unpack_any(word: u64) -> Option<(u64, usize)> {
    let stops = !word & 0x8080_8080_8080_8080;
    if stops == 0 {
        return None;
    }
    let v = word & (stops ^ (stops - 1)) & 0x7f7f_7f7f_7f7f_7f7f;
    let v = (v & 0x007f_007f_007f_007f) | ((v & 0x7f00_7f00_7f00_7f00) >> 1);
    let v = (v & 0x0000_3fff_0000_3fff) | ((v & 0x3fff_0000_3fff_0000) >> 2);
    let v = (v & 0x0fff_ffff) | ((v & 0x0fff_ffff_0000_0000) >> 4);
    Some((v, (stops.trailing_zeros() / 8 + 1) as usize))
}

/// Calls `visit` for each field of the message in `range`. Returns what ended it early, if anything did.
pub fn walk(file: &[u8], range: Range<usize>, mut visit: impl FnMut(Field)) -> Option<Broken> {
    let mut cursor = Cursor::new(file, range);
    loop {
        match cursor.field() {
            Ok(Some(field)) => {
                let cut = matches!(field.value, Payload::Cut(_));
                let at = field.at;
                visit(field);
                if cut {
                    return Some(Broken { what: Broken::OVERRUN, at });
                }
            }
            Ok(None) => return None,
            Err(broken) => return Some(broken),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(mut v: u64, out: &mut Vec<u8>) {
        while v >= 0x80 {
            out.push(v as u8 | 0x80);
            v >>= 7;
        }
        out.push(v as u8);
    }

    #[test]
    fn varints_of_every_length_come_back_at_the_end_of_the_file_and_before_it() {
        for bits in 0..64 {
            for v in [1u64 << bits, (1u64 << bits) - 1, u64::MAX >> bits] {
                let mut bytes = Vec::new();
                encode(v, &mut bytes);
                let len = bytes.len();
                for padding in 0..9 {
                    bytes.resize(len + padding, 0xff);
                    let mut cursor = Cursor::new(&bytes, 0..len);
                    assert_eq!(cursor.varint(), Ok(v));
                    assert_eq!(cursor.at(), len);
                }
            }
        }
    }

    #[test]
    fn a_varint_never_reads_past_its_message() {
        let bytes = [0x80, 0x80, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for end in 0..3 {
            assert!(Cursor::new(&bytes, 0..end).varint().is_err());
        }
        assert!(Cursor::new(&[0xff; 16], 0..16).varint().is_err());
    }

    #[test]
    fn the_short_ways_stop_at_the_end_of_the_message_too() {
        let bytes = [0x10, 0x80, 0x80, 0x01, 0x22, 0x02, 0, 0, 0, 0, 0, 0];
        assert_eq!(Cursor::new(&bytes, 4..8).short_after(0x22), Some(6..8));
        assert_eq!(Cursor::new(&bytes, 4..7).short_after(0x22), None);
    }

    #[test]
    fn a_length_past_the_end_is_cut_and_reported() {
        let bytes = [0x08, 0x01, 0x12, 0x7f, b'x'];
        let mut seen = Vec::new();
        let broken = walk(&bytes, 0..5, |field| seen.push(field.value));
        assert_eq!(seen, [Payload::Varint(1), Payload::Cut(4..5)]);
        assert_eq!(broken, Some(Broken { what: Broken::OVERRUN, at: 2 }));
    }

    #[test]
    fn groups_and_field_zero_are_damage() {
        for (byte, what) in [(0x0b, Broken::WIRE_TYPE), (0x0f, Broken::WIRE_TYPE), (0x00, Broken::NUMBER)] {
            assert_eq!(walk(&[byte, 0, 0], 0..3, |_| {}), Some(Broken { what, at: 0 }));
        }
    }
}
