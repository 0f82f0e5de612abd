//! Event files: what programs write for TensorBoard, as far as it tells of steps. A record is a length, its checksum,
//! an `Event` and its checksum; an event has a time, a step and perhaps scalars.
//!
//! By hand, because of all of TensorBoard's messages three numbers are wanted, while the file still grows.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Events that hold more than scalars do (graphs, images) are passed over unread.
const LARGEST: u64 = 1 << 20;

/// A scalar of an event.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scalar {
    /// Seconds since 1970.
    pub(super) wall_s: f64,
    pub(super) step: u64,
    pub(super) tag: String,
    pub(super) value: Option<f64>,
}

/// Reads all scalars of a file. A file that breaks off in the middle of a record is one that is still written.
pub(super) fn read(path: &Path, each: &mut dyn FnMut(Scalar)) {
    let Ok(file) = File::open(path) else { return };
    let mut file = BufReader::new(file);
    let mut payload = Vec::new();
    loop {
        let mut head = [0_u8; 12];
        if file.read_exact(&mut head).is_err() {
            return;
        }
        let [l0, l1, l2, l3, l4, l5, l6, l7, c0, c1, c2, c3] = head;
        let length = [l0, l1, l2, l3, l4, l5, l6, l7];
        if masked_crc(&length) != u32::from_le_bytes([c0, c1, c2, c3]) {
            return;
        }
        let length = u64::from_le_bytes(length);
        if length > LARGEST {
            let Ok(skip) = i64::try_from(length.saturating_add(4)) else { return };
            if file.seek_relative(skip).is_err() || file.stream_position().is_err() {
                return;
            }
            continue;
        }
        payload.clear();
        if !matches!(file.by_ref().take(length).read_to_end(&mut payload), Ok(read) if read as u64 == length)
            || file.seek(SeekFrom::Current(4)).is_err()
        {
            return;
        }
        event(&payload, each);
    }
}

/// A field of a message: its number, and what it holds.
enum Field<'b> {
    Number(u64),
    Wide([u8; 8]),
    Bytes(&'b [u8]),
    Narrow([u8; 4]),
}

/// Takes the next field off `rest`; `None` at the end and where it is broken.
fn field<'b>(rest: &mut &'b [u8]) -> Option<(u64, Field<'b>)> {
    let key = varint(rest)?;
    let value = match key & 7 {
        0 => Field::Number(varint(rest)?),
        1 => Field::Wide(*rest.split_off(..8)?.first_chunk()?),
        2 => {
            let length = usize::try_from(varint(rest)?).ok()?;
            Field::Bytes(rest.split_off(..length)?)
        }
        5 => Field::Narrow(*rest.split_off(..4)?.first_chunk()?),
        _ => return None,
    };
    Some((key >> 3, value))
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *rest.split_off_first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn event(mut rest: &[u8], each: &mut dyn FnMut(Scalar)) {
    let (mut wall_s, mut step, mut summaries) = (0.0, 0, Vec::new());
    while let Some((number, value)) = field(&mut rest) {
        match (number, value) {
            (1, Field::Wide(bytes)) => wall_s = f64::from_le_bytes(bytes),
            (2, Field::Number(number)) => step = number,
            (5, Field::Bytes(summary)) => summaries.push(summary),
            _ => {}
        }
    }
    for mut summary in summaries {
        while let Some((number, value)) = field(&mut summary) {
            if let (1, Field::Bytes(value)) = (number, value)
                && let Some((tag, value)) = tagged(value)
            {
                each(Scalar { wall_s, step, tag, value });
            }
        }
    }
}

/// A summary's tag and its value where it is a scalar.
fn tagged(mut rest: &[u8]) -> Option<(String, Option<f64>)> {
    let (mut tag, mut scalar) = (None, None);
    while let Some((number, value)) = field(&mut rest) {
        match (number, value) {
            (1, Field::Bytes(text)) => tag = Some(String::from_utf8_lossy(text).into_owned()),
            (2, Field::Narrow(bytes)) => scalar = Some(f64::from(f32::from_le_bytes(bytes))),
            (8, Field::Bytes(tensor)) => scalar = first_float(tensor),
            _ => {}
        }
    }
    Some((tag?, scalar))
}

/// The value of a tensor that is one float: its bytes (field 4), or a list of floats (field 5).
fn first_float(mut rest: &[u8]) -> Option<f64> {
    let mut found = None;
    while let Some((number, value)) = field(&mut rest) {
        let bytes = match (number, value) {
            (4 | 5, Field::Bytes(bytes)) => <[u8; 4]>::try_from(bytes).ok(),
            (5, Field::Narrow(bytes)) => Some(bytes),
            _ => None,
        };
        found = bytes.map(|bytes| f64::from(f32::from_le_bytes(bytes))).or(found);
    }
    found
}

/// Castagnoli's checksum, rotated and shifted as TensorFlow's records have it.
fn masked_crc(bytes: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
        }
    }
    (!crc).rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A record around an event.
    pub(crate) fn record(event: &[u8]) -> Vec<u8> {
        let length = (event.len() as u64).to_le_bytes();
        let mut out = length.to_vec();
        out.extend(masked_crc(&length).to_le_bytes());
        out.extend(event);
        out.extend(masked_crc(event).to_le_bytes());
        out
    }

    /// An event with one scalar.
    pub(crate) fn scalar(wall_s: f64, step: u8, tag: &str, value: f32) -> Vec<u8> {
        let mut one = vec![0x0a, tag.len() as u8];
        one.extend(tag.as_bytes());
        one.push(0x15);
        one.extend(value.to_le_bytes());
        let mut summary = vec![0x0a, one.len() as u8];
        summary.extend(one);
        let mut event = vec![0x09];
        event.extend(wall_s.to_le_bytes());
        event.extend([0x10, step, 0x2a, summary.len() as u8]);
        event.extend(summary);
        event
    }

    fn all(bytes: &[u8]) -> Vec<Scalar> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let mut seen = Vec::new();
        read(file.path(), &mut |scalar| seen.push(scalar));
        seen
    }

    #[test]
    fn the_checksum_is_tensorflows() {
        // The head of the first record that TensorFlow 2.21 writes: 24 bytes long.
        assert_eq!(masked_crc(&24_u64.to_le_bytes()), 0x224b_7fa3);
    }

    #[test]
    fn scalars_are_read_until_the_file_breaks_off() {
        let mut bytes = record(&scalar(100.5, 3, "loss", 0.25));
        bytes.extend(record(&scalar(101.5, 4, "loss", 0.125)));
        let whole = all(&bytes);
        assert_eq!(whole[0], Scalar { wall_s: 100.5, step: 3, tag: "loss".to_owned(), value: Some(0.25) });
        assert_eq!(whole.len(), 2);
        for cut in 0..bytes.len() {
            assert!(all(&bytes[..cut]).len() <= 2);
        }
        assert_eq!(all(&bytes[..bytes.len() - 5]).len(), 1);
        bytes[0] ^= 1;
        assert!(all(&bytes).is_empty(), "a length that is not what was written");
    }
}
