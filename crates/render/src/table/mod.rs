//! A table as text, JSON and CSV, and by columns for the page.

mod columns;
mod csv;
mod json;
mod text;

pub use columns::columns_json;
pub use csv::write_csv;
pub use json::write_json;
pub use text::write_text;
