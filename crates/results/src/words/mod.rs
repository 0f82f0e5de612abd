//! Words that reports and tables share: [`terms`] for the typed vocabulary of the analyses, [`step_times`] for steps that
//! one figure does not describe, [`log`] for damaged logs. A finding's own words are in its file in `stepscope-diagnose`.

pub mod log;
pub mod step_times;
pub mod terms;

pub use stepscope_text::{quoted, share};
