//! Words that the report and the views share: [`terms`] for the typed vocabulary of the analyses, [`serve`] for the
//! server's refusals. A finding's own words are in its file in `stepscope-diagnose`.

pub mod serve;
pub mod terms;

pub use stepscope_text::{quoted, share};
