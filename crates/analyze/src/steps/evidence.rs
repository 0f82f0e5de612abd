//! What distinguishes a loop of steps from the layers of one step, if only a repeating sequence is known.
//!
//! One pass through eight equal layers and eight passes through one layer are the same sequence of ops. Only what a
//! loop does and layers do not do decides: it takes input, computes a loss, goes backward, updates parameters, picks a
//! result, waits for the device or for something else once per repetition. A sequence that itself consists of many
//! layers is a pass. Without such a sign, nobody can tell.

use stepscope_trace::statistics::median_duration;
use stepscope_trace::{Dur, KindId, KindSet, Span, Time, Track, TrackKind};

use super::larger::holds_layers;
use crate::host_trace::HostTrace;
use crate::vocabulary::{CopyDirection, Framework, Role, is_product, waits_for_all, words};

/// A model with more equal layers is unheard of.
const DEEPEST: usize = 160;
/// A layer with more products is unheard of: a decoder's has two attentions with six each, and three more.
const PRODUCTS: usize = 16;
/// A pause before each repetition of at least this share of it is not the cost of calling the next layer.
const PAUSE: f64 = 0.25;
/// The pause must be this many times as long as any other pause within a repetition.
const LONGEST_PAUSE: i64 = 3;
/// Updates that take less of a repetition are not what it is for.
const UPDATING: f64 = 0.05;
/// The share of repetitions in which a sign must occur.
const MOST: f64 = 0.9;

/// Words in names of ops that a pass through a model does once: it looks up its input, compares its result, picks from
/// it.
const ONCE: &[&str] = &["loss", "entropy", "embedding", "argmax", "multinomial"];
/// Words in names of ops that update parameters. They alone may be one update of many parameters.
const UPDATES: &[&str] = &["adam", "adamw", "sgd", "foreach", "addcdiv", "apply"];
/// Words in names of ops of a backward pass.
const BACKWARD: &[&str] = &["backward"];
/// Words in names of ops that only a forward pass has.
const FORWARD: &[&str] = &["linear", "conv", "attention", "embedding", "lstm", "gru"];
/// Words in names of ops that reduce an image to features, as a classifier does before its last layers …
const POOLS: &[&str] = &["pool"];
/// … which are of this kind, while the others are convolutions.
const HEADS: &[&str] = &["linear", "addmm"];

/// A sequence that repeats on a track.
pub(super) struct Repetitions<'r, 't> {
    pub(super) recorded: &'r HostTrace<'t>,
    pub(super) track: &'t Track,
    pub(super) on_host: bool,
    /// The events of the sequence on the track, and their names.
    pub(super) work: &'r [usize],
    pub(super) names: &'r [u32],
    /// How long nothing runs before each of them.
    pub(super) pauses: &'r [Dur],
    /// Number of events of one repetition.
    pub(super) period: usize,
    /// Whether every repetition is the same sequence.
    pub(super) exact: bool,
    /// The first event of each repetition on the track.
    pub(super) first: &'r [usize],
}

impl Repetitions<'_, '_> {
    /// Whether the recording shows that the repetitions are steps.
    pub(super) fn are_steps(&self) -> bool {
        let repeats = self.names.len() / self.period;
        !self.may_be_layers()
            || repeats > DEEPEST
            || self.exact && self.are_passes()
            || is_fed(self.recorded, self.track, self.work, repeats)
            || self.are_apart()
            || self.do_what_loops_do()
    }

    /// Whether a repetition is more than a layer. Where repetitions differ, none of them shows what all consist of.
    fn are_passes(&self) -> bool {
        self.products() > PRODUCTS && !self.are_backward_alone()
            || holds_layers(self.names.get(self.start()..).unwrap_or_default(), self.period)
    }

    /// Layers have products, and more than that in programs without a framework; one update of many parameters repeats
    /// as well.
    fn may_be_layers(&self) -> bool {
        let single = self.period == 1 && self.recorded.vocabulary().framework == Framework::Unknown;
        let own = || self.own().iter().copied();
        let all: Dur = own().map(|index| self.track.dur(index)).sum();
        let updates: Dur =
            own().filter(|&index| has(self.name(index), UPDATES)).map(|index| self.track.dur(index)).sum();
        !single && (own().any(|index| is_product(self.name(index))) || updates.fraction_of(all) >= UPDATING)
    }

