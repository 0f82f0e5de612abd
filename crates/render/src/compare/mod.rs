//! A comparison as text, JSON, Markdown and one self-contained page.

mod distribution;
pub(crate) mod headline;
mod html;
pub(crate) mod json;
pub(crate) mod markdown;
mod text;
pub(crate) mod words;

pub use html::write_html;
pub use json::{compare_json, write_json};
pub use markdown::write_markdown;
pub use text::write_text;
