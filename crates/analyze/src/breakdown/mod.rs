//! Where the time of the steps goes: each instant of a step belongs to exactly one category.
//!
//! For every device, the states of host and device are swept together. Device work takes precedence; if the
//! device is idle, the activity of the host is the reason. Without a device in the trace, the model's ops on
//! the host are the work. The categories of a step therefore add up to the step by construction, and a copy or
//! a collective that is hidden under compute is not charged, only reported.
//!
//! One exception: if the device has run dry by the end of a wait for input, the whole wait counts as input,
//! including the part in which the device finished earlier work. The step waits all that time. A wait that ends
//! while the device is busy is hidden and costs nothing.
//!
//! A host that runs ahead of its device would charge the kernels of step N to step N+1. Therefore device work
//! belongs to the step that launched it: the work of a step on such a device reaches from the end of the
//! previous step's work to the end of its own. While the device keeps the pace of the loop, a step is still what the
//! loop marks, the same stretch of time for everybody who looks; only where the two tell different stories (a host
//! that hands over all steps at once), the step is what the device makes of it.

mod gaps;
mod launched;
mod meaning;
mod pieces;
pub mod selection;
mod shares;
mod startup;
mod sweep;
mod unrecorded;
mod within;

use rayon::prelude::*;
use stepscope_trace::{Dur, KindId, ProcessId, Span, Time, TrackKind};

use crate::host_trace::HostTrace;
use crate::host_trace::{merged, working_devices};
use crate::states::timeline::DEVICE_BUSY;
use crate::states::timeline::{Mask, Timeline, is_inside};
use crate::states::{State, StateLine, runs_python};
use crate::steps::{Step, Steps};
use crate::vocabulary::{Framework, Role, is_server_thread};

pub use pieces::Stretch;
use selection::Selection;
pub use shares::{Category, Shares};
use sweep::shares_of;

/// One step on one device.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct StepShares {
    /// The step as everybody sees it: from mark to mark, or the device's own time if the marks do not tell how long
    /// steps are. The breakdown adds up to it.
    pub window: Span,
    /// Where the work that the step launched is on this device: the window, unless the device lags behind.
    pub work: Span,
    /// Its breakdown.
    pub shares: Shares,
    /// Time in which the device or the host's processor computed or copied.
    pub busy: Dur,
    /// Time in which the device itself did anything at all; the host's processor if there is no device.
    pub own_busy: Dur,
    /// Collectives hidden under compute.
    pub hidden_communication: Dur,
    /// Copies hidden under compute.
    pub hidden_copies: Dur,
}

/// The steps on one device, or on the host if there is none.
#[derive(Clone, Debug)]
pub struct DeviceBreakdown {
    /// The device's process; `None` for the host.
    pub process: Option<ProcessId>,
    /// One per step, including excluded ones.
    pub steps: Vec<StepShares>,
    /// True if the device lags behind the host, so that it has its own windows.
    pub asynchronous: bool,
    /// Number of steps in which it did anything.
    pub steps_seen: usize,
    /// How long it did anything outside of all steps.
    pub busy_outside: Dur,
}

/// Where the time of one host's steps goes.
#[derive(Clone, Debug)]
pub struct Breakdown {
    /// The steps, with warm-up steps excluded. If there are none, or none are requested, the whole capture or the
    /// requested time range stands for one.
    pub steps: Steps,
    /// Every device that did anything; only the host if none did.
    pub devices: Vec<DeviceBreakdown>,
    /// The one that limits the step.
    pub bottleneck: usize,
    /// What is known about the whole trace when an instant is judged.
    pub(crate) ground: Ground,
}

impl Breakdown {
    /// Sweeps every device over the steps that were found, excludes warm-up steps, and keeps the selected ones.
    pub fn of(recorded: &HostTrace, mut steps: Steps, selection: Selection) -> Self {
        let host = merged(recorded, None);
        steps.found = steps.numbers();
        let ground = Ground::of(recorded, &steps, &host);
        steps.whole_capture = selection.is_one_piece(&steps.all);
        if steps.whole_capture {
            steps.all = selection.cut(whole(recorded, &host));
        }
        let devices: Vec<DeviceBreakdown> = if recorded.states().has_device {
            device_breakdowns(recorded, &host, &steps, &ground)
        } else {
            vec![host_breakdown(recorded, &host, &steps, &ground)]
        };
        if recorded.states().has_device && !steps.whole_capture {
            unrecorded::exclude(&mut steps.all, &devices);
        }
        let bottleneck = bottleneck(&devices, &steps.all);
        if let Some(device) = devices.get(bottleneck) {
            startup::exclude_startup(&mut steps.all, device);
        }
        let mut breakdown = Breakdown { steps, devices, bottleneck, ground };
        selection.narrow(&mut breakdown);
        breakdown
    }

