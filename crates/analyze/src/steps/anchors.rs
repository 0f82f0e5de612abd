//! Steps by anchors: calls that a loop makes once per iteration, whatever else differs from one to the next. A graph of
//! kernels is replayed, or the host waits for the whole device at the end.
//!
//! The kernels between two anchors need not be the same. Their time and their number must be similar; if they are similar
//! only every few anchors, so many of them make one step.

use stepscope_trace::{Dur, KindId, KindSet, Span, Time, Track};

use super::repetition::{candidate, host_thread};
use super::work::Work;
use super::{Candidate, How, layers};
use crate::host_trace::HostTrace;
use crate::vocabulary::{Role, starts_graph, waits_for_all};
use stepscope_trace::statistics::median_duration;

/// Fewer anchors have no rhythm.
const LEAST: usize = 4;
/// Anchors that are looked at: enough for hours, and bounded.
const MOST: usize = 100_000;
/// More anchors per step are parts of it that only a sequence of kernels shows.
const MOST_PER_STEP: usize = 32;
/// Sections are similar if the longer one takes at most so many times the shorter …
const SIMILAR_TIME: f64 = 1.25;
/// … and has at most so many times its kernels: a frame has 12 to 16.
const SIMILAR_COUNT: f64 = 1.5;
/// The share of sections that must be similar to the one a period later. Warm-up and a checkpoint differ.
const ALIKE: f64 = 0.7;

pub(super) fn find(recorded: &HostTrace) -> Option<Candidate> {
    let (trace, vocabulary) = (recorded.trace, recorded.vocabulary());
    let of = |role: Role, is_anchor: fn(&str) -> bool| {
        trace.kinds_where(|kind| vocabulary.host_role(kind) == role && is_anchor(trace.kind_name(kind)))
    };
    let (graphs, waits) = (of(Role::Launch, starts_graph), of(Role::Sync, waits_for_all));
    if graphs.is_empty() && waits.is_empty() {
        return None;
    }
    let work = Work::of(recorded, &[]);
    let replayed = || Anchors::of(recorded, &graphs, &work)?.begun_by_anchors();
    let awaited = || Anchors::of(recorded, &waits, &work)?.ended_by_anchors();
    // A wait may also end each layer of one pass.
    let are_layers = |found: &Candidate| layers::are_walked_through(recorded, found.marks.len());
    replayed().or_else(awaited).filter(|found| !are_layers(found))
}

/// Calls of one thread.
struct Anchors<'a> {
    name: &'a str,
    track: &'a Track,
    calls: Vec<Span>,
    work: &'a Work,
}

/// The device's work between two anchors.
#[derive(Copy, Clone)]
struct Section {
    time: Dur,
    count: usize,
}

impl<'a> Anchors<'a> {
    /// Those of the thread that makes most of them.
    fn of(recorded: &HostTrace<'a>, kinds: &KindSet, work: &'a Work) -> Option<Self> {
        let trace = recorded.trace;
        let threads = trace.tracks().iter().filter(|track| host_thread(track));
        let calls = threads.map(|track| (track, track.events_of(kinds).take(MOST).collect::<Vec<_>>()));
        let (track, calls): (&Track, Vec<(usize, KindId)>) = calls.max_by_key(|(_, calls)| calls.len())?;
        let name = trace.kind_name(calls.first()?.1);
        let calls = calls.into_iter().map(|(index, _)| track.span_of(index)).collect();
        Some(Anchors { name, track, calls, work })
    }

    /// Steps that begin with an anchor.
    fn begun_by_anchors(&self) -> Option<Candidate> {
        let starts: Vec<Time> = self.calls.iter().map(|call| call.start).collect();
        let (period, phase) = self.rhythm(&starts)?;
        let first = starts.iter().skip(phase).step_by(period);
        let spans: Vec<Span> = first.map(|&start| Span::new(start, start)).collect();
        self.steps(spans, false)
    }

