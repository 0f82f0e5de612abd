//! The document around the events: an object with a `traceEvents` member, or a bare array.
//!
//! Walks the window member by member and event by event. If the window cuts a unit in two, the unit is scanned
//! again once more of it is visible, so that nothing depends on block boundaries.

use memchr::memmem;
use stepscope_trace::NoteKind;

use super::event::{Fields, next_event, scan_event};
use super::load::Loader;
use super::repair::Repair;
use super::scan::{Piece, Scan, Scanner, Stop, Within};
use super::window::Window;
use crate::Progress;

/// What is expected next.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum State {
    /// The first bracket of the document.
    Start,
    /// A member of the top-level object.
    Member { first: bool },
    /// An event; `inside` an object or not.
    Event { first: bool, inside: bool },
    /// Nothing: the document is complete.
    Done,
}

/// Result of an attempt to continue.
enum Step {
    Next(State),
    /// The window must grow.
    More,
}

/// Walks a document and passes what it finds to a loader.
pub(super) struct Document {
    state: State,
    fields: Fields,
    pub(super) events: u64,
}

impl Document {
    pub(super) fn new() -> Self {
        Document { state: State::Start, fields: Fields::default(), events: 0 }
    }

    /// Reads everything in the window. Returns where the text was truncated, if it was.
    pub(super) fn read(
        &mut self,
        window: &mut Window<'_>,
        loader: &mut Loader,
        progress: &Progress,
    ) -> Option<u64> {
        loop {
            let before = self.events;
            let used = self.walk(window, loader);
            window.consume(used);
            progress.advance(window.take_read(), self.events - before);
            if !window.more() && window.is_last() {
                // The window shows everything: one more walk sees the end of the text.
                let used = self.walk(window, loader);
                window.consume(used);
                progress.advance(window.take_read(), 0);
                return self.broken_at(window, loader);
            }
        }
    }

    /// Where the text is truncated, if it is. A bare array may lack its closing bracket, because profilers that
    /// append to a file omit it.
    fn broken_at(&self, window: &Window<'_>, loader: &mut Loader) -> Option<u64> {
        let (offset, rest) = (window.offset(), window.text());
        let between_events = rest.iter().all(|&byte| byte <= b' ' || byte == b',');
        match self.state {
            State::Done => None,
            State::Event { inside: false, .. } if between_events && self.events > 0 => {
                loader.repairs.count(Repair::MissingBracket);
                loader.repairs.note(&mut loader.builder, offset);
                None
            }
            _ => Some(offset),
        }
    }

    /// Continues as far as the window is visible, and returns that position.
    fn walk(&mut self, window: &Window<'_>, loader: &mut Loader) -> usize {
        let (text, at_end) = (window.text(), window.is_last());
        let mut scanner = Scanner::new(text, 0);
        let mut done = 0;
        while self.state != State::Done {
            let step = match self.state {
                State::Event { first, inside } => self.event(&mut scanner, loader, first, inside, at_end),
                State::Member { first } => self.member(&mut scanner, loader, first, at_end),
                _ => start(&mut scanner),
            };
            match step {
                Step::Next(state) => self.state = state,
                Step::More => break,
            }
            loader.repairs.add(scanner.repairs);
            scanner.repairs = Default::default();
            loader.repairs.note(&mut loader.builder, window.offset() + done as u64);
            done = scanner.at;
        }
        if self.state == State::Done {
            let junk = text[done..].iter().position(|&byte| byte > b' ');
            if let Some(junk) = junk.filter(|_| !std::mem::replace(&mut loader.junk, true)) {
                let offset = window.offset() + (done + junk) as u64;
                loader.builder.note(NoteKind::Repaired, "trailing-junk", 1, Some(offset));
            }
            return text.len();
        }
        done
    }

    fn event(
        &mut self,
        scanner: &mut Scanner<'_>,
        loader: &mut Loader,
        first: bool,
        inside: bool,
        at_end: bool,
    ) -> Step {
        let Ok(mut next) = scanner.peek() else { return Step::More };
        let mut commas = 0;
        while next == b',' {
            commas += 1;
            scanner.at += 1;
            match scanner.peek() {
                Ok(byte) => next = byte,
                Err(_) => return Step::More,
            }
        }
        if next == b']' {
            if commas > 0 {
                scanner.repairs.count(Repair::TrailingComma);
            }
            scanner.at += 1;
            return Step::Next(if inside { State::Member { first: false } } else { State::Done });
        }
        if next == b'}' && inside {
            return stray_brace(scanner, at_end);
        }
        match (first, commas) {
            (true, 0) | (false, 1) => {}
            (false, 0) => scanner.repairs.count(Repair::MissingComma),
            _ => scanner.repairs.count(Repair::TrailingComma),
        }
        let outcome = if next == b'{' {
            scan_event(scanner, &mut self.fields, at_end)
        } else {
            not_an_event(scanner, at_end)
        };
        match outcome {
            Ok(()) => {
                loader.event(scanner.text, &self.fields);
                self.events += 1;
            }
            Err(Stop::More) => return Step::More,
            Err(_) => {}
        }
        Step::Next(State::Event { first: false, inside })
    }

