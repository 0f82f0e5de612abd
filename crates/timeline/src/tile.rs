//! Tiles: a range of a thousand time buckets, as the spans that can be distinguished in it.
//!
//! Anything narrower than a bucket is merged with its neighbours, bucket by bucket; a merged span knows its
//! number of events, their total time, and the longest one. Counts and times stay exact.

use std::sync::OnceLock;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use stepscope_trace::{CounterSamples, Time};

use super::model::Model;
use super::rows::{Piece, Stretch};

/// Buckets per tile.
pub const BUCKETS: i64 = 1024;
/// The widest buckets are 2^62 ps.
pub const MOST_LEVEL: u8 = 62;
/// Number of wide spans of one row that may start in one bucket before more of them are merged. There is more
/// than one only if events of a row overlap.
const CROWD: u32 = 8;

/// Starts before the tile.
const BEFORE: u8 = 1;
/// Ends after the tile.
const BEHIND: u8 = 2;

/// Which tile.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TileAddress {
    /// A bucket is 2^level ps wide.
    pub level: u8,
    /// Number of tiles to the left of it, from the session's origin.
    pub tile: u64,
}

impl TileAddress {
    /// Its start, its end and the width of a bucket, in picoseconds of the session. `None` beyond the end of
    /// time.
    pub fn bounds(self) -> Option<(i64, i64, i64)> {
        let width = 1_i128 << self.level.min(MOST_LEVEL);
        let start = i128::from(self.tile).checked_mul(width * i128::from(BUCKETS))?;
        let start = i64::try_from(start).ok()?;
        let end = i128::from(start) + width * i128::from(BUCKETS);
        Some((start, i64::try_from(end).unwrap_or(i64::MAX), i64::try_from(width).ok()?))
    }
}

/// A track's share of a tile.
#[derive(Copy, Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Part {
    pub(crate) id: u32,
    pub(crate) first: u32,
    pub(crate) count: u32,
    pub(crate) sample_first: u32,
    pub(crate) sample_count: u32,
}

/// The spans of a tile in columns; API.md describes each.
#[derive(Debug, Default, PartialEq)]
pub struct Spans {
    pub(crate) parts: Vec<Part>,
    pub(crate) start: Vec<f32>,
    pub(crate) end: Vec<f32>,
    pub(crate) busy: Vec<f32>,
    pub(crate) name: Vec<u32>,
    pub(crate) event: Vec<u32>,
    pub(crate) count: Vec<u32>,
    pub(crate) row: Vec<u16>,
    pub(crate) category: Vec<u8>,
    pub(crate) flags: Vec<u8>,
    pub(crate) minimum: Vec<f64>,
    pub(crate) maximum: Vec<f64>,
    pub(crate) at: Vec<f32>,
}

/// Number of tracks from which on a tile is worth several cores.
const MANY: usize = 4;

/// Separate threads for tiles, so that they do not wait for a session that is being opened.
fn pool() -> Option<&'static ThreadPool> {
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let name = |number| format!("tiles-{number}");
    POOL.get_or_init(|| ThreadPoolBuilder::new().thread_name(name).build().ok()).as_ref()
}

/// The spans of one tile on these tracks, in this order.
pub fn spans(model: &Model, place: TileAddress, tracks: &[u32]) -> Spans {
    let one = |&id: &u32| {
        let mut spans = Spans::default();
        if let Some(bounds) = place.bounds() {
            track(model, bounds, id, &mut spans);
        }
        (id, spans)
    };
    let each: Vec<(u32, Spans)> = match pool().filter(|_| tracks.len() >= MANY) {
        Some(pool) => pool.install(|| tracks.par_iter().map(one).collect()),
        None => tracks.iter().map(one).collect(),
    };
    let mut all = Spans::default();
    each.iter().for_each(|(id, spans)| all.append(*id, spans));
    all
}

impl Spans {
    /// Appends a track.
    fn append(&mut self, id: u32, track: &Spans) {
        self.parts.push(Part {
            id,
            first: length(&self.start),
            count: length(&track.start),
            sample_first: length(&self.at),
            sample_count: length(&track.at),
        });
        self.start.extend_from_slice(&track.start);
        self.end.extend_from_slice(&track.end);
        self.busy.extend_from_slice(&track.busy);
        self.name.extend_from_slice(&track.name);
        self.event.extend_from_slice(&track.event);
        self.count.extend_from_slice(&track.count);
        self.row.extend_from_slice(&track.row);
        self.category.extend_from_slice(&track.category);
        self.flags.extend_from_slice(&track.flags);
        self.minimum.extend_from_slice(&track.minimum);
        self.maximum.extend_from_slice(&track.maximum);
        self.at.extend_from_slice(&track.at);
    }
}

fn length<T>(column: &[T]) -> u32 {
    u32::try_from(column.len()).unwrap_or(u32::MAX)
}

