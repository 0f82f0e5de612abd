//! From changes to a plan for the replay: which stretches and which work get another length, and which edges go.

use stepscope_trace::{Dur, Span};

use super::Recorded;
use super::chains::segment;
use super::change::Change;
use super::pass::{Fetching, Plan, thinks};
use crate::breakdown::Category;
use crate::time::critical::Piece;
use crate::vocabulary::{is_elementwise, may_be_convolution, may_be_product};
use crate::work::kernels::uses_tensor_cores;

/// A call that launches a graph, and each kernel of it, as measured on current devices.
const GRAPH_CALL: Dur = Dur::from_us(12);
const GRAPH_NODE: Dur = Dur::from_ns(700);
/// A batch that another process made still has to be taken over.
const HAND_OVER: Dur = Dur::from_us(1_500);
/// Batches that each worker keeps ready, as PyTorch's loaders do.
const AHEAD_EACH: usize = 2;
/// How much faster products become in 16 bits, at least and at most; what is bound by memory reads half as much.
const HALF: (f64, f64) = (2.0, 3.0);
/// Collectives beside a computation are slower than alone, by this share at most.
const BESIDE: f64 = 1.34;

/// What an answer takes for granted.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assumption {
    /// The loader's processes hand a batch over in 1.5 ms.
    HandOver,
    /// The machine has cores for so many workers.
    Cores(usize),
    /// Shapes do not change, and nothing between the launches is needed on the host.
    StaticShapes,
    /// Products become two to three times as fast in 16 bits, and elementwise kernels twice.
    HalfPrecision,
    /// Collectives beside the computation are as fast as alone; in the worst case a third slower.
    Beside,
    /// The host does not need the results that it waits for.
    ResultsNotNeeded,
    /// Kernels take between as long as now and proportionally longer.
    Scaling,
    /// It is unknown whether batches are made ahead; if they are, they keep their pace.
    Producer,
    /// A compiled function dispatches five to twenty times as fast as its ops one by one.
    Compiled,
    /// The input shares the processor with the step; without it, the rest may become faster, too.
    SharedProcessor,
    /// It runs beside other ops, which may then be what takes long.
    Parallel,
    /// Which stream or thread waits for which is inferred from times.
    Inferred,
}

/// Which end of what a change may do is meant.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// As much as it can win.
    Best,
    /// What is expected.
    Expected,
    /// As little as it may win.
    Worst,
}

/// A plan, and what it rests on.
pub(super) struct Planned {
    pub plan: Plan,
    pub assumes: Vec<Assumption>,
    /// Does each change find something to change?
    pub applies: bool,
}

impl Plan {
    /// Everything as it was recorded.
    pub fn same(recorded: &Recorded) -> Plan {
        Plan {
            stretches: recorded.chains.iter().map(|chain| vec![1.0; chain.stretches.len()]).collect(),
            works: vec![1.0; recorded.graph.works.len()],
            no_waits: false,
            inferred: true,
            apart: Dur::ZERO,
            unordered: vec![false; recorded.graph.works.len()],
            fetches: match recorded.fetches.by_loop == Some(false) && recorded.fetches.saturated {
                true => Fetching::Paced,
                false => Fetching::Recorded,
            },
        }
    }

    /// Makes the time of the host longer or shorter, where it does something itself.
    pub fn think(&mut self, recorded: &Recorded, factor: f64) {
        for (chain, factors) in recorded.chains.iter().zip(&mut self.stretches) {
            for (stretch, own) in chain.stretches.iter().zip(factors) {
                if thinks(segment(&recorded.graph, stretch).piece) {
                    *own *= factor;
                }
            }
        }
    }
}

/// The plan for some changes.
pub(super) fn planned(recorded: &Recorded, changes: &[Change], side: Side) -> Planned {
    let mut planned =
        Planned { plan: Plan::same(recorded), assumes: Vec::new(), applies: !changes.is_empty() };
    for change in changes {
        planned.applies &= planned.apply(recorded, change, side);
    }
    let waits = recorded.fetches.all.iter().map(|fetch| fetch.made_in).sum::<Dur>();
    let unsure = recorded.fetches.by_loop.is_none() && matches!(planned.plan.fetches, Fetching::Recorded);
    let free = changes.iter().any(|change| matches!(change, Change::InputFree));
    if unsure && !free && recorded.fetches.saturated && waits.fraction_of(recorded.graph.window.dur()) > 0.05
    {
        planned.assumes.push(Assumption::Producer);
        if side == Side::Worst {
            planned.plan.fetches = Fetching::Paced;
        }
    }
    planned.assumes.sort_unstable();
    planned.assumes.dedup();
    planned
}

