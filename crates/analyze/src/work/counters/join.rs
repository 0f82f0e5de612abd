//! Matches timelines with counters: the timeline shows how much a kernel costs, the counters show why. Launches
//! match if name, grid and block do.
//!
//! Tools spell the same kernel differently (`void f<float>(float*)`, `f(float *)`, `f`), so names are first
//! compared without spaces and return type, and then without arguments.

use rustc_hash::FxHashMap;

use super::{Counters, KernelCounters};
use crate::vocabulary::names::kernel_short_name;
use crate::work::kernels::{KernelRow, LaunchConfig};

/// Profiled kernels by name.
#[derive(Debug)]
pub struct Join<'c> {
    counters: &'c Counters,
    spelled: FxHashMap<String, Vec<usize>>,
    short: FxHashMap<String, Vec<usize>>,
}

impl Counters {
    /// Prepares the lookup.
    pub fn join(&self) -> Join<'_> {
        let mut join = Join { counters: self, spelled: FxHashMap::default(), short: FxHashMap::default() };
        for (place, kernel) in self.kernels.iter().enumerate() {
            join.spelled.entry(spelled(&kernel.name)).or_default().push(place);
            join.short.entry(kernel_short_name(&kernel.name).into_owned()).or_default().push(place);
        }
        join
    }
}

impl Join<'_> {
    /// The counters of a kernel with this launch configuration.
    pub fn of_launch(&self, name: &str, launch: &LaunchConfig) -> Option<&KernelCounters> {
        self.counters.kernels.get(self.place(name, launch)?)
    }

    fn place(&self, name: &str, launch: &LaunchConfig) -> Option<usize> {
        let alike = |places: Option<&Vec<usize>>| {
            let same = |place: usize| {
                self.counters.kernels.get(place).is_some_and(|kernel| same_shape(&kernel.launch, launch))
            };
            places.and_then(|places| places.iter().copied().find(|&place| same(place)))
        };
        alike(self.spelled.get(&spelled(name)))
            .or_else(|| alike(self.short.get(kernel_short_name(name).as_ref())))
    }

    /// Milliseconds of a timeline's kernels for each profiled kernel, in the counters' order.
    pub fn ms_in(&self, rows: &[KernelRow]) -> Vec<f64> {
        let mut found = vec![0.0; self.counters.kernels.len()];
        for row in rows {
            for (launch, ms) in &row.by_launch {
                let place = self.place(&row.name, launch);
                if let Some(sum) = place.and_then(|place| found.get_mut(place)) {
                    *sum += ms;
                }
            }
        }
        found
    }
}

/// An unknown dimension on either side does not prevent a match.
fn same_shape(a: &LaunchConfig, b: &LaunchConfig) -> bool {
    let same = |a: Option<[u32; 3]>, b: Option<[u32; 3]>| a.zip(b).is_none_or(|(a, b)| a == b);
    same(a.grid, b.grid) && same(a.block, b.block)
}

fn spelled(name: &str) -> String {
    let name = name.strip_prefix("void ").unwrap_or(name);
    name.chars().filter(|c| !c.is_whitespace()).collect()
}
