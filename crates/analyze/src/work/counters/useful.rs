//! What a kernel's units would still have to do without waste: no fix can reduce its time below this. If a unit
//! is busy for 91 % of the time with sectors of which three quarters are not needed, 23 % is useful work.

use super::KernelCounters;

/// A part of the device that has a peak.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The busiest pipe of the multiprocessors.
    Compute,
    /// The busiest part of the memory system, if it is none of the following.
    Memory,
    /// Device memory.
    Dram,
    /// The first cache, with shared memory.
    L1,
    /// The second cache.
    L2,
}

/// What keeps units busy unnecessarily, and disappears with the fix.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub enum Waste {
    /// All work is needed.
    #[default]
    None,
    /// This share of the sectors moved by global memory.
    Sectors(f64),
    /// This share of the accesses to shared memory.
    Conflicts(f64),
    /// Loads and stores of what registers or tiles could keep: caches and the units that issue them are busy with
    /// repetitions. Arithmetic and what device memory delivers remain.
    Requests,
    /// This share of the lanes, because blocks do not fill their warps: one instruction could serve 32 threads.
    Lanes(f64),
}

/// Shares that differ by less are the same figure, counted over slightly different cycles.
const SAME: f64 = 0.01;

impl KernelCounters {
    /// The maximum share of its time that the kernel could save without another algorithm: if a unit does
    /// useful work for 89 % of the time, it cannot do the same work in less.
    pub fn headroom(&self, waste: Waste) -> Option<f64> {
        self.limit(waste).map(|(_, figure)| (1.0 - figure).clamp(0.0, 1.0))
    }

    /// The unit whose useful work is closest to its peak, and how close.
    pub fn limit(&self, waste: Waste) -> Option<(Unit, f64)> {
        // The first of equals: the more general name.
        self.units(waste).reduce(|a, b| if b.1 > a.1 { b } else { a })
    }

    /// How close each unit's useful work is to its peak.
    fn units(&self, waste: Waste) -> impl Iterator<Item = (Unit, f64)> {
        let parts = [self.dram, self.l1, self.l2].into_iter().flatten().reduce(f64::max);
        // The busiest part of memory counts with its waste removed, not again as a whole.
        let named = |memory: f64| parts.is_some_and(|part| memory <= part + SAME);
        let memory = self.memory.filter(|&memory| waste == Waste::None || !named(memory));
        let all = match waste {
            Waste::Requests => vec![(Unit::Compute, self.arithmetic), (Unit::Dram, self.dram)],
            _ => vec![
                (Unit::Compute, self.compute),
                (Unit::Memory, memory),
                (Unit::Dram, self.dram),
                (Unit::L1, self.l1),
                (Unit::L2, self.l2),
            ],
        };
        all.into_iter().filter_map(move |(unit, figure)| Some((unit, self.useful(unit, figure?, waste))))
    }

    fn useful(&self, unit: Unit, figure: f64, waste: Waste) -> f64 {
        match (waste, unit) {
            // In a one-thread block, each instruction of a pipe or pass through a cache serves a single thread.
            (Waste::Lanes(idle), Unit::Compute | Unit::L1 | Unit::Memory) => figure * (1.0 - idle),
            (Waste::None | Waste::Requests | Waste::Lanes(_), _) | (_, Unit::Compute) => figure,
            // Caches may have kept unneeded sectors away from device memory: the bytes moved there decide.
            (Waste::Sectors(share), Unit::Dram) => figure * self.dram_useful.unwrap_or(1.0 - share),
            (Waste::Sectors(share), _) => figure * (1.0 - share),
            (Waste::Conflicts(_), Unit::Dram | Unit::L2) => figure,
            // Without the shared memory path itself, it is unknown whether it is the busy part.
            (Waste::Conflicts(share), _) => {
                self.shared_busy_where_used().map_or(figure, |busy| (figure - share * busy).max(0.0))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_that_is_busy_with_waste_does_not_cap_what_removing_it_wins() {
        let transpose = KernelCounters {
            compute: Some(0.03),
            memory: Some(0.913),
            l2: Some(0.913),
            l1: Some(0.455),
            dram: Some(0.197),
            dram_useful: Some(1.0),
            ..KernelCounters::default()
        };
        let near = |waste, expected: f64| {
            let headroom = transpose.headroom(waste).unwrap_or(-1.0);
            assert!((headroom - expected).abs() < 0.005, "{waste:?}: {headroom}, not {expected}");
        };
        near(Waste::None, 0.087);
        near(Waste::Sectors(0.778), 0.797);
        near(Waste::Conflicts(0.9), 0.087);
        assert_eq!(transpose.limit(Waste::Sectors(0.778)).map(|(unit, _)| unit), Some(Unit::L2));
    }

    #[test]
    fn device_memory_that_moves_only_what_is_needed_stays_a_cap() {
        let full = |dram_useful| KernelCounters {
            memory: Some(0.9),
            dram: Some(0.9),
            dram_useful,
            ..KernelCounters::default()
        };
        let headroom =
            |useful| full(useful).headroom(Waste::Sectors(0.5)).map(|share| (share * 100.0).round());
        assert_eq!(headroom(Some(1.0)), Some(10.0), "caches kept the waste from it");
        assert_eq!(headroom(Some(0.6)), Some(46.0));
        assert_eq!(headroom(None), Some(55.0), "nobody knows: it may all be waste");
    }
}
