//! Flow points: ends of arrows that a file draws between events, as recorded.

use crate::ids::{StrId, TrackId};
use crate::time::Time;

/// Which end of the arrow a flow point is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum FlowDirection {
    /// The arrow begins here.
    Out,
    /// The arrow passes through.
    Step,
    /// The arrow ends here.
    In,
}

/// One end of an arrow. Points of equal category and id belong together; a point belongs to the innermost
/// event that encloses it on its track.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct FlowPoint {
    /// When.
    pub time: Time,
    /// On which track.
    pub track: TrackId,
    /// Which end.
    pub direction: FlowDirection,
    /// What kind of arrow, e.g. `ac2g`.
    pub category: StrId,
    /// Which arrow of that kind.
    pub id: u64,
}
