//! Idle time by cause: why the bottleneck device has nothing to do.
//!
//! The breakdown knows categories; this module also distinguishes calls into the device's runtime. A gap
//! belongs to what the host does in it: allocating memory, blocked in a copy or a wait, launching, or something
//! else. A wait costs twice: while it lasts, and afterwards, because the host could not run ahead and the
//! device has to wait for new work. The second part is reported separately.

use stepscope_trace::{Dur, EventId, Span, Time, Track};

use super::Device;
use super::copies::Copied;
use super::setup::{SINGLE, Setup};
use crate::breakdown::{Category, Shares, owner};
use crate::host_trace::merged;
use crate::states::launches::waits_for_copy;
use crate::states::ranges;
use crate::states::timeline::DEVICE_BUSY;
use crate::vocabulary::Role;

/// A gap that starts this soon after the end of a wait is caused by it.
const SOON: Dur = Dur::from_us(20);

/// Why a device is idle.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum IdleCause {
    /// The host waits for a batch.
    Input,
    /// Graphs are traced or compiled.
    Building,
    /// Checkpoints, summaries, results are written.
    Output,
    /// The device's runtime is being set up.
    Startup,
    /// Device memory is allocated or freed.
    Allocation,
    /// The host is blocked in a copy.
    Copy,
    /// The host is blocked until the device is done, which it is.
    Sync,
    /// The host launches work.
    Launch,
    /// The framework prepares ops.
    Framework,
    /// Python in the training loop.
    Python,
    /// Nothing was recorded.
    Unknown,
}

impl IdleCause {
    const COUNT: usize = 11;
    /// All, in order.
    pub const ALL: [IdleCause; Self::COUNT] = [
        IdleCause::Input,
        IdleCause::Building,
        IdleCause::Output,
        IdleCause::Startup,
        IdleCause::Allocation,
        IdleCause::Copy,
        IdleCause::Sync,
        IdleCause::Launch,
        IdleCause::Framework,
        IdleCause::Python,
        IdleCause::Unknown,
    ];
}

/// Idle time in the counted steps.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Idle {
    #[serde(with = "crate::stored::array")]
    causes: [Dur; IdleCause::COUNT],
    /// Breakdown of the time in which something is set up: the device's runtime, a library, code that is
    /// compiled or loaded on first use.
    pub startup: Shares,
    /// The calls in which that happens, with their time, longest first.
    pub startup_calls: Vec<(String, Dur)>,
    /// What samples of the processor met meanwhile, outside of those calls: functions and their share of the samples, most first.
    #[serde(default)]
    pub sampled: Vec<(String, f64)>,
    /// Time spent capturing graphs of kernels.
    pub captured: Dur,
    /// Time inside ranges that the program calls its warm-up.
    #[serde(default)]
    pub warm_up: Dur,
    /// Breakdown of single long gaps that nothing explains, where too few steps show whether they come again.
    #[serde(default)]
    pub once: Shares,
    /// Breakdown of the time for allocating device memory.
    pub allocation: Shares,
    /// Number of calls that allocated or freed device memory.
    pub allocations: u64,
    /// Breakdown of the time in which the host is blocked in a copy.
    pub in_copies: Shares,
    /// Breakdown of gaps after a copy that blocked the host: at most as long as the host was blocked, because
    /// it would have been that much further without.
    pub after_copies: Shares,
    /// The same for gaps that follow another wait.
    pub after_waits: Shares,
    /// The user's ranges around otherwise unexplained idle time, with its time in each, longest first.
    pub ranges: Vec<(String, Dur)>,
}

impl Idle {
    /// The time of a cause.
    pub fn get(&self, cause: IdleCause) -> Dur {
        self.causes[cause as usize]
    }

    /// All idle time.
    pub fn total(&self) -> Dur {
        self.causes.iter().copied().sum()
    }
}

/// What a long call does.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Call {
    Startup,
    Allocation,
    Copy,
    Sync,
}

