//! The parts of FlatBuffers that Arrow's metadata needs: fields of a table by number. Every position is
//! checked; missing data is `None`.
//!
//! By hand, because the generated code would need a schema compiler, and a dozen fields are read.

/// A table inside a buffer.
#[derive(Copy, Clone, Debug)]
pub(super) struct Flat<'a> {
    bytes: &'a [u8],
    at: usize,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk::<N>().copied()
}

/// The target of the reference at `at`.
fn follow(bytes: &[u8], at: usize) -> Option<usize> {
    at.checked_add(u32::from_le_bytes(number(bytes, at)?) as usize)
}

impl<'a> Flat<'a> {
    /// The root table of a buffer.
    pub fn root(bytes: &'a [u8]) -> Option<Self> {
        Some(Flat { bytes, at: follow(bytes, 0)? })
    }

    fn field(self, index: usize) -> Option<usize> {
        let back = i32::from_le_bytes(number(self.bytes, self.at)?);
        let fields = usize::try_from(i64::try_from(self.at).ok()? - i64::from(back)).ok()?;
        let size = usize::from(u16::from_le_bytes(number(self.bytes, fields)?));
        let entry = 4 + 2 * index;
        let offset = u16::from_le_bytes(number(self.bytes, fields + entry).filter(|_| entry + 2 <= size)?);
        (offset > 0).then(|| self.at + usize::from(offset))
    }

    /// A 64-bit number; 0 if omitted, as for all numbers.
    pub fn long(self, index: usize) -> i64 {
        self.field(index).and_then(|at| number(self.bytes, at)).map_or(0, i64::from_le_bytes)
    }

    pub fn int(self, index: usize) -> i32 {
        self.field(index).and_then(|at| number(self.bytes, at)).map_or(0, i32::from_le_bytes)
    }

    pub fn short(self, index: usize) -> i16 {
        self.field(index).and_then(|at| number(self.bytes, at)).map_or(0, i16::from_le_bytes)
    }

    pub fn byte(self, index: usize) -> u8 {
        self.field(index).and_then(|at| self.bytes.get(at)).copied().unwrap_or(0)
    }

    pub fn table(self, index: usize) -> Option<Self> {
        Some(Flat { bytes: self.bytes, at: follow(self.bytes, self.field(index)?)? })
    }

    /// The bytes of a list whose elements take `size` bytes each.
    fn list(self, index: usize, size: usize) -> Option<(usize, &'a [u8])> {
        let at = follow(self.bytes, self.field(index)?)?;
        let count = u32::from_le_bytes(number(self.bytes, at)?) as usize;
        let list = self.bytes.get(at + 4..)?.get(..count.checked_mul(size)?)?;
        Some((at + 4, list))
    }

    pub fn text(self, index: usize) -> &'a [u8] {
        self.list(index, 1).map_or(&[], |(_, text)| text)
    }

    /// Pairs of numbers.
    pub fn pairs(self, index: usize) -> &'a [[u8; 16]] {
        self.list(index, 16).map_or(&[], |(_, list)| list.as_chunks::<16>().0)
    }

    pub fn tables(self, index: usize) -> impl Iterator<Item = Self> {
        let (start, list) = self.list(index, 4).unwrap_or_default();
        let at = (0..list.len() / 4).map(move |element| start + 4 * element);
        at.filter_map(move |at| Some(Flat { bytes: self.bytes, at: follow(self.bytes, at)? }))
    }
}

/// The two numbers of a pair.
pub(super) fn pair(bytes: &[u8; 16]) -> (i64, i64) {
    let [a, b, c, d, e, f, g, h, rest @ ..] = *bytes;
    (i64::from_le_bytes([a, b, c, d, e, f, g, h]), i64::from_le_bytes(rest))
}
