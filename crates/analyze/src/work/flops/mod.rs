//! Floating-point operations of an op, from the shapes that were recorded with it.
//!
//! ```text
//! shapes    the text of a profile → lists of dimensions
//! formulas  an op's type and its shapes → operations
//! ```
//!
//! A multiplication and an addition are two operations, as in `torch.utils.flop_counter`. What has no formula here is
//! unknown, never 0.

mod formulas;
mod shapes;

pub use formulas::{Formula, Recorded};
pub use shapes::{Shape, parse};