    /// Where the first repetition starts among the events: what comes before it may be of another kind.
    fn start(&self) -> usize {
        self.first.first().and_then(|index| self.work.binary_search(index).ok()).unwrap_or(0)
    }

    /// The events of the first repetition.
    fn own(&self) -> &[usize] {
        let rest = self.work.get(self.start()..).unwrap_or_default();
        rest.get(..self.period).unwrap_or(rest)
    }

    fn name(&self, index: usize) -> &str {
        self.recorded.trace.kind_name(self.track.kind_of(index))
    }

    /// Number of products in the first repetition, without those that are part of another.
    fn products(&self) -> usize {
        let mut until = Time::MIN;
        let own = self.own().iter().filter(|&&index| is_product(self.name(index)));
        own.filter(|&&index| {
            let outermost = self.track.start(index) >= until;
            until = until.max(self.track.end(index));
            outermost
        })
        .count()
    }

    /// Whether the repetitions are parts of a backward pass: it has threads of its own, and on no other thread do products
    /// run meanwhile. Going back through a layer takes more products than the layer has, and a step goes forward, too.
    fn are_backward_alone(&self) -> bool {
        let (trace, vocabulary) = (self.recorded.trace, self.recorded.vocabulary());
        let is_op = |kind| is_work(vocabulary.role(kind));
        let back = trace.kinds_where(|kind| is_op(kind) && has(trace.kind_name(kind), BACKWARD));
        let products = trace.kinds_where(|kind| is_op(kind) && is_product(trace.kind_name(kind)));
        let forward = |track: &Track| {
            track.kind == TrackKind::Thread && !track.has_any(&back) && track.has_any(&products)
        };
        let starts = self.starts();
        trace.tracks().iter().any(forward)
            && self.occur_in_most_on(&starts, &back, |_| true)
            && !self.occur_in_most_on(&starts, &products, forward)
    }

    /// Whether most repetitions have work with one of these words in its name.
    fn have_work_named(&self, starts: &Starts, wanted: &[&str]) -> bool {
        let (trace, vocabulary) = (self.recorded.trace, self.recorded.vocabulary());
        self.occur_in_most(starts, |kind| {
            is_work(vocabulary.role(kind)) && has(trace.kind_name(kind), wanted)
        })
    }

    /// Whether a long pause separates the repetitions.
    fn are_apart(&self) -> bool {
        let (track, work) = (self.track, self.work);
        let starts: Vec<usize> =
            self.first.iter().filter_map(|index| work.binary_search(index).ok()).collect();
        let length =
            median_duration(self.first.windows(2).map(|pair| track.start(pair[1]) - track.start(pair[0])));
        let before = median_duration(starts.iter().skip(1).map(|&at| self.pauses[at]));
        let longest =
            |pair: &[usize]| self.pauses[pair[0] + 1..pair[1]].iter().max().copied().unwrap_or_default();
        let within = median_duration(starts.windows(2).map(longest));
        before.fraction_of(length) >= PAUSE && before.ps() >= within.ps().saturating_mul(LONGEST_PAUSE)
    }

    /// Whether each repetition has something that happens once per step.
    fn do_what_loops_do(&self) -> bool {
        let (trace, vocabulary) = (self.recorded.trace, self.recorded.vocabulary());
        let starts = self.starts();
        let named = |parts| self.have_work_named(&starts, parts);
        let products = || {
            self.occur_in_most(&starts, |kind| {
                is_work(vocabulary.role(kind)) && is_product(trace.kind_name(kind))
            })
        };
        let waits = |kind| vocabulary.role(kind) == Role::Sync && waits_for_all(trace.kind_name(kind));
        self.occur_in_most(&starts, waits)
            || named(ONCE)
            || named(BACKWARD) && named(FORWARD)
            || named(UPDATES) && products()
            || named(POOLS) && named(HEADS)
    }

