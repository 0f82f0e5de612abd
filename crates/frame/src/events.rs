//! All events of a profile as columns, with the names and units of the Parquet export: host, process, track, name,
//! category, start and duration in picoseconds.
//!
//! Names are codes into one set for all hosts, so that nine million events take 36 bytes each and no text is repeated.
//! The columns are filled on all cores, each track into its own part.

use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use stepscope_export::{ExportSource, Origins};
use stepscope_session::Profile;
use stepscope_trace::{StrId, Trace, Track};

use crate::column::{Column, Frame, Values, Words};

/// Events per piece of work.
const PIECE: usize = 1 << 18;

/// All events of all hosts, track by track, in time order.
pub fn frame(profile: &Profile) -> Frame {
    let sources: Vec<ExportSource<'_>> =
        profile.hosts.iter().map(|host| ExportSource { host: &host.host, trace: &host.trace }).collect();
    of_sources(&sources)
}

fn of_sources(sources: &[ExportSource<'_>]) -> Frame {
    let origins = Origins::of(sources);
    let rows: usize = sources.iter().flat_map(|source| source.trace.tracks()).map(Track::len).sum();
    let mut sets = Sets::default();
    let mut out = Columns::new(rows);
    let mut pieces = Vec::new();
    let mut rest = out.all();
    for (number, source) in sources.iter().enumerate() {
        let host = sets.host.code(source.host);
        let kinds: Arc<Vec<(i32, i32)>> = Arc::new(sets.kinds(source.trace));
        for track in source.trace.tracks() {
            let process = sets.process.code(source.trace.str(source.trace.process(track.process).name));
            let place = [host, process, sets.track.code(source.trace.str(track.name))];
            for first in (0..track.len()).step_by(PIECE) {
                let (part, left) = rest.split(PIECE.min(track.len() - first));
                rest = left;
                pieces.push(Piece { number, track, first, place, kinds: Arc::clone(&kinds), part });
            }
        }
    }
    pieces.into_par_iter().for_each(|piece| piece.fill(&origins));
    out.finish(sets)
}

/// A part of a track, and where its columns go.
struct Piece<'a> {
    number: usize,
    track: &'a Track,
    first: usize,
    place: [i32; 3],
    /// Codes of name and category for each kind of the host.
    kinds: Arc<Vec<(i32, i32)>>,
    part: Part<'a>,
}

impl Piece<'_> {
    fn fill(self, origins: &Origins) {
        let Part { codes: [host, process, track, name, category], start, dur } = self.part;
        for (column, code) in [host, process, track].into_iter().zip(self.place) {
            column.fill(code);
        }
        let columns = name.iter_mut().zip(category).zip(start).zip(dur);
        for (index, (((name, category), start), dur)) in (self.first..).zip(columns) {
            let kind = self.track.kind_of(index);
            (*name, *category) = self.kinds.get(kind.index()).copied().unwrap_or_default();
            let ps = origins.ps(self.number, self.track.start(index));
            *start = i64::try_from(ps).unwrap_or(if ps < 0 { i64::MIN } else { i64::MAX });
            *dur = self.track.dur(index).ps();
        }
    }
}

/// Columns while they are filled.
struct Columns {
    codes: [Vec<i32>; 5],
    start: Vec<i64>,
    dur: Vec<i64>,
}

/// A stretch of all columns.
struct Part<'a> {
    codes: [&'a mut [i32]; 5],
    start: &'a mut [i64],
    dur: &'a mut [i64],
}

impl Columns {
    fn new(rows: usize) -> Self {
        // Zeroed memory is first touched by the core that fills it.
        Columns { codes: std::array::from_fn(|_| vec![0; rows]), start: vec![0; rows], dur: vec![0; rows] }
    }

    fn all(&mut self) -> Part<'_> {
        let codes = self.codes.each_mut().map(Vec::as_mut_slice);
        Part { codes, start: &mut self.start, dur: &mut self.dur }
    }

    fn finish(self, sets: Sets) -> Frame {
        let Sets { host, process, track, name, category } = sets;
        let sets = [host, process, track, name, category];
        let titles = ["host", "process", "track", "name", "category"];
        let named = titles.into_iter().zip(self.codes).zip(sets);
        let mut columns: Vec<Column> = named
            .map(|((title, codes), set)| {
                Column::new(title, Values::Code { codes, words: Arc::new(set.words) })
            })
            .collect();
        columns.push(Column::new("start_ps", Values::Int(self.start)));
        columns.push(Column::new("duration_ps", Values::Int(self.dur)));
        Frame::new(columns)
    }
}

