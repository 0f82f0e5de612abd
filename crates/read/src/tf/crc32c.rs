//! CRC-32C as TensorFlow appends it to blocks and records: masked, so that a checksum of a checksum works too.

use ::crc32c::crc32c;

/// The checksum as it is stored.
pub(crate) fn masked(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_the_standard_is_masked() {
        assert_eq!(masked(b"123456789"), 0xc78a_b0e5, "0xe306_9283 before it is masked");
    }
}
