//! Event files, record by record, as programs log them for TensorBoard.

/// A record around an event.
pub fn record(event: &[u8]) -> Vec<u8> {
    let length = (event.len() as u64).to_le_bytes();
    let mut out = length.to_vec();
    out.extend(masked_crc(&length).to_le_bytes());
    out.extend(event);
    out.extend(masked_crc(event).to_le_bytes());
    out
}

/// An event with one number, as TensorFlow 1 and PyTorch write it. The tag is short.
pub fn scalar(wall_s: f64, step: u8, tag: &str, value: f32) -> Vec<u8> {
    let mut one = vec![0x0a, tag.len() as u8];
    one.extend(tag.as_bytes());
    one.push(0x15);
    one.extend(value.to_le_bytes());
    with_value(wall_s, step, &one)
}

/// An event around one value of a summary, which is short.
pub fn with_value(wall_s: f64, step: u8, value: &[u8]) -> Vec<u8> {
    let mut summary = vec![0x0a, value.len() as u8];
    summary.extend(value);
    let mut event = vec![0x09];
    event.extend(wall_s.to_le_bytes());
    event.push(0x10);
    // Seven bits per byte.
    event.extend(if step < 128 { vec![step] } else { vec![step, step >> 7] });
    event.extend([0x2a, summary.len() as u8]);
    event.extend(summary);
    event
}

/// Castagnoli's checksum, bit by bit, rotated and shifted as TensorFlow's records have it.
pub(crate) fn masked_crc(bytes: &[u8]) -> u32 {
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
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_tensorflows() {
        // The head of the first record that TensorFlow 2.21 writes: 24 bytes long.
        assert_eq!(masked_crc(&24_u64.to_le_bytes()), 0x224b_7fa3);
    }
}