    /// Steps that end with an anchor, if something was done since the one before.
    fn ended_by_anchors(&self) -> Option<Candidate> {
        let began = self.work.begins()?;
        let mut ends: Vec<Time> = vec![began.min(self.calls.first()?.start)];
        for call in &self.calls {
            let last = ends.last().copied().unwrap_or(began);
            if !self.work.within(Span::new(last, call.end.max(last))).is_zero() {
                ends.push(call.end);
            }
        }
        let (period, phase) = self.rhythm(&ends)?;
        let every: Vec<Time> = ends.iter().skip(phase).step_by(period).copied().collect();
        self.steps(every.windows(2).map(|pair| Span::new(pair[0], pair[1])).collect(), true)
    }

    fn steps(&self, spans: Vec<Span>, ends_known: bool) -> Option<Candidate> {
        let how = How::FunctionCalls(self.name.to_owned());
        let found = candidate(how, self.track.id.0, spans, true);
        let found = Candidate { ends_known, ..found };
        self.work.is_most(self.work.within(found.hull()?)).then_some(found)
    }

    /// How many anchors make a step, and which of them begins one: after the longest time in which the device has no work.
    fn rhythm(&self, at: &[Time]) -> Option<(usize, usize)> {
        let spans: Vec<Span> = at.windows(2).map(|pair| Span::new(pair[0], pair[1])).collect();
        let section = |&span: &Span| Section { time: self.work.within(span), count: self.work.count(span) };
        let sections: Vec<Section> = spans.iter().map(section).collect();
        let alike = |period: &usize| {
            let pairs = sections.iter().zip(sections.iter().skip(*period));
            let (same, all) =
                pairs.fold((0, 0), |(same, all), (a, b)| (same + usize::from(a.is_like(b)), all + 1));
            f64::from(same as u32) >= ALIKE * f64::from(all as u32)
        };
        let fits = |period: &usize| sections.len() + 1 >= LEAST * period;
        let period = (1..=MOST_PER_STEP).take_while(fits).find(alike)?;
        let idle = |index: usize| spans[index].dur() - sections[index].time;
        let before = |phase: usize| median_duration((phase..spans.len()).step_by(period).map(idle));
        // Sections end where the next anchor is.
        let phase = (0..period).max_by_key(|&phase| (before(phase), std::cmp::Reverse(phase)))?;
        Some((period, (phase + 1) % period))
    }
}

impl Section {
    fn is_like(&self, other: &Section) -> bool {
        let within = |a: f64, b: f64, most: f64| a.max(b) <= most * a.min(b);
        within(self.time.ps() as f64, other.time.ps() as f64, SIMILAR_TIME)
            && within(self.count as f64, other.count as f64, SIMILAR_COUNT)
    }
}

#[cfg(test)]
mod tests {
    use stepscope_trace::Dur;

    use crate::context::Context;
    use crate::sketch::{Arg, Sketch};
    use crate::steps::{How, Origin, Steps};

    /// A program that makes these calls on the host, each with kernels (name, µs), and nothing else.
    struct Program {
        sketch: Sketch,
        thread: stepscope_trace::TrackId,
        stream: stepscope_trace::TrackId,
        at: i64,
        free: i64,
        id: i64,
    }

    impl Program {
        fn new() -> Self {
            let mut sketch = Sketch::new();
            let (thread, stream) = (sketch.thread("worker"), sketch.stream());
            Program { sketch, thread, stream, at: 0, free: 0, id: 0 }
        }

        fn launch(&mut self, call: &str, kernels: &[(String, i64)]) {
            self.id += 1;
            let args = || [("correlation", Arg::Int(self.id))];
            self.sketch.event_of(self.thread, "cuda_runtime", call, self.at, 5, &args());
            for (name, us) in kernels {
                let start = self.free.max(self.at + 10);
                self.sketch.event_of(self.stream, "kernel", name, start, *us, &args());
                self.free = start + us;
            }
            self.at += 8;
        }

