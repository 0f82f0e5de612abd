//! Flow points: ends of the arrows between events in a file, as recorded.

use crate::ids::{StrId, TrackId};
use crate::time::Time;

/// The end of the arrow that a flow point is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum FlowDirection {
    /// The arrow starts here.
    Out,
    /// The arrow passes through.
    Step,
    /// The arrow ends here.
    In,
}

/// One end of an arrow. Points with equal category and id belong together; a point belongs to the innermost
/// event around it on its track.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct FlowPoint {
    /// The time.
    pub time: Time,
    /// The track.
    pub track: TrackId,
    /// Which end.
    pub direction: FlowDirection,
    /// The kind of arrow, e.g. `ac2g`.
    pub category: StrId,
    /// The id of the arrow within its kind.
    pub id: u64,
}