pub(super) fn find(device: &Device, copied: &Copied) -> Idle {
    let context = device.context;
    let (host, own) = (merged(context, None), merged(context, Some(device.process)));
    let ground = &context.breakdown().ground;
    let setup = Setup::of(device);
    let calls = calls(device, copied, &setup);
    let mut found = Idle {
        startup_calls: setup.named(context.trace),
        sampled: setup.sampled(device),
        captured: setup.captured,
        warm_up: setup.warm_up,
        ..Idle::default()
    };
    let mut single = SingleGaps::of(device);
    let mut unexplained: Vec<Span> = Vec::new();
    let (mut busy_until, mut looked_until) = (Time::MIN, Time::MIN);
    let mut follows: Option<(Call, Dur)> = None;
    for &window in device.windows {
        // A gap may reach from one step into the next.
        if window.start > looked_until + SOON {
            (busy_until, follows) = (window.start, None);
        } else if busy_until == looked_until {
            busy_until = window.start;
        }
        looked_until = window.end;
        host.sweep(&own, window, |span, host, device| {
            if device.0 & DEVICE_BUSY.0 != 0 {
                busy_until = span.end;
                return;
            }
            if span.start == busy_until {
                follows = wait_before(&calls, span.start);
            }
            let category = owner(host, device, ground, span.start);
            if is_unexplained(category) {
                unexplained.push(span);
            }
            let starts = setup.until.is_some_and(|until| span.end <= until);
            each_piece(&calls, span, |piece, call| {
                // Before its first kernel, a program starts: it imports libraries and reads its model.
                let call = call.or((starts && is_unexplained(category)).then_some(Call::Startup));
                if call.is_none() && single.takes(category, piece.dur()) {
                    return found.causes[IdleCause::Unknown as usize] += piece.dur();
                }
                found.add(piece.dur(), category, call, &mut follows);
            });
        });
        let until = |at: Time| calls.partition_point(|(span, _)| span.start < at);
        let inside = calls.get(until(window.start)..until(window.end)).unwrap_or_default();
        found.allocations += inside.iter().filter(|(_, call)| *call == Call::Allocation).count() as u64;
    }
    let threads = device.feeding_threads().into_iter().map(|id| context.trace.track(id));
    found.ranges = ranges::holding(context.trace, context.vocabulary(), threads, &unexplained);
    found.once = single.shares();
    found
}

/// What the host does is unknown, or some Python.
fn is_unexplained(category: Category) -> bool {
    matches!(category, Category::Idle | Category::Unknown | Category::Python)
}

/// Gaps that each take much of a capture with few steps: imports, reading of a file. Nobody knows whether they come again.
struct SingleGaps {
    least: Option<Dur>,
    gaps: Vec<(Category, Dur)>,
}

impl SingleGaps {
    /// More of them are a habit.
    const MOST: usize = 3;

    fn of(device: &Device) -> Self {
        let window = device.windows.iter().map(|window| window.dur()).max().unwrap_or_default();
        let few = device.context.breakdown().steps.whole_capture;
        let least = few.then(|| Dur::from_ps((window.ps() as f64 * SINGLE) as i64));
        SingleGaps { least, gaps: Vec::new() }
    }

    /// Whether it is one of them.
    fn takes(&mut self, category: Category, gap: Dur) -> bool {
        let single =
            is_unexplained(category) && self.least.is_some_and(|least| !gap.is_zero() && gap >= least);
        // Bounded: no capture holds more parts of this size.
        if single {
            self.gaps.push((category, gap));
        }
        single
    }

    fn shares(self) -> Shares {
        let mut shares = Shares::default();
        let rare = self.gaps.len() <= Self::MOST;
        self.gaps.into_iter().filter(|_| rare).for_each(|(category, gap)| shares.add(category, gap));
        shares
    }
}

