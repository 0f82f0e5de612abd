//! Numbered layers: ranges like `blocks.7` or `layer_12`. A period that goes from one to the next is a layer.

use std::collections::BTreeMap;

use stepscope_trace::{KindId, TrackKind};

use crate::host_trace::HostTrace;

/// Fewer different numbers are not a stack of layers.
const LEAST: usize = 3;

/// Whether there is about one numbered layer in each of `repeats`.
pub(super) fn are_walked_through(recorded: &HostTrace, repeats: usize) -> bool {
    let trace = recorded.trace;
    let mut families: BTreeMap<String, usize> = BTreeMap::new();
    let of_kind: Vec<Option<(usize, u64)>> = (0..trace.kinds().len())
        .map(|index| {
            let (family, number) = numbered_layer(trace.kind_name(KindId::from_index(index)))?;
            let next = families.len();
            Some((*families.entry(family).or_insert(next), number))
        })
        .collect();
    if families.is_empty() {
        return false;
    }
    trace.tracks().iter().filter(|track| track.kind == TrackKind::Thread).any(|track| {
        let mut seen: Vec<(usize, Vec<u64>)> = vec![(0, Vec::new()); families.len()];
        for kind in track.kinds() {
            if let Some((family, number)) = of_kind[kind.index()] {
                let (count, numbers) = &mut seen[family];
                *count += 1;
                if numbers.len() < LEAST && !numbers.contains(&number) {
                    numbers.push(number);
                }
            }
        }
        seen.iter().any(|(count, numbers)| numbers.len() >= LEAST && repeats * 2 > *count)
    })
}

/// `FSDP::pre_forward (blocks.16.wrapped), op_id = 9` is number 16 of its family.
fn numbered_layer(name: &str) -> Option<(String, u64)> {
    let lower = name.to_ascii_lowercase();
    ["layers", "layer", "blocks", "block"].iter().find_map(|word| {
        let at = lower.find(word)?;
        let rest = lower.get(at + word.len()..)?;
        let digits = rest.trim_start_matches(['.', '_', ' ', '[']);
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let number = digits.get(..end)?.parse().ok()?;
        Some((lower.get(..at + word.len())?.to_owned(), number))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_known_by_their_numbers() {
        let block = numbered_layer("FSDP::pre_forward (blocks.16._wrapped_module), op_id = 997815");
        assert_eq!(block, Some(("fsdp::pre_forward (blocks".to_owned(), 16)));
        assert_eq!(numbered_layer("layer_3_forward").map(|(_, number)| number), Some(3));
        assert_eq!(numbered_layer("layer_norm"), None);
        assert_eq!(numbered_layer("step 7"), None);
    }
}
