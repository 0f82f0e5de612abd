//! Logs of `nvidia-smi`: samples of a GPU's utilisation, memory, power, clocks and temperature.
//!
//! ```text
//! fields   names and units of columns; what they must be without a header
//! clock    timestamps of every style
//! query    `--query-gpu=… --format=csv`: rows → samples
//! bare     columns without names and units
//! dmon     `nvidia-smi dmon` and `pmon`: tables for terminals → samples
//! page     plain `nvidia-smi`: the page for people → samples
//! dump     `nvidia-smi -q`: everything under headings → samples
//! gpu_samples   samples → counter tracks, one set per GPU
//! ```
//!
//! A log has no events, so its trace contains only counters. Times start at the first sample.

mod bare;
mod clock;
mod dmon;
mod dump;
mod fields;
mod gpu_samples;
mod page;
mod query;

use stepscope_trace::{Delivers, Format, Trace};

use crate::{Input, Progress, ReadError, Reader, csv};

/// Logs of nvidia-smi.
static FORMAT: Format = Format::new("nvidia-smi", "nvidia-smi", Delivers::Samples);

/// Reads logs of `nvidia-smi`.
#[derive(Debug)]
pub struct SmiReader;

impl Reader for SmiReader {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn recognises(&self, head: &[u8]) -> bool {
        let Some(text) = csv::printed(head) else { return false };
        [query::recognises, dmon::recognises, page::recognises, dump::recognises]
            .iter()
            .any(|knows| knows(&text))
    }

    fn read(&self, input: &Input, progress: &Progress) -> Result<Trace, ReadError> {
        let (bytes, _) = input.inflated();
        progress.expect(bytes.len() as u64);
        let text = csv::decode(&bytes);
        let read = match &*text {
            // Some scripts print a page first and then the log.
            text if query::recognises(text) => query::read,
            text if dmon::recognises(text) => dmon::read,
            text if page::recognises(text) => page::read,
            _ => dump::read,
        };
        let gpu_samples = read(&text);
        if gpu_samples.is_empty() {
            let what = "it contains no samples".to_owned();
            return Err(ReadError::Damaged { path: input.path().to_owned(), what, offset: 0 });
        }
        progress.advance(bytes.len() as u64, gpu_samples.samples);
        Ok(gpu_samples.finish())
    }
}
