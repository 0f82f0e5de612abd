//! A tile as bytes: a small JSON header, then one column after the other, little-endian, each at a multiple of
//! eight bytes, so that the page can use typed arrays on the answer without copying.

use serde_json::{Map, Value, json};

use super::model::Model;
use super::tile::{Spans, TileAddress};

/// Longer names are cut: a span never has room for them, and the event itself has the whole name.
const LONGEST_NAME: usize = 240;

/// Writes a tile.
pub fn write(model: &Model, place: TileAddress, spans: &Spans) -> Vec<u8> {
    let header = json!({
        "level": place.level, "tile": place.tile, "spans": spans.start.len(), "samples": spans.at.len(),
        "tracks": spans.parts, "names": names(model, &spans.name),
    });
    let mut header = header.to_string().into_bytes();
    pad(&mut header, b' ');
    let mut out = Vec::with_capacity(64 + header.len() + spans.start.len() * 28 + spans.at.len() * 20);
    out.extend_from_slice(b"SST1");
    out.extend_from_slice(&u32::try_from(header.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(&header);
    column(&mut out, &spans.start, |value| value.to_le_bytes());
    column(&mut out, &spans.end, |value| value.to_le_bytes());
    column(&mut out, &spans.busy, |value| value.to_le_bytes());
    column(&mut out, &spans.name, |value| value.to_le_bytes());
    column(&mut out, &spans.event, |value| value.to_le_bytes());
    column(&mut out, &spans.count, |value| value.to_le_bytes());
    column(&mut out, &spans.row, |value| value.to_le_bytes());
    column(&mut out, &spans.category, |value| [*value]);
    column(&mut out, &spans.flags, |value| [*value]);
    column(&mut out, &spans.minimum, |value| value.to_le_bytes());
    column(&mut out, &spans.maximum, |value| value.to_le_bytes());
    column(&mut out, &spans.at, |value| value.to_le_bytes());
    out
}

fn column<T, const N: usize>(out: &mut Vec<u8>, values: &[T], bytes: impl Fn(&T) -> [u8; N]) {
    let first = out.len();
    out.resize(first + values.len() * N, 0);
    // One sweep over chunks of a fixed size, which compiles to plain copying.
    let (_, room) = out.split_at_mut(first);
    room.chunks_exact_mut(N).zip(values).for_each(|(room, value)| room.copy_from_slice(&bytes(value)));
    pad(out, 0);
}

/// Everything before is a multiple of eight bytes long, so the length alone decides.
fn pad(out: &mut Vec<u8>, with: u8) {
    out.resize(out.len().next_multiple_of(8), with);
}

/// The names that occur.
fn names(model: &Model, used: &[u32]) -> Map<String, Value> {
    let mut seen = vec![false; model.names()];
    for &name in used {
        if let Some(seen) = seen.get_mut(name as usize) {
            *seen = true;
        }
    }
    let numbers = (0_u32..).zip(seen).filter(|(_, seen)| *seen).map(|(number, _)| number);
    numbers.map(|number| (number.to_string(), cut(model.name(number)).into())).collect()
}

fn cut(name: &str) -> String {
    if name.len() <= LONGEST_NAME {
        return name.to_owned();
    }
    let mut end = LONGEST_NAME;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &name[..end])
}
