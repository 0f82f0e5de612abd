//! What an analysis of a session offers. Hosts are read one by one: each says its part, the parts are merged, and what all
//! say together is finished. [`crate::session`] lists the analyses.

use crate::context::Context;

/// An analysis: what one host says, or several merged hosts. Stored partials of a fleet hold it, by the names of its fields.
pub trait Analysis: Default + Send {
    /// What all hosts say together.
    type Output;

    /// What one host says.
    fn of(context: &Context) -> Self;

    /// Adds another host. Hosts come in a fixed order.
    fn merge(&mut self, other: Self);

    /// Limits what grows with the length of a recording, for files: the longest are kept one by one, and the sum of the
    /// rest.
    fn bound(&mut self) {}

    /// The result.
    fn finish(self) -> Self::Output;
}