    /// The bottleneck device.
    pub fn bound(&self) -> Option<&DeviceBreakdown> {
        self.devices.get(self.bottleneck)
    }

    /// The share of the step time in which a device did anything, without the pauses between steps and the
    /// excluded steps; of all windows if no step counts.
    pub fn busy_fraction(&self, device: &DeviceBreakdown) -> f64 {
        let any = self.steps.all.iter().any(|step| step.excluded.is_none());
        let all = || self.steps.all.iter().zip(&device.steps);
        let counted = || all().filter(|(step, _)| step.excluded.is_none() || !any).map(|(_, shares)| shares);
        let time: Dur = counted().map(|shares| shares.window.dur()).sum();
        counted().map(|shares| shares.own_busy).sum::<Dur>().fraction_of(time)
    }

    /// The counted steps on the bottleneck device.
    pub fn counted(&self) -> impl Iterator<Item = (&Step, &StepShares)> {
        let shares = self.bound().map_or(&[][..], |device| &device.steps[..]);
        self.steps.all.iter().zip(shares).filter(|(step, _)| step.excluded.is_none())
    }
}

/// What owns an instant before what.
const ORDER: [State; 14] = [
    State::DeviceCompute,
    // With a device, ops on the host are dispatch: they only compute if there is none, and hide collectives
    // between processors as a device's do.
    State::HostCompute,
    State::Communication,
    State::CopyIn,
    State::CopyOut,
    State::CopyDevice,
    State::Compile,
    State::Tracing,
    State::Output,
    State::InputWait,
    State::Launch,
    State::Dispatch,
    State::Sync,
    State::Present,
];

/// By the bit of a state, its place in [`ORDER`]. Nearly all instants have one or two states, and there are millions.
const PLACES: [u8; 16] = {
    let mut places = [u8::MAX; 16];
    let mut place = 0;
    while place < ORDER.len() {
        places[(ORDER[place] as u16).trailing_zeros() as usize] = place as u8;
        place += 1;
    }
    places
};

/// The first state of [`ORDER`] among some.
fn first_of(states: Mask) -> Option<State> {
    let (mut left, mut first) = (states.0, u8::MAX);
    while left != 0 {
        first = first.min(PLACES[left.trailing_zeros() as usize]);
        left &= left - 1;
    }
    ORDER.get(usize::from(first)).copied()
}

/// The category of an instant.
pub(crate) fn owner(host: Mask, device: Mask, ground: &Ground, at: Time) -> Category {
    const HIDES: [Category; 5] =
        [Category::Launch, Category::Dispatch, Category::Python, Category::Sync, Category::Idle];
    let all = host.or(device);
    let unrecorded = || is_inside(&ground.gaps, at);
    let category = match first_of(all) {
        Some(State::Present) if !ground.frames && unrecorded() => Category::Unknown,
        Some(State::Present) => ground.present,
        Some(state) => Category::of_state(state).unwrap_or(ground.fallback),
        None if unrecorded() => Category::Unknown,
        None => ground.fallback,
    };
    // What the host does around an unrecorded device may be hidden under the device's work, so it is unknown.
    if ground.device_unseen && HIDES.contains(&category) { Category::Unknown } else { category }
}

/// What is known about the whole trace when a single instant is judged.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    /// Category of an instant in which nothing is recorded.
    pub(crate) fallback: Category,
    /// Category of an instant inside recorded Python or an annotation, with nothing nested.
    pub(crate) present: Category,
    /// Whether Python frames were recorded.
    pub(crate) frames: bool,
    /// Whether there was a device whose side was not recorded.
    pub(crate) device_unseen: bool,
    /// Long pauses in which the host recorded nothing, and which do not recur: their content is unknown.
    pub(crate) gaps: Vec<Span>,
}

