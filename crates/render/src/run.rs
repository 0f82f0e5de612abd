//! The summary of a run: [`write_text`] writes it as text, [`write_json`] as `stepscope.run.v1`.

mod json;
mod text;
mod usage;

pub use json::write_json;
pub use text::write_text;
pub(crate) use usage::lines as usage_lines;
pub(crate) use usage::write_use_json;
