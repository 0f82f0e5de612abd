//! From what an event means to the category of its time: the only such table, for the breakdown of a step and for the
//! colours of events on a timeline.

use super::Category;
use crate::states::State;
use crate::vocabulary::Role;

impl Category {
    /// The category of time in a state; `None` where nothing was recorded.
    pub(crate) fn of_state(state: State) -> Option<Self> {
        Some(match state {
            State::Nothing => return None,
            State::Present => Category::Python,
            State::InputWork | State::InputWait => Category::Input,
            State::Sync => Category::Sync,
            State::Dispatch => Category::Dispatch,
            State::Launch => Category::Launch,
            State::Output => Category::Output,
            State::Tracing => Category::Tracing,
            State::Compile => Category::Compile,
            State::HostCompute | State::DeviceCompute => Category::Compute,
            State::DeviceWait => Category::Idle,
            State::CopyDevice => Category::TransferDevice,
            State::CopyOut => Category::TransferOut,
            State::CopyIn => Category::TransferIn,
            State::Communication => Category::Communication,
        })
    }

    /// The category of an event by its role alone; `None` if the role says nothing about the activity.
    pub fn of_role(role: Role, feeds_device: bool) -> Option<Self> {
        State::of_role(role, feeds_device).and_then(Category::of_state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_of_a_host_compute_only_where_they_feed_no_device() {
        assert_eq!(Category::of_role(Role::Op, false), Some(Category::Compute));
        assert_eq!(Category::of_role(Role::Op, true), Some(Category::Dispatch));
        assert_eq!(Category::of_role(Role::HostCollective, true), Some(Category::Dispatch));
        assert_eq!(Category::of_role(Role::Kernel, true), Some(Category::Compute));
        assert_eq!(Category::of_role(Role::DeviceMemory, true), Some(Category::Dispatch), "launches nothing");
    }

    #[test]
    fn what_says_nothing_about_the_activity_has_no_category() {
        for role in [Role::Annotation, Role::StepMarker, Role::Bookkeeping, Role::Unknown] {
            assert_eq!(Category::of_role(role, false), None, "{role:?}");
        }
    }
}
