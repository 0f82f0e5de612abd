//! Perfetto's own traces (`.pftrace`, `.perfetto-trace`): a protobuf of packets. Written by Perfetto's recorder and SDK,
//! Kineto, AMD's rocprofv3, Neuron's profiler and many scripts.
//!
//! ```text
//! packet       the parts of one packet
//! sequence     what the packets of one writer share: interned names, defaults
//! clocks       clocks of every kind → the trace's clock
//! nodes        track descriptors: processes, threads, counters, named tracks
//! track_event  slices, instants, counters, flows
//! annotations  arguments of events
//! kineto       what Kineto leaves out here: the category of an event
//! gpu          work of GPUs with its launch, and GPU counters
//! ftrace       which thread ran on which processor, and why it did not
//! points       starts and ends → slices, once everything has been read
//! placing      the file's tracks → those of the trace
//! load         walks the packets, also compressed ones, and puts the parts together
//! ```
//!
//! Every slice of the file becomes one event of the trace, also where slices of a track overlap. Tracks are the file's:
//! tracks of one thread or process with the same name are one, as in Perfetto's own view.

mod annotations;
mod clocks;
mod ftrace;
mod gpu;
mod kineto;
mod load;
mod nodes;
mod packet;
mod placing;
mod points;
mod recognise;
mod sequence;
#[cfg(test)]
mod tests;
mod track_event;

use stepscope_trace::{Delivers, Format, NoteKind, Trace};

use crate::{Input, Progress, ReadError, Reader};
use load::Loader;

/// Perfetto traces. JAX writes one beside the XPlane file.
static FORMAT: Format = Format {
    endings: &[".pftrace", ".perfetto-trace", ".perfetto", ".pb"],
    copies: &[&crate::xplane::FORMAT],
    nameless: &["perfetto_trace"],
    ..Format::new("perfetto", "Perfetto trace", Delivers::Timeline)
};

/// Reads Perfetto traces.
#[derive(Debug)]
pub struct PerfettoReader;

impl Reader for PerfettoReader {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn recognises(&self, head: &[u8]) -> bool {
        recognise::recognises(head)
    }

    fn read(&self, input: &Input, progress: &Progress) -> Result<Trace, ReadError> {
        let (bytes, inflating) = input.inflated();
        progress.expect(bytes.len() as u64);
        let mut loader = Loader::new(input.budget());
        let broken = loader.packets(&bytes, progress);
        if let Some(broken) = broken {
            loader.builder.note(NoteKind::Damaged, broken.what, 1, Some(broken.at as u64));
        } else if let Some(error) = inflating {
            loader.builder.note(NoteKind::Damaged, &error.to_string(), 1, None);
        }
        if loader.is_empty() {
            let (what, offset) = match broken {
                Some(broken) => (broken.what.to_owned(), broken.at as u64),
                None => ("it has no event".to_owned(), 0),
            };
            return Err(ReadError::Damaged { path: input.path().to_owned(), what, offset });
        }
        Ok(loader.finish())
    }
}
