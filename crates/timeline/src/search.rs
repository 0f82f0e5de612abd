//! Search: events whose name matches. Names are few, so they are matched first, and then the columns of kinds
//! are scanned for them; the result is kept, so that paging is free.

use rayon::prelude::*;
use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};
use stepscope_trace::KindId;

use super::event::hit;
use super::model::{Model, TrackEntry};

/// Number of pieces of the session in which hits are counted.
const PIECES: usize = 1024;
/// Number of events of a track that one core scans at a time.
const CHUNK: usize = 1 << 18;
/// More matching names than this are not listed.
const MOST_NAMES: usize = 2_000;
/// A pattern that needs more memory than this is refused.
const MOST_PATTERN: usize = 1 << 20;

/// The events that match.
#[derive(Debug)]
pub struct Found {
    text: String,
    total: usize,
    /// The shown names of what matches, as tiles number them; a recorded name may match where the shown one does not.
    names: Vec<u32>,
    /// By track, in display order: the events' indices, ascending.
    tracks: Vec<(u32, Vec<u32>)>,
    density: Vec<u32>,
}

/// The pattern: text anywhere in a name, or a regular expression between slashes. Ignores case.
pub fn pattern(text: &str) -> Result<Regex, regex::Error> {
    let between = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
    let pattern = between.filter(|rest| !rest.is_empty()).map_or_else(|| regex::escape(text), str::to_owned);
    RegexBuilder::new(&pattern).case_insensitive(true).size_limit(MOST_PATTERN).build()
}

impl Found {
    /// Searches all tracks, on all cores.
    pub fn of(model: &Model, text: &str, pattern: &Regex) -> Self {
        let wanted: Vec<Vec<bool>> =
            (0..model.hosts().len()).map(|host| kinds(model, host, pattern)).collect();
        let mut names = vec![false; model.names()];
        for (host, wanted) in wanted.iter().enumerate() {
            for (kind, _) in wanted.iter().enumerate().filter(|(_, wanted)| **wanted) {
                let (name, _) = model.host(host).look_of(KindId::from_index(kind));
                if let Some(seen) = names.get_mut(name as usize) {
                    *seen = true;
                }
            }
        }
        let one = |&id: &u32| {
            let entry = model.track(id)?;
            let (events, density) = on_track(model, entry, &wanted[entry.host]);
            (!events.is_empty()).then_some((id, events, density))
        };
        let found: Vec<(u32, Vec<u32>, Vec<u32>)> = model.order.par_iter().filter_map(one).collect();
        let mut density = vec![0_u32; PIECES];
        for (_, _, counts) in &found {
            density.iter_mut().zip(counts).for_each(|(sum, count)| *sum = sum.saturating_add(*count));
        }
        let tracks: Vec<(u32, Vec<u32>)> = found.into_iter().map(|(id, events, _)| (id, events)).collect();
        Found {
            text: text.to_owned(),
            total: tracks.iter().map(|(_, events)| events.len()).sum(),
            names: (0_u32..).zip(&names).filter(|(_, seen)| **seen).map(|(name, _)| name).collect(),
            tracks,
            density,
        }
    }

    /// One page of hits in time order, with the totals.
    pub fn page(&self, model: &Model, offset: usize, limit: usize) -> Value {
        let hits: Vec<Value> = self
            .in_time(model, offset, limit)
            .into_iter()
            .filter_map(|(id, event)| self.hit(model, id, event))
            .collect();
        let listed = (self.names.len() <= MOST_NAMES).then_some(&self.names);
        json!({
            "total": self.total, "names": self.names.len(), "name_ids": listed, "hits": hits, "density": self.density,
        })
    }

    fn hit(&self, model: &Model, id: u32, event: u32) -> Option<Value> {
        let mut hit = hit(model, id, event)?;
        let entry = model.track(id)?;
        let kind = model.trace(entry.host).kind(entry.track(model).kind_of(event as usize));
        let named = |name| is_named(model.trace(entry.host).str(name), &self.text);
        hit["whole"] = (named(kind.name) || named(kind.display_name)).into();
        Some(hit)
    }

