//! The recording itself: what it contains, and what is wrong with it. Knows nothing about steps.

pub mod health;
pub mod info;
pub mod issues;
pub mod step_markers;
pub mod tracer_frames;