impl Planned {
    /// Whether there was anything to change.
    fn apply(&mut self, recorded: &Recorded, change: &Change, side: Side) -> bool {
        match change {
            Change::InputFree => {
                self.plan.fetches = Fetching::Recorded;
                self.stretches(recorded, 0.0, |category, _| category == Category::Input)
            }
            Change::Workers(count) => self.ahead(recorded, *count, count * AHEAD_EACH, side),
            Change::Prefetch(count) => self.ahead(recorded, 1, *count, side),
            Change::LaunchGraph => self.one_launch(recorded),
            Change::KernelsHalf => self.half(recorded, side),
            Change::Op(name, times) => self.named(recorded, name, *times, true),
            Change::Scope(name, times) => self.named(recorded, name, *times, false),
            Change::OverlapCommunication => self.overlap(recorded, side),
            Change::NoSync => {
                self.assumes.push(Assumption::ResultsNotNeeded);
                self.plan.no_waits = true;
                recorded.edges.waits.values().any(|wait| !wait.inferred)
            }
            Change::Python(times) => self.python(recorded, *times),
            Change::Batch(times) => self.batch(recorded, *times, side),
        }
    }

    fn stretches(
        &mut self,
        recorded: &Recorded,
        factor: f64,
        fits: impl Fn(Category, Piece) -> bool,
    ) -> bool {
        let mut any = false;
        for (chain, factors) in recorded.chains.iter().zip(&mut self.plan.stretches) {
            for (stretch, own) in chain.stretches.iter().zip(factors) {
                let segment = segment(&recorded.graph, stretch);
                if fits(segment.category, segment.piece) {
                    *own *= factor;
                    any = true;
                }
            }
        }
        any
    }

    /// Python runs on the loop's thread, between ops; pauses of other threads are the framework's.
    fn python(&mut self, recorded: &Recorded, times: f64) -> bool {
        let mut any = false;
        for (chain, factors) in recorded.chains.iter().zip(&mut self.plan.stretches) {
            for (stretch, own) in chain.stretches.iter().zip(factors) {
                let segment = segment(&recorded.graph, stretch);
                let on_loop = stretch.thread == 0 && recorded.graph.has_loop;
                if on_loop && segment.piece == Piece::Between && segment.category == Category::Python {
                    *own /= times;
                    any = true;
                }
            }
        }
        any
    }

    /// Producers that work ahead of the loop.
    fn ahead(&mut self, recorded: &Recorded, producers: usize, buffer: usize, side: Side) -> bool {
        // Batches that are made elsewhere already: how long one takes is not known.
        if recorded.fetches.by_loop != Some(true) {
            return false;
        }
        self.assumes.extend([Assumption::HandOver, Assumption::Cores(producers)]);
        let hand_over = match side {
            Side::Best => Dur::ZERO,
            Side::Expected | Side::Worst => HAND_OVER,
        };
        self.plan.fetches = Fetching::Ahead { producers, buffer, hand_over };
        for fetch in &recorded.fetches.all {
            self.plan.stretches[0][fetch.first..=fetch.last].fill(0.0);
        }
        !recorded.fetches.all.is_empty()
    }

    /// One call launches all work of a step.
    fn one_launch(&mut self, recorded: &Recorded) -> bool {
        if recorded.waits_between_kernels() {
            return false;
        }
        self.assumes.push(Assumption::StaticShapes);
        self.plan.apart = GRAPH_NODE;
        let mut any = false;
        for (hull, calls) in recorded.kernel_calls() {
            let (Some(hull), Some(&first)) = (hull, calls.first()) else { continue };
            any |= calls.len() > 1;
            // All that the host does from the first launch to the last goes, whatever it is.
            for (number, chain) in recorded.chains.iter().enumerate() {
                let from = chain.stretches.partition_point(|stretch| stretch.span.start < hull.start);
                let until = chain.stretches.partition_point(|stretch| stretch.span.end <= hull.end);
                for place in from..until.max(from) {
                    let own = segment(&recorded.graph, &chain.stretches[place]);
                    if own.category != Category::Input {
                        self.plan.stretches[number][place] = 0.0;
                    }
                }
            }
            let cost = Dur::from_ps(GRAPH_CALL.ps() + GRAPH_NODE.ps() * calls.len() as i64);
            self.cost_at(recorded, first, cost);
        }
        any
    }

