//! One run: all event files of a folder, put together into series.
//!
//! The motivating situation: a job is preempted at step 100, starts again from the checkpoint of step 80, and writes
//! steps 80 to 100 once more, into a new file. The newer points replace the older ones, and the restart is reported.
//! Two programs that log into one folder at the same time look different: their files overlap in time. Then all points
//! stay, in the order of their times.
//!
//! Every point is kept. A reader remembers how far it has read each file, so a file that grew by one record costs one.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use stepscope_trace::series::{
    BlobPlace, Histogram, Histograms, LogDamage, LogFault, OtherKind, OtherTag, Picture, Pictures, RunLog,
    Series,
};

use super::event::{Event, Given, event};
use super::growth::{Grown, grown};
use super::records::{Piece, Records};
use super::restart::{Ends, Replaced, by_time, replace_from, restart};
use super::shape::{Kept, Shape, note};
use super::{hparams, model};
use crate::{Input, ReadError};

/// Maximum number of damaged places to remember; a file of garbage has no end of them.
const MOST_DAMAGE: usize = 1_000;
/// Tags with pictures.
const MOST_PICTURES: usize = 2_000;
/// A damaged tag that differs from a known one in no more bytes than this is that one.
const FLIPPED_BYTES: usize = 2;

/// A file, and how far it was read.
#[derive(Debug)]
struct EventFile {
    path: PathBuf,
    read: usize,
    /// Offsets in it are not those of its content.
    compressed: bool,
}

/// Reads a run, and reads on as it grows.
#[derive(Debug, Default)]
pub struct RunReader {
    log: RunLog,
    files: Vec<EventFile>,
    numbers: FxHashMap<Box<[u8]>, usize>,
    others: FxHashMap<Box<[u8]>, usize>,
    histograms: FxHashMap<Box<[u8]>, Kept<Histogram>>,
    pictures: FxHashMap<Box<[u8]>, Kept<Picture>>,
    /// Where the bytes that are being read lie in memory, and where in their file.
    base: (usize, usize),
    /// The series that the nth value of the last event belonged to: most events name the same tags in the same order.
    usual: Vec<usize>,
    /// The file that wrote each series last.
    writers: Vec<usize>,
    /// Series that two files wrote at the same time.
    mixed: Vec<bool>,
    /// Tags of damaged records, as far as they can be made out.
    lost: Vec<Box<[u8]>>,
    ends: Ends,
}

impl RunReader {
    /// The run of this name, of these files in the order in which they were written.
    pub fn new(name: impl Into<String>, files: Vec<PathBuf>) -> Self {
        let mut reader = RunReader::default();
        reader.log.name = name.into();
        files.into_iter().for_each(|path| reader.add(path));
        reader
    }

    /// Adds a file that appeared later.
    pub fn add(&mut self, path: PathBuf) {
        if !self.files.iter().any(|file| file.path == path) {
            self.files.push(EventFile { path, read: 0, compressed: false });
        }
    }

    /// Reads what is new. A file that cannot be opened is an error; the others are read all the same.
    pub fn read(&mut self) -> Result<(), ReadError> {
        let mut problem = None;
        // What ended in the middle of a record may go on now.
        self.log.damage.retain(|damage| damage.what != LogFault::Cut);
        for number in 0..self.files.len() {
            if let Err(error) = self.read_file(number) {
                problem = Some(error);
            }
        }
        problem.map_or(Ok(()), Err)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.log.name
    }

    /// All that was read so far, without a copy: tags in no particular order.
    pub fn so_far(&self) -> &RunLog {
        &self.log
    }