impl<'a> Part<'a> {
    /// The first `len` rows, and the others.
    fn split(self, len: usize) -> (Part<'a>, Part<'a>) {
        let (mut front, mut back) = (Vec::with_capacity(5), Vec::with_capacity(5));
        for column in self.codes {
            let (head, tail) = column.split_at_mut(len.min(column.len()));
            front.push(head);
            back.push(tail);
        }
        let five = |all: Vec<&'a mut [i32]>| {
            let mut all = all.into_iter();
            std::array::from_fn(|_| all.next().unwrap_or_default())
        };
        let (start, starts) = self.start.split_at_mut(len.min(self.start.len()));
        let (dur, durs) = self.dur.split_at_mut(len.min(self.dur.len()));
        (Part { codes: five(front), start, dur }, Part { codes: five(back), start: starts, dur: durs })
    }
}

/// The texts of each coded column.
#[derive(Default)]
struct Sets {
    host: Set,
    process: Set,
    track: Set,
    name: Set,
    category: Set,
}

impl Sets {
    /// Codes of name and category for each kind of a trace. Kinds share names; a text is coded once.
    fn kinds(&mut self, trace: &Trace) -> Vec<(i32, i32)> {
        let mut known: FxHashMap<StrId, i32> = FxHashMap::default();
        let kinds = trace.kinds().iter();
        kinds
            .map(|kind| {
                let name = *known.entry(kind.name).or_insert_with(|| self.name.code(trace.str(kind.name)));
                (name, self.category.code(trace.str(kind.category)))
            })
            .collect()
    }
}

/// Texts and their codes.
#[derive(Default)]
struct Set {
    words: Words,
    codes: FxHashMap<String, i32>,
}

impl Set {
    fn code(&mut self, text: &str) -> i32 {
        if let Some(&code) = self.codes.get(text) {
            return code;
        }
        let code = i32::try_from(self.words.len()).unwrap_or(i32::MAX);
        self.words.push(text);
        self.codes.insert(text.to_owned(), code);
        code
    }
}

#[cfg(test)]
mod tests {
    use stepscope_session::sample;

    use super::*;

    fn code(frame: &Frame, column: usize, row: usize) -> &str {
        match &frame.columns()[column].values {
            Values::Code { codes, words } => words.get(usize::try_from(codes[row]).unwrap()),
            other => panic!("{other:?} is not coded"),
        }
    }

    #[test]
    fn every_event_is_a_row_with_its_own_figures() {
        let opened = stepscope_read::open_input(&sample(), &stepscope_read::Progress::new()).unwrap();
        let trace = &opened.trace;
        let frame = of_sources(&[ExportSource { host: "a", trace }, ExportSource { host: "b", trace }]);
        assert_eq!(frame.rows() as u64, trace.events() * 2);
        let Values::Int(starts) = &frame.columns()[5].values else { panic!("starts") };
        let Values::Int(durs) = &frame.columns()[6].values else { panic!("durations") };
        let mut row = 0;
        for host in ["a", "b"] {
            for track in trace.tracks() {
                for index in 0..track.len() {
                    assert_eq!((starts[row], durs[row]), (track.start(index).ps(), track.dur(index).ps()));
                    if index % 97 == 0 {
                        assert_eq!(code(&frame, 0, row), host);
                        assert_eq!(code(&frame, 2, row), trace.str(track.name));
                        assert_eq!(code(&frame, 3, row), trace.kind_name(track.kind_of(index)));
                    }
                    row += 1;
                }
            }
        }
    }

    #[test]
    fn a_text_is_coded_once() {
        let mut set = Set::default();
        assert_eq!(["x", "y", "x"].map(|text| set.code(text)), [0, 1, 0]);
        assert_eq!(set.words.len(), 2, "data-frame libraries refuse a set with repeated texts");
    }
}