    /// The hits starting at `offset`. Finds the time before which about `offset` hits start by bisection, so
    /// that the last page costs no more than the first.
    fn in_time(&self, model: &Model, offset: usize, limit: usize) -> Vec<(u32, u32)> {
        let began = |track: u32, event: u32| -> i64 {
            let Some(entry) = model.track(track) else { return 0 };
            (entry.track(model).start(event as usize) + model.host(entry.host).shift).ps()
        };
        let before =
            |id: u32, events: &[u32], at: i64| events.partition_point(|&event| began(id, event) < at);
        let begun = |at: i64| self.tracks.iter().map(|(id, events)| before(*id, events, at)).sum::<usize>();
        // The latest time before which no more than `offset` hits start.
        let (mut low, mut high) = (0_i64, model.end.saturating_add(1));
        while low < high {
            // Rounded up, without a sum that a forged time could push over the edge.
            let middle = high - (high - low) / 2;
            if begun(middle) <= offset { low = middle } else { high = middle - 1 }
        }
        let mut skipped = 0;
        let mut heads: Vec<(i64, u32, usize, usize)> = Vec::new();
        for (place, (id, events)) in self.tracks.iter().enumerate() {
            let first = before(*id, events, low);
            skipped += first;
            heads.extend(events.get(first).map(|&event| (began(*id, event), *id, place, first)));
        }
        let mut heap: std::collections::BinaryHeap<_> = heads.into_iter().map(std::cmp::Reverse).collect();
        let mut page = Vec::new();
        while let Some(std::cmp::Reverse((_, id, place, at))) = heap.pop() {
            let events = &self.tracks[place].1;
            if let Some(&next) = events.get(at + 1) {
                heap.push(std::cmp::Reverse((began(id, next), id, place, at + 1)));
            }
            if skipped >= offset {
                page.push((id, events[at]));
            }
            skipped += 1;
            if page.len() >= limit {
                break;
            }
        }
        page
    }
}

/// Whether `text` is the name as a whole, apart from a type or a wrapper around it: `dense/MatMul:MatMul` is called
/// `dense/MatMul`, and `dense/MatMul/Read` is not. Ignores case.
fn is_named(name: &str, text: &str) -> bool {
    let (name, text) = (name.to_ascii_lowercase(), text.to_ascii_lowercase());
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut places = name.match_indices(&text);
    places.any(|(at, found)| {
        let (before, after) = (name[..at].chars().next_back(), name[at + found.len()..].chars().next());
        !before.is_some_and(is_word) && !after.is_some_and(|c| is_word(c) || c == '/')
    })
}

/// The kinds of a host that match, by shown or recorded name.
fn kinds(model: &Model, host: usize, pattern: &Regex) -> Vec<bool> {
    let trace = model.trace(host);
    let matches = |kind: &stepscope_trace::Kind| {
        let display = trace.str(kind.display_name);
        pattern.is_match(trace.str(kind.name)) || (!display.is_empty() && pattern.is_match(display))
    };
    trace.kinds().par_iter().map(matches).collect()
}

/// The events of a track with a wanted kind, ascending, and how many start in each piece of the session.
fn on_track(model: &Model, entry: &TrackEntry, wanted: &[bool]) -> (Vec<u32>, Vec<u32>) {
    let track = entry.track(model);
    let is_wanted = |kind: &KindId| wanted.get(kind.index()).copied().unwrap_or(false);
    let in_chunk = |(number, kinds): (usize, &[KindId])| {
        let first = u32::try_from(number * CHUNK).unwrap_or(u32::MAX);
        let matching = (first..).zip(kinds).filter(|(_, kind)| is_wanted(kind));
        matching.map(|(index, _)| index).collect::<Vec<u32>>()
    };
    let chunks: Vec<Vec<u32>> = track.kinds().par_chunks(CHUNK).enumerate().map(in_chunk).collect();
    let events = chunks.concat();
    // Hits are in time order: the start of a piece is found by bisection.
    let shift = model.host(entry.host).shift;
    let begun = |piece: usize| {
        let edge = i128::from(model.end) * piece as i128 / PIECES as i128;
        let edge = i64::try_from(edge).unwrap_or(i64::MAX);
        events.partition_point(|&event| (track.start(event as usize) + shift).ps() < edge)
    };
    let mut edges: Vec<usize> = (0..PIECES).map(begun).collect();
    edges.push(events.len());
    let density = edges.windows(2).map(|edge| u32::try_from(edge[1] - edge[0]).unwrap_or(u32::MAX));
    let density = density.collect();
    (events, density)
}

#[cfg(test)]
mod tests {
    use super::is_named;

    #[test]
    fn a_name_is_told_from_names_that_contain_it() {
        assert!(is_named("f/dense/MatMul:MatMul", "dense/matmul"));
        assert!(is_named("PjitFunction(train_step)", "train_step"));
        assert!(is_named("aten::mm", "aten::mm"));
        for other in ["dense/MatMul/Read:Read", "dense/MatMul_1:MatMul", "my_dense/MatMul:MatMul", ""] {
            assert!(!is_named(other, "dense/MatMul"), "{other}");
        }
    }
}
