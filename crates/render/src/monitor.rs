//! The summary of a monitor: hardware use during the run, as text and as `stepscope.monitor.v1`.

use std::io::{self, Write};

use stepscope_results::usage::Usage;

use crate::format::{duration_ms, plural, printable};

use crate::run::{usage_lines, write_use_json};
use crate::style::Style;

/// Width of the labels.
const LABEL: usize = 12;

/// Writes the summary as text.
pub fn write_text(wall_s: f64, usage: &Usage, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let watched = format!("{}, {}", duration_ms(wall_s * 1e3), plural(usage.samples, "sample", "samples"));
    let first = [("watched".to_owned(), watched)];
    for (label, text) in first.into_iter().chain(usage_lines(usage, None)) {
        writeln!(out, "{}{}", style.dim(&format!("{label:<LABEL$}")), printable(&text))?;
    }
    Ok(())
}

/// Writes the summary as JSON.
pub fn write_json(wall_s: f64, usage: &Usage, out: &mut dyn Write) -> io::Result<()> {
    write_use_json("stepscope.monitor.v1", wall_s, usage, out)
}