impl Idle {
    fn add(&mut self, time: Dur, category: Category, call: Option<Call>, follows: &mut Option<(Call, Dur)>) {
        let cause = cause_of(category, call);
        self.causes[cause as usize] += time;
        match cause {
            IdleCause::Startup => self.startup.add(category, time),
            IdleCause::Allocation => self.allocation.add(category, time),
            IdleCause::Copy => self.in_copies.add(category, time),
            // Only what waiting itself does not explain.
            IdleCause::Launch | IdleCause::Framework | IdleCause::Python | IdleCause::Unknown => {
                let Some((wait, left)) = follows else { return };
                let lost = time.min(*left);
                *left = *left - lost;
                match wait {
                    Call::Copy => self.after_copies.add(category, lost),
                    _ => self.after_waits.add(category, lost),
                }
            }
            _ => {}
        }
    }
}

fn cause_of(category: Category, call: Option<Call>) -> IdleCause {
    match (category, call) {
        (Category::Input, _) => IdleCause::Input,
        (Category::Tracing | Category::Compile, _) => IdleCause::Building,
        (Category::Output, _) => IdleCause::Output,
        (_, Some(Call::Startup)) => IdleCause::Startup,
        (_, Some(Call::Allocation)) => IdleCause::Allocation,
        (_, Some(Call::Copy)) => IdleCause::Copy,
        (_, Some(Call::Sync)) | (Category::Sync, _) => IdleCause::Sync,
        (Category::Launch, None) => IdleCause::Launch,
        (Category::Dispatch, None) => IdleCause::Framework,
        (Category::Python, None) => IdleCause::Python,
        _ => IdleCause::Unknown,
    }
}

/// The long calls on the threads that feed the device: in time order, without overlaps.
fn calls(device: &Device, copied: &Copied, setup: &Setup) -> Vec<(Span, Call)> {
    let (trace, vocabulary) = (device.context.trace, device.context.vocabulary());
    let mut copies: Vec<EventId> = copied.waits.iter().map(|(call, _)| *call).collect();
    copies.sort_unstable();
    let call_of = |track: &Track, index: usize| {
        let kind = track.kind_of(index);
        let role = vocabulary.host_role(kind);
        match role {
            Role::Sync => return Some(Call::Sync),
            Role::LaunchCopy => {
                let known = copies.binary_search(&track.event_id(index)).is_ok();
                let waits = known || waits_for_copy(trace.kind_name(kind), track.dur(index));
                return waits.then_some(Call::Copy);
            }
            _ => {}
        }
        (role == Role::DeviceMemory).then_some(Call::Allocation)
    };
    let mut found: Vec<(Span, Call)> = setup.spans().map(|span| (span, Call::Startup)).collect();
    for track in device.feeding_threads().into_iter().map(|id| trace.track(id)) {
        let lasting =
            (0..track.len()).filter_map(|index| Some((track.span_of(index), call_of(track, index)?)));
        found.extend(lasting.filter(|(span, _)| !span.is_empty()));
    }
    // A call that sets something up may allocate, too: what it is as a whole comes first.
    found.sort_unstable_by_key(|(span, call)| {
        (span.start, std::cmp::Reverse(span.end), *call != Call::Startup)
    });
    // The driver's call inside the runtime's, or another thread's: the first to start stands for both.
    let mut until = Time::MIN;
    for (span, _) in &mut found {
        span.start = span.start.max(until);
        until = until.max(span.end);
    }
    found.retain(|(span, _)| !span.is_empty());
    found
}

/// The wait that lasts at `at`, or ended just before it, and how long it blocked the host.
///
/// Waits come in sequences: a copy of a result, and a synchronisation that finds it done. The longest stands
/// for all.
fn wait_before(calls: &[(Span, Call)], at: Time) -> Option<(Call, Dur)> {
    const ROW: usize = 4;
    let next = calls.partition_point(|(span, _)| span.start < at);
    let (mut reached, mut longest) = (at, None);
    for (span, call) in calls[..next].iter().rev().take(ROW) {
        if span.end + SOON < reached || !matches!(call, Call::Copy | Call::Sync) {
            break;
        }
        reached = span.start;
        if longest.is_none_or(|(_, time)| time < span.dur()) {
            longest = Some((*call, span.dur()));
        }
    }
    longest
}

