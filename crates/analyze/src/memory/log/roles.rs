//! What blocks are for: what the file says, else what their lifetime says.

use stepscope_trace::memory::{BEFORE, Block, NEVER, Owner, Role};

use super::lines::Calls;

/// A block that lives for at most one part in this many of a step is temporary.
const SHORT: u32 = 100;
/// A block that lives this many steps longer than the one in which it was allocated is kept.
pub(super) const KEPT_STEPS: usize = 3;

/// What is known about the blocks of one owner.
pub(super) struct Roles<'a> {
    calls: &'a [Calls],
    /// The moments at which steps begin.
    steps: &'a [u32],
    /// By stack: the number of steps in which it allocates, and whether any of those blocks is freed.
    stacks: Vec<StackUse>,
    typical: u32,
    /// The file has roles: what has none in it is unknown.
    recorded: bool,
}

#[derive(Copy, Clone, Default)]
struct StackUse {
    last_step: Option<usize>,
    steps: u32,
    freed: bool,
}

impl<'a> Roles<'a> {
    pub(super) fn new(owner: &Owner, calls: &'a [Calls], steps: &'a [u32]) -> Self {
        let mut roles = Roles {
            calls,
            steps,
            stacks: vec![StackUse::default(); calls.len()],
            typical: 0,
            recorded: false,
        };
        roles.recorded = owner.blocks.iter().any(|block| block.role.is_some());
        let mut lengths: Vec<u32> = steps.windows(2).map(|two| two[1] - two[0]).collect();
        lengths.sort_unstable();
        roles.typical = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
        for block in &owner.blocks {
            let step = roles.step_of(block.born);
            if let Some(stack) = roles.stacks.get_mut(block.stack.0 as usize)
                && step.is_some()
            {
                stack.steps += u32::from(stack.last_step != step);
                stack.last_step = step;
                stack.freed |= block.dies != NEVER;
            }
        }
        roles
    }

    /// The step of a moment.
    pub(super) fn step_of(&self, moment: u32) -> Option<usize> {
        if moment == BEFORE {
            return None;
        }
        // A moment is the state after a change; the change that follows a start belongs to the step.
        self.steps.partition_point(|&start| start < moment).checked_sub(1)
    }

    /// The role of a block. Unknown without steps, unless the file says it.
    pub(super) fn of(&self, block: &Block) -> Option<Role> {
        if self.recorded {
            return block.role;
        }
        let calls = self.calls.get(block.stack.0 as usize);
        let optimizer = calls.is_some_and(|calls| calls.optimizer);
        let stays = block.dies == NEVER;
        if self.steps.len() < 2 {
            return (optimizer && stays).then_some(Role::Optimizer);
        }
        let born = self.step_of(block.born);
        let dies = if stays { None } else { self.step_of(block.dies) };
        let alive = match (born, dies) {
            (Some(born), Some(dies)) => dies.saturating_sub(born),
            _ => usize::MAX,
        };
        if alive >= 1 && optimizer {
            return Some(Role::Optimizer);
        }
        let of_stack = self.stacks.get(block.stack.0 as usize).copied().unwrap_or_default();
        let Some(born) = born else {
            return match block.stack.is_known() {
                // Weights stay: what is freed again was for a pass that is no step of its own.
                _ if !stays => None,
                // Allocated in earlier steps too, and never freed.
                true if of_stack.steps > 1 && !of_stack.freed => Some(Role::Kept),
                true => Some(Role::Parameter),
                false if block.born == BEFORE => None,
                false => Some(Role::Parameter),
            };
        };
        if stays && of_stack.steps <= 1 && born == 0 {
            // State that appears once, in the first step.
            return Some(Role::Optimizer);
        }
        if alive >= KEPT_STEPS && (!stays || of_stack.steps > 1 && !of_stack.freed) {
            return Some(Role::Kept);
        }
        if block.dies.saturating_sub(block.born) <= self.typical / SHORT && !stays {
            return Some(Role::Temporary);
        }
        match calls.is_some_and(|calls| calls.backward) {
            true => Some(Role::Gradient),
            false if alive > 1 => None,
            false => Some(Role::Activation),
        }
    }
}

#[cfg(test)]
mod tests {
    use stepscope_trace::memory::StackId;

    use super::*;

    /// The role of a block that was allocated at the moment `born` and freed at `dies`; steps begin at 100, 200 and 300.
    fn role(born: u32, dies: u32) -> Option<Role> {
        let steps = [100, 200, 300];
        let block = Block {
            address: 4_096,
            size: 1_000,
            requested: 1_000,
            born,
            dies,
            stack: StackId(0),
            count: 1,
            role: None,
            pending: false,
        };
        let owner = Owner { blocks: vec![block], changes: 400, ..Owner::default() };
        let calls = [Calls::default()];
        Roles::new(&owner, &calls, &steps).of(&block)
    }

    #[test]
    fn weights_stay_and_what_is_freed_again_is_none() {
        assert_eq!(role(5, NEVER), Some(Role::Parameter));
        assert_eq!(role(5, 90), None, "a pass before the first step");
        assert_eq!(role(5, 250), None, "a pass that ends in what was taken for steps");
        assert_eq!(role(110, 150), Some(Role::Activation));
    }
}
