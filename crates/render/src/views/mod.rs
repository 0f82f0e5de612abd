//! The views, one file each: a function from an analysis result to a [`crate::Table`]. The shared code in
//! [`crate::table`] does the rest.

mod counted;
pub mod critical_path;
pub mod devices;
pub mod functions;
pub mod inference;
pub mod input;
pub mod kernels;
pub mod memory;
pub mod ops;
pub mod scopes;
pub mod steps;

use stepscope_analyze::window::Window;

use crate::table::Table;

/// What a figure covers, in a few words.
fn covers(window: Window) -> &'static str {
    match window {
        Window::Steps(_) => "per step",
        Window::WholeCapture => "in total",
    }
}

/// States in a table's JSON what totals cover; [`Table::cover`] does the same below the table.
fn describe_window(table: &mut Table, window: Window) {
    let steps = match window {
        Window::Steps(steps) => serde_json::Value::from(steps),
        Window::WholeCapture => serde_json::Value::Null,
    };
    table.member("window", if steps.is_null() { "capture" } else { "steps" });
    table.member("steps", steps);
}
