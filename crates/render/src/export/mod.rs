//! The trace in other tools' formats: Chrome JSON for viewers, one row an event (CSV, Parquet) for data tools. Written as a
//! stream: nothing is held but what is at hand.

mod args;
mod chrome;
mod csv;
mod parquet;
#[cfg(test)]
mod tests;
mod time;

use stepscope_trace::Trace;

pub use chrome::write_chrome;
pub use csv::write_csv;
pub use parquet::write_parquet;

/// One host's trace to be written.
#[derive(Copy, Clone, Debug)]
pub struct ExportSource<'a> {
    /// The host.
    pub host: &'a str,
    /// What happened there.
    pub trace: &'a Trace,
}
