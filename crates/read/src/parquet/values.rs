//! Values of a page by encoding. Every value becomes 64 bits: an integer, the bits of a float, or the location
//! of its bytes (start in the upper half, length in the lower).

use super::bits::{Delta, Hybrid};
use super::footer::Physical;
use crate::table::TableError;

const WHAT: &str = "a page";

/// Location of bytes in their page.
pub(super) fn place(start: usize, len: usize) -> u64 {
    // Pages are far smaller than 4 GB; larger ones were refused before.
    (start as u64) << 32 | (len as u64 & 0xffff_ffff)
}

/// The bytes at a location.
pub(super) fn at_place(page: &[u8], place: u64) -> &[u8] {
    let start = (place >> 32) as usize;
    let len = (place & 0xffff_ffff) as usize;
    page.get(start..start + len).unwrap_or_default()
}

/// The remaining values of a page.
#[derive(Clone, Debug)]
pub(super) enum Values {
    /// Plain values from here on; booleans bit by bit.
    Plain { at: usize, bit: usize },
    /// Positions in the dictionary.
    Positions(Hybrid),
    /// Booleans in runs.
    Truths(Hybrid),
    /// Integers as deltas.
    Delta(Delta),
    /// The lengths of all texts as deltas, then all texts.
    Texts { lengths: Delta, at: usize },
    /// The first bytes of all values, then the second bytes, and so on.
    Split { at: usize, stride: usize, next: usize },
}

impl Values {
    /// Values from `at` on, at most `count`.
    pub fn new(
        encoding: i64,
        physical: Physical,
        page: &[u8],
        at: usize,
        count: usize,
    ) -> Result<Self, TableError> {
        let whole = matches!(physical, Physical::Int32 | Physical::Int64);
        Ok(match encoding {
            0 => Values::Plain { at, bit: 0 },
            // A page without values may even lack the width.
            2 | 8 => {
                let width = page.get(at).copied().unwrap_or(0);
                Values::Positions(Hybrid::new((at + 1).min(page.len()), page.len(), u32::from(width))?)
            }
            3 if physical == Physical::Boolean => {
                let end = (at + 4).saturating_add(length(page, at)?);
                Values::Truths(Hybrid::new(at + 4, end, 1)?)
            }
            5 if whole => Values::Delta(Delta::new(page, at)?),
            6 if physical == Physical::Bytes => texts(page, at)?,
            9 => {
                let width = width_of(physical).ok_or(TableError::Unknown("encoding", encoding))?;
                let stride = page.len().saturating_sub(at) / width.max(1);
                Values::Split { at, stride: stride.min(count), next: 0 }
            }
            other => return Err(TableError::Unknown("encoding", other)),
        })
    }

    /// Appends the next `count` values to `out`.
    pub fn read(&mut self, from: &Origin, count: usize, out: &mut Vec<u64>) -> Result<(), TableError> {
        match self {
            Values::Plain { at, bit } => from.plain(at, bit, count, out),
            Values::Positions(hybrid) => {
                let mut beyond = false;
                hybrid.read(from.page, count, |position| match from.dictionary.get(position as usize) {
                    Some(&value) => out.push(value),
                    None => beyond = true,
                })?;
                if beyond { Err(TableError::Wrong("a position in a dictionary")) } else { Ok(()) }
            }
            Values::Truths(hybrid) => hybrid.read(from.page, count, |value| out.push(value)),
            Values::Delta(delta) => (0..count).try_for_each(|_| {
                let value = delta.next(from.page)?;
                out.push(match from.physical {
                    Physical::Int32 => from.narrow((value as i32).to_le_bytes()),
                    _ => value as u64,
                });
                Ok(())
            }),
            Values::Texts { lengths, at } => (0..count).try_for_each(|_| {
                let len = usize::try_from(lengths.next(from.page)?).map_err(|_| TableError::Wrong(WHAT))?;
                out.push(text(from.page, at, len)?);
                Ok(())
            }),
            Values::Split { at, stride, next } => {
                let end =
                    next.checked_add(count).filter(|end| end <= stride).ok_or(TableError::Short(WHAT))?;
                for index in *next..end {
                    out.push(from.split(*at, *stride, index)?);
                }
                *next = end;
                Ok(())
            }
        }
    }
}

