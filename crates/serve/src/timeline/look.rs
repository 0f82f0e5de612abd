//! The colour of an event: the breakdown's category that its kind stands for, where that is known.

use stepscope_analyze::vocabulary::{CopyDirection, Role};
use stepscope_analyze::{Category, Context};
use stepscope_trace::{KindId, ProcessKind, Trace, TrackKind};

/// For kinds that stand for no category.
pub(crate) const NONE: u8 = u8::MAX;

/// The category of each kind of a trace, as an index into [`Category::ALL`].
pub(crate) fn categories(context: &Context) -> Vec<u8> {
    let (trace, vocabulary, states) = (context.trace, context.vocabulary(), context.states());
    let feeds_device = states.has_device || states.device_unseen;
    let on_device = kinds_on_devices(trace);
    let one = |(index, on_device): (usize, bool)| {
        let role = vocabulary.role(KindId::from_index(index));
        category(role, feeds_device, on_device).map_or(NONE, |category| category as u8)
    };
    on_device.into_iter().enumerate().map(one).collect()
}

fn kinds_on_devices(trace: &Trace) -> Vec<bool> {
    let mut found = vec![false; trace.kinds().len()];
    for track in trace.tracks().iter().filter(|track| track.kind == TrackKind::Stream) {
        if trace.process(track.process).kind == ProcessKind::Device {
            track.kinds().iter().for_each(|kind| found[kind.index()] = true);
        }
    }
    found
}

/// As [`stepscope_analyze::states`] sees it: ops on a host with a device only feed it.
fn category(role: Role, feeds_device: bool, on_device: bool) -> Option<Category> {
    Some(match role {
        Role::Op | Role::EagerKernel if feeds_device => Category::Dispatch,
        Role::Op | Role::EagerKernel | Role::Kernel | Role::Memset => Category::Compute,
        Role::Unknown if on_device => Category::Compute,
        Role::FunctionCall | Role::Framework | Role::EagerCall | Role::ExecutorRun => Category::Dispatch,
        Role::PythonFrame => Category::Python,
        Role::Tracing => Category::Tracing,
        Role::Compile => Category::Compile,
        Role::InputWait | Role::InputStage | Role::InputFunction => Category::Input,
        Role::Output => Category::Output,
        Role::Launch | Role::LaunchCopy | Role::DeviceMemory => Category::Launch,
        Role::Sync => Category::Sync,
        Role::Collective => Category::Communication,
        Role::Copy(CopyDirection::In) => Category::TransferIn,
        Role::Copy(CopyDirection::Out) => Category::TransferOut,
        Role::Copy(CopyDirection::Device) => Category::TransferDevice,
        Role::DeviceWait => Category::Idle,
        Role::Annotation | Role::StepMarker | Role::Bookkeeping | Role::Unknown => return None,
    })
}