impl Ground {
    /// An annotation alone does not show that Python runs inside it: if no Python frame was recorded, its
    /// inside is unknown, like everything else that was not recorded. So are events of a program that nobody knows; only
    /// beside a device's work do they show that the device has none.
    fn of(recorded: &HostTrace, steps: &Steps, host: &Timeline) -> Self {
        let fallback = fallback_category(recorded, steps);
        let mut kinds = (0..recorded.trace.kinds().len()).map(KindId::from_index);
        let frames = kinds.any(|kind| recorded.vocabulary().role(kind) == Role::PythonFrame);
        let foreign = recorded.vocabulary().framework == Framework::Unknown;
        Ground {
            fallback,
            present: if frames {
                Category::Python
            } else if foreign && !recorded.states().has_device {
                Category::Unknown
            } else {
                fallback
            },
            frames,
            device_unseen: recorded.states().device_unseen,
            gaps: gaps::unrecorded(recorded, steps, host, frames),
        }
    }
}

/// What a step is doing while nothing at all is recorded: if the trace contains the thread that runs the user's Python, that
/// thread is in Python. If nothing but ranges is recorded anywhere, it is unknown.
fn fallback_category(recorded: &HostTrace, steps: &Steps) -> Category {
    let trace = recorded.trace;
    let known = recorded.states().lines.iter().any(|(track, line)| {
        let track = trace.track(*track);
        runs_python(trace, recorded.vocabulary(), track) && !is_blank(line)
    });
    let marked = steps.on_host && steps.track.is_some();
    // Nothing but ranges: what runs inside and outside of them was not recorded.
    if recorded.states().lines.iter().all(|(_, line)| is_blank(line)) {
        return Category::Unknown;
    }
    // Nothing but a device's queues, by a writer that records nothing else: so was the host.
    if recorded.trace.tracks().iter().all(|track| track.kind == TrackKind::Stream) {
        return Category::Unknown;
    }
    // A profiler that only records device calls does not see the framework: unrecorded time may be either.
    if recorded.vocabulary().framework == Framework::Unknown {
        return Category::Idle;
    }
    // A process that runs what others send waits for them, and has no Python of its own.
    let serves = trace.tracks().iter().any(|track| is_server_thread(trace.str(track.name)));
    if known || (marked && !serves) { Category::Python } else { Category::Idle }
}

/// Whether a thread has nothing but annotations: a profiler sees only the threads that it was switched on for.
fn is_blank(line: &StateLine) -> bool {
    line.states.iter().all(|&state| state == Mask::default() || state == Mask::of(State::Present))
}

/// Without steps: one window over everything that was recorded.
fn whole(recorded: &HostTrace, host: &Timeline) -> Vec<Step> {
    let devices =
        working_devices(recorded).into_iter().filter_map(|device| merged(recorded, Some(device)).span());
    let span = host.span().into_iter().chain(devices).reduce(Span::hull).or(recorded.trace.span());
    span.map(|span| Step { number: 0, span, excluded: None }).into_iter().collect()
}

/// Whether work belongs to the step in whose time it was launched.
fn is_own(steps: &Steps) -> bool {
    steps.on_host && !steps.overlap()
}

fn host_breakdown(recorded: &HostTrace, host: &Timeline, steps: &Steps, ground: &Ground) -> DeviceBreakdown {
    let nothing = Timeline::default();
    let own = if is_own(steps) { launched::on_host(recorded, host, &steps.all) } else { None };
    let asynchronous = own.is_some();
    let windows = own.unwrap_or_else(|| steps.all.iter().map(|step| step.span).collect());
    let shares: Vec<StepShares> =
        windows.par_iter().map(|&window| shares_of(host, &nothing, window, ground, &[])).collect();
    let busy_outside = time_outside(host, Mask::of(State::HostCompute), &windows);
    DeviceBreakdown { process: None, asynchronous, steps_seen: seen(&shares), steps: shares, busy_outside }
}

