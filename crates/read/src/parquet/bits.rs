//! Bit-packed integers: runs and groups (levels, dictionary positions), and deltas.
//!
//! A decoder keeps its position and not the bytes, so that it can live beside the page that it reads.

use super::thrift::zigzag;
use crate::table::TableError;

const WHAT: &str = "a page";

/// `width` bits starting at bit `bit`; bytes beyond the end count as zero.
#[inline]
fn bits_at(data: &[u8], bit: usize, width: u32) -> u64 {
    if width == 0 {
        return 0;
    }
    let rest = data.get(bit / 8..).unwrap_or_default();
    let shift = (bit % 8) as u32;
    let (low, high) = match rest.first_chunk::<9>() {
        Some(&[a, b, c, d, e, f, g, h, next]) => (u64::from_le_bytes([a, b, c, d, e, f, g, h]), next),
        None => {
            let mut padded = [0; 9];
            padded.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            let [a, b, c, d, e, f, g, h, next] = padded;
            (u64::from_le_bytes([a, b, c, d, e, f, g, h]), next)
        }
    };
    let mut value = low >> shift;
    if shift > 0 {
        value |= u64::from(high) << (64 - shift);
    }
    if width >= 64 { value } else { value & ((1 << width) - 1) }
}

/// A number of up to 64 bits, seven per byte.
fn varint(data: &[u8], at: &mut usize) -> Result<u64, TableError> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *data.get(*at).ok_or(TableError::Short(WHAT))?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(TableError::Wrong(WHAT))
}

/// Runs of one number and bit-packed groups of eight, in any order.
#[derive(Clone, Debug)]
pub(super) struct Hybrid {
    at: usize,
    end: usize,
    width: u32,
    /// Remaining repetitions of `value`.
    repeats: u64,
    value: u64,
    /// Remaining packed numbers, and the bit where they start.
    packed: u64,
    bit: usize,
}

impl Hybrid {
    /// Numbers of `width` bits in `start..end` of the page.
    pub fn new(start: usize, end: usize, width: u32) -> Result<Self, TableError> {
        if width > 32 || start > end {
            return Err(TableError::Wrong(WHAT));
        }
        Ok(Hybrid { at: start, end, width, repeats: 0, value: 0, packed: 0, bit: 0 })
    }

    /// The next `count` numbers.
    pub fn read(
        &mut self,
        data: &[u8],
        mut count: usize,
        mut put: impl FnMut(u64),
    ) -> Result<(), TableError> {
        let data = data.get(..self.end).ok_or(TableError::Short(WHAT))?;
        while count > 0 {
            if self.repeats > 0 {
                let now = self.repeats.min(count as u64) as usize;
                (0..now).for_each(|_| put(self.value));
                self.repeats -= now as u64;
                count -= now;
            } else if self.packed > 0 {
                let now = self.packed.min(count as u64) as usize;
                let end = self.bit + now * self.width as usize;
                if end > data.len() * 8 {
                    return Err(TableError::Short(WHAT));
                }
                for index in 0..now {
                    put(bits_at(data, self.bit + index * self.width as usize, self.width));
                }
                self.bit = end;
                self.packed -= now as u64;
                count -= now;
            } else {
                self.next_run(data)?;
            }
        }
        Ok(())
    }

    fn next_run(&mut self, data: &[u8]) -> Result<(), TableError> {
        let head = varint(data, &mut self.at)?;
        if head & 1 == 1 {
            let groups = (head >> 1).min(data.len() as u64 * 8);
            self.packed = groups * 8;
            self.bit = self.at * 8;
            // The last group may be truncated; reading beyond the end is an error then.
            let bytes = (groups as usize).saturating_mul(self.width as usize);
            self.at = self.at.saturating_add(bytes).min(data.len());
        } else {
            let bytes = self.width.div_ceil(8) as usize;
            if self.at + bytes > data.len() {
                return Err(TableError::Short(WHAT));
            }
            self.value = bits_at(data, self.at * 8, bytes as u32 * 8);
            self.at += bytes;
            self.repeats = head >> 1;
        }
        Ok(())
    }
}

/// Integers as deltas: blocks with a minimum delta and the bit-packed differences to it.
#[derive(Clone, Debug)]
pub(super) struct Delta {
    at: usize,
    /// Numbers per miniblock, and miniblocks per block.
    mini: usize,
    minis: usize,
    /// Remaining numbers.
    left: u64,
    /// The next number, if known.
    value: i64,
    first: bool,
    smallest: i64,
    /// Position of the widths of the block's remaining miniblocks.
    widths: usize,
    widths_left: usize,
    width: u32,
    /// Remaining numbers in the miniblock, and the bit where they start.
    mini_left: usize,
    bit: usize,
}

