//! Pauses in which the host recorded nothing. In a loop they recur, and are the loop's own Python; a long one that occurs
//! once may be anything: a library that is loaded, a program that is compiled, a thread that was never recorded.

use stepscope_trace::{Dur, Span};

use crate::context::Context;
use crate::states::State;
use crate::steps::median;
use crate::timeline::{Mask, Timeline};

/// From this many steps on, what a step does shows whether it recurs.
const STEPS: usize = 3;
/// A pause is long that takes this share of the step …
const LONG: f64 = 0.05;
/// … and is this many times the usual pause.
const LONG_PAUSE: i64 = 10;
/// More long pauses than this are a habit, whatever they hold.
const FEW: usize = 3;

/// The long pauses of a recording with too few steps to show whether they recur. Inside recorded Python there is none.
pub(super) fn unrecorded(context: &Context, host: &Timeline, frames: bool) -> Vec<Span> {
    let steps = &context.steps().all;
    let counted = || steps.iter().filter(|step| step.set_apart.is_none());
    if counted().count() >= STEPS {
        return Vec::new();
    }
    let window = match counted().count() {
        0 => host.span().map_or(Dur::ZERO, |span| span.dur()),
        _ => median(counted().map(|step| step.span.dur())),
    };
    let quiet = State::InputWork as u16 | if frames { 0 } else { State::Present as u16 };
    let pauses: Vec<Span> = host.spans_without(Mask(!quiet)).collect();
    let usual = median(pauses.iter().map(|pause| pause.dur()));
    let least = Dur::from_ps(usual.ps().saturating_mul(LONG_PAUSE));
    let long = |pause: &Span| pause.dur().fraction_of(window) >= LONG && pause.dur() >= least;
    let mut found: Vec<Span> = pauses.into_iter().filter(long).collect();
    if found.len() > FEW {
        found.clear();
    }
    found
}

#[cfg(test)]
mod tests {
    use stepscope_trace::Dur;

    use crate::breakdown::Category;
    use crate::context::Context;
    use crate::sketch::Sketch;

    /// Passes of 50 ops with pauses of 5 µs, each after a pause of 3 ms.
    fn owned(passes: i64, category: Category) -> Dur {
        let mut sketch = Sketch::new();
        let (thread, stream) = (sketch.thread("python"), sketch.stream());
        for pass in 0..passes {
            let at = pass * 10_000;
            sketch.event_of(thread, "user_annotation", &format!("ProfilerStep#{pass}"), at, 10_000, &[]);
            for op in 0..50 {
                sketch.event_of(thread, "cpu_op", "aten::mm", at + 3_000 + op * 140, 135, &[]);
                sketch.event_of(stream, "kernel", "gemm", at + 3_000 + op * 140, 10, &[]);
            }
        }
        let trace = sketch.finish();
        let context = Context::new(&trace, "host");
        context.breakdown().counted().map(|(_, shares)| shares.shares.get(category)).sum()
    }

    #[test]
    fn a_pause_is_python_only_if_it_recurs() {
        assert_eq!(owned(1, Category::Unknown), Dur::from_us(3_000));
        assert_eq!(owned(1, Category::Python), Dur::from_us(50 * 5), "pauses between ops are Python");
        assert_eq!(owned(6, Category::Unknown), Dur::ZERO);
        assert!(owned(6, Category::Python) >= Dur::from_us(6 * 3_000));
    }
}