/// Splits a span where calls start and end.
fn each_piece(calls: &[(Span, Call)], span: Span, mut visit: impl FnMut(Span, Option<Call>)) {
    let mut now = span.start;
    let first = calls.partition_point(|(call, _)| call.end <= now);
    for (call, what) in &calls[first..] {
        if call.start >= span.end {
            break;
        }
        if call.start > now {
            visit(Span::new(now, call.start), None);
        }
        let end = call.end.min(span.end);
        visit(Span::new(call.start.max(now), end), Some(*what));
        now = end;
    }
    if now < span.end {
        visit(Span::new(now, span.end), None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::devices::bottleneck::DeviceDetail;
    use crate::sketch::{Arg, Sketch};

    /// Four kernels of 100 µs, one a step, each launched 50 µs before it starts; `call` lies before the
    /// launches, from the kernel's end on.
    fn idle(call: &str, us: i64) -> Idle {
        idle_with(call, us, 4)
    }

    /// The same with the call in the first `turns` steps only.
    fn idle_with(call: &str, us: i64, turns: i64) -> Idle {
        let mut sketch = Sketch::new();
        let (thread, stream) = (sketch.thread("python"), sketch.stream());
        let period = us + 550;
        sketch.steps(thread, 4, period);
        for turn in 0..4 {
            let (at, id) = (turn * period, || ("correlation", Arg::Int(turn + 1)));
            sketch.event_of(thread, "cpu_op", "aten::mm", at, 60, &[]);
            sketch.event_of(thread, "cuda_runtime", "cudaLaunchKernel", at + 50, 10, &[id()]);
            sketch.event_of(stream, "kernel", "gemm", at + 100, 100, &[id()]);
            if turn < turns {
                sketch.event_of(thread, "cuda_runtime", call, at + 150, us, &[]);
            }
        }
        let trace = sketch.finish();
        DeviceDetail::of(&Context::new(&trace, "host")).unwrap_or_default().idle
    }

    #[test]
    fn allocating_waiting_and_setting_up_are_told_apart() {
        let allocating = idle("cudaMalloc", 450);
        assert_eq!(allocating.get(IdleCause::Allocation), Dur::from_us(4 * 400));
        assert_eq!(allocating.allocations, 4);
        assert_eq!(allocating.after_waits.total(), Dur::ZERO);
        let waiting = idle("cudaDeviceSynchronize", 450);
        assert_eq!(waiting.get(IdleCause::Sync), Dur::from_us(4 * 400));
        assert!(waiting.after_waits.total() > Dur::from_us(1_000), "{waiting:?}");
        let long = idle_with("cudaFree", 150_000, 1);
        assert!(long.get(IdleCause::Startup) > Dur::from_us(100_000), "{long:?}");
        assert_eq!(long.get(IdleCause::Allocation), Dur::ZERO);
        let again = idle("cudaFree", 150_000);
        assert!(again.get(IdleCause::Allocation) > Dur::from_us(4 * 100_000), "{again:?}");
        assert_eq!(again.get(IdleCause::Startup), Dur::ZERO, "nothing is set up in every step");
    }

    #[test]
    fn a_piece_is_cut_where_calls_begin_and_end() {
        let at = Time::from_ps;
        let calls = [(Span::new(at(5), at(10)), Call::Sync), (Span::new(at(12), at(40)), Call::Allocation)];
        let mut pieces = Vec::new();
        each_piece(&calls, Span::new(at(7), at(20)), |span, call| pieces.push((span.dur().ps(), call)));
        assert_eq!(pieces, [(3, Some(Call::Sync)), (2, None), (8, Some(Call::Allocation))]);
        assert_eq!(wait_before(&calls, at(11)), Some((Call::Sync, Dur::from_ps(5))));
        assert_eq!(wait_before(&calls, at(5)), None);
        let row = [(Span::new(at(5), at(90)), Call::Copy), (Span::new(at(92), at(95)), Call::Sync)];
        assert_eq!(wait_before(&row, at(96)), Some((Call::Copy, Dur::from_ps(85))), "the longest of a row");
    }
}