    /// When each repetition begins on the host and on the device. A host runs ahead: it began a repetition when it
    /// launched the first kernel.
    fn starts(&self) -> Starts {
        let on_track: Vec<Time> = self.first.iter().map(|&index| self.track.start(index)).collect();
        if self.on_host {
            return Starts { host: on_track, device: Vec::new() };
        }
        let launches = &self.recorded.launches().all;
        let called = |&index: &usize| {
            let work = self.track.event_id(index);
            let at = launches.binary_search_by_key(&work, |launch| launch.work).ok()?;
            Some(launches[at].called)
        };
        let called: Option<Vec<Time>> = self.first.iter().map(called).collect();
        let host = called.filter(|times| times.is_sorted()).unwrap_or_else(|| on_track.clone());
        Starts { host, device: on_track }
    }

    /// Whether most repetitions contain an event of a wanted kind, on a thread or on the device.
    fn occur_in_most(&self, starts: &Starts, wanted: impl Fn(KindId) -> bool) -> bool {
        self.occur_in_most_on(starts, &self.recorded.trace.kinds_where(wanted), |_| true)
    }

    /// Whether most repetitions contain an event of these kinds on one of these tracks.
    fn occur_in_most_on(&self, starts: &Starts, kinds: &KindSet, on: impl Fn(&Track) -> bool) -> bool {
        let mut holds = vec![false; self.first.len()];
        let tracks = self.recorded.trace.tracks().iter().filter(|track| !kinds.is_empty() && on(track));
        for track in tracks {
            let starts = match track.kind {
                TrackKind::Thread => &starts.host,
                TrackKind::Stream if track.process == self.track.process => &starts.device,
                _ => continue,
            };
            for (index, _) in track.events_of(kinds) {
                let next = starts.partition_point(|&start| start <= track.start(index));
                if let Some(repetition) = next.checked_sub(1).and_then(|at| holds.get_mut(at)) {
                    *repetition = true;
                }
            }
        }
        // The last one has no end.
        let whole = holds.len().saturating_sub(1);
        let held = holds.iter().take(whole).filter(|held| **held).count();
        whole > 0 && held as f64 >= MOST * whole as f64
    }
}

/// When repetitions begin.
struct Starts {
    host: Vec<Time>,
    device: Vec<Time>,
}

/// Whether one of `wanted` is among the words of a name.
fn has(name: &str, wanted: &[&str]) -> bool {
    let words = words(name);
    wanted.iter().any(|wanted| words.iter().any(|word| word == wanted))
}

fn is_work(role: Role) -> bool {
    matches!(role, Role::Kernel | Role::Op | Role::EagerKernel)
}

/// Whether the host copies something to the device for each repetition. Then each is a step: layers get nothing
/// from the host.
pub(super) fn is_fed(recorded: &HostTrace, track: &Track, work: &[usize], repeats: usize) -> bool {
    let (trace, vocabulary) = (recorded.trace, recorded.vocabulary());
    let (Some(&first), Some(&last)) = (work.first(), work.last()) else { return false };
    let loops = Span::new(track.start(first), track.end(last));
    // Parameters are copied before the first kernel.
    let copied = |track: &Track| {
        let places = track.first_from(loops.start)..track.first_from(loops.end);
        let copy = |&index: &usize| vocabulary.role(track.kind_of(index)) == Role::Copy(CopyDirection::In);
        places.filter(copy).count()
    };
    let own = |other: &&Track| other.process == track.process && other.kind == TrackKind::Stream;
    let copies: usize = trace.tracks().iter().filter(own).map(copied).sum();
    copies * 10 >= repeats * 9
}

#[cfg(test)]
mod tests {
    use crate::context::Context;
    use crate::sketch::Sketch;
    use crate::steps::{How, Origin, Steps};

    /// Repetitions of a layer of ops, each `pause` µs after the one before; `extra` comes first in each.
    fn layers(repeats: i64, products: usize, extra: &[&str], pause: i64) -> Steps {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        let mut at = 0;
        for _ in 0..repeats {
            let products = (0..products).flat_map(|_| ["aten::addmm", "aten::gelu"]);
            let ops = extra.iter().copied().chain(["aten::layer_norm"]).chain(products).chain(["aten::add"]);
            for op in ops {
                sketch.event_of(thread, "cpu_op", op, at, 90, &[]);
                at += 100;
            }
            at += pause;
        }
        let trace = sketch.finish();
        Steps::of(&Context::new(&trace, "host"))
    }

