//! The state of a track, and sets of states.

use crate::vocabulary::{CopyDirection, Role};

/// The activity of a track. Each is one bit, so that the activities of all tracks fit in a word.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum State {
    /// Nothing that was recorded.
    Nothing = 0,
    /// Inside recorded Python or an annotation, with nothing nested.
    Present = 1 << 0,
    /// A stage of the input pipeline works ahead; nothing waits here.
    InputWork = 1 << 1,
    /// The host is blocked until a device is done.
    Sync = 1 << 2,
    /// Framework overhead around ops.
    Dispatch = 1 << 3,
    /// The host launches device work.
    Launch = 1 << 4,
    /// The step waits for its next batch.
    InputWait = 1 << 5,
    /// Checkpoints, summaries, results are written.
    Output = 1 << 6,
    /// A graph is being built.
    Tracing = 1 << 7,
    /// A graph is being compiled.
    Compile = 1 << 8,
    /// The model's ops run on the host.
    HostCompute = 1 << 9,
    /// A device waits for another device or for the host.
    DeviceWait = 1 << 10,
    /// A device copies within or between devices.
    CopyDevice = 1 << 11,
    /// A device's results are copied out.
    CopyOut = 1 << 12,
    /// Data is copied to a device.
    CopyIn = 1 << 13,
    /// A device takes part in a collective.
    Communication = 1 << 14,
    /// A device computes.
    DeviceCompute = 1 << 15,
}

impl State {
    /// Whether nested events keep this state.
    pub(super) fn holds(self) -> bool {
        matches!(
            self,
            State::InputWait | State::InputWork | State::Output | State::Compile | State::Communication
        )
    }

    /// What an event of this role does by itself, whatever surrounds it. Ops of a host that feeds a device only
    /// dispatch. `None` if the role says nothing about the activity.
    pub fn of_role(role: Role, feeds_device: bool) -> Option<Self> {
        Some(match role {
            Role::Annotation | Role::StepMarker | Role::Bookkeeping | Role::Unknown => return None,
            Role::PythonFrame => State::Present,
            // Beside a device's own work, the host only launches it.
            Role::Op | Role::EagerKernel | Role::HostCollective | Role::HostCopy(_) if feeds_device => {
                State::Dispatch
            }
            Role::Op | Role::EagerKernel => State::HostCompute,
            Role::HostCollective | Role::Collective => State::Communication,
            Role::FunctionCall | Role::Framework | Role::EagerCall | Role::ExecutorRun => State::Dispatch,
            // Managing memory enqueues nothing.
            Role::DeviceMemory => State::Dispatch,
            Role::Tracing => State::Tracing,
            Role::Compile => State::Compile,
            Role::InputWait => State::InputWait,
            Role::InputStage | Role::InputFunction => State::InputWork,
            Role::Output => State::Output,
            Role::Launch | Role::LaunchCopy => State::Launch,
            Role::Sync => State::Sync,
            Role::Kernel | Role::Memset => State::DeviceCompute,
            Role::Copy(CopyDirection::In) | Role::HostCopy(CopyDirection::In) => State::CopyIn,
            Role::Copy(CopyDirection::Out) | Role::HostCopy(CopyDirection::Out) => State::CopyOut,
            Role::Copy(CopyDirection::Device) | Role::HostCopy(CopyDirection::Device) => State::CopyDevice,
            Role::DeviceWait => State::DeviceWait,
        })
    }
}