/// The steps on every device that did anything. One definition of a step holds for all of them: the marks, if every device
/// that lags behind keeps their pace.
fn device_breakdowns(
    recorded: &HostTrace,
    host: &Timeline,
    steps: &Steps,
    ground: &Ground,
) -> Vec<DeviceBreakdown> {
    let lag = |process| if is_own(steps) { launched::on_device(recorded, process, &steps.all) } else { None };
    let devices: Vec<(ProcessId, Option<Vec<Span>>)> =
        working_devices(recorded).into_par_iter().map(|process| (process, lag(process))).collect();
    let paced = devices
        .iter()
        .filter_map(|(_, work)| work.as_ref())
        .all(|work| launched::keeps_pace(work, &steps.all));
    let sweep = |(process, work): (ProcessId, Option<Vec<Span>>)| {
        device_breakdown(recorded, host, process, &steps.all, (work, paced), ground)
    };
    devices.into_par_iter().map(sweep).collect()
}

fn device_breakdown(
    recorded: &HostTrace,
    host: &Timeline,
    process: ProcessId,
    steps: &[Step],
    (work, paced): (Option<Vec<Span>>, bool),
    ground: &Ground,
) -> DeviceBreakdown {
    let device = merged(recorded, Some(process));
    let asynchronous = work.is_some();
    let marked: Vec<Span> = steps.iter().map(|step| step.span).collect();
    let work = work.unwrap_or_else(|| marked.clone());
    let windows = if paced { &marked } else { &work };
    let starving = starving_waits(host, &device);
    let swept = |(&window, &work): (&Span, &Span)| StepShares {
        work,
        ..shares_of(host, &device, window, ground, &starving)
    };
    let shares: Vec<StepShares> = windows.par_iter().zip(&work).map(swept).collect();
    let busy_outside = time_outside(&device, DEVICE_BUSY, &work);
    let steps_seen = seen(&shares);
    DeviceBreakdown { process: Some(process), asynchronous, steps_seen, steps: shares, busy_outside }
}

/// How long a line is in one of `states` outside of all windows, which are in time order. Nearly all of a recording is inside.
fn time_outside(line: &Timeline, states: Mask, windows: &[Span]) -> Dur {
    let Some(span) = line.span() else { return Dur::ZERO };
    let (mut until, mut outside) = (span.start, Dur::ZERO);
    for window in windows.iter().filter(|window| !window.is_empty()) {
        if until < window.start {
            outside += line.time_in(states, Span::new(until, window.start.min(span.end)));
        }
        until = until.max(window.end);
    }
    if until < span.end { outside + line.time_in(states, Span::new(until, span.end)) } else { outside }
}

/// Number of windows in which the device did anything.
fn seen(shares: &[StepShares]) -> usize {
    shares.iter().filter(|step| !step.own_busy.is_zero()).count()
}

/// The waits for input at whose end the device has run dry, in time order.
pub(crate) fn starving_waits(host: &Timeline, device: &Timeline) -> Vec<Span> {
    host.spans_in(State::InputWait).filter(|wait| device.before(wait.end).0 & DEVICE_BUSY.0 == 0).collect()
}

