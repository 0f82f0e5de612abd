//! The views, one file each: a function from an analysis' result to a [`crate::Table`]. The frame in
//! [`crate::table`] does the rest.

mod counted;
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

use crate::format::plural;
use crate::table::Table;

/// What a figure is of, in a few words.
fn covers(window: Window) -> &'static str {
    match window {
        Window::Steps(_) => "a step",
        Window::WholeCapture => "in all",
    }
}

/// Says below a table, and in its JSON, what totals are over.
fn describe_window(table: &mut Table, window: Window) {
    match window {
        Window::Steps(steps) => {
            table.member("window", "steps");
            table.member("steps", steps);
            table.note(format!("Totals are over {}.", plural(steps as u64, "counted step", "counted steps")));
        }
        Window::WholeCapture => {
            table.member("window", "capture");
            table.member("steps", serde_json::Value::Null);
            table.note("No steps were found: totals are over the whole capture.");
        }
    }
}