/// Source of the values, and the meaning of their bytes.
#[derive(Copy, Clone, Debug)]
pub(super) struct Origin<'p> {
    pub page: &'p [u8],
    pub physical: Physical,
    pub unsigned: bool,
    pub dictionary: &'p [u64],
}

impl Origin<'_> {
    /// Plain values.
    fn plain(
        &self,
        at: &mut usize,
        bit: &mut usize,
        count: usize,
        out: &mut Vec<u64>,
    ) -> Result<(), TableError> {
        let page = self.page;
        match self.physical {
            Physical::Boolean => {
                for _ in 0..count {
                    let byte = page.get(*at + *bit / 8).ok_or(TableError::Short(WHAT))?;
                    out.push(u64::from(byte >> (*bit % 8) & 1));
                    *bit += 1;
                }
            }
            Physical::Bytes => {
                for _ in 0..count {
                    let len = length(page, *at)?;
                    *at += 4;
                    out.push(text(page, at, len)?);
                }
            }
            Physical::Fixed(len) => {
                for _ in 0..count {
                    out.push(text(page, at, len)?);
                }
            }
            Physical::Int32 | Physical::Float => {
                out.extend(numbers::<4>(page, at, count)?.map(|bytes| self.narrow(bytes)));
            }
            Physical::Int64 | Physical::Double => {
                out.extend(numbers::<8>(page, at, count)?.map(u64::from_le_bytes));
            }
        }
        Ok(())
    }

    /// The value at `index` of byte-split values.
    fn split(&self, at: usize, stride: usize, index: usize) -> Result<u64, TableError> {
        let width = width_of(self.physical).unwrap_or(0);
        let mut bytes = [0; 8];
        for (byte, to) in bytes.iter_mut().take(width).enumerate() {
            *to = *self.page.get(at + byte * stride + index).ok_or(TableError::Short(WHAT))?;
        }
        let [a, b, c, d, ..] = bytes;
        Ok(if width == 4 { self.narrow([a, b, c, d]) } else { u64::from_le_bytes(bytes) })
    }

    /// A 32-bit number in 64 bits.
    fn narrow(&self, bytes: [u8; 4]) -> u64 {
        match self.physical {
            Physical::Float => f64::from(f32::from_le_bytes(bytes)).to_bits(),
            _ if self.unsigned => u64::from(u32::from_le_bytes(bytes)),
            _ => i64::from(i32::from_le_bytes(bytes)) as u64,
        }
    }
}

/// The width of numbers.
fn width_of(physical: Physical) -> Option<usize> {
    match physical {
        Physical::Int32 | Physical::Float => Some(4),
        Physical::Int64 | Physical::Double => Some(8),
        Physical::Boolean | Physical::Bytes | Physical::Fixed(_) => None,
    }
}

/// Texts start after all their lengths, which are skipped once to find the start.
fn texts(page: &[u8], at: usize) -> Result<Values, TableError> {
    let lengths = Delta::new(page, at)?;
    let mut ahead = lengths.clone();
    if ahead.left() > page.len() as u64 * 8 {
        return Err(TableError::Wrong(WHAT));
    }
    while ahead.left() > 0 {
        ahead.next(page)?;
    }
    Ok(Values::Texts { lengths, at: ahead.end() })
}

/// A four-byte length.
fn length(page: &[u8], at: usize) -> Result<usize, TableError> {
    let bytes = page.get(at..).and_then(|rest| rest.first_chunk::<4>()).ok_or(TableError::Short(WHAT))?;
    Ok(u32::from_le_bytes(*bytes) as usize)
}

fn text(page: &[u8], at: &mut usize, len: usize) -> Result<u64, TableError> {
    let start = *at;
    let end = start.checked_add(len).filter(|&end| end <= page.len()).ok_or(TableError::Short(WHAT))?;
    *at = end;
    Ok(place(start, len))
}

/// `count` numbers of `N` bytes.
fn numbers<'p, const N: usize>(
    page: &'p [u8],
    at: &mut usize,
    count: usize,
) -> Result<impl Iterator<Item = [u8; N]> + 'p, TableError> {
    let end = count.checked_mul(N).and_then(|len| at.checked_add(len)).ok_or(TableError::Short(WHAT))?;
    let bytes = page.get(*at..end).ok_or(TableError::Short(WHAT))?;
    *at = end;
    Ok(bytes.as_chunks::<N>().0.iter().copied())
}
