//! LevelDB's table format, in which TensorFlow stores the index of a checkpoint: blocks of sorted keys with
//! shared prefixes, an index block that locates the others, and a footer that locates the index block.
//!
//! By hand, because damage in one block is named and must not hide the other blocks; one walk is all that is wanted.

use std::collections::BTreeSet;

use super::crc32c::masked;
use super::message::Damages;
use crate::budget::Budget;
use stepscope_wire::Cursor;

const MAGIC: [u8; 8] = 0xdb47_7524_8b80_fb57u64.to_le_bytes();
const FOOTER: usize = 48;
/// After each block: its compression type and checksum.
const TRAILER: usize = 5;
/// Maximum inflated size of a block.
const LARGEST: usize = 64 << 20;

/// What an entry counts at least: about what a reader keeps of it, however few bytes it has.
const ENTRY: usize = 256;

/// Whether the file ends like a table.
pub(super) fn is_table(bytes: &[u8]) -> bool {
    bytes.len() >= FOOTER && bytes.ends_with(&MAGIC)
}

/// Passes on all readable keys and values of a table; notes damage. Nothing is kept here, and each block is read once: an
/// index that names one block thousands of times is damaged.
pub(super) fn each(bytes: &[u8], damage: &mut Damages, mut take: impl FnMut(&[u8], &[u8], &mut Damages)) {
    let footer_at = bytes.len().saturating_sub(FOOTER);
    let Some(index) = index_handle(bytes, footer_at) else {
        damage.add(footer_at, || "footer: the location of the index cannot be read".to_owned());
        return;
    };
    let Some(index) = block(bytes, index, damage) else { return };
    let mut named = BTreeSet::new();
    let mut left = Budget::of(bytes.len() as u64).bytes();
    entries(&index, damage, |_, value, damage| {
        let Some(handle) = handle(&mut Cursor::new(value, 0..value.len())) else {
            damage.add(footer_at, || "index: the location of a block cannot be read".to_owned());
            return true;
        };
        if !named.insert(handle) {
            damage.add(handle.0, || "index: a block is named twice".to_owned());
            return true;
        }
        let Some(data) = block(bytes, handle, damage) else { return true };
        entries(&data, damage, |key, value, damage| {
            let cost = (key.len() + value.len()).max(ENTRY) as u64;
            if cost > left {
                damage.add(handle.0, || "the table has more content than its size allows".to_owned());
                left = 0;
                return false;
            }
            left -= cost;
            take(key, value, damage);
            true
        });
        left > 0
    });
}

/// Location of the index block: the footer's second handle.
fn index_handle(bytes: &[u8], footer_at: usize) -> Option<(usize, usize)> {
    let mut cursor = Cursor::new(bytes, footer_at..bytes.len() - MAGIC.len().min(bytes.len()));
    handle(&mut cursor)?;
    handle(&mut cursor)
}

fn handle(cursor: &mut Cursor<'_>) -> Option<(usize, usize)> {
    let offset = usize::try_from(cursor.varint().ok()?).ok()?;
    let size = usize::try_from(cursor.varint().ok()?).ok()?;
    Some((offset, size))
}

/// The content of a block, if it exists and its checksum matches.
fn block(bytes: &[u8], (at, size): (usize, usize), damage: &mut Damages) -> Option<Vec<u8>> {
    let end = at.checked_add(size)?.checked_add(TRAILER);
    let Some(whole) = end.and_then(|end| bytes.get(at..end)) else {
        damage.add(at.min(bytes.len()), || "a block runs past the end of the file".to_owned());
        return None;
    };
    let (data, checksum) = whole.split_at(size + 1);
    let stored = checksum.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    if stored != Some(masked(data)) {
        damage.add(at, || "the checksum of a block does not match".to_owned());
        return None;
    }
    let content = &data[..size];
    match data.last() {
        Some(0) => Some(content.to_vec()),
        Some(1) if snap::raw::decompress_len(content).is_ok_and(|len| len <= LARGEST) => {
            snap::raw::Decoder::new().decompress_vec(content).ok()
        }
        _ => {
            damage.add(at + size, || "a block has an unknown compression".to_owned());
            None
        }
    }
}

/// Passes on the entries of a block until `take` refuses more; each shares the start of its key with the previous one.
fn entries(block: &[u8], damage: &mut Damages, mut take: impl FnMut(&[u8], &[u8], &mut Damages) -> bool) {
    let restarts = block.last_chunk::<4>().map_or(0, |count| u32::from_le_bytes(*count) as usize);
    let tail = restarts.saturating_add(1).saturating_mul(4);
    let end = block.len().saturating_sub(tail);
    let mut cursor = Cursor::new(block, 0..end);
    let mut key: Vec<u8> = Vec::new();
    while !cursor.is_done() {
        let at = cursor.at();
        let Some(value) = entry(block, end, &mut cursor, &mut key) else {
            damage.add(at, || "an entry of a block cannot be read".to_owned());
            return;
        };
        if !take(&key, value, damage) {
            return;
        }
    }
}

fn entry<'a>(block: &'a [u8], end: usize, cursor: &mut Cursor<'a>, key: &mut Vec<u8>) -> Option<&'a [u8]> {
    let mut number = || usize::try_from(cursor.varint().ok()?).ok();
    let (shared, unshared, len) = (number()?, number()?, number()?);
    if shared > key.len() {
        return None;
    }
    let start = cursor.at();
    let value_at = start.checked_add(unshared)?;
    let next = value_at.checked_add(len).filter(|next| *next <= end)?;
    key.truncate(shared);
    key.extend_from_slice(block.get(start..value_at)?);
    let value = block.get(value_at..next)?;
    *cursor = Cursor::new(block, next..end);
    Some(value)
}