/// The device that all others wait for: it computes and copies the longest. A device in a collective is waiting
/// for it.
fn bottleneck(devices: &[DeviceBreakdown], steps: &[Step]) -> usize {
    let own_work = |device: &DeviceBreakdown| -> Dur {
        let counted = device.steps.iter().zip(steps).filter(|(_, step)| step.excluded.is_none());
        counted.map(|(shares, _)| shares.busy - shares.shares.get(Category::Communication)).sum()
    };
    let best = devices
        .iter()
        .enumerate()
        .max_by_key(|(index, device)| (own_work(device), std::cmp::Reverse(*index)));
    best.map_or(0, |(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::states::StateLine;
    use crate::steps::Exclusion;

    #[test]
    fn the_device_owns_an_instant_before_the_host_does() {
        let owner = |host, device, fallback| {
            let ground = Ground {
                fallback,
                present: Category::Python,
                frames: true,
                device_unseen: false,
                gaps: Vec::new(),
            };
            owner(host, device, &ground, Time::ZERO)
        };
        let host = Mask(State::InputWait as u16 | State::Dispatch as u16);
        let both = Mask(State::DeviceCompute as u16 | State::Communication as u16);
        assert_eq!(owner(host, both, Category::Idle), Category::Compute);
        assert_eq!(owner(host, Mask::of(State::Communication), Category::Idle), Category::Communication);
        assert_eq!(owner(host, Mask::default(), Category::Idle), Category::Input);
        assert_eq!(owner(Mask::default(), Mask::default(), Category::Idle), Category::Idle);
        assert_eq!(owner(Mask::of(State::InputWork), Mask::default(), Category::Python), Category::Python);
    }

    #[test]
    fn the_first_state_is_the_one_that_a_search_in_order_finds() {
        for states in (0..=u16::MAX).map(Mask) {
            assert_eq!(first_of(states), ORDER.into_iter().find(|state| states.has(*state)), "{states:?}");
        }
    }

    #[test]
    fn a_recording_of_nothing_is_not_idle() {
        let mut sketch = crate::sketch::Sketch::new();
        let thread = sketch.thread("PyTorch Profiler");
        sketch.event_of(thread, "Trace", "PyTorch Profiler (0)", 0, 1_000, &[]);
        let trace = sketch.finish();
        let context = Context::new(&trace, "host");
        let mut shares = Shares::default();
        context.breakdown().counted().for_each(|(_, step)| shares.add_all(&step.shares));
        assert_eq!((shares.get(Category::Unknown), shares.total()), (shares.total(), Dur::from_us(1_000)));
    }

    #[test]
    fn what_may_hide_under_an_unrecorded_device_is_unknown() {
        let ground = Ground {
            fallback: Category::Python,
            present: Category::Python,
            frames: true,
            device_unseen: true,
            gaps: Vec::new(),
        };
        let owner = |state| owner(Mask::of(state), Mask::default(), &ground, Time::ZERO);
        for state in [State::Dispatch, State::Launch, State::Sync, State::Present, State::Nothing] {
            assert_eq!(owner(state), Category::Unknown, "{state:?}");
        }
        assert_eq!(owner(State::InputWait), Category::Input);
    }

    #[test]
    fn a_wait_counts_as_a_whole_if_the_device_runs_dry_and_not_at_all_if_it_does_not() {
        let at = Time::from_ps;
        let line = |changes: &[(i64, State)]| StateLine {
            times: changes.iter().map(|&(time, _)| at(time)).collect(),
            states: changes.iter().map(|&(_, state)| Mask::of(state)).collect(),
        };
        let host = line(&[
            (10, State::InputWait),
            (40, State::Nothing),
            (60, State::InputWait),
            (70, State::Nothing),
        ]);
        let device = line(&[
            (0, State::DeviceCompute),
            (20, State::Nothing),
            (50, State::DeviceCompute),
            (90, State::Nothing),
        ]);
        let (host, device) = (Timeline::merge(&[&host]), Timeline::merge(&[&device]));
        let starving = starving_waits(&host, &device);
        let ground = Ground {
            fallback: Category::Python,
            present: Category::Python,
            frames: true,
            device_unseen: false,
            gaps: Vec::new(),
        };
        let step = shares_of(&host, &device, Span::new(at(0), at(100)), &ground, &starving);
        assert_eq!(step.shares.get(Category::Input), Dur::from_ps(30));
        assert_eq!(step.shares.get(Category::Compute), Dur::from_ps(50));
        assert_eq!(step.shares.total(), Dur::from_ps(100));
    }

    #[test]
    fn a_device_is_as_busy_as_it_is_in_the_steps_that_count() {
        let mut sketch = crate::sketch::Sketch::new();
        let (thread, stream) = (sketch.thread("python"), sketch.stream());
        // A first step of 9,000 µs that hardly uses the device, then nine of 1,000 µs that use half of it.
        sketch.event(
            thread,
            "train",
            0,
            9_000,
            &[("step_num", crate::sketch::Arg::Int(0)), ("_r", crate::sketch::Arg::Int(1))],
        );
        sketch.event_of(stream, "kernel", "gemm", 8_000, 100, &[]);
        for step in 1..10 {
            let at = 8_000 + step * 1_000;
            sketch.event(
                thread,
                "train",
                at,
                1_000,
                &[("step_num", crate::sketch::Arg::Int(step)), ("_r", crate::sketch::Arg::Int(1))],
            );
            sketch.event_of(stream, "kernel", "gemm", at + 200, 500, &[]);
        }
        let trace = sketch.finish();
        let context = Context::new(&trace, "host");
        let breakdown = context.breakdown();
        assert_eq!(breakdown.steps.all.first().map(|step| step.excluded), Some(Some(Exclusion::Startup)));
        let busy = breakdown.bound().map_or(0.0, |device| breakdown.busy_fraction(device));
        assert!((busy - 0.5).abs() < 1e-9, "{busy}");
    }
}
