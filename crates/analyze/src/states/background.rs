//! Instructions that go on in the background. XLA's runtime for processors hands large products and copies to a pool of
//! threads, whose work is not recorded: the instruction's event ends when the work is handed over. A second event, `end: …`,
//! says when the runtime was called back, which may be after it ran what follows.
//!
//! So the work lasts until that call at most, and no longer than until another thread of the pool goes on with the same run
//! of the program: it does so when the work is done.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use stepscope_trace::{Dur, Span, StrId, Time, Trace, Track, TrackId, TrackKind};

use super::State;
use super::timeline::united;
use crate::vocabulary::{Keys, Vocabulary};

const END: &str = "end: ";

/// What comes back sooner was not handed over.
const LEAST: Dur = Dur::from_us(20);

/// How long instructions went on after their events ended.
#[derive(Debug, Default)]
pub struct Background {
    /// By track: the event and when its work was done, in the order of events.
    by_track: HashMap<TrackId, Vec<(u32, Time)>, FxBuildHasher>,
}

/// A run of a program on one device.
type Run = (u64, u64, u64);

/// An event of an instruction.
struct Part {
    run: Run,
    span: Span,
    track: TrackId,
    index: u32,
    /// When the runtime was called back; the event's own end if it was not.
    back: Time,
}

struct PartKeys {
    producer: StrId,
    consumer: StrId,
    program: Option<StrId>,
    run: Option<StrId>,
    device: Option<StrId>,
}

impl Background {
    /// Looks at all instructions on the host's threads.
    pub(super) fn of(trace: &Trace, vocabulary: &Vocabulary) -> Self {
        let mut found = Background::default();
        let key = |name: &str| trace.strings().find(name);
        let (Some(producer), Some(consumer)) = (key("_p"), key("_c")) else { return found };
        let (program, run, device) = (key("program_id"), key("run_id"), key("device_ordinal"));
        let keys = PartKeys { producer, consumer, program, run, device };
        let backs = backs(trace, &keys);
        if backs.is_empty() {
            return found;
        }
        let mut parts = parts(trace, vocabulary, &keys, &backs);
        parts.sort_unstable_by_key(|part| (part.run, part.span.start, part.span.end));
        for run in parts.chunk_by(|a, b| a.run == b.run) {
            found.add(run);
        }
        found.by_track.values_mut().for_each(|events| events.sort_unstable());
        found
    }

    /// The parts of one run, in the order of their starts.
    fn add(&mut self, run: &[Part]) {
        // The next part on another track, from behind, so that each is looked at once.
        let mut other: Vec<usize> = vec![run.len(); run.len()];
        for at in (0..run.len().saturating_sub(1)).rev() {
            other[at] = if run[at].track == run[at + 1].track { other[at + 1] } else { at + 1 };
        }
        for part in run.iter().filter(|part| part.back - part.span.end >= LEAST) {
            let after = run.partition_point(|next| next.span.start < part.span.end);
            let next = match run.get(after) {
                Some(next) if next.track == part.track => other.get(after).and_then(|&at| run.get(at)),
                next => next,
            };
            let done = next.map_or(part.back, |next| next.span.start.min(part.back));
            if done - part.span.end >= LEAST {
                self.by_track.entry(part.track).or_default().push((part.index, done));
            }
        }
    }

    /// How long an event's work went on after it.
    pub fn after(&self, track: &Track, index: usize) -> Dur {
        let Some(events) = self.by_track.get(&track.id) else { return Dur::ZERO };
        let found = events.binary_search_by_key(&(index as u64), |&(event, _)| u64::from(event));
        let done = found.ok().and_then(|at| events.get(at));
        done.map_or(Dur::ZERO, |&(_, done)| (done - track.end(index)).at_least_zero())
    }

    /// Work in the background, by the track that handed it over.
    pub(super) fn spans(&self, trace: &Trace, vocabulary: &Vocabulary) -> Vec<(TrackId, State, Vec<Span>)> {
        let mut all = Vec::new();
        for (&id, events) in &self.by_track {
            let track = trace.track(id);
            let mut by_state: Vec<(State, Vec<Span>)> = Vec::new();
            for &(event, done) in events {
                let index = event as usize;
                let Some(state) = State::of_role(vocabulary.role(track.kind_of(index)), false) else {
                    continue;
                };
                let span = Span::new(track.end(index), done);
                match by_state.iter_mut().find(|(known, _)| *known == state) {
                    Some((_, spans)) => spans.push(span),
                    None => by_state.push((state, vec![span])),
                }
            }
            all.extend(by_state.into_iter().map(|(state, spans)| (id, state, united(spans))));
        }
        all
    }
}

