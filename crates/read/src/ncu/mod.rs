//! Nsight Compute: hardware counters of single kernels, from its own reports (`.ncu-rep`), from the CSV pages
//! it prints, and from its terminal output.
//!
//! ```text
//! report   the native file: blocks of length-prefixed messages
//! pages    CSV: the raw page (one row per launch) and the details page (one row per metric)
//! console  the details page as text
//! units    scaled units → base units (ns, bytes, Hz, per second)
//! labels   labels of the details page → names of metrics
//! sentences  its advice → metrics that the page does not list
//! launch   profiled launches → events, devices
//! ```
//!
//! Every profiled launch becomes an event with all its metrics as arguments, in base units. Kernels run
//! repeatedly and one at a time while they are profiled, so their order means nothing: they are placed end to
//! end on a track that never counts as work.

mod console;
mod labels;
mod launch;
mod pages;
mod report;
mod sentences;
mod units;

use stepscope_trace::{Delivers, Format, Trace};

use crate::{Input, Progress, ReadError, Reader, csv};

/// Whether it is ncu's progress output, without a page of counters.
pub(crate) fn is_progress(head: &[u8]) -> bool {
    let text = csv::decode(head);
    text.lines().any(|line| ["==PROF== ", "==ERROR== "].iter().any(|mark| line.starts_with(mark)))
}

/// What Nsight Compute writes.
static FORMAT: Format = Format::new("ncu", "ncu", Delivers::Counters);

/// Reads reports and printed pages of Nsight Compute.
#[derive(Debug)]
pub struct NcuReader;

impl Reader for NcuReader {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn recognises(&self, head: &[u8]) -> bool {
        if head.starts_with(report::MAGIC) {
            return true;
        }
        csv::printed(head).is_some_and(|text| pages::recognises(&text) || console::recognises(&text))
    }

    fn read(&self, input: &Input, progress: &Progress) -> Result<Trace, ReadError> {
        let (bytes, _) = input.inflated();
        progress.expect(bytes.len() as u64);
        let profile = if bytes.starts_with(report::MAGIC) {
            report::read(&bytes)
        } else {
            let text = csv::decode(&bytes);
            if pages::recognises(&text) { pages::read(&text) } else { console::read(&text) }
        };
        if profile.is_empty() {
            let (what, offset) = match profile.broken {
                Some((what, at)) => (format!("{what} before the first profiled kernel"), at),
                None => ("it contains no profiled kernel".to_owned(), 0),
            };
            return Err(ReadError::Damaged { path: input.path().to_owned(), what, offset });
        }
        let trace = profile.finish();
        progress.advance(bytes.len() as u64, trace.events());
        Ok(trace)
    }
}