    /// Gives the stretch that ends with a call another length.
    fn cost_at(&mut self, recorded: &Recorded, call: Span, cost: Dur) {
        for (number, chain) in recorded.chains.iter().enumerate() {
            let Some(place) = chain.place(call.end) else { continue };
            let stretch = &chain.stretches[place];
            if segment(&recorded.graph, stretch).piece == Piece::Launch {
                self.plan.stretches[number][place] = cost.fraction_of(stretch.span.dur());
                return;
            }
        }
    }

    fn half(&mut self, recorded: &Recorded, side: Side) -> bool {
        self.assumes.push(Assumption::HalfPrecision);
        let products = match side {
            Side::Best => HALF.1,
            Side::Expected => (HALF.0 * HALF.1).sqrt(),
            Side::Worst => HALF.0,
        };
        let mut any = false;
        for (work, own) in recorded.graph.works.iter().zip(&mut self.plan.works) {
            if work.piece != Piece::Kernel {
                continue;
            }
            let name = recorded.name(work.event);
            let product = may_be_product(name) || may_be_convolution(name);
            let factor = match product {
                true if uses_tensor_cores(name) == Some(true) => continue,
                true => products,
                false if is_elementwise(name) && side != Side::Worst => 2.0,
                false => continue,
            };
            any |= product;
            *own /= factor;
        }
        any
    }

    /// What has a name, or is launched from inside of something that has it.
    fn named(&mut self, recorded: &Recorded, name: &str, times: f64, kernels: bool) -> bool {
        let inside = recorded.ranges_named(name);
        let within = |span: Span| {
            let place = inside.partition_point(|range| range.end <= span.start);
            inside.get(place).is_some_and(|range| range.start <= span.start && span.end <= range.end)
        };
        let mut any = false;
        for (work, own) in recorded.graph.works.iter().zip(&mut self.plan.works) {
            let called = work.call.is_some_and(|call| within(call.span));
            if called || (kernels && recorded.is_named(work.event, name)) {
                *own /= times;
                any = true;
            }
        }
        for (chain, factors) in recorded.chains.iter().zip(&mut self.plan.stretches) {
            for (stretch, own) in chain.stretches.iter().zip(factors) {
                if within(stretch.span) {
                    *own /= times;
                    any = true;
                }
            }
        }
        any
    }

    /// Nothing waits for a collective but what follows the last one of a step.
    fn overlap(&mut self, recorded: &Recorded, side: Side) -> bool {
        self.assumes.push(Assumption::Beside);
        let mut last = vec![None; recorded.spans.len()];
        let mut any = false;
        for (place, work) in recorded.graph.works.iter().enumerate() {
            if work.piece != Piece::Collective {
                continue;
            }
            any = true;
            self.plan.unordered[place] = true;
            if side == Side::Worst {
                self.plan.works[place] *= BESIDE;
            }
            let step = recorded.spans.partition_point(|span| span.end <= work.span.start);
            if let Some(last) = last.get_mut(step) {
                *last = Some(place);
            }
        }
        last.into_iter().flatten().for_each(|place: usize| self.plan.unordered[place] = false);
        any
    }

    fn batch(&mut self, recorded: &Recorded, times: f64, side: Side) -> bool {
        self.assumes.push(Assumption::Scaling);
        let kernels = match side {
            Side::Best => 1.0f64.min(times),
            Side::Expected => times,
            Side::Worst => times.max(1.0),
        };
        self.plan.works.iter_mut().for_each(|own| *own *= kernels);
        self.stretches(recorded, times, |category, _| category == Category::Input);
        !recorded.graph.works.is_empty()
    }
}
