//! Chrome Trace Event JSON, as written by PyTorch's Kineto, JAX and XProf; plain or compressed with gzip.
//!
//! Text flows one way: a [`window`] shows it block by block, the [`scan`]ner locates values, the [`document`]
//! is walked event by event, and the [`load`]er turns each [`event`] into columns of the trace. Memory never
//! holds more than a block of text, unless a single event is longer.
//!
//! Profilers write JSON by hand and make mistakes. The reader repairs what it can, and counts each repair in
//! the trace's notes. It also counts unreadable events; none is lost silently.

pub(crate) mod args;
pub(crate) mod category;
mod document;
mod event;
mod header;
mod load;
mod pairs;
mod recognise;
pub(crate) mod repair;
pub(crate) mod scan;
#[cfg(test)]
mod tests;
pub(crate) mod text;
pub(crate) mod tracks;
mod window;

use std::sync::mpsc::{channel, sync_channel};
use std::thread;

use stepscope_trace::{Delivers, Format, NoteKind, Trace};

use self::document::Document;
use self::load::Loader;
use self::window::{BLOCK, Window, inflate, inflated};
use crate::{Input, Progress, ReadError, Reader};

/// Number of blocks inflated ahead.
const AHEAD: usize = 2;

/// Chrome traces. TensorFlow and JAX write one beside the XPlane file.
pub(crate) static FORMAT: Format = Format {
    endings: &[".json", ".pt", ".trace", ".perfetto"],
    copies: &[&crate::xplane::FORMAT],
    nameless: &["perfetto_trace"],
    ..Format::new("chrome", "Chrome trace", Delivers::Timeline)
};

/// Reads Chrome JSON.
#[derive(Debug)]
pub struct ChromeReader;

impl Reader for ChromeReader {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn recognises(&self, head: &[u8]) -> bool {
        recognise::recognises(head)
    }

    fn read(&self, input: &Input, progress: &Progress) -> Result<Trace, ReadError> {
        progress.expect(input.raw().len() as u64);
        let Some(decoder) = input.inflating() else {
            return read(Window::held(input.raw(), BLOCK), input, progress);
        };
        // Inflating takes about as long as reading, so it gets its own thread.
        thread::scope(|scope| {
            let (full, blocks) = sync_channel(AHEAD);
            let (used, empty) = channel();
            scope.spawn(move || inflate(decoder, input.raw().len(), &full, &empty));
            read(Window::stream(inflated(blocks, used), BLOCK, input.budget()), input, progress)
        })
    }
}

fn read(mut window: Window<'_>, input: &Input, progress: &Progress) -> Result<Trace, ReadError> {
    let mut loader = Loader::default();
    let mut document = Document::new();
    let broken = document.read(&mut window, &mut loader, progress);
    if let Some(offset) = broken {
        let what = match &window.error {
            Some(_) if input.over_budget().is_some() => "reading stopped at its budget",
            Some(_) => "gzip",
            None => "truncated",
        };
        if document.events == 0 {
            let path = input.path().to_owned();
            return Err(ReadError::Damaged { path, what: what.to_owned(), offset });
        }
        loader.builder.note(NoteKind::Damaged, what, 1, Some(offset));
    } else if window.error.is_some() {
        loader.builder.note(NoteKind::Repaired, "trailing-junk", 1, Some(window.offset()));
    }
    Ok(loader.finish())
}
