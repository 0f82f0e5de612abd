//! What the analyses say about one host's events: its steps, and what each kind of event does.

use stepscope_analyze::steps::Exclusion;
use stepscope_analyze::vocabulary::names::{framework_op, hlo_opcode, kernel_short_name};
use stepscope_analyze::vocabulary::{Framework, Role};
use stepscope_analyze::{Category, Shares};
use stepscope_session::HostProfile;
use stepscope_trace::{KindId, ProcessId, Span, Time, Trace, Track};

/// A step.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) number: i64,
    pub(crate) span: Span,
    pub(crate) excluded: Option<Exclusion>,
}

/// The windows of the steps on one device, and where their time goes.
#[derive(Debug)]
pub(crate) struct OnDevice {
    pub(crate) process: Option<ProcessId>,
    pub(crate) steps: Vec<(Span, Shares)>,
    /// Where the work that each step launched is.
    work: Vec<Span>,
}

/// What one host's events mean.
#[derive(Debug)]
pub(crate) struct Meaning {
    pub(crate) steps: Vec<Step>,
    pub(crate) devices: Vec<OnDevice>,
    pub(crate) bottleneck: usize,
    /// What each kind does on a host thread, and on a device.
    states: Vec<[Option<Category>; 2]>,
    roles: Vec<[Role; 2]>,
    ops: Vec<Option<String>>,
}

/// Of a host without events.
pub(crate) static NOTHING: Meaning = Meaning {
    steps: Vec::new(),
    devices: Vec::new(),
    bottleneck: 0,
    states: Vec::new(),
    roles: Vec::new(),
    ops: Vec::new(),
};

impl Meaning {
    pub(crate) fn of(loaded: &HostProfile) -> Self {
        let context = loaded.context();
        let (trace, vocabulary, states) = (&loaded.trace, context.vocabulary(), context.states());
        let breakdown = context.breakdown();
        let whole = breakdown.steps.whole_capture;
        let feeds = states.has_device || states.device_unseen;
        let kinds = || (0..trace.kinds().len()).map(KindId::from_index);
        let roles = |kind| [vocabulary.host_role(kind), vocabulary.role(kind)];
        let state = |kind| roles(kind).map(|role| Category::of_role(role, feeds));
        let found = breakdown.steps.all.iter().filter(|_| !whole);
        let on_device = |device: &stepscope_analyze::breakdown::DeviceBreakdown| OnDevice {
            process: device.process,
            steps: device.steps.iter().filter(|_| !whole).map(|step| (step.window, step.shares)).collect(),
            work: device.steps.iter().filter(|_| !whole).map(|step| step.work).collect(),
        };
        Meaning {
            steps: found
                .map(|step| Step { number: step.number, span: step.span, excluded: step.excluded })
                .collect(),
            devices: breakdown.devices.iter().map(on_device).collect(),
            bottleneck: breakdown.bottleneck,
            states: kinds().map(state).collect(),
            roles: kinds().map(roles).collect(),
            ops: kinds().map(|kind| op(trace, kind, vocabulary.role(kind), vocabulary.framework)).collect(),
        }
    }

    /// What a kind does on a host thread or on a device.
    pub(crate) fn state_of(&self, kind: KindId, on_device: bool) -> Option<Category> {
        self.states.get(kind.index())?[usize::from(on_device)]
    }

    /// What a kind is on a host thread or on a device.
    pub(crate) fn role_of(&self, kind: KindId, on_device: bool) -> Option<&'static str> {
        self.roles.get(kind.index()).map(|both| role_key(both[usize::from(on_device)]))
    }

    /// The type of op that a kind stands for.
    pub(crate) fn op(&self, kind: KindId) -> Option<&str> {
        self.ops.get(kind.index())?.as_deref()
    }

    /// Where the steps are on a track: on a device, where the work is that they launched.
    fn windows(&self, track: &Track) -> Option<&[Span]> {
        let own = self.devices.iter().find(|device| device.process == Some(track.process));
        own.map(|device| &device.work[..])
    }

    /// The number of the step in which an event of a track starts.
    pub(crate) fn step_at(&self, track: &Track, at: Time) -> Option<i64> {
        let found = match self.windows(track) {
            Some(windows) => {
                let after = windows.partition_point(|window| window.start <= at);
                after.checked_sub(1).filter(|&before| windows[before].contains(at))
            }
            None => {
                let after = self.steps.partition_point(|step| step.span.start <= at);
                after.checked_sub(1).filter(|&before| self.steps[before].span.contains(at))
            }
        };
        found.and_then(|place| self.steps.get(place)).map(|step| step.number)
    }

    /// When the steps with this number are, as a track sees them.
    pub(crate) fn step_spans(&self, track: &Track, number: i64) -> impl Iterator<Item = Span> {
        let windows = self.windows(track);
        let of = move |(place, step): (usize, &Step)| match windows {
            Some(windows) => windows.get(place).copied(),
            None => Some(step.span),
        };
        self.steps.iter().enumerate().filter(move |(_, step)| step.number == number).filter_map(of)
    }
}

/// The type of an op, or the name of a kernel without its arguments; `None` for everything else.
fn op(trace: &Trace, kind: KindId, role: Role, framework: Framework) -> Option<String> {
    let name = trace.kind_name(kind);
    match role {
        Role::Op | Role::EagerKernel | Role::HostCollective if framework == Framework::Jax => {
            Some(hlo_opcode(framework_op(name).1).to_owned())
        }
        Role::Op | Role::EagerKernel | Role::HostCollective => Some(framework_op(name).1.to_owned()),
        Role::Kernel | Role::Collective | Role::Memset | Role::Copy(_) => {
            Some(kernel_short_name(name).into_owned())
        }
        _ => None,
    }
}

fn role_key(role: Role) -> &'static str {
    match role {
        Role::Annotation => "annotation",
        Role::PythonFrame => "python",
        Role::Bookkeeping => "bookkeeping",
        Role::StepMarker => "step_marker",
        Role::FunctionCall => "function_call",
        Role::Op => "op",
        Role::EagerKernel => "eager_kernel",
        Role::Framework => "framework",
        Role::EagerCall => "eager_call",
        Role::ExecutorRun => "executor_run",
        Role::Tracing => "tracing",
        Role::Compile => "compile",
        Role::InputWait => "input_wait",
        Role::InputStage => "input_stage",
        Role::InputFunction => "input_function",
        Role::Output => "output",
        Role::Launch => "launch",
        Role::LaunchCopy => "launch_copy",
        Role::Sync => "sync",
        Role::DeviceMemory => "device_memory",
        Role::Kernel => "kernel",
        Role::Collective => "collective",
        Role::HostCollective => "host_collective",
        Role::Copy(_) => "copy",
        Role::HostCopy(_) => "host_copy",
        Role::Memset => "memset",
        Role::DeviceWait => "device_wait",
        Role::Unknown => "unknown",
    }
}
