//! All events of a profile as columns, with the names and units of the Parquet export: host, process, track, name,
//! category, start and duration in picoseconds.
//!
//! Names are codes into one set for all hosts, as narrow as the set allows, so that an event takes about 22 bytes
//! and no text is repeated. The columns are filled on all cores.

use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use stepscope_export::{ExportSource, Origins};
use stepscope_session::Profile;
use stepscope_trace::{StrId, Time, Trace, Track};

use crate::column::{Codes, Column, Frame, Values, Words};

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
    let mut sets = Sets::default();
    let mut stretches = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        let host = sets.host.code(source.host);
        let kinds: Arc<Vec<[i32; 2]>> = Arc::new(sets.kinds(source.trace));
        // The origin of a host as its offset from the earliest; centuries apart, times saturate.
        let offset = origins.ps(number, Time::ZERO);
        let offset = i64::try_from(offset).unwrap_or(if offset < 0 { i64::MIN } else { i64::MAX });
        for track in source.trace.tracks() {
            let process = sets.process.code(source.trace.str(source.trace.process(track.process).name));
            let place = [host, process, sets.track.code(source.trace.str(track.name))];
            for first in (0..track.len()).step_by(PIECE) {
                let len = PIECE.min(track.len() - first);
                stretches.push(Stretch { track, first, len, offset, place, kinds: Arc::clone(&kinds) });
            }
        }
    }
    // Names and categories depend on the event; the other three are the same for a stretch.
    let rows = stretches.iter().map(|stretch| stretch.len).sum();
    let mut codes = sets.sizes().map(|words| Codes::zeros(rows, words));
    let (mut starts, mut durs) = (vec![0; rows], vec![0; rows]);
    for (column, codes) in codes.iter_mut().enumerate() {
        let code = |stretch: &Stretch<'_>, row: usize| stretch.code(column, row);
        match codes {
            Codes::I8(out) => {
                fill(&stretches, out, |stretch, row| i8::try_from(code(stretch, row)).unwrap_or(0));
            }
            Codes::I16(out) => {
                fill(&stretches, out, |stretch, row| i16::try_from(code(stretch, row)).unwrap_or(0));
            }
            Codes::I32(out) => fill(&stretches, out, code),
        }
    }
    fill(&stretches, &mut starts, |stretch, row| {
        stretch.track.start(stretch.first + row).ps().saturating_add(stretch.offset)
    });
    fill(&stretches, &mut durs, |stretch, row| stretch.track.dur(stretch.first + row).ps());
    named(codes, sets, starts, durs)
}

/// Events of one track that follow one another.
struct Stretch<'a> {
    track: &'a Track,
    first: usize,
    len: usize,
    /// From the earliest origin to that of the host, in picoseconds.
    offset: i64,
    /// Codes of host, process and track.
    place: [i32; 3],
    /// Codes of name and category for each kind of the host.
    kinds: Arc<Vec<[i32; 2]>>,
}

impl Stretch<'_> {
    /// The code of the `row`th event in the `column`th column.
    #[inline]
    fn code(&self, column: usize, row: usize) -> i32 {
        if let Some(code) = self.place.get(column) {
            return *code;
        }
        let kind = self.track.kind_of(self.first + row);
        let codes = self.kinds.get(kind.index()).copied().unwrap_or_default();
        codes.get(column - self.place.len()).copied().unwrap_or(0)
    }
}

/// Fills a column on all cores: each stretch its own part, so that memory is first touched by the core that fills it.
fn fill<T: Copy + Send>(
    stretches: &[Stretch<'_>],
    out: &mut [T],
    value: impl Fn(&Stretch<'_>, usize) -> T + Sync,
) {
    let (mut parts, mut rest) = (Vec::with_capacity(stretches.len()), out);
    for stretch in stretches {
        let (part, left) = rest.split_at_mut(stretch.len.min(rest.len()));
        parts.push((stretch, part));
        rest = left;
    }
    parts.into_par_iter().for_each(|(stretch, part)| {
        part.iter_mut().enumerate().for_each(|(row, slot)| *slot = value(stretch, row));
    });
}

fn named(codes: [Codes; 5], sets: Sets, starts: Vec<i64>, durs: Vec<i64>) -> Frame {
    let Sets { host, process, track, name, category } = sets;
    let titles = ["host", "process", "track", "name", "category"];
    let coded = titles.into_iter().zip(codes).zip([host, process, track, name, category]);
    let mut columns: Vec<Column> = coded
        .map(|((title, codes), set)| Column::new(title, Values::Code { codes, words: Arc::new(set.words) }))
        .collect();
    columns.push(Column::new("start_ps", Values::Int(starts)));
    columns.push(Column::new("duration_ps", Values::Int(durs)));
    Frame::new(columns)
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
    /// How many texts each has.
    fn sizes(&self) -> [usize; 5] {
        [&self.host, &self.process, &self.track, &self.name, &self.category].map(|set| set.words.len())
    }

    /// Codes of name and category for each kind of a trace. Kinds share names; a text is coded once.
    fn kinds(&mut self, trace: &Trace) -> Vec<[i32; 2]> {
        let mut known: FxHashMap<StrId, i32> = FxHashMap::default();
        let kinds = trace.kinds().iter();
        kinds
            .map(|kind| {
                let name = *known.entry(kind.name).or_insert_with(|| self.name.code(trace.str(kind.name)));
                [name, self.category.code(trace.str(kind.category))]
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
            Values::Code { codes, words } => words.get(codes.get(row).unwrap()),
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
