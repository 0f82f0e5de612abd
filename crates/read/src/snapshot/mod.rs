//! Memory snapshots of PyTorch: what `torch.cuda.memory._dump_snapshot` and its relatives pickle.
//!
//! ```text
//! pickle   bytes → values, by a fixed list of opcodes; nothing is ever run
//! shapes   dictionaries → frames, entries of the history, blocks, segments
//! known    the keys and words of a snapshot, numbered
//! model    those → blocks with birth and death
//! ```
//!
//! A pickle is a program for a small stack machine, and Python's own reader lets it call any function. This one knows only
//! the opcodes that build dictionaries, lists, tuples, numbers and strings. Anything else ends it.

mod known;
mod model;
mod pickle;
mod shapes;
#[cfg(test)]
mod tests;

use stepscope_trace::{Delivers, Format, Trace};

use crate::{Input, Progress, ReadError, Reader};

pub(crate) use pickle::{opcode_that_runs_code, starts_like_a_pickle};

/// What PyTorch's allocators dump.
static FORMAT: Format = Format {
    endings: &[".pickle", ".pkl"],
    ..Format::new("torch-memory", "PyTorch memory snapshot", Delivers::Memory)
};

/// Reads memory snapshots of PyTorch.
#[derive(Debug)]
pub struct SnapshotReader;

impl Reader for SnapshotReader {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn recognises(&self, head: &[u8]) -> bool {
        pickle::is_snapshot(head)
    }

    fn read(&self, input: &Input, progress: &Progress) -> Result<Trace, ReadError> {
        let (bytes, inflating) = input.inflated();
        progress.expect(bytes.len() as u64);
        let read = pickle::read(&bytes, progress);
        let path = || input.path().to_owned();
        match read.ended {
            pickle::Ended::RunsCode { opcode, at } => {
                Err(ReadError::RunsCode { path: path(), opcode, offset: at as u64 })
            }
            pickle::Ended::Whole => Ok(model::trace(read.shapes, &bytes, None, inflating)),
            pickle::Ended::Broken { what, at } => {
                if read.shapes.segments.is_empty() {
                    return Err(ReadError::Damaged {
                        path: path(),
                        what: what.to_owned(),
                        offset: at as u64,
                    });
                }
                Ok(model::trace(read.shapes, &bytes, Some((what, at)), inflating))
            }
        }
    }
}
