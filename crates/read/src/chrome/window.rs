//! A window over the text: the part that the scanner sees, from a map or from a stream that is being inflated.
//!
//! Over bytes that are all there the window is a slice and nothing is copied. Over a stream it holds what has
//! been inflated and not yet read. Either way it opens only as far as the scanner needs, so that one damaged
//! event cannot make the scanner run to the end of the file and back for each event that follows.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender};

use crate::input::Inflating;

/// How much text the window opens by.
pub(super) const BLOCK: usize = 256 << 10;

/// What a stream says when it is asked for more.
pub(super) struct Fed {
    /// Bytes of the file that went into it.
    pub(super) read: u64,
    /// Is there nothing more to come?
    pub(super) end: bool,
    /// What broke; then there is nothing more to come either.
    pub(super) error: Option<io::Error>,
}

/// Appends text to the buffer, at least a byte unless it is the end.
pub(super) type Feed<'a> = dyn FnMut(&mut Vec<u8>) -> Fed + 'a;

enum Source<'a> {
    Held(&'a [u8]),
    Stream { buffer: Vec<u8>, feed: Box<Feed<'a>> },
}

/// The part of the text that can be seen.
pub(super) struct Window<'a> {
    source: Source<'a>,
    /// The seen part of the source's bytes.
    start: usize,
    end: usize,
    block: usize,
    /// Where in the whole text the window starts.
    offset: u64,
    /// Does the text end where the window ends?
    last: bool,
    /// Bytes of the file read since [`Window::take_read`] was last asked.
    read: u64,
    /// What broke the stream, if anything did.
    pub(super) error: Option<io::Error>,
}

impl<'a> Window<'a> {
    /// Over bytes that are all there, opening by `block` bytes.
    pub(super) fn held(bytes: &'a [u8], block: usize) -> Self {
        Self::over(Source::Held(bytes), block)
    }

    /// Over text that `feed` delivers.
    pub(super) fn stream(feed: Box<Feed<'a>>, block: usize) -> Self {
        Self::over(Source::Stream { buffer: Vec::new(), feed }, block)
    }

    fn over(source: Source<'a>, block: usize) -> Self {
        Window { source, start: 0, end: 0, block, offset: 0, last: false, read: 0, error: None }
    }

    /// What can be seen.
    #[inline]
    pub(super) fn text(&self) -> &[u8] {
        let bytes = match &self.source {
            Source::Held(bytes) => bytes,
            Source::Stream { buffer, .. } => &buffer[..],
        };
        bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// Where in the whole text the window starts.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Does the text end where the window ends?
    pub(super) fn is_last(&self) -> bool {
        self.last
    }

    /// Bytes of the file read since this was last asked.
    pub(super) fn take_read(&mut self) -> u64 {
        std::mem::take(&mut self.read)
    }

    /// Moves the start on by `bytes`.
    pub(super) fn consume(&mut self, bytes: usize) {
        let bytes = bytes.min(self.end - self.start);
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// Opens the window further: by a block, or by half of what is already seen if that is more, so that a long
    /// value costs a few attempts and not one for each block. Says whether there is more to see now.
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
            Source::Stream { buffer, feed } => {
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

/// A block of inflated text, and what it took.
type Inflated = (Vec<u8>, Fed);

/// Inflates a file of `left` bytes ahead into a channel, until the end or until nobody listens. Blocks come back
/// to be filled again.
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

/// The listening end of [`inflate`].
pub(super) fn inflated<'a>(full: Receiver<Inflated>, empty: Sender<Vec<u8>>) -> Box<Feed<'a>> {
    Box::new(move |buffer| match full.recv() {
        Ok((block, fed)) => {
            buffer.extend_from_slice(&block);
            // A block that nobody wants back is simply freed.
            let _ = empty.send(block);
            fed
        }
        Err(_) => Fed { read: 0, end: true, error: None },
    })
}
