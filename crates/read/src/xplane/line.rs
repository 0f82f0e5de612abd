//! The first pass over one line: where its events are.
//!
//! The way from event to event is a chain, which one core has to follow. A profile of a loop has nearly all its events
//! on one line, so the other cores would idle. A long line is therefore cut
//! where events seem to begin, and every part is followed on a core of its own. A part counts only if the chain of
//! the part before it arrives exactly at its first event. Otherwise the chain goes on as if there were no such part, so that
//! a wrong guess costs time and changes nothing.

use std::ops::Range;

use rayon::prelude::*;

use super::schema::{event_tag, line};
use stepscope_wire::{Broken, Cursor, Field, Payload};

/// Number of events of a line that are decoded together: large enough to outweigh the overhead of parallel
/// work, small enough that all cores finish at about the same time.
const EVENTS_PER_PIECE: usize = 1 << 16;
/// Length of the parts of a line that are followed at the same time, in bytes.
const PART: usize = 4 << 20;
/// How many bytes after a cut are searched for the beginning of an event: several events.
const SEARCHED: usize = 1 << 10;
/// Number of events in a row that make a beginning credible.
const CREDIBLE: usize = 16;

/// Some consecutive events of a line.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub range: Range<usize>,
    /// The number of its first event in the line.
    pub first: usize,
    pub events: usize,
}

/// The parts of a line.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub id: i64,
    pub name: Range<usize>,
    pub display_name: Range<usize>,
    pub timestamp_ns: i64,
    pub pieces: Vec<Piece>,
    pub events: usize,
    pub broken: Option<Broken>,
}

impl Line {
    pub fn scan(file: &[u8], range: Range<usize>) -> Self {
        let mut found = Line::default();
        let mut cursor = Cursor::new(file, range.clone());
        for part in parts(file, range) {
            if found.broken.is_none() && cursor.at() < part.start {
                found.follow(&mut cursor, part.start);
            }
            if found.broken.is_none() && cursor.at() == part.start {
                found.adopt(part.pieces);
                cursor.jump(part.end);
            }
        }
        if found.broken.is_none() {
            found.follow(&mut cursor, usize::MAX);
        }
        found
    }

    /// Goes from field to field until `limit` or the end.
    fn follow(&mut self, cursor: &mut Cursor<'_>, limit: usize) {
        let mut pieces = Pieces::at(cursor.at());
        while cursor.at() < limit {
            if cursor.short_after(line::EVENTS_TAG).is_none() {
                match cursor.field().map(|field| field.map(|field| self.take(field))) {
                    Ok(Some(Ok(true))) => {}
                    Ok(Some(Ok(false))) => continue,
                    Ok(None) => break,
                    Ok(Some(Err(broken))) | Err(broken) => {
                        self.broken = Some(broken);
                        break;
                    }
                }
            }
            pieces.event_until(cursor.at());
        }
        self.adopt(pieces.finish());
    }

    /// Handles a field that is not an event in its usual form; returns whether it was an event after all.
    fn take(&mut self, field: Field) -> Result<bool, Broken> {
        match (field.number, field.value) {
            (line::ID, Payload::Varint(id)) => self.id = id as i64,
            (line::NAME, Payload::Len(range)) => self.name = range,
            (line::DISPLAY_NAME, Payload::Len(range)) => self.display_name = range,
            (line::TIMESTAMP_NS, Payload::Varint(ns)) => self.timestamp_ns = ns as i64,
            (line::EVENTS, Payload::Len(_)) => return Ok(true),
            (_, Payload::Cut(_)) => return Err(Broken { what: Broken::OVERRUN, at: field.at }),
            _ => {}
        }
        Ok(false)
    }

    /// Appends pieces whose numbers start at 0.
    fn adopt(&mut self, pieces: Vec<Piece>) {
        for piece in pieces {
            let first = self.events;
            self.events += piece.events;
            self.pieces.push(Piece { first, ..piece });
        }
    }
}

/// Collects events into pieces.
struct Pieces {
    done: Vec<Piece>,
    open: Piece,
}

impl Pieces {
    fn at(at: usize) -> Self {
        Pieces { done: Vec::new(), open: Piece { range: at..at, first: 0, events: 0 } }
    }

    /// Adds an event that ends here.
    #[inline(always)]
    fn event_until(&mut self, end: usize) {
        self.open.events += 1;
        self.open.range.end = end;
        if self.open.events == EVENTS_PER_PIECE {
            self.close();
        }
    }

