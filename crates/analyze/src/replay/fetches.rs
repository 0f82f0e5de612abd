//! Batches as the loop takes them: stretches of its thread in which it waits for input, and whether it makes them itself.

use rustc_hash::FxHashMap;
use stepscope_trace::Dur;

use super::chains::{Chain, segment};
use crate::breakdown::Category;
use crate::time::critical::graph::Graph;
use crate::vocabulary::Role;

/// A loop that waits for this share of its batches waits for its producer.
const MOSTLY: f64 = 0.8;
/// A fetch that takes this share of the time between two of them is a wait.
const NOTICED: f64 = 0.02;

/// One batch.
#[derive(Copy, Clone, Debug)]
pub(super) struct Fetch {
    /// The stretches of the first chain that it takes.
    pub first: usize,
    pub last: usize,
    /// How long the loop was in it: the time to make a batch, if the loop makes it itself.
    pub made_in: Dur,
    /// Time since the batch before it was there.
    pub pace: Option<Dur>,
}

/// All fetches of the first chain, in order of time.
#[derive(Debug, Default)]
pub(super) struct Fetches {
    pub all: Vec<Fetch>,
    by_end: FxHashMap<usize, usize>,
    /// Does the loop wait nearly each time? Then its producer is as slow as the loop.
    pub saturated: bool,
    /// Does the loop make its batches itself? `None` if nothing says so.
    pub by_loop: Option<bool>,
}

impl Fetches {
    pub fn of(graph: &Graph, chains: &[Chain]) -> Self {
        let Some(chain) = chains.first().filter(|_| graph.has_loop) else { return Fetches::default() };
        let mut all: Vec<Fetch> = Vec::new();
        let mut open: Option<usize> = None;
        let inputs =
            chain.stretches.iter().map(|stretch| segment(graph, stretch).category == Category::Input);
        for (place, input) in inputs.chain([false]).enumerate() {
            match (open, input) {
                (None, true) => open = Some(place),
                (Some(first), false) => {
                    let (from, last) = (&chain.stretches[first], place - 1);
                    let made_in = chain.stretches[last].span.end - from.span.start;
                    let before = all.last().map(|fetch| chain.stretches[fetch.last].span.end);
                    let pace = before.map(|before| chain.stretches[last].span.end - before);
                    all.push(Fetch { first, last, made_in, pace });
                    open = None;
                }
                _ => {}
            }
        }
        let waits = all
            .iter()
            .filter(|fetch| fetch.pace.is_some_and(|pace| fetch.made_in.fraction_of(pace) > NOTICED));
        let saturated = waits.count() as f64 >= MOSTLY * (all.len().max(2) - 1) as f64;
        let by_loop = by_loop(graph, chain, &all);
        let by_end = all.iter().enumerate().map(|(number, fetch)| (fetch.last, number)).collect();
        Fetches { all, by_end, saturated, by_loop }
    }

    /// The fetch that ends with a stretch.
    pub fn ending_at(&self, chain: usize, place: usize) -> Option<&Fetch> {
        if chain != 0 {
            return None;
        }
        self.by_end.get(&place).map(|&number| &self.all[number])
    }
}

/// The name of a loader says who makes the batches; so do ops that run inside of a fetch.
fn by_loop(graph: &Graph, chain: &Chain, all: &[Fetch]) -> Option<bool> {
    let mut inside = Dur::ZERO;
    for fetch in all {
        for stretch in &chain.stretches[fetch.first..=fetch.last] {
            let Some(event) = segment(graph, stretch).event else { continue };
            let kind = graph.context.trace.track(graph.threads[stretch.thread].track).kind_of(event);
            let name = graph.context.trace.kind_name(kind);
            if name.contains("SingleProcess") {
                return Some(true);
            }
            if name.contains("MultiProcessing") {
                return Some(false);
            }
            if graph.context.vocabulary().host_role(kind) == Role::Op {
                inside += stretch.span.dur();
            }
        }
    }
    let whole: Dur = all.iter().map(|fetch| fetch.made_in).sum();
    (inside.fraction_of(whole) > 0.5).then_some(true)
}
