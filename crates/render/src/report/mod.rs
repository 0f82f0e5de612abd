//! The report as text for the terminal, JSON for programs, Markdown for pull requests, and one self-contained HTML file. The
//! verdict comes first, then its evidence.

mod answer;
mod brief;
pub mod html;
mod json;
mod markdown;
mod palette;
mod place;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
mod text;
mod words;

pub use answer::{answer, doubts};
pub use brief::{brief_json, finding_json};
pub use html::write_html;
pub(crate) use json::Found;
pub use json::write_json;
pub use markdown::write_markdown;
pub use palette::color;
pub(crate) use text::wrapped;
pub use text::write_text;
