//! Recognises a trace by its first packets: the numbers that every writer puts beside the content.

use stepscope_wire::{Cursor, Payload, walk};

use super::packet::{COMPRESSED, SEQUENCE, TIMESTAMP, ZSTD_COMPRESSED};

/// Packets that are looked at.
const PACKETS: usize = 64;
/// Fields of a packet that are numbers; all others are messages or texts.
const NUMBERS: [u32; 12] = [3, TIMESTAMP, SEQUENCE, 13, 36, 41, 42, 58, 79, 87, 88, 98];

/// Whether a file that starts like this may be a trace.
pub(super) fn recognises(head: &[u8]) -> bool {
    let mut cursor = Cursor::new(head, 0..head.len());
    let (mut packets, mut telling) = (0, false);
    while packets < PACKETS {
        match cursor.field() {
            Ok(Some(field)) if field.number == 1 => match field.value {
                Payload::Len(range) | Payload::Cut(range) => match looks_like(head, range) {
                    Some(tells) => telling |= tells,
                    None => return false,
                },
                _ => return false,
            },
            Ok(Some(_)) => return false,
            Ok(None) | Err(_) => break,
        }
        packets += 1;
    }
    packets > 0 && telling
}

/// Whether a packet has what only packets have; `None` if it has what no packet has.
fn looks_like(head: &[u8], range: std::ops::Range<usize>) -> Option<bool> {
    let (mut numbered, mut content, mut packed, mut foreign) = (false, false, false, false);
    walk(head, range, |field| {
        let is_number = NUMBERS.contains(&field.number);
        match field.value {
            Payload::Varint(_) if is_number => numbered |= matches!(field.number, TIMESTAMP | SEQUENCE),
            Payload::Len(_) | Payload::Cut(_) if field.number == 36 || !is_number => {
                content = true;
                packed |= matches!(field.number, COMPRESSED | ZSTD_COMPRESSED);
            }
            _ => foreign |= field.number < 150,
        }
    });
    (!foreign).then_some((numbered && content) || packed)
}
