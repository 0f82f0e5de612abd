//! Clocks. A packet's time may be of any clock; snapshots of several clocks at one moment connect them.

use std::ops::Range;

use rustc_hash::FxHashMap;
use stepscope_wire::{Payload, walk};

/// Seconds since 1970.
const REALTIME: u32 = 1;
/// The clock of packets that name none, unless the file says otherwise.
const BOOTTIME: u32 = 6;
/// Clocks of a single sequence have these numbers.
const SEQUENCE_CLOCKS: Range<u32> = 64..128;
/// Clocks that one clock may be away from the trace's clock.
const HOPS: usize = 3;
/// Clocks of one snapshot that are kept; recorders write fewer than ten.
const MOST_CLOCKS: usize = 16;

/// A clock: that of a sequence, or one of the whole file (sequence 0).
type ClockId = (u32, u32);

/// One clock at the moment of a snapshot.
#[derive(Copy, Clone, Debug)]
struct Reading {
    clock: ClockId,
    ns: i64,
}

/// What is known about a clock beside its readings.
#[derive(Copy, Clone, Debug)]
struct Unit {
    ns: i64,
    /// Each time is the difference to the one before.
    incremental: bool,
    last: i64,
}

/// All clocks of a file.
#[derive(Debug)]
pub(super) struct Clocks {
    primary: u32,
    units: FxHashMap<ClockId, Unit>,
    snapshots: Vec<Vec<Reading>>,
    /// Snapshots that show a clock, in the order of the file.
    shown: FxHashMap<ClockId, Vec<usize>>,
    /// Times of clocks that nothing connects with the trace's clock.
    pub(super) unconnected: u64,
}

impl Default for Clocks {
    fn default() -> Self {
        Clocks {
            primary: BOOTTIME,
            units: FxHashMap::default(),
            snapshots: Vec::new(),
            shown: FxHashMap::default(),
            unconnected: 0,
        }
    }
}

fn id_of(sequence: u32, clock: u32) -> ClockId {
    if SEQUENCE_CLOCKS.contains(&clock) { (sequence, clock) } else { (0, clock) }
}

impl Clocks {
    /// Takes over a snapshot.
    pub(super) fn snapshot(&mut self, file: &[u8], range: Range<usize>, sequence: u32) {
        let mut readings = Vec::new();
        walk(file, range, |field| match (field.number, field.value) {
            (1, Payload::Len(range)) if readings.len() < MOST_CLOCKS => {
                let (mut clock, mut at, mut unit) = (0, 0, Unit { ns: 1, incremental: false, last: 0 });
                walk(file, range, |field| match (field.number, field.value) {
                    (1, Payload::Varint(value)) => clock = value as u32,
                    (2, Payload::Varint(value)) => at = value as i64,
                    (3, Payload::Varint(value)) => unit.incremental = value != 0,
                    (4, Payload::Varint(value)) => unit.ns = (value as i64).max(1),
                    _ => {}
                });
                let id = id_of(sequence, clock);
                unit.last = at;
                if SEQUENCE_CLOCKS.contains(&clock) {
                    self.units.insert(id, unit);
                }
                readings.push(Reading { clock: id, ns: at.saturating_mul(unit.ns) });
            }
            (2, Payload::Varint(primary)) if primary != 0 && self.snapshots.is_empty() => {
                self.primary = primary as u32;
            }
            _ => {}
        });
        for reading in &readings {
            self.shown.entry(reading.clock).or_default().push(self.snapshots.len());
        }
        self.snapshots.push(readings);
    }

    /// A packet's time on the trace's clock.
    pub(super) fn time(&mut self, sequence: u32, clock: Option<u32>, timestamp: u64) -> i64 {
        let Some(clock) = clock.filter(|&clock| clock != self.primary && clock != 0) else {
            return timestamp as i64;
        };
        let id = id_of(sequence, clock);
        let mut at = timestamp as i64;
        if let Some(unit) = self.units.get_mut(&id) {
            if unit.incremental {
                unit.last = unit.last.saturating_add(at);
                at = unit.last;
            }
            at = at.saturating_mul(unit.ns);
        }
        match self.convert(id, at, HOPS) {
            Some(time) => time,
            None => {
                self.unconnected += 1;
                at
            }
        }
    }

    /// Through the last snapshot before a time that shows its clock, directly or over another clock.
    fn convert(&self, from: ClockId, at: i64, hops: usize) -> Option<i64> {
        if from == (0, self.primary) {
            return Some(at);
        }
        let shown = self.shown.get(&from).filter(|_| hops > 0)?;
        let reading = |number: usize, clock: ClockId| {
            self.snapshots
                .get(number)?
                .iter()
                .find(|reading| reading.clock == clock)
                .map(|reading| reading.ns)
        };
        let before = shown.partition_point(|&number| reading(number, from).is_some_and(|ns| ns <= at));
        let number = *shown.get(before.saturating_sub(1))?;
        let here = reading(number, from)?;
        let through = |clock: ClockId| {
            let there = reading(number, clock)?;
            at.checked_add(there.checked_sub(here)?)
        };
        if let Some(time) = through((0, self.primary)) {
            return Some(time);
        }
        let others = self.snapshots.get(number)?.iter().map(|reading| reading.clock);
        others.filter(|&clock| clock != from).find_map(|clock| self.convert(clock, through(clock)?, hops - 1))
    }

    /// Nanoseconds since 1970 at a time of the trace's clock.
    pub(super) fn wall_ns(&self, at: i64) -> Option<i64> {
        if self.primary == REALTIME {
            return Some(at);
        }
        let both = |readings: &Vec<Reading>| {
            let of = |clock: u32| readings.iter().find(|it| it.clock == (0, clock)).map(|it| it.ns);
            of(REALTIME)?.checked_sub(of(self.primary)?)
        };
        self.snapshots.iter().find_map(both)?.checked_add(at)
    }
}