        fn wait(&mut self) {
            let end = self.free.max(self.at + 2);
            self.sketch.event_of(
                self.thread,
                "cuda_runtime",
                "cudaDeviceSynchronize",
                self.at,
                end - self.at,
                &[],
            );
            self.at = end + 5;
        }

        fn steps(self) -> Steps {
            let trace = self.sketch.finish();
            Steps::of(&Context::new(&trace, "host"))
        }
    }

    /// A name that hardly ever comes twice in a row.
    fn odd(seed: i64) -> String {
        format!("kernel{}", (seed * seed * 31 + seed * 7) % 101)
    }

    #[test]
    fn replays_of_a_graph_are_steps_whatever_runs_between_them() {
        let mut program = Program::new();
        for turn in 0..40 {
            program.launch("cudaGraphLaunch", &[("gemm".to_owned(), 900), ("relu".to_owned(), 100)]);
            (0..11 + turn % 3)
                .for_each(|kernel| program.launch("cudaLaunchKernel", &[(odd(turn * 17 + kernel), 4)]));
            program.at = program.at.max(program.free) + 300;
        }
        let steps = program.steps();
        assert_eq!(steps.how, How::FunctionCalls("cudaGraphLaunch".to_owned()));
        assert_eq!(steps.all.len(), 40);
    }

    #[test]
    fn graphs_that_take_turns_make_one_step_together() {
        let mut program = Program::new();
        for turn in 0..20 {
            for us in [900, 300, 2_000] {
                program.launch("cudaGraphLaunch", &[(odd(turn), us)]);
            }
            program.at = program.free + 500;
        }
        let steps = program.steps();
        assert_eq!(steps.all.len(), 20);
        assert_eq!(steps.all[0].span.start.ps(), 0, "the pause is at the end");
    }

    #[test]
    fn passes_that_each_end_with_a_wait_for_the_device_are_steps() {
        let mut program = Program::new();
        for pass in 0..5 {
            (0..12 + pass % 3)
                .for_each(|kernel| program.launch("cudaLaunchKernel", &[(odd(pass * 13 + kernel), 100)]));
            program.wait();
            program.wait();
        }
        let steps = program.steps();
        assert_eq!(steps.how, How::FunctionCalls("cudaDeviceSynchronize".to_owned()));
        let lengths: Vec<i64> = steps.all.iter().map(|step| step.span.dur().ps() / 100_000_000).collect();
        assert_eq!(lengths, [12, 13, 14, 12, 13]);
        assert!(steps.counted().count() == 5 && steps.all[0].span.dur() > Dur::ZERO);
    }

    #[test]
    fn waits_after_each_layer_of_one_pass_are_no_steps() {
        let mut program = Program::new();
        for layer in 0..8 {
            let begin = program.at;
            (0..12).for_each(|kernel| program.launch("cudaLaunchKernel", &[(odd(layer * 13 + kernel), 100)]));
            program.wait();
            let range = format!("transfer_layer_{layer}");
            program.sketch.event_of(
                program.thread,
                "user_annotation",
                &range,
                begin,
                program.at - begin,
                &[],
            );
        }
        assert_eq!(program.steps().origin, Origin::None);
    }

    #[test]
    fn waits_without_a_rhythm_are_no_steps() {
        let mut program = Program::new();
        for part in 0..9 {
            let kernels = [1, 9, 30, 2, 17, 5, 60, 3, 11][part as usize];
            (0..kernels)
                .for_each(|kernel| program.launch("cudaLaunchKernel", &[(odd(part * 13 + kernel), 100)]));
            program.wait();
        }
        assert_eq!(program.steps().origin, Origin::None);
    }

    #[test]
    fn a_few_waits_at_the_start_are_not_the_loop() {
        let mut program = Program::new();
        for _ in 0..6 {
            program.launch("cudaLaunchKernel", &[("init".to_owned(), 10)]);
            program.wait();
        }
        (0..90).for_each(|kernel| program.launch("cudaLaunchKernel", &[(odd(kernel), 50 + kernel)]));
        assert_eq!(program.steps().origin, Origin::None);
    }
}