    /// The points of one tag, in the order in which they count.
    pub fn points(&self, tag: &str) -> Option<Cow<'_, Series>> {
        let place = *self.numbers.get(tag.as_bytes())?;
        let series = self.log.series.get(place)?;
        if !self.mixed.get(place).copied().unwrap_or(false) {
            return Some(Cow::Borrowed(series));
        }
        let mut ordered = series.clone();
        by_time(&mut ordered);
        Some(Cow::Owned(ordered))
    }

    /// The distributions of one tag.
    pub fn histograms(&self, tag: &str) -> Option<&[Histogram]> {
        self.histograms.get(tag.as_bytes()).map(|kept| &kept.kept[..])
    }

    /// The pictures of one tag.
    pub fn pictures(&self, tag: &str) -> Option<&[Picture]> {
        self.pictures.get(tag.as_bytes()).map(|kept| &kept.kept[..])
    }

    /// The bytes at a place, from the file as it is now; at most so many.
    pub fn blob(&self, place: BlobPlace, most: u64) -> Result<Option<Vec<u8>>, ReadError> {
        let Some(file) = self.files.get(place.file).filter(|_| place.bytes <= most) else { return Ok(None) };
        let input = Input::open(&file.path)?;
        let (bytes, _) = input.inflated();
        let start = usize::try_from(place.at).ok();
        let end = start.and_then(|start| start.checked_add(usize::try_from(place.bytes).ok()?));
        Ok(start.zip(end).and_then(|(start, end)| bytes.get(start..end)).map(<[u8]>::to_vec))
    }

    fn place(&self, file: usize, bytes: &[u8]) -> BlobPlace {
        let (base, offset) = self.base;
        let at = bytes.as_ptr().addr().saturating_sub(base).saturating_add(offset);
        BlobPlace { file, at: at as u64, bytes: bytes.len() as u64 }
    }

    /// What the bytes of one file hold.
    pub fn of_bytes(bytes: &[u8]) -> RunLog {
        let mut reader = RunReader::new(".", vec![PathBuf::new()]);
        reader.take_bytes(0, Path::new(""), bytes, 0, 0);
        reader.into_log()
    }

    /// All that was read so far, tags in order.
    pub fn log(&self) -> RunLog {
        let mut log = self.log.clone();
        self.put_in_order(&mut log);
        log
    }

    /// The same, without a copy.
    pub fn into_log(mut self) -> RunLog {
        let mut log = std::mem::take(&mut self.log);
        self.put_in_order(&mut log);
        log
    }

    fn put_in_order(&self, log: &mut RunLog) {
        for tag in &self.lost {
            if let Some(series) = self.most_likely(tag).and_then(|place| log.series.get_mut(place)) {
                series.lost += 1;
            }
        }
        for (series, _) in log.series.iter_mut().zip(&self.mixed).filter(|(_, mixed)| **mixed) {
            by_time(series);
        }
        log.series.sort_by(|a, b| a.tag.cmp(&b.tag));
        log.others.sort_by(|a, b| a.tag.cmp(&b.tag));
        log.texts.sort_by(|a, b| a.tag.cmp(&b.tag));
        let histograms =
            |kept: &Kept<Histogram>| Histograms { tag: kept.tag.clone(), kept: kept.kept.clone() };
        log.histograms = self.histograms.values().map(histograms).collect();
        log.histograms.sort_by(|a, b| a.tag.cmp(&b.tag));
        let pictures = |kept: &Kept<Picture>| Pictures { tag: kept.tag.clone(), kept: kept.kept.clone() };
        log.pictures = self.pictures.values().map(pictures).collect();
        log.pictures.sort_by(|a, b| a.tag.cmp(&b.tag));
        log.graphs.sort_by(|a, b| a.tag.cmp(&b.tag));
    }

    /// The series that a damaged tag most likely names.
    fn most_likely(&self, tag: &[u8]) -> Option<usize> {
        let differing = |known: &[u8]| known.iter().zip(tag).filter(|(a, b)| a != b).count();
        self.numbers.get(tag).copied().or_else(|| {
            let near = self.numbers.iter().filter(|(known, _)| known.len() == tag.len());
            let near = near.map(|(known, place)| (differing(known), *place));
            near.filter(|(flipped, _)| *flipped <= FLIPPED_BYTES).min().map(|(_, place)| place)
        })
    }

    fn read_file(&mut self, number: usize) -> Result<(), ReadError> {
        let Some(file) = self.files.get(number) else { return Ok(()) };
        let (path, from) = (file.path.clone(), file.read);
        if from > 0 && !file.compressed {
            match grown(&path, from)? {
                Grown::Not => return Ok(()),
                Grown::By(bytes) => {
                    let read = self.take_bytes(number, &path, &bytes, from, 0);
                    self.has_read(number, read, false);
                    return Ok(());
                }
                // A file that shrank was replaced. What it held before cannot be told from what it holds now.
                Grown::Replaced => {}
            }
        }
        let input = Input::open(&path)?;
        let (bytes, _) = input.inflated();
        let from = if bytes.len() < from || !input.is_compressed() { 0 } else { from };
        let read = self.take_bytes(number, &path, &bytes, 0, from);
        self.has_read(number, read, input.is_compressed());
        if input.over_budget().is_some() {
            let file = path.display().to_string();
            let damage = LogDamage { file, at: bytes.len() as u64, what: LogFault::OverBudget };
            if !self.log.damage.contains(&damage) {
                self.log.damage.push(damage);
            }
        }
        Ok(())
    }

    fn has_read(&mut self, number: usize, read: usize, compressed: bool) {
        if let Some(file) = self.files.get_mut(number) {
            (file.read, file.compressed) = (read, compressed);
        }
    }

    /// Takes what bytes hold from a place on, which stand at an offset in a file; returns how far that was read.
    fn take_bytes(&mut self, number: usize, path: &Path, bytes: &[u8], offset: usize, from: usize) -> usize {
        let (mut records, mut sound) = (Records::new(bytes, from), 0_u64);
        self.base = (bytes.as_ptr().addr(), offset);
        let mut read = from;
        while let Some((at, piece)) = records.next() {
            let fault = match piece {
                Piece::Record(payload) => {
                    sound += 1;
                    self.take(number, payload);
                    None
                }
                Piece::OddLength(payload) => {
                    sound += 1;
                    self.take(number, payload);
                    Some(LogFault::Length)
                }
                Piece::Damaged(payload) => {
                    self.lose(payload);
                    Some(LogFault::Record)
                }
                Piece::Gap(length) if sound == 0 && offset + at == 0 && length == bytes.len() => {
                    Some(LogFault::Nothing)
                }
                Piece::Gap(length) => Some(LogFault::Gap(length as u64)),
                Piece::Cut => Some(LogFault::Cut),
            };
            if fault != Some(LogFault::Cut) {
                read = records.at();
            }
            if let Some(what) = fault.filter(|_| self.log.damage.len() < MOST_DAMAGE) {
                let at = (offset + at) as u64;
                self.log.damage.push(LogDamage { file: path.display().to_string(), at, what });
            }
        }
        self.log.records += sound;
        self.log.bytes += read.saturating_sub(from) as u64;
        offset + read
    }

    fn take(&mut self, file: usize, payload: &[u8]) {
        let mut nth = 0;
        let said = event(payload, &mut |event, tag, given| {
            match given {
                Given::Number(value) => self.point(file, nth, event, tag, value),
                Given::Other(kind, shape) => self.other(file, event, tag, kind, shape),
            }
            nth += 1;
        });
        if said.opens {
            self.log.opened_s.push(said.wall_s);
        }
        if said.saves {
            self.log.saved_s.push(said.wall_s);
        }
        if said.starts {
            self.purge(&said);
        }
        self.log.last_s = Some(self.log.last_s.map_or(said.wall_s, |last| last.max(said.wall_s)));
    }

    fn other(&mut self, file: usize, event: &Event, tag: &[u8], kind: OtherKind, shape: Option<Shape<'_>>) {
        let place = *self.others.entry(tag.into()).or_insert_with(|| {
            let tag = String::from_utf8_lossy(tag).into_owned();
            self.log.others.push(OtherTag { tag, kind, count: 0 });
            self.log.others.len() - 1
        });
        if let Some(other) = self.log.others.get_mut(place) {
            other.count += 1;
        }
        let Some(shape) = shape else { return };
        let (step, wall_s) = (event.step, event.wall_s);
        let name = || String::from_utf8_lossy(tag).into_owned();
        match kind {
            OtherKind::Histogram => {
                let make = || Some(Histogram { step, wall_s, buckets: shape.buckets()? });
                let new = || Kept::new(name(), file);
                self.histograms.entry(tag.into()).or_insert_with(new).take(file, event, make);
            }
            OtherKind::Text => note(&mut self.log.texts, event, tag, shape),
            OtherKind::Image if self.pictures.len() < MOST_PICTURES || self.pictures.contains_key(tag) => {
                let samples: Vec<BlobPlace> =
                    shape.samples().into_iter().map(|sample| self.place(file, sample)).collect();
                let make = || (!samples.is_empty()).then_some(Picture { step, wall_s, samples });
                let new = || Kept::new(name(), file);
                self.pictures.entry(tag.into()).or_insert_with(new).take(file, event, make);
            }
            OtherKind::Graph => {
                let graph = shape.graph().map(|(form, bytes)| (form, self.place(file, bytes)));
                model::take_graph(&mut self.log.graphs, name(), graph);
            }
            OtherKind::RunMetadata => {
                if let Shape::Run(bytes) = shape {
                    let place = self.place(file, bytes);
                    model::take_run(&mut self.log.recorded, name(), place);
                }
            }
            OtherKind::Hparams => {
                if let Shape::Hparams(content) = shape {
                    hparams::take(self.log.hparams.get_or_insert_default(), content);
                }
            }
            _ => {}
        }
    }

    /// What was logged from a session's first step on is obsolete.
    fn purge(&mut self, start: &Event) {
        if let Some(replaced) = self.ends.replace_from(&mut self.log.series, start.step) {
            self.log.restarts.push(restart(start, replaced));
        }
    }

    #[inline]
    fn point(&mut self, file: usize, nth: usize, event: &Event, tag: &[u8], value: f64) {
        let place = self.place_of(nth, tag, file);
        let Some(series) = self.log.series.get_mut(place) else { return };
        if self.writers[place] != file {
            let (last_step, last_wall) = (series.steps.last().copied(), series.wall_s.last().copied());
            if last_wall.is_some_and(|last| event.wall_s < last) {
                self.mixed[place] = true;
            } else if last_step.is_some_and(|last| event.step <= last)
                && !self.mixed[place]
                && let Some(replaced) = replace_from(series, event.step)
            {
                self.restarted(event, replaced);
            }
            self.writers[place] = file;
        }
        let Some(series) = self.log.series.get_mut(place) else { return };
        series.steps.push(event.step);
        series.wall_s.push(event.wall_s);
        series.values.push(value);
        self.ends.changed(place);
    }

    /// Remembers a restart once, however many tags it repeats: the first of its steps counts.
    fn restarted(&mut self, event: &Event, replaced: Replaced) {
        /// Points of one restart are written one after the other.
        const SOON_S: f64 = 60.0;
        match self.log.restarts.last_mut() {
            Some(last) if event.wall_s - last.wall_s < SOON_S => {
                last.step = last.step.min(event.step);
                last.last_step = last.last_step.max(replaced.last_step);
                last.from_s = last.from_s.min(replaced.from_s);
                last.until_s = last.until_s.max(replaced.until_s);
            }
            _ => self.log.restarts.push(restart(event, replaced)),
        }
    }

    #[inline]
    fn place_of(&mut self, nth: usize, tag: &[u8], file: usize) -> usize {
        let named =
            |place: usize| self.log.series.get(place).is_some_and(|series| series.tag.as_bytes() == tag);
        if let Some(place) = self.usual.get(nth).copied().filter(|place| named(*place)) {
            return place;
        }
        let place = match self.numbers.get(tag) {
            Some(place) => *place,
            None => {
                let place = self.log.series.len();
                let tag_text = String::from_utf8_lossy(tag).into_owned();
                self.log.series.push(Series { tag: tag_text, ..Series::default() });
                self.numbers.insert(tag.into(), place);
                self.writers.push(file);
                self.mixed.push(false);
                place
            }
        };
        if self.usual.len() <= nth {
            self.usual.resize(nth + 1, usize::MAX);
        }
        self.usual[nth] = place;
        place
    }

    fn lose(&mut self, payload: &[u8]) {
        let mut tags = Vec::new();
        event(payload, &mut |_, tag, _| tags.push(tag.into()));
        tags.truncate(MOST_DAMAGE.saturating_sub(self.lost.len()));
        self.lost.append(&mut tags);
    }
}