/// When the runtime was called back, by the number that links both events.
fn backs(trace: &Trace, keys: &PartKeys) -> HashMap<u64, Time, FxBuildHasher> {
    let ends = trace.kinds_where(|kind| trace.kind_name(kind).starts_with(END));
    let mut backs: HashMap<u64, Time, FxBuildHasher> = HashMap::default();
    if ends.is_empty() {
        return backs;
    }
    for track in trace.tracks().iter().filter(|track| track.kind == TrackKind::Thread) {
        for (index, _) in track.events_of(&ends) {
            if let Some(link) = trace.args_at(track, index).get(keys.consumer).and_then(|link| link.as_u64())
            {
                backs.insert(link, track.start(index));
            }
        }
    }
    backs
}

fn parts(
    trace: &Trace,
    vocabulary: &Vocabulary,
    keys: &PartKeys,
    backs: &HashMap<u64, Time, FxBuildHasher>,
) -> Vec<Part> {
    let wanted = trace.kinds_where(|kind| {
        let has = vocabulary.signatures.keys(kind);
        has.has(Keys::HloOp) && !has.has(Keys::Correlation)
    });
    let mut parts = Vec::new();
    for track in trace.tracks().iter().filter(|track| track.kind == TrackKind::Thread) {
        for (index, _) in track.events_of(&wanted) {
            let (mut run, mut link) = ((0, 0, 0), None);
            trace.args_at(track, index).visit(|key, value| match value.as_u64() {
                Some(number) if key == keys.producer => link = Some(number),
                Some(number) if Some(key) == keys.program => run.0 = number,
                Some(number) if Some(key) == keys.run => run.1 = number,
                Some(number) if Some(key) == keys.device => run.2 = number,
                _ => {}
            });
            let span = track.span_of(index);
            let back = link.and_then(|link| backs.get(&link)).map_or(span.end, |&back| back.max(span.end));
            let Ok(index) = u32::try_from(index) else { break };
            parts.push(Part { run, span, track: track.id, index, back });
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use stepscope_trace::Dur;

    use crate::analysis::Analysis;
    use crate::breakdown::Category;
    use crate::context::Context;
    use crate::sketch::{Arg, Sketch};
    use crate::work::ops::OpsPartial;

    /// Four steps of a millisecond. A product is handed over from 100 to 200 µs; another thread goes on at 700 µs with what
    /// follows in the same run, and the runtime is called back for the product after that, at 850 µs.
    fn compute(same_run: bool) -> (Dur, f64) {
        let mut sketch = Sketch::new();
        let (python, caller, pool) =
            (sketch.thread("python"), sketch.thread("tf_XLAPjRtCpuClient/1"), sketch.thread("tf_XLAEigen/2"));
        for step in 0..4 {
            let at = 1_000 * step;
            let args = |op, run, link| {
                [
                    ("hlo_op", Arg::Text(op)),
                    ("hlo_module", Arg::Text("jit_f")),
                    ("run_id", Arg::Int(run)),
                    ("_p", Arg::Int(link)),
                ]
            };
            let other = if same_run { step } else { 50 + step };
            sketch.event(python, "train", at, 1_000, &[("step_num", Arg::Int(step))]);
            sketch.event(caller, "dot.1", at + 100, 100, &args("dot.1", step, 10 + step));
            sketch.event(pool, "add_fusion", at + 700, 100, &args("add_fusion", other, 20 + step));
            sketch.event(pool, "end: add_fusion", at + 800, 1, &[("_c", Arg::Int(20 + step))]);
            sketch.event(pool, "end: dot.1", at + 850, 1, &[("_c", Arg::Int(10 + step))]);
        }
        let trace = sketch.finish();
        let context = Context::new(&trace, "host");
        let shares = context.breakdown().counted().map(|(_, step)| step.shares.get(Category::Compute)).sum();
        let ops = OpsPartial::of(&context).finish();
        let dot = ops.rows.iter().find(|row| row.key.name == "dot.1");
        (shares, dot.map_or(0.0, |row| row.self_ms))
    }

    #[test]
    fn a_product_lasts_until_the_pool_goes_on_with_what_follows() {
        assert_eq!(compute(true), (Dur::from_us(4 * 700), 4.0 * 0.6));
    }

    #[test]
    fn without_anything_that_follows_it_lasts_until_the_runtime_is_called_back() {
        assert_eq!(compute(false), (Dur::from_us(4 * 750), 4.0 * 0.75));
    }
}