    fn close(&mut self) {
        let end = self.open.range.end;
        self.done.push(std::mem::replace(&mut self.open, Piece { range: end..end, first: 0, events: 0 }));
    }

    fn finish(mut self) -> Vec<Piece> {
        if self.open.events > 0 {
            self.close();
        }
        self.done
    }
}

/// Events that follow each other without anything in between, if the first begins where it seems to.
struct Part {
    start: usize,
    end: usize,
    pieces: Vec<Piece>,
}

/// The parts of a long line, in order; none of a short one. A part ends where the next one starts, or before it at
/// the first field that is not an event in its usual form.
fn parts(file: &[u8], range: Range<usize>) -> Vec<Part> {
    if range.len() < 2 * PART || rayon::current_num_threads() < 2 {
        return Vec::new();
    }
    let mut starts: Vec<usize> =
        range.clone().step_by(PART).filter_map(|at| beginning(file, at, range.end)).collect();
    starts.dedup();
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([range.end]).collect();
    starts.into_par_iter().zip(ends).map(|(start, end)| part(file, start, end, range.end)).collect()
}

fn part(file: &[u8], start: usize, end: usize, line_end: usize) -> Part {
    let mut cursor = Cursor::new(file, start..line_end);
    let mut pieces = Pieces::at(start);
    while cursor.at() < end && cursor.short_after(line::EVENTS_TAG).is_some() {
        pieces.event_until(cursor.at());
    }
    Part { start, end: cursor.at(), pieces: pieces.finish() }
}

/// The first position from `at` on where several events in a row seem to begin.
fn beginning(file: &[u8], at: usize, end: usize) -> Option<usize> {
    (at..end.min(at + SEARCHED)).find(|&start| {
        let mut cursor = Cursor::new(file, start..end);
        (0..CREDIBLE).all(|_| {
            let body = cursor.short_after(line::EVENTS_TAG);
            body.is_some_and(|body| file.get(body.start) == Some(&event_tag::METADATA_ID))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of `events` events, some with a field in between that is no event or with bytes that look like one.
    fn long_line(events: usize, odd: usize) -> Vec<u8> {
        let mut bytes = vec![0x08, 7, 0x12, 1, b'n'];
        for event in 0..events {
            let id = (event % 100) as u8;
            if odd > 0 && event % odd == 0 {
                // A string with two hundred events inside, as an unknown field.
                let inside = [line::EVENTS_TAG, 4, event_tag::METADATA_ID, 1, 0x10, 1].repeat(200);
                bytes.extend([0x7a, (inside.len() & 0x7f) as u8 | 0x80, (inside.len() >> 7) as u8]);
                bytes.extend(inside);
            }
            bytes.extend([line::EVENTS_TAG, 6, event_tag::METADATA_ID, id, 0x10, id, 0x18, id]);
        }
        bytes.extend([0x5a, 2, b'd', b'n']);
        bytes
    }

    /// The same without parts.
    fn one_by_one(file: &[u8], range: Range<usize>) -> Line {
        let mut found = Line::default();
        found.follow(&mut Cursor::new(file, range), usize::MAX);
        found
    }

    fn positions(file: &[u8], line: &Line) -> Vec<usize> {
        let mut all = Vec::new();
        for piece in &line.pieces {
            assert_eq!(piece.first, all.len());
            let mut cursor = Cursor::new(file, piece.range.clone());
            for _ in 0..piece.events {
                while cursor.peek() != Some(line::EVENTS_TAG) {
                    cursor.field().unwrap().unwrap();
                }
                all.push(cursor.at());
                cursor.short_after(line::EVENTS_TAG).unwrap();
            }
        }
        all
    }

    #[test]
    fn a_long_line_has_the_same_events_in_parts_as_in_one_go() {
        for (events, odd) in [(2_000_000, 0), (1_200_000, 150_000), (90_000, 7), (3_000_000, 2_999_999)] {
            let file = long_line(events, odd);
            assert!(file.len() > 2 * PART, "{}", file.len());
            for cut in [0, 3] {
                let range = 0..file.len() - cut;
                let (whole, single) = (Line::scan(&file, range.clone()), one_by_one(&file, range));
                assert_eq!(whole.events, events);
                assert_eq!(positions(&file, &whole), positions(&file, &single), "{events} {odd}");
                assert_eq!((whole.id, whole.name, whole.display_name), (7, single.name, single.display_name));
                assert_eq!(whole.broken, single.broken);
            }
        }
    }
}
