//! CRC-32C as TensorFlow appends it to blocks and records: masked, so that a checksum of a checksum works too.
//!
//! By hand: thirty lines, and the files that carry such checksums are small.

/// For each byte value and each of eight places, its share of the remainder by the reversed polynomial 0x82f63b78: eight
/// bytes are taken at once, five times as fast as one by one.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0u32; 256]; 8];
    let mut i = 0;
    while i < 256 {
        let (mut crc, mut bit) = (i as u32, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        tables[0][i] = crc;
        i += 1;
    }
    let mut place = 1;
    while place < 8 {
        let mut i = 0;
        while i < 256 {
            let before = tables[place - 1][i];
            tables[place][i] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            i += 1;
        }
        place += 1;
    }
    tables
}

/// The checksum of some bytes.
pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    let (eights, rest) = bytes.as_chunks::<8>();
    let mut crc = !0_u32;
    for eight in eights {
        let mixed = (u64::from_le_bytes(*eight) ^ u64::from(crc)).to_le_bytes();
        crc = mixed
            .iter()
            .zip(TABLES.iter().rev())
            .fold(0, |crc, (byte, table)| crc ^ table[usize::from(*byte)]);
    }
    let step = |crc: u32, byte: &u8| crc >> 8 ^ TABLES[0][usize::from(crc as u8 ^ byte)];
    !rest.iter().fold(crc, step)
}

/// The checksum as it is stored.
pub(crate) fn masked(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_the_standard() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    }
}