#[cfg(test)]
mod tests {
    use stepscope_testkit::tfevents::{record, scalar};
    use stepscope_trace::series::Restart;

    use super::*;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn write(&self, name: &str, records: &[Vec<u8>]) -> PathBuf {
            let path = self.0.path().join(name);
            let bytes: Vec<u8> = records.iter().flat_map(|event| record(event)).collect();
            std::fs::write(&path, bytes).unwrap();
            path
        }
    }

    fn points(range: std::ops::Range<u8>, began: f64) -> Vec<Vec<u8>> {
        range.map(|step| scalar(began + f64::from(step), step, "loss", f32::from(step))).collect()
    }

    fn read(files: Vec<PathBuf>) -> RunLog {
        let mut reader = RunReader::new(".", files);
        reader.read().unwrap();
        reader.into_log()
    }

    #[test]
    fn a_restart_replaces_what_it_repeats_and_is_reported() {
        let folder = Folder(tempfile::tempdir().unwrap());
        let first = folder.write("tfevents.1", &points(0..60, 100.0));
        let second = folder.write("tfevents.2", &points(40..100, 1_000.0));
        let log = read(vec![first, second]);
        let loss = &log.series[0];
        assert_eq!(loss.steps, (0..100).collect::<Vec<i64>>());
        assert_eq!((loss.replaced, loss.wall_s[40]), (20, 1_040.0), "the newest wins");
        assert_eq!(
            log.restarts,
            [Restart { step: 40, wall_s: 1_040.0, last_step: 59, from_s: 140.0, until_s: 159.0 }]
        );
    }

    #[test]
    fn two_programs_that_log_at_the_same_time_keep_all_points() {
        let folder = Folder(tempfile::tempdir().unwrap());
        let first = folder.write("tfevents.1", &points(0..50, 100.0));
        let second = folder.write("tfevents.2", &points(0..50, 100.5));
        let log = read(vec![first, second]);
        assert_eq!((log.series[0].steps.len(), log.restarts.len()), (100, 0));
        assert!(log.series[0].wall_s.is_sorted());
    }

    #[test]
    fn a_session_that_starts_at_a_step_makes_later_ones_obsolete() {
        let folder = Folder(tempfile::tempdir().unwrap());
        let mut events = points(0..10, 100.0);
        events.push([&[0x09][..], &200_f64.to_le_bytes(), &[0x10, 5, 0x3a, 2, 0x08, 1]].concat());
        events.extend(points(5..8, 300.0));
        let log = read(vec![folder.write("tfevents", &events)]);
        assert_eq!(log.series[0].steps, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(
            log.restarts,
            [Restart { step: 5, wall_s: 200.0, last_step: 9, from_s: 105.0, until_s: 109.0 }]
        );
    }

    #[test]
    fn steps_that_come_twice_without_a_restart_are_kept() {
        let folder = Folder(tempfile::tempdir().unwrap());
        let same: Vec<Vec<u8>> = (0..5).map(|i| scalar(100.0 + f64::from(i), 0, "loss", 1.0)).collect();
        assert_eq!(read(vec![folder.write("tfevents", &same)]).series[0].steps, [0; 5]);
    }

    #[test]
    fn a_damaged_record_costs_that_record_and_is_the_likely_tags() {
        let folder = Folder(tempfile::tempdir().unwrap());
        let path = folder.write("tfevents", &points(0..10, 100.0));
        let mut bytes = std::fs::read(&path).unwrap();
        let length = bytes.len() / 10;
        let tag = bytes.windows(4).position(|window| window == b"loss").unwrap();
        bytes[3 * length + tag] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let log = read(vec![path]);
        assert_eq!((log.series.len(), log.series[0].steps.len(), log.series[0].lost), (1, 9, 1));
        assert_eq!((log.damage[0].at, log.damage[0].what), (3 * length as u64, LogFault::Record));
    }

    #[test]
    fn a_growing_file_is_read_from_where_it_ended() {
        let folder = Folder(tempfile::tempdir().unwrap());
        let path = folder.write("tfevents", &points(0..10, 100.0));
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 7]).unwrap();
        let mut reader = RunReader::new(".", vec![path.clone()]);
        reader.read().unwrap();
        assert_eq!((reader.log().series[0].steps.len(), reader.log().damage[0].what), (9, LogFault::Cut));
        std::fs::write(&path, &whole).unwrap();
        reader.read().unwrap();
        let log = reader.log();
        assert_eq!((log.series[0].steps.len(), log.damage.len(), log.records), (10, 0, 10));
    }

    #[test]
    fn a_file_that_grows_by_one_record_costs_one_record() {
        let folder = Folder(tempfile::tempdir().unwrap());
        let path = folder.write("tfevents", &points(0..10, 100.0));
        let mut reader = RunReader::new(".", vec![path.clone()]);
        reader.read().unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        // What was read is not looked at again, so damage there goes unnoticed.
        let whole = bytes.len();
        bytes.fill(0);
        bytes.extend(record(&scalar(110.0, 10, "loss", 1.0)));
        std::fs::write(&path, &bytes).unwrap();
        reader.read().unwrap();
        assert_eq!((reader.so_far().series[0].steps.len(), reader.log().damage.len()), (11, 0));
        assert_eq!(reader.so_far().bytes, bytes.len() as u64, "{whole} and one record");
        assert_eq!(reader.points("loss").unwrap().steps.last(), Some(&10));
        assert!(reader.points("other").is_none());
    }

    #[test]
    fn garbage_and_nothing_are_told_apart() {
        let folder = Folder(tempfile::tempdir().unwrap());
        let path = folder.0.path().join("tfevents");
        std::fs::write(&path, [9; 500]).unwrap();
        assert_eq!(read(vec![path.clone()]).damage[0].what, LogFault::Nothing);
        std::fs::write(&path, []).unwrap();
        assert_eq!(read(vec![path]).damage, []);
    }
}