fn track(model: &Model, (start, end, width): (i64, i64, i64), id: u32, spans: &mut Spans) {
    let Some(entry) = model.track(id) else { return };
    let (track, host) = (entry.track(model), model.host(entry.host));
    let shift = host.shift.ps();
    let (from, to) = (start.saturating_sub(shift), end.saturating_sub(shift));
    let scale = Scale { from, to, width, per_ps: 1.0 / width as f64 };
    let rows = &entry.rows;
    for number in 0..rows.len() {
        let mut merge = Merge { scale, row: number as u16, open: None, bucket: -1, wide: 0 };
        let mut emit = |piece: Piece, row: u16| {
            let (name, category) = host.look_of(piece.longest_kind);
            scale.put(&piece, row, name, category, spans);
        };
        let stretch = Stretch { from, to, narrow: width };
        rows.row(track, number).walk(stretch, &mut |piece| merge.take(piece, &mut emit));
        merge.flush(&mut emit);
    }
    samples(&track.samples, scale, spans);
}

/// Converts picoseconds of a trace to buckets of a tile.
#[derive(Copy, Clone, Debug)]
struct Scale {
    from: i64,
    to: i64,
    width: i64,
    /// Buckets per picosecond; exact, because the width of a bucket is a power of two.
    per_ps: f64,
}

impl Scale {
    fn bucket(&self, at: i64) -> i64 {
        at.saturating_sub(self.from).max(0) >> self.width.trailing_zeros()
    }

    fn buckets(&self, at: i64) -> f32 {
        let exact = at.saturating_sub(self.from) as f64 * self.per_ps;
        exact.clamp(-1.0, (BUCKETS + 1) as f64) as f32
    }

    fn put(&self, piece: &Piece, row: u16, name: u32, category: u8, spans: &mut Spans) {
        let (start, end) = (self.buckets(piece.start), self.buckets(piece.end));
        let busy = match piece.count {
            1 => end - start,
            _ => ((piece.busy as f64 * self.per_ps) as f32).min(end - start),
        };
        spans.start.push(start);
        spans.end.push(end);
        spans.busy.push(busy);
        spans.name.push(name);
        spans.event.push(piece.first);
        spans.count.push(piece.count);
        spans.row.push(row);
        spans.category.push(category);
        let before = if piece.start < self.from { BEFORE } else { 0 };
        spans.flags.push(before | if piece.end > self.to { BEHIND } else { 0 });
    }
}

/// Merges the pieces of one row, bucket by bucket.
struct Merge {
    scale: Scale,
    row: u16,
    open: Option<Piece>,
    /// The bucket of the last piece.
    bucket: i64,
    /// Number of wide pieces that started in it.
    wide: u32,
}

impl Merge {
    fn take(&mut self, piece: Piece, emit: &mut impl FnMut(Piece, u16)) {
        let bucket = self.scale.bucket(piece.start);
        if bucket != self.bucket {
            self.flush(emit);
            self.bucket = bucket;
            self.wide = 0;
        }
        let is_wide = piece.end.saturating_sub(piece.start) >= self.scale.width;
        if is_wide && self.wide < CROWD {
            self.wide += 1;
            self.flush(emit);
            emit(piece, self.row);
            return;
        }
        let piece = Piece { busy: self.seen(&piece), ..piece };
        match &mut self.open {
            Some(open) => open.merge(&piece),
            None => self.open = Some(piece),
        }
    }

    /// A piece's time within a bucket of the tile.
    fn seen(&self, piece: &Piece) -> i64 {
        let Scale { from, to, width, .. } = self.scale;
        let start = piece.start.max(from.saturating_sub(width));
        let end = piece.end.min(to.saturating_add(width));
        piece.busy.min(end.saturating_sub(start).max(0))
    }

    fn flush(&mut self, emit: &mut impl FnMut(Piece, u16)) {
        if let Some(open) = self.open.take() {
            emit(open, self.row);
        }
    }
}

/// A counter's samples, merged by bucket; also the last one before the tile and the first one after it, so that
/// a line can be drawn to the edges.
fn samples(samples: &CounterSamples, scale: Scale, spans: &mut Spans) {
    let before = samples.times.partition_point(|&at| at < Time::from_ps(scale.from));
    let behind = samples.times.partition_point(|&at| at < Time::from_ps(scale.to));
    let first = before.saturating_sub(1);
    let last = (behind + 1).min(samples.times.len());
    let Some(times) = samples.times.get(first..last) else { return };
    let mut open = None;
    for (at, &value) in times.iter().zip(samples.values.iter().skip(first)) {
        let at = at.ps();
        let outside = at < scale.from || at >= scale.to;
        let bucket = if outside { None } else { Some(scale.bucket(at)) };
        if open == Some(bucket) && bucket.is_some() {
            if let (Some(low), Some(high)) = (spans.minimum.last_mut(), spans.maximum.last_mut()) {
                *low = low.min(value);
                *high = high.max(value);
            }
            continue;
        }
        open = Some(bucket);
        spans.minimum.push(value);
        spans.maximum.push(value);
        spans.at.push(scale.buckets(at));
    }
}
