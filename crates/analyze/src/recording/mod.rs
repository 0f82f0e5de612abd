//! The recording itself: what it contains, and what is wrong with it. Knows nothing about steps.

pub mod health;
pub mod info;
pub mod issues;
pub mod step_markers;
pub mod tracer_frames;

/// The analyses of this room, for the results of a session ([`crate::session`]): a line each.
macro_rules! analyses {
    ($next:ident $($rooms:ident)* => $($listed:tt)*) => {
        crate::$next::analyses! { $($rooms)* => $($listed)*
            {
                /// What is wrong with the recordings, the worst first.
                issues: crate::recording::issues::Issues,
                /// The share of events that are frames of a Python tracer.
                tracer_frames: crate::recording::tracer_frames::TracerFrames,
            }
        }
    };
}
pub(crate) use analyses;
