//! Why some steps take longer than the others: they run more ops, one thing takes longer in most of them, or everything
//! takes longer by about the same factor. The last is a busy machine or a clock that varies, not the program.

use stepscope_trace::statistics::{median_duration, quantile};
use stepscope_trace::{Dur, Form, KindId, ProcessKind, Span, Time, Track, TrackKind};

use crate::breakdown::{Category, Shares};
use crate::context::Context;
use crate::vocabulary::Role;

/// A step is long from this many times the length of the shortest quarter on.
const LONG: f64 = 1.5;
/// Fewer usual or long steps have nothing in common that could be named.
const LEAST: usize = 2;
/// The causes of so many long steps are looked at: those of more are the same.
const MOST_LONG: usize = 16;
/// From this factor on, long steps run more ops than the others.
const MORE: f64 = 1.1;
/// What explains a long step holds at least this share of what it takes beyond the others …
const EXPLAINS: f64 = 0.5;
/// … in at least this share of the long steps, …
const IN_MOST: f64 = 2.0 / 3.0;
/// … and grows by this many times the factor by which the rest grows.
const BEYOND_REST: f64 = 1.5;
/// What covers this share of a step says no more than the step itself.
const WHOLE: f64 = 0.9;
/// A factor is about the same if its excess is within this many times the excess of the whole, either way.
const ALIKE: f64 = 2.0;
/// With less of a usual step, the host's own work does not show whether it takes longer, too.
const LEAST_HOST: f64 = 0.05;

/// What distinguishes the long steps of one host.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum UnevenSteps {
    /// They run more ops and kernels: the usual number, theirs.
    MoreWork(f64, f64),
    /// One thing takes longer in most of them: its name, its usual milliseconds, those in long steps.
    Grows(String, f64, f64),
    /// They do the same, and all of it takes longer by about this factor.
    Everything(f64),
}

impl UnevenSteps {
    /// `None` if all steps are about equally long, or if the recording does not say.
    pub fn of(context: &Context) -> Option<Self> {
        let breakdown = context.breakdown();
        if breakdown.steps.whole_capture || breakdown.steps.overlap() {
            return None;
        }
        let counted: Vec<Counted> = breakdown
            .counted()
            .map(|(step, shares)| Counted { host: step.span, device: shares.work, shares: shares.shares })
            .collect();
        let groups = Groups::of(&counted)?;
        let times = Times::of(context, &counted, &groups);
        if let Some((usual, long)) = times.more_work() {
            return Some(UnevenSteps::MoreWork(usual, long));
        }
        let grown = times.grown(context, &counted, &groups);
        grown.or_else(|| groups.stretched(&counted).map(UnevenSteps::Everything))
    }
}

/// A counted step.
struct Counted {
    /// On the host.
    host: Span,
    /// On the device.
    device: Span,
    shares: Shares,
}

/// Which steps are usual and which are long, by their positions.
struct Groups {
    usual: Vec<usize>,
    long: Vec<usize>,
    usual_length: Dur,
}

impl Groups {
    fn of(counted: &[Counted]) -> Option<Self> {
        let mut lengths: Vec<f64> = counted.iter().map(|step| step.device.dur().ms()).collect();
        lengths.sort_by(f64::total_cmp);
        let (quarter, limit) = (quantile(&lengths, 0.25)?, quantile(&lengths, 0.5)?);
        let is_long = |at: &usize| counted[*at].device.dur().ms() > LONG * quarter;
        let is_usual = |at: &usize| counted[*at].device.dur().ms() <= limit && !is_long(at);
        let long: Vec<usize> = (0..counted.len()).filter(is_long).take(MOST_LONG).collect();
        let usual: Vec<usize> = (0..counted.len()).filter(is_usual).collect();
        let usual_length = median_duration(usual.iter().map(|&at| counted[at].device.dur()));
        let shown = usual.len() >= LEAST && long.len() >= LEAST && !usual_length.is_zero();
        shown.then_some(Groups { usual, long, usual_length })
    }