impl Delta {
    /// Starts at `at`.
    pub fn new(data: &[u8], mut at: usize) -> Result<Self, TableError> {
        let block = varint(data, &mut at)?;
        let minis = varint(data, &mut at)?;
        let left = varint(data, &mut at)?;
        let value = zigzag(varint(data, &mut at)?);
        let mini = block.checked_div(minis).filter(|mini| mini % 8 == 0 && (8..=1 << 20).contains(mini));
        let mini = mini.ok_or(TableError::Wrong(WHAT))? as usize;
        if minis > data.len() as u64 {
            return Err(TableError::Wrong(WHAT));
        }
        let minis = minis as usize;
        Ok(Delta {
            at,
            mini,
            minis,
            left,
            value,
            first: true,
            smallest: 0,
            widths: 0,
            widths_left: 0,
            width: 0,
            mini_left: 0,
            bit: 0,
        })
    }

    /// Number of remaining numbers.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The next number.
    pub fn next(&mut self, data: &[u8]) -> Result<i64, TableError> {
        self.left = self.left.checked_sub(1).ok_or(TableError::Short(WHAT))?;
        if self.first {
            self.first = false;
            return Ok(self.value);
        }
        if self.mini_left == 0 {
            self.next_mini(data)?;
        }
        let end = self.bit + self.width as usize;
        if end > data.len() * 8 {
            return Err(TableError::Short(WHAT));
        }
        let more = bits_at(data, self.bit, self.width) as i64;
        self.bit = end;
        self.mini_left -= 1;
        self.value = self.value.wrapping_add(self.smallest).wrapping_add(more);
        Ok(self.value)
    }

    fn next_mini(&mut self, data: &[u8]) -> Result<(), TableError> {
        if self.widths_left == 0 {
            self.smallest = zigzag(varint(data, &mut self.at)?);
            self.widths = self.at;
            self.widths_left = self.minis;
            self.at = self.at.saturating_add(self.minis);
        }
        self.width = u32::from(*data.get(self.widths).ok_or(TableError::Short(WHAT))?);
        if self.width > 64 {
            return Err(TableError::Wrong(WHAT));
        }
        self.widths += 1;
        self.widths_left -= 1;
        self.bit = self.at.saturating_mul(8);
        self.at = self.at.saturating_add(self.mini / 8 * self.width as usize);
        self.mini_left = self.mini;
        Ok(())
    }

    /// Position after all the numbers; only valid once all were read.
    pub fn end(&self) -> usize {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(data: &[u8], width: u32, count: usize) -> Result<Vec<u64>, TableError> {
        let mut out = Vec::new();
        let mut hybrid = Hybrid::new(0, data.len(), width)?;
        // In two goes: runs go on where they were left.
        hybrid.read(data, count / 2, |value| out.push(value))?;
        hybrid.read(data, count - count / 2, |value| out.push(value))?;
        Ok(out)
    }

    #[test]
    fn runs_and_groups_follow_one_another() {
        // Five sevens, then 0 to 7 in three bits each (the example of the format's description).
        let data = [10, 7, 3, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        assert_eq!(all(&data, 3, 13).unwrap(), [7, 7, 7, 7, 7, 0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(all(&data, 3, 14), Err(TableError::Short(WHAT)));
        assert_eq!(all(&[0xff, 0xff, 0xff, 0x7f], 3, 9), Err(TableError::Short(WHAT)));
        assert_eq!(all(&[200, 1, 9, 1], 16, 100).unwrap(), [265; 100]);
        assert!(Hybrid::new(0, 1, 33).is_err());
    }

    #[test]
    fn bits_are_taken_across_bytes_up_to_the_widest() {
        let data: Vec<u8> = (1..=20).collect();
        assert_eq!(bits_at(&data, 0, 64), u64::from_le_bytes([1, 2, 3, 4, 5, 6, 7, 8]));
        let wide = u128::from_le_bytes(*data.first_chunk().unwrap());
        assert_eq!(bits_at(&data, 5, 64), (wide >> 5) as u64);
        assert_eq!(bits_at(&data, 157, 3), 20 >> 5);
        assert_eq!((bits_at(&data, 200, 7), bits_at(&data, 3, 0)), (0, 0));
    }

    #[test]
    fn differences_add_up() {
        // 7, 5, 3, 1, 2, 3, 4, 5 from the format's description: smallest difference -2, then 0 0 0 3 3 3 3.
        let data = [128, 1, 4, 8, 14, 3, 2, 0, 0, 0, 0b1100_0000, 0b0011_1111, 0, 0, 0, 0, 0, 0];
        let mut delta = Delta::new(&data, 0).unwrap();
        let values: Vec<i64> = (0..8).map(|_| delta.next(&data).unwrap()).collect();
        assert_eq!(values, [7, 5, 3, 1, 2, 3, 4, 5]);
        assert!(delta.next(&data).is_err());
        assert!(Delta::new(&[0, 0, 8, 14], 0).is_err(), "no miniblocks");
        assert!(Delta::new(&[128, 1, 3, 8, 14], 0).is_err(), "miniblocks of no multiple of eight");
    }
}
