//! What findings about the curves of a run share. They are found by [`crate::runs::diagnose_run`], from event files alone.

use stepscope_analyze::curves::pace::Unit;
use stepscope_text::utc;

/// A moment, given in seconds since 1970.
pub(in crate::rules) fn at(seconds: f64) -> String {
    utc((seconds * 1e9) as i64)
}

/// What a run counts.
pub(in crate::rules) fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Step => "step",
        Unit::Epoch => "epoch",
    }
}