    /// By which factor everything takes longer, if the host's own work does so as well as what is computed. Larger batches
    /// take longer to compute, but not to dispatch.
    fn stretched(&self, counted: &[Counted]) -> Option<f64> {
        const HOST: [Category; 3] = [Category::Dispatch, Category::Launch, Category::Python];
        let mean = |steps: &[usize], wanted: &dyn Fn(Category) -> bool| {
            let times = steps.iter().flat_map(|&at| {
                Category::ALL.into_iter().filter(|&c| wanted(c)).map(move |c| counted[at].shares.get(c).ms())
            });
            times.sum::<f64>() / steps.len().max(1) as f64
        };
        let factor = |wanted: &dyn Fn(Category) -> bool| {
            mean(&self.long, wanted) / mean(&self.usual, wanted).max(f64::MIN_POSITIVE)
        };
        let host = |category: Category| HOST.contains(&category);
        let shows = mean(&self.usual, &host) >= LEAST_HOST * mean(&self.usual, &|_| true)
            && mean(&self.usual, &|category| category == Category::Compute) > 0.0;
        let whole = factor(&|_| true);
        let alike = |part: f64| (1.0 / ALIKE..=ALIKE).contains(&((part - 1.0) / (whole - 1.0)));
        let both = alike(factor(&host)) && alike(factor(&|category| category == Category::Compute));
        (shows && both).then_some(whole)
    }
}

/// The group of a step.
#[derive(Copy, Clone, PartialEq)]
enum Group {
    Usual,
    Long(usize),
    Neither,
}

/// What each kind of event takes in usual and in long steps.
struct Times {
    /// Number of ops and kernels: in all usual steps, and in each long one.
    ops: (u64, Vec<u64>),
    /// By kind: the time in all usual steps.
    usual: Vec<Dur>,
    /// By long step and kind: the time.
    long: Vec<Vec<Dur>>,
    usual_steps: f64,
}

impl Times {
    fn of(context: &Context, counted: &[Counted], groups: &Groups) -> Self {
        let kinds = context.trace.kinds().len();
        let mut group = vec![Group::Neither; counted.len()];
        groups.usual.iter().for_each(|&at| group[at] = Group::Usual);
        groups.long.iter().enumerate().for_each(|(place, &at)| group[at] = Group::Long(place));
        let mut times = Times {
            ops: (0, vec![0; groups.long.len()]),
            usual: vec![Dur::ZERO; kinds],
            long: vec![vec![Dur::ZERO; kinds]; groups.long.len()],
            usual_steps: groups.usual.len() as f64,
        };
        for track in context.trace.tracks() {
            times.add(context, track, counted, &group);
        }
        times
    }

    fn add(&mut self, context: &Context, track: &Track, counted: &[Counted], group: &[Group]) {
        let on_device = context.trace.process(track.process).kind == ProcessKind::Device;
        match track.kind {
            TrackKind::Thread if !on_device => {}
            TrackKind::Stream if on_device => {}
            _ => return,
        }
        let vocabulary = context.vocabulary();
        let mut inside_until = vec![Time::MIN; context.trace.kinds().len()];
        let mut at = 0;
        for index in 0..track.len() {
            let (span, kind) = (track.span_of(index), track.kind_of(index));
            let window = |at: usize| if on_device { counted[at].device } else { counted[at].host };
            while at < counted.len() && window(at).end <= span.start {
                at += 1;
            }
            if at == counted.len() {
                break;
            }
            // A function that calls itself takes its time once.
            let nested = span.start < inside_until[kind.index()];
            let role = if on_device { vocabulary.role(kind) } else { vocabulary.host_role(kind) };
            if nested || span.start < window(at).start || !is_told(context, kind, role) {
                continue;
            }
            inside_until[kind.index()] = span.end;
            let counts =
                u64::from(matches!(role, Role::Op | Role::Kernel | Role::Launch | Role::FunctionCall));
            match group[at] {
                Group::Usual => {
                    self.ops.0 += counts;
                    self.usual[kind.index()] += span.dur();
                }
                Group::Long(place) => {
                    self.ops.1[place] += counts;
                    self.long[place][kind.index()] += span.dur();
                }
                Group::Neither => {}
            }
        }
    }

    /// The usual number of ops and that of the long steps, if it is larger in most of them.
    fn more_work(&self) -> Option<(f64, f64)> {
        let usual = self.ops.0 as f64 / self.usual_steps;
        let more = |count: &&u64| **count as f64 >= MORE * usual;
        let many = self.ops.1.iter().filter(more).count() as f64 >= IN_MOST * self.ops.1.len() as f64;
        let long = self.ops.1.iter().sum::<u64>() as f64 / self.ops.1.len().max(1) as f64;
        (usual > 0.0 && many).then_some((usual, long))
    }

