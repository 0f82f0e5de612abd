//! The colour of an event: the breakdown category of its kind, if known.

use stepscope_analyze::vocabulary::{CopyDirection, Role};
use stepscope_analyze::{Category, Context};
use stepscope_trace::KindId;

/// For kinds without a category.
pub(crate) const NONE: u8 = u8::MAX;

/// The category of each kind of a trace, as an index into [`Category::ALL`].
pub(crate) fn categories(context: &Context) -> Vec<u8> {
    let (vocabulary, states) = (context.vocabulary(), context.states());
    let feeds_device = states.has_device || states.device_unseen;
    let kinds = (0..context.trace.kinds().len()).map(KindId::from_index);
    let one = |kind| category(vocabulary.role(kind), feeds_device).map_or(NONE, |category| category as u8);
    kinds.map(one).collect()
}

/// Follows [`stepscope_analyze::states`]: ops on a host with a device only feed it.
fn category(role: Role, feeds_device: bool) -> Option<Category> {
    Some(match role {
        Role::Op | Role::EagerKernel if feeds_device => Category::Dispatch,
        Role::Op | Role::EagerKernel | Role::Kernel | Role::Memset => Category::Compute,
        Role::FunctionCall | Role::Framework | Role::EagerCall | Role::ExecutorRun => Category::Dispatch,
        Role::PythonFrame => Category::Python,
        Role::Tracing => Category::Tracing,
        Role::Compile => Category::Compile,
        Role::InputWait | Role::InputStage | Role::InputFunction => Category::Input,
        Role::Output => Category::Output,
        Role::Launch | Role::LaunchCopy | Role::DeviceMemory => Category::Launch,
        Role::Sync => Category::Sync,
        Role::Collective | Role::HostCollective => Category::Communication,
        Role::Copy(CopyDirection::In) => Category::TransferIn,
        Role::Copy(CopyDirection::Out) => Category::TransferOut,
        Role::Copy(CopyDirection::Device) => Category::TransferDevice,
        Role::DeviceWait => Category::Idle,
        Role::Annotation | Role::StepMarker | Role::Bookkeeping | Role::Unknown => return None,
    })
}
