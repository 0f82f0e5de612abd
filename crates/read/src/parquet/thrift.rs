//! The parts of Thrift's compact protocol that Parquet's metadata needs: fields are visited by number, and the
//! rest is skipped. Nothing is allocated here, and no length is trusted beyond the available bytes.
//!
//! By hand, because Thrift's own crate decodes into generated objects; here a dozen fields are wanted out of hundreds.

use crate::table::TableError;

pub(super) use super::layout::thrift::{BINARY, FALSE, I32, I64, LIST, STRUCT, TRUE};
use super::layout::thrift::{BYTE, DOUBLE, I16, MAP, SET};

/// Maximum nesting of metadata.
const DEEPEST: u32 = 32;
const WHAT: &str = "metadata";

/// The read position.
#[derive(Clone, Debug)]
pub(super) struct Thrift<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Thrift<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Thrift { bytes, at: 0 }
    }

    /// Number of bytes read.
    pub fn position(&self) -> usize {
        self.at
    }

    fn byte(&mut self) -> Result<u8, TableError> {
        let byte = *self.bytes.get(self.at).ok_or(TableError::Short(WHAT))?;
        self.at += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u64, TableError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(TableError::Wrong(WHAT))
    }

    /// An integer of any width.
    pub fn int(&mut self) -> Result<i64, TableError> {
        self.varint().map(zigzag)
    }

    /// Text or bytes.
    pub fn binary(&mut self) -> Result<&'a [u8], TableError> {
        let len = usize::try_from(self.varint()?).map_err(|_| TableError::Short(WHAT))?;
        let end = self.at.checked_add(len).ok_or(TableError::Short(WHAT))?;
        let binary = self.bytes.get(self.at..end).ok_or(TableError::Short(WHAT))?;
        self.at = end;
        Ok(binary)
    }

    /// Calls `each` with the number and type of every field of a structure; it must read or skip the field.
    pub fn structure(
        &mut self,
        mut each: impl FnMut(&mut Self, i64, u8) -> Result<(), TableError>,
    ) -> Result<(), TableError> {
        let mut number = 0;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            number = match head >> 4 {
                0 => self.int()?,
                more => i64::wrapping_add(number, i64::from(more)),
            };
            each(self, number, head & 15)?;
        }
    }

    /// Calls `each` for every element of a list whose elements have the type `kind`; other lists are skipped.
    pub fn list(
        &mut self,
        kind: u8,
        mut each: impl FnMut(&mut Self) -> Result<(), TableError>,
    ) -> Result<(), TableError> {
        let (count, found) = self.list_head()?;
        for _ in 0..count {
            if found == kind { each(self)? } else { self.skip_element(found, 0)? }
        }
        Ok(())
    }

    fn list_head(&mut self) -> Result<(u64, u8), TableError> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            few => u64::from(few),
        };
        // Every element takes at least one byte.
        if count > (self.bytes.len() - self.at) as u64 {
            return Err(TableError::Short(WHAT));
        }
        Ok((count, head & 15))
    }

    /// Skips a field of type `kind`.
    pub fn skip(&mut self, kind: u8) -> Result<(), TableError> {
        self.skip_field(kind, 0)
    }

    fn skip_field(&mut self, kind: u8, depth: u32) -> Result<(), TableError> {
        if depth > DEEPEST {
            return Err(TableError::Wrong(WHAT));
        }
        match kind {
            TRUE | FALSE => {}
            BYTE => drop(self.byte()?),
            I16 | I32 | I64 => drop(self.varint()?),
            DOUBLE => {
                for _ in 0..8 {
                    self.byte()?;
                }
            }
            BINARY => drop(self.binary()?),
            LIST | SET => {
                let (count, element) = self.list_head()?;
                for _ in 0..count {
                    self.skip_element(element, depth + 1)?;
                }
            }
            MAP => self.skip_map(depth)?,
            STRUCT => self.structure(|this, _, kind| this.skip_field(kind, depth + 1))?,
            _ => return Err(TableError::Wrong(WHAT)),
        }
        Ok(())
    }

    /// In a list, a boolean takes a byte; in a structure it does not.
    fn skip_element(&mut self, kind: u8, depth: u32) -> Result<(), TableError> {
        if matches!(kind, TRUE | FALSE) { self.byte().map(drop) } else { self.skip_field(kind, depth) }
    }

    fn skip_map(&mut self, depth: u32) -> Result<(), TableError> {
        let count = self.varint()?;
        if count == 0 {
            return Ok(());
        }
        let kinds = self.byte()?;
        if count > (self.bytes.len() - self.at) as u64 {
            return Err(TableError::Short(WHAT));
        }
        for _ in 0..count {
            self.skip_element(kinds >> 4, depth + 1)?;
            self.skip_element(kinds & 15, depth + 1)?;
        }
        Ok(())
    }
}

/// Decodes small negative numbers from small positive ones.
pub(super) fn zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_visited_and_the_unwanted_ones_skipped() {
        // 1: -3 as i32, 2: true, 4: list of two i32, 5: struct with a binary, 20: "hi"
        let bytes = [0x15, 5, 0x11, 0x29, 0x25, 2, 4, 0x1c, 0x18, 1, b'x', 0, 0x08, 40, 2, b'h', b'i', 0];
        let mut thrift = Thrift::new(&bytes);
        let mut seen = Vec::new();
        let mut text = None;
        let visit = thrift.structure(|thrift, number, kind| {
            seen.push((number, kind));
            match (number, kind) {
                (1, I32) => assert_eq!(thrift.int()?, -3),
                (20, BINARY) => text = Some(thrift.binary()?),
                _ => thrift.skip(kind)?,
            }
            Ok(())
        });
        visit.unwrap();
        assert_eq!(seen, [(1, I32), (2, TRUE), (4, LIST), (5, STRUCT), (20, BINARY)]);
        assert_eq!(text, Some(&b"hi"[..]));
        assert_eq!(thrift.position(), bytes.len());
    }

    #[test]
    fn lengths_beyond_the_end_and_endless_nesting_are_refused() {
        let skip = |bytes: &[u8], kind| Thrift::new(bytes).skip(kind);
        assert_eq!(skip(&[0xff, 0xff, 0xff, 0xff, 0x0f, 1], BINARY), Err(TableError::Short(WHAT)));
        assert_eq!(skip(&[0xf5, 0xff, 0xff, 0xff, 0xff, 0x0f], LIST), Err(TableError::Short(WHAT)));
        assert_eq!(skip(&[0xff; 11], I64), Err(TableError::Wrong(WHAT)));
        assert_eq!(skip(&[0x1c; 4_096], STRUCT), Err(TableError::Wrong(WHAT)));
        assert_eq!(skip(&[0xff, 0xff, 0x03, 0x11], MAP), Err(TableError::Short(WHAT)));
    }
}