    /// What takes longer in most of the long steps and explains them: a range of the user's first, then the innermost.
    fn grown(&self, context: &Context, counted: &[Counted], groups: &Groups) -> Option<UnevenSteps> {
        let lengths: Vec<f64> = groups.long.iter().map(|&at| counted[at].device.dur().ms()).collect();
        let length = lengths.iter().sum::<f64>() / lengths.len().max(1) as f64;
        let usual_length = groups.usual_length.ms();
        let explaining = (0..self.usual.len()).filter_map(|kind| {
            let usual = self.usual[kind].ms() / self.usual_steps;
            let long = || self.long.iter().map(|times| times[kind].ms());
            let explains = |(time, length): (f64, &f64)| time - usual >= EXPLAINS * (length - usual_length);
            let often = long().zip(&lengths).filter(|pair| explains(*pair)).count();
            let mean = long().sum::<f64>() / lengths.len().max(1) as f64;
            let rest = (length - mean).max(0.0) / (usual_length - usual).max(f64::MIN_POSITIVE);
            let named = often as f64 >= IN_MOST * lengths.len() as f64
                && usual < WHOLE * usual_length
                && mean / usual.max(f64::MIN_POSITIVE) >= BEYOND_REST * rest.max(1.0);
            named.then_some((KindId::from_index(kind), usual, mean))
        });
        let of_user = |kind| context.vocabulary().role(kind) == Role::Annotation;
        let (kind, usual, long) =
            explaining.min_by(|a, b| (!of_user(a.0)).cmp(&!of_user(b.0)).then(a.2.total_cmp(&b.2)))?;
        Some(UnevenSteps::Grows(context.trace.kind_name(kind).to_owned(), usual, long))
    }
}

/// Whether events of this kind may explain a step.
fn is_told(context: &Context, kind: KindId, role: Role) -> bool {
    context.trace.kind(kind).form == Form::Slice && !matches!(role, Role::Bookkeeping | Role::StepMarker)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::{Arg, Sketch};

    /// Steps on a processor with ops `(name, usual µs, µs in every third step)`, and Python in between.
    fn steps(ops: &[(&str, i64, i64)], python: (i64, i64)) -> Option<UnevenSteps> {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        let mut at = 0;
        for step in 0..18 {
            let is_long = step % 3 == 2;
            let start = at;
            for &(name, usual, long) in ops {
                let length = if is_long { long } else { usual };
                if length > 0 {
                    sketch.event_of(thread, "cpu_op", name, at, length, &[]);
                }
                at += length + if is_long { python.1 } else { python.0 };
            }
            sketch.event(thread, "train", start, at - start, &[("step_num", Arg::Int(step))]);
        }
        let trace = sketch.finish();
        UnevenSteps::of(&Context::new(&trace, "host"))
    }

    #[test]
    fn steps_that_do_the_same_more_slowly_are_the_machines() {
        let slow =
            steps(&[("aten::mm", 400, 800), ("aten::relu", 200, 400), ("aten::add", 100, 200)], (30, 60));
        assert!(
            matches!(slow, Some(UnevenSteps::Everything(factor)) if (factor - 2.0).abs() < 0.1),
            "{slow:?}"
        );
    }

    #[test]
    fn larger_batches_are_not_taken_for_a_busy_machine() {
        let larger =
            steps(&[("aten::mm", 400, 800), ("aten::relu", 200, 400), ("aten::add", 100, 200)], (60, 60));
        assert_eq!(larger, None);
    }

    #[test]
    fn what_grows_in_most_of_the_long_steps_is_named() {
        let sorts =
            steps(&[("aten::mm", 400, 420), ("aten::sort", 50, 900), ("aten::add", 100, 100)], (10, 10));
        assert!(matches!(&sorts, Some(UnevenSteps::Grows(name, ..)) if name == "aten::sort"), "{sorts:?}");
    }

    #[test]
    fn more_ops_are_more_work() {
        let more =
            steps(&[("aten::mm", 400, 400), ("aten::conv2d", 0, 500), ("aten::add", 100, 100)], (10, 10));
        assert!(matches!(more, Some(UnevenSteps::MoreWork(2.0, 3.0))), "{more:?}");
    }

    #[test]
    fn even_steps_have_no_cause() {
        assert_eq!(steps(&[("aten::mm", 400, 450), ("aten::add", 100, 100)], (10, 10)), None);
    }
}
