//! The framing of event files: length, checksum of the length, payload, checksum of the payload.
//!
//! The motivating situation: a disk that flips a bit in the fiftieth of a thousand records, and a program that is still
//! writing the last one. A record that does not match its checksum costs that record. After a length that cannot be true,
//! the next place where length and checksums fit goes on. A file that ends within a record ends before it; reading again
//! from there later finds it complete.
//!
//! Written by hand because the crates at hand stop at the first damage and believe lengths.

use crate::tf::crc32c::masked;

/// Length and checksum before a record.
pub(crate) const HEADER: usize = 12;
/// Checksum behind it.
pub(crate) const TRAILER: usize = 4;

/// What comes next in a file.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Piece<'b> {
    /// A record.
    Record(&'b [u8]),
    /// A record whose length does not match its checksum, but whose payload does.
    OddLength(&'b [u8]),
    /// A record that does not match its checksum.
    Damaged(&'b [u8]),
    /// Bytes that are not a record.
    Gap(usize),
    /// A record that is not complete.
    Cut,
}

/// A search for the next record in a damaged file looks at this many times its length: lengths can be forged
/// that each claim the whole rest.
const SEARCHES: usize = 8;

/// Walks over the records of a file.
#[derive(Debug)]
pub(crate) struct Records<'b> {
    bytes: &'b [u8],
    at: usize,
    /// Bytes that may still be looked at in searches.
    search: usize,
}

/// A record's place.
struct Frame<'b> {
    payload: &'b [u8],
    end: usize,
    length_fits: bool,
    payload_fits: bool,
}

impl<'b> Records<'b> {
    /// From an offset at which a record begins.
    pub(crate) fn new(bytes: &'b [u8], at: usize) -> Self {
        Records { bytes, at: at.min(bytes.len()), search: bytes.len().saturating_mul(SEARCHES) }
    }

    /// Where the next piece begins.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The record at `at`, whether or not it is sound; `None` where it would reach beyond the end.
    fn frame(&self, at: usize) -> Option<Frame<'b>> {
        let header = self.bytes.get(at..at.checked_add(HEADER)?)?;
        let (length, stored) = header.split_first_chunk::<8>()?;
        let start = at + HEADER;
        let end = start.checked_add(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        let payload = self.bytes.get(start..end)?;
        let trailer: &[u8; 4] = self.bytes.get(end..end.checked_add(TRAILER)?)?.first_chunk()?;
        Some(Frame {
            payload,
            end: end + TRAILER,
            length_fits: masked(length) == u32::from_le_bytes(*stored.first_chunk()?),
            payload_fits: masked(payload) == u32::from_le_bytes(*trailer),
        })
    }

    /// Does a sound length stand at `at`?
    fn length_fits(&self, at: usize) -> bool {
        let header = at.checked_add(HEADER).and_then(|end| self.bytes.get(at..end));
        header.and_then(<[u8]>::split_first_chunk::<8>).is_some_and(|(length, stored)| {
            stored.first_chunk().is_some_and(|stored| masked(length) == u32::from_le_bytes(*stored))
        })
    }

    /// The next place after `at` where a whole sound record stands. Only places with a sound length are looked into, and
    /// by chance one in four thousand million is one.
    fn resynchronise(&mut self, at: usize) -> Option<usize> {
        for place in at + 1..self.bytes.len().saturating_sub(HEADER + TRAILER - 1) {
            if !self.length_fits(place) {
                continue;
            }
            let Some(frame) = self.frame(place) else { continue };
            if frame.payload_fits {
                return Some(place);
            }
            self.search = self.search.checked_sub(frame.payload.len())?;
        }
        None
    }
}

impl<'b> Iterator for Records<'b> {
    type Item = (usize, Piece<'b>);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        if at >= self.bytes.len() {
            return None;
        }
        let frame = self.frame(at);
        if let Some(Frame { payload, end, length_fits, payload_fits }) = frame
            && (length_fits || payload_fits)
        {
            self.at = end;
            let piece = match (length_fits, payload_fits) {
                (true, true) => Piece::Record(payload),
                (true, false) => Piece::Damaged(payload),
                _ => Piece::OddLength(payload),
            };
            return Some((at, piece));
        }
        // A sound length that reaches beyond the end, or no room for a length: the rest is not written yet.
        let unfinished = self.bytes.len() - at < HEADER || (frame.is_none() && self.length_fits(at));
        let next = if unfinished { None } else { self.resynchronise(at) };
        match next {
            Some(next) => {
                self.at = next;
                Some((at, Piece::Gap(next - at)))
            }
            None => {
                self.at = self.bytes.len();
                let piece = if unfinished { Piece::Cut } else { Piece::Gap(self.bytes.len() - at) };
                Some((at, piece))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use stepscope_testkit::tfevents::record;

    use super::*;

    fn three() -> (Vec<u8>, usize) {
        let first = record(b"first");
        let at = first.len();
        ([first, record(b"second"), record(b"third")].concat(), at)
    }

    fn pieces(bytes: &[u8]) -> Vec<Piece<'_>> {
        Records::new(bytes, 0).map(|(_, piece)| piece).collect()
    }

    #[test]
    fn a_flipped_bit_costs_its_record_and_no_other() {
        let (whole, second) = three();
        let [first, last] = [Piece::Record(b"first"), Piece::Record(b"third")];
        assert_eq!(pieces(&whole), [first, Piece::Record(b"second"), last]);
        let with_flip = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            bytes
        };
        assert_eq!(pieces(&with_flip(second + HEADER + 1)), [first, Piece::Damaged(b"sacond"), last]);
        assert_eq!(pieces(&with_flip(second + 9)), [first, Piece::OddLength(b"second"), last]);
        let gap = HEADER + 6 + TRAILER;
        assert_eq!(
            pieces(&with_flip(second)),
            [first, Piece::Gap(gap), last],
            "a length that cannot be true"
        );
        assert_eq!(pieces(&with_flip(second + 7)), [first, Piece::Gap(gap), last], "a huge length");
    }

    #[test]
    fn a_file_that_breaks_off_ends_before_the_broken_record_and_goes_on_from_there() {
        let (whole, second) = three();
        for cut in second + 1..second + HEADER + 6 + TRAILER {
            let mut records = Records::new(&whole[..cut], 0);
            assert_eq!(records.next(), Some((0, Piece::Record(b"first"))));
            assert_eq!(records.next(), Some((second, Piece::Cut)), "cut at {cut}");
            assert_eq!(records.next(), None);
        }
        let mut later = Records::new(&whole, second);
        assert_eq!(later.next(), Some((second, Piece::Record(b"second"))));
    }

    #[test]
    fn forged_lengths_cost_no_more_than_a_few_passes() {
        let claims = 200_000_u64.to_le_bytes();
        let header = [&claims[..], &masked(&claims).to_le_bytes()].concat();
        let mut bytes = vec![1; 5];
        (0..40_000).for_each(|_| bytes.extend(&header));
        let mut records = Records::new(&bytes, 0);
        assert_eq!(records.next(), Some((0, Piece::Gap(bytes.len()))));
        assert!(records.search < bytes.len() * SEARCHES / 10, "the search ended by its limit");
    }

    #[test]
    fn garbage_is_one_gap() {
        assert_eq!(pieces(&[7; 777]), [Piece::Gap(777)]);
        assert_eq!(pieces(b""), []);
        assert_eq!(pieces(b"short"), [Piece::Cut]);
    }
}
