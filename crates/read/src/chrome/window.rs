//! A window over the text: the part that the scanner sees, from a mapped file or from a stream that is being
//! inflated.
//!
//! If all bytes are available, the window is a slice and nothing is copied. For a stream, it holds what has
//! been inflated but not yet read. Either way it only opens as far as the scanner needs, so that one damaged
//! event cannot make the scanner run to the end of the file for each following event.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender};

use crate::budget::Budget;
use crate::input::Inflating;

/// How much text the window opens at a time.
pub(super) const BLOCK: usize = 256 << 10;

/// Answer of a stream to a request for more.
pub(super) struct Fed {
    /// Bytes of the file that were consumed.
    pub(super) read: u64,
    /// True if there is nothing more to come.
    pub(super) end: bool,
    /// The error; nothing more comes after it.
    pub(super) error: Option<io::Error>,
}

/// Appends text to the buffer, at least one byte unless it is the end.
pub(super) type Feed<'a> = dyn FnMut(&mut Vec<u8>) -> Fed + 'a;

enum Source<'a> {
    Held(&'a [u8]),
    Stream { buffer: Vec<u8>, feed: Box<Feed<'a>>, budget: &'a Budget },
}

/// The visible part of the text.
pub(super) struct Window<'a> {
    source: Source<'a>,
    /// The visible part of the source's bytes.
    start: usize,
    end: usize,
    block: usize,
    /// Position of the window in the whole text.
    offset: u64,
    /// True if the text ends where the window ends.
    last: bool,
    /// Bytes of the file read since the last call of [`Window::take_read`].
    read: u64,
    /// The error that broke the stream, if any.
    pub(super) error: Option<io::Error>,
}

impl<'a> Window<'a> {
    /// A window over available bytes, opening by `block` bytes.
    pub(super) fn held(bytes: &'a [u8], block: usize) -> Self {
        Self::over(Source::Held(bytes), block)
    }

    /// A window over text from `feed`. It opens no further than the budget allows for a single value.
    pub(super) fn stream(feed: Box<Feed<'a>>, block: usize, budget: &'a Budget) -> Self {
        Self::over(Source::Stream { buffer: Vec::new(), feed, budget }, block)
    }

    fn over(source: Source<'a>, block: usize) -> Self {
        Window { source, start: 0, end: 0, block, offset: 0, last: false, read: 0, error: None }
    }

    /// The visible text.
    #[inline]
    pub(super) fn text(&self) -> &[u8] {
        let bytes = match &self.source {
            Source::Held(bytes) => bytes,
            Source::Stream { buffer, .. } => &buffer[..],
        };
        bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// Position of the window in the whole text.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// True if the text ends where the window ends.
    pub(super) fn is_last(&self) -> bool {
        self.last
    }

    /// Bytes of the file read since the last call.
    pub(super) fn take_read(&mut self) -> u64 {
        std::mem::take(&mut self.read)
    }

    /// Advances the start by `bytes`.
    pub(super) fn consume(&mut self, bytes: usize) {
        let bytes = bytes.min(self.end - self.start);
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// Opens the window further: by a block, or by half of what is visible if that is more, so that a long
    /// value costs a few attempts instead of one per block. Returns whether there is more to see.
    pub(super) fn more(&mut self) -> bool {
        if self.last {
            return false;
        }
        let seen = self.end - self.start;
        let wanted = seen + self.block.max(seen / 2);
        match &mut self.source {
            Source::Held(bytes) => {
                let before = self.end;
                self.end = self.start.saturating_add(wanted).min(bytes.len());
                self.last = self.end == bytes.len();
                self.read += (self.end - before) as u64;
            }
            Source::Stream { buffer, feed, budget } => {
                if let Err(over) = budget.value(wanted as u64) {
                    self.last = true;
                    self.error = Some(over.into());
                    return false;
                }
                buffer.drain(..self.start);
                self.start = 0;
                buffer.reserve_exact(wanted.saturating_sub(buffer.len()));
                while buffer.len() < wanted && !self.last {
                    let fed = feed(buffer);
                    self.read += fed.read;
                    self.last = fed.end || fed.error.is_some();
                    self.error = fed.error;
                }
                self.end = buffer.len();
            }
        }
        self.end - self.start > seen
    }
}

/// A block of inflated text, and the bytes it took.
type Inflated = (Vec<u8>, Fed);

/// Inflates a file of `left` bytes ahead into a channel, until the end or until the receiver is gone. Blocks
/// come back to be reused.
pub(super) fn inflate(
    mut decoder: Inflating<'_>,
    mut left: usize,
    full: &SyncSender<Inflated>,
    empty: &Receiver<Vec<u8>>,
) {
    loop {
        let mut block = empty.try_recv().unwrap_or_default();
        block.clear();
        let outcome = (&mut decoder).take(BLOCK as u64).read_to_end(&mut block);
        let now = decoder.left();
        let read = (left - now.min(left)) as u64;
        left = now;
        let fed = Fed { read, end: block.is_empty(), error: outcome.err() };
        let stop = fed.end || fed.error.is_some();
        if full.send((block, fed)).is_err() || stop {
            return;
        }
    }
}

/// The receiving end of [`inflate`].
pub(super) fn inflated<'a>(full: Receiver<Inflated>, empty: Sender<Vec<u8>>) -> Box<Feed<'a>> {
    Box::new(move |buffer| match full.recv() {
        Ok((block, fed)) => {
            buffer.extend_from_slice(&block);
            // A block that cannot be returned is simply freed.
            let _ = empty.send(block);
            fed
        }
        Err(_) => Fed { read: 0, end: true, error: None },
    })
}