    fn member(&mut self, scanner: &mut Scanner<'_>, loader: &mut Loader, first: bool, at_end: bool) -> Step {
        let start = scanner.at;
        match header_member(scanner, first) {
            Ok(Member::End) => Step::Next(State::Done),
            Ok(Member::Events) => Step::Next(State::Event { first: true, inside: true }),
            Ok(Member::Other(key, value)) => {
                loader.header(scanner.text, key, value);
                Step::Next(State::Member { first: false })
            }
            Err(Stop::More) if !at_end && scanner.text.len() - start < SUSPICIOUS => Step::More,
            Err(stop) => recover(scanner, start, stop, at_end),
        }
    }
}

/// If a member longer than this does not end, it has probably lost a quotation mark or a bracket.
const SUSPICIOUS: usize = 16 << 20;

enum Member {
    End,
    Events,
    Other(Piece, Piece),
}

fn start(scanner: &mut Scanner<'_>) -> Step {
    if scanner.text.starts_with(b"\xef\xbb\xbf") {
        scanner.at = 3;
    }
    match scanner.peek() {
        Ok(b'[') => {
            scanner.at += 1;
            Step::Next(State::Event { first: true, inside: false })
        }
        Ok(b'{') => {
            scanner.at += 1;
            Step::Next(State::Member { first: true })
        }
        Ok(_) => Step::Next(State::Done),
        Err(_) => Step::More,
    }
}

fn header_member(scanner: &mut Scanner<'_>, first: bool) -> Scan<Member> {
    let Some(key) = scanner.member(first)? else { return Ok(Member::End) };
    if key.of(scanner.text) == b"traceEvents" && scanner.peek()? == b'[' {
        scanner.at += 1;
        return Ok(Member::Events);
    }
    let value = scanner.value(Within::Member)?;
    // The next byte must be visible too; otherwise a number that the window cuts would look complete.
    scanner.peek()?;
    Ok(Member::Other(key, value))
}

/// Continues after an unreadable member: at the events, or at the next thing that looks like one.
fn recover(scanner: &mut Scanner<'_>, start: usize, stop: Stop, at_end: bool) -> Step {
    const EVENTS: &[u8] = b"\"traceEvents\"";
    let rest = scanner.text.get(start + 1..).unwrap_or_default();
    if let Some(at) = memmem::find(rest, EVENTS) {
        scanner.at = start + 1 + at;
        scanner.repairs.count(Repair::UnreadableHeader);
        return Step::Next(State::Member { first: true });
    }
    if stop == Stop::More || !at_end {
        return Step::More;
    }
    match next_event(scanner.text, start, at_end) {
        Some(at) => {
            scanner.at = at;
            scanner.repairs.count(Repair::UnreadableHeader);
            Step::Next(State::Event { first: true, inside: true })
        }
        None => Step::More,
    }
}

/// A closing brace in the list of events: either one too many, or the end of the object if the list was never
/// closed.
fn stray_brace(scanner: &mut Scanner<'_>, at_end: bool) -> Step {
    match next_event(scanner.text, scanner.at + 1, at_end) {
        Some(next) => {
            scanner.at = next;
            scanner.repairs.count(Repair::UnreadableEvent);
            Step::Next(State::Event { first: true, inside: true })
        }
        None if !at_end => Step::More,
        None => {
            scanner.repairs.count(Repair::MissingBracket);
            Step::Next(State::Member { first: false })
        }
    }
}

/// Skips something in the list of events that is not an object.
fn not_an_event(scanner: &mut Scanner<'_>, at_end: bool) -> Scan<()> {
    let start = scanner.at;
    let stop = match scanner.value(Within::Nested) {
        Ok(_) if scanner.at > start => {
            scanner.repairs.count(Repair::UnreadableEvent);
            return Err(Stop::Bad);
        }
        Ok(_) => Stop::Bad,
        Err(Stop::More) if !at_end => return Err(Stop::More),
        Err(stop) => stop,
    };
    let from = if stop == Stop::Deep { scanner.at } else { start + 1 };
    match next_event(scanner.text, from, at_end) {
        Some(next) => scanner.at = next,
        None if stop == Stop::More || !at_end => return Err(Stop::More),
        None => scanner.at = scanner.text.len(),
    }
    scanner.repairs.count(Repair::UnreadableEvent);
    Err(Stop::Bad)
}
