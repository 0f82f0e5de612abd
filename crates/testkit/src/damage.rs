//! Ways to damage files, applicable to any bytes and the same on every run: truncation, flipped bits, swapped
//! or repeated parts, huge lengths, empty files, foreign content.

/// A small pseudo-random number generator (xorshift64*): equal seeds give equal damage everywhere.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator that starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number from 0 up to, but not including, `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.next_u64() % end as u64) as usize }
    }
}

/// Every truncation of the bytes, shortest first.
pub fn truncations(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    (0..bytes.len()).map(move |len| &bytes[..len])
}

/// Flips `flips` bits at random places.
pub fn flip_bits(bytes: &[u8], rng: &mut Rng, flips: usize) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for _ in 0..flips {
        let at = rng.below(out.len());
        if let Some(byte) = out.get_mut(at) {
            *byte ^= 1 << rng.below(8);
        }
    }
    out
}

/// Cuts out a random part and puts it back at a random place, twice as likely over other bytes as between them.
pub fn splice(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    let from = rng.below(bytes.len());
    let part = &bytes[from..from + rng.below(bytes.len() - from)];
    let at = rng.below(bytes.len());
    let resume = if rng.below(3) == 0 { at } else { (at + part.len()).min(bytes.len()) };
    [&bytes[..at], part, &bytes[resume..]].concat()
}

/// Overwrites some bytes at a random place with `with`, e.g. a varint or a number that is far too large.
pub fn overwrite(bytes: &[u8], rng: &mut Rng, with: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let at = rng.below(out.len());
    for (to, from) in out[at..].iter_mut().zip(with) {
        *to = *from;
    }
    out
}

/// Varints that claim absurd lengths: 4 GB, 8 EB, all 64 bits, and one that never ends.
pub const HUGE_VARINTS: &[&[u8]] = &[
    &[0xff, 0xff, 0xff, 0xff, 0x0f],
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
];

/// Content that has no profile format.
pub const FOREIGN: &[&[u8]] = &[
    b"",
    b"\0",
    b"\n",
    b"{}",
    b"[]",
    b"<!DOCTYPE html><html></html>",
    b"SQLite format 3\0\x10\0\x01\x01\0\x40\x20\x20",
    b"PK\x03\x04\x14\0\0\0\x08\0",
    b"\x1f\x8b\x08\0\0\0\0\0\0\x03",
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    b"timestamp, name, utilization.gpu [%]\n",
];

/// `len` bytes of noise.
pub fn noise(rng: &mut Rng, len: usize) -> Vec<u8> {
    (0..len).map(|_| rng.next_u64() as u8).collect()
}
