//! What an input may use of memory, to find inputs that make a reader use too much although nothing breaks.

use stepscope_testkit::memory::Counting;
pub use stepscope_testkit::memory::{most, restart};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allowed memory for any input: four times what one file may inflate to ([`BUDGET`]).
pub const ALLOWED: usize = 4 * BUDGET as usize;

/// What one file may inflate to here. Smaller than the default, so that greed shows with small inputs.
pub const BUDGET: u64 = 16 << 20;