    #[test]
    fn equal_layers_of_one_pass_are_not_steps() {
        let steps = layers(8, 2, &[], 0);
        assert_eq!((steps.origin, steps.how), (Origin::None, How::Unclear { parts: 8, ops: 6 }));
        assert!(steps.all.is_empty());
    }

    #[test]
    fn what_only_a_loop_does_makes_repetitions_steps() {
        for extra in [
            &["aten::cross_entropy_loss"][..],
            &["aten::embedding"],
            &["aten::argmax"],
            &["aten::linear", "AddmmBackward0", "aten::linear_backward"],
            &["aten::_fused_adamw_"],
            &["aten::max_pool2d"],
        ] {
            let steps = layers(8, 2, extra, 0);
            assert_eq!(steps.origin, Origin::Inferred, "{extra:?}");
            assert_eq!(steps.all.len(), 8, "{extra:?}");
        }
        for extra in [&["aten::dropout"][..], &["aten::native_dropout"]] {
            assert_eq!(layers(8, 2, extra, 0).origin, Origin::None, "{extra:?}");
        }
    }

    #[test]
    fn a_long_pause_a_deep_sequence_or_many_repetitions_are_a_loop() {
        assert_eq!(layers(8, 2, &[], 900).origin, Origin::Inferred, "a pause");
        assert_eq!(layers(8, 2, &["aten::linear"], 60).origin, Origin::None, "the cost of a call");
        assert_eq!(
            layers(8, 20, &["aten::conv2d", "aten::relu"], 0).origin,
            Origin::Inferred,
            "a deep model"
        );
        assert_eq!(layers(200, 2, &[], 0).origin, Origin::Inferred, "too many layers");
    }

    /// Eight repetitions of 20 products that a backward pass launches from its own thread, after products of a forward pass on
    /// another thread; `along` lets the latter run beside each repetition, too.
    fn backward(along: bool) -> Origin {
        let mut sketch = Sketch::new();
        let (python, autograd, stream) =
            (sketch.thread("python"), sketch.thread("pt_autograd_0"), sketch.stream());
        sketch.event_of(python, "cpu_op", "aten::bmm", 0, 10, &[]);
        for layer in 0..8 {
            let at = 1_000 * (layer + 1);
            sketch.event_of(autograd, "cpu_op", "BmmBackward0", at, 900, &[]);
            if along {
                sketch.event_of(python, "cpu_op", "aten::bmm", at + 10, 10, &[]);
            }
            for product in 0..20 {
                let name = format!("sgemm_{product}x64");
                sketch.event_of(stream, "kernel", &name, at + 40 * product, 30, &[]);
            }
            sketch.event_of(stream, "kernel", "elementwise_kernel", at + 850, 30, &[]);
        }
        let trace = sketch.finish();
        Steps::of(&Context::new(&trace, "host")).origin
    }

    #[test]
    fn a_backward_pass_alone_goes_back_through_layers() {
        assert_eq!(backward(false), Origin::None);
        assert_eq!(backward(true), Origin::Inferred, "each repetition goes forward as well");
    }

    #[test]
    fn time_inside_an_op_is_not_a_pause() {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        for layer in 0..8 {
            let at = layer * 1_000;
            sketch.event_of(thread, "cpu_op", "aten::linear", at, 900, &[]);
            sketch.event_of(thread, "cpu_op", "aten::t", at + 10, 20, &[]);
            sketch.event_of(thread, "cpu_op", "aten::relu", at + 910, 80, &[]);
        }
        let trace = sketch.finish();
        assert_eq!(Steps::of(&Context::new(&trace, "host")).origin, Origin::None);
    }

    #[test]
    fn what_has_no_products_is_not_a_layer() {
        assert_eq!(layers(8, 0, &["aten::randn", "aten::sort"], 0).origin, Origin::Inferred);
        assert_eq!(layers(8, 0, &["aten::addcdiv_", "aten::lerp_"], 0).origin, Origin::None, "an update");
    }
}
