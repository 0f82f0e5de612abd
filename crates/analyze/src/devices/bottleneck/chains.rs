//! Chains: elementwise kernels that directly follow each other on a stream. One fused kernel would read and
//! write memory only once.
//!
//! Whether a kernel reads what the previous one wrote is not recorded. A repeated kernel is most likely the
//! same op on the next tensor (casts of all weights, an optimizer update), which fusion does not make cheaper:
//! it starts a new chain.

use stepscope_trace::{Dur, KindId, Time};

use super::Device;
use crate::vocabulary::{Role, is_elementwise};
use crate::window::Windows;

/// After a longer pause, the next kernel belongs to another part of the program. Launching one by one leaves
/// pauses of tens of microseconds.
const PAUSE: Dur = Dur::from_us(1_000);

/// No compiler fuses more ops than this into one kernel.
const LONGEST: usize = 64;

/// Consecutive elementwise kernels.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Chains {
    /// Number of chains of at least two kernels.
    pub chains: u64,
    /// Number of kernels in them.
    pub kernels: u64,
    /// Their time.
    pub time: Dur,
    /// All but the longest kernel of each chain: a fused kernel still reads its inputs and writes its results,
    /// which takes at least as long as the longest one. This is the maximum gain.
    pub winnable: Dur,
    /// The time of all kernels except collectives.
    pub all: Dur,
    /// The kernel with the most time in chains.
    pub example: Option<String>,
}

/// An open chain.
#[derive(Default)]
struct OpenChain {
    kernels: Vec<(KindId, Dur)>,
    end: Option<Time>,
}

pub(super) fn find(device: &Device) -> Chains {
    let (trace, vocabulary) = (device.context.trace, device.context.vocabulary());
    let windows = Windows::of(device.context);
    let kinds = (0..trace.kinds().len()).map(KindId::from_index);
    let elementwise: Vec<bool> = kinds
        .map(|kind| vocabulary.role(kind) == Role::Kernel && is_elementwise(trace.kind_name(kind)))
        .collect();
    let mut by_kind = vec![Dur::ZERO; elementwise.len()];
    let mut found = Chains::default();
    for track in device.streams() {
        let mut open = OpenChain::default();
        for index in device.counted(&windows, track) {
            let (kind, dur, start) = (track.kind_of(index), track.dur(index), track.start(index));
            match vocabulary.role(kind) {
                Role::Kernel => found.all += dur,
                Role::Collective | Role::Copy(_) | Role::Memset => {}
                _ => continue,
            }
            let fits = elementwise[kind.index()];
            let paused = open.end.is_some_and(|end| start - end > PAUSE);
            if !fits
                || paused
                || open.kernels.len() >= LONGEST
                || open.kernels.iter().any(|(known, _)| *known == kind)
            {
                found.close(&mut open, &mut by_kind);
            }
            if fits {
                open.kernels.push((kind, dur));
                open.end = Some(track.end(index));
            }
        }
        found.close(&mut open, &mut by_kind);
    }
    let most = by_kind.iter().enumerate().max_by_key(|(_, time)| **time).filter(|(_, time)| !time.is_zero());
    found.example = most.map(|(kind, _)| trace.kind_name(KindId::from_index(kind)).to_owned());
    found
}

impl Chains {
    /// Ends a chain; a single kernel is not a chain.
    fn close(&mut self, open: &mut OpenChain, by_kind: &mut [Dur]) {
        if open.kernels.len() >= 2 {
            let time: Dur = open.kernels.iter().map(|(_, dur)| *dur).sum();
            let longest = open.kernels.iter().map(|(_, dur)| *dur).max().unwrap_or_default();
            self.chains += 1;
            self.kernels += open.kernels.len() as u64;
            self.time += time;
            self.winnable += time - longest;
            open.kernels.iter().for_each(|(kind, dur)| by_kind[kind.index()] += *dur);
        }
        open.kernels.clear();
        open.end = None;
    }
}

#[cfg(test)]
mod tests {
    use crate::context::Context;
    use crate::devices::bottleneck::DeviceDetail;
    use crate::sketch::Sketch;
    use stepscope_trace::Dur;

    fn chains(kernels: &[(&str, i64, i64)]) -> super::Chains {
        let mut sketch = Sketch::new();
        let stream = sketch.stream();
        for &(name, start, dur) in kernels {
            sketch.event_of(stream, "kernel", name, start, dur, &[]);
        }
        let trace = sketch.finish();
        DeviceDetail::of(&Context::new(&trace, "host")).unwrap_or_default().chains
    }

    const ADD: &str = "void at::native::vectorized_elementwise_kernel<4, Add>(int)";
    const SUB: &str = "void at::native::elementwise_kernel<128, 2, Sub>(int)";
    const MUL: &str = "void at::native::vectorized_elementwise_kernel<4, Mul>(int)";

    #[test]
    fn all_but_the_longest_of_a_chain_can_be_won() {
        let found = chains(&[(ADD, 0, 10), (MUL, 12, 30), (SUB, 45, 10), ("gemm", 60, 100), (ADD, 170, 10)]);
        assert_eq!((found.chains, found.kernels), (1, 3), "the last one stands alone");
        assert_eq!((found.time, found.winnable), (Dur::from_us(50), Dur::from_us(20)));
        assert_eq!((found.all, found.example.as_deref()), (Dur::from_us(160), Some(MUL)));
    }

    #[test]
    fn the_same_kernel_again_is_the_next_tensor_and_no_chain() {
        let casts = chains(&[(ADD, 0, 10), (ADD, 12, 10), (ADD, 24, 10)]);
        assert_eq!((casts.chains, casts.winnable), (0, Dur::ZERO));
        let updates = chains(&[(MUL, 0, 10), (ADD, 12, 10), (MUL, 24, 10), (ADD, 36, 10)]);
        assert_eq!((updates.chains, updates.winnable), (2, Dur::from_us(20)), "one for each tensor");
    }

    #[test]
    fn a_pause_or_another_kernel_ends_a_chain() {
        let apart = chains(&[(ADD, 0, 10), (ADD, 5_000, 10), ("gemm", 5_020, 5), (ADD, 5_030, 10)]);
        assert_eq!((apart.chains, apart.winnable), (0, Dur::ZERO));
    }
}
