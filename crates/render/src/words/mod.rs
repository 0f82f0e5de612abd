//! Words that the report and the views share: [`terms`] for the typed vocabulary of the analyses,
//! [`step_times`] for steps that one figure does not describe, [`serve`] for the
//! server's refusals. A finding's own words are in its file in `stepscope-diagnose`.

pub mod serve;
pub mod step_times;
pub mod terms;

pub use stepscope_text::{quoted, share};
