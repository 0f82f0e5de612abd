//! A comparison as text, JSON and Markdown.

pub(crate) mod json;
pub(crate) mod markdown;
mod text;
pub(crate) mod words;

pub use json::{compare_json, write_json};
pub use markdown::write_markdown;
pub use text::write_text;
