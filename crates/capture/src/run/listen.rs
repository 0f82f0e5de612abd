//! Extracts steps from a program's standard output and error while it runs.

use super::lines::{Line, Lines};
use super::progress_line::progress_of;
use super::remarks::{Remark, Remarks};
use super::series::Series;

/// More counters than any program prints.
const MOST_SERIES: usize = 64;
/// Number of the program's own figures that are kept; older ones are dropped.
const MOST_FIGURES: usize = 10_000;
/// This many lines that count up are steps.
const LEAST_COUNTS: u64 = 3;
/// Only the end of a large burst is examined: within one moment, only the last number counts.
const FLOOD: usize = 64 << 10;
const TAIL: usize = 16 << 10;

/// The stream.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

/// The key that distinguishes counters.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Key {
    stream: Stream,
    bar: bool,
    examples: bool,
    of: Option<u64>,
}

/// A number that counts up, and what it counts.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    pub(super) series: Series,
    pub(super) examples: bool,
}

/// Everything extracted so far.
#[derive(Debug, Default)]
pub(super) struct Listener {
    out: Lines,
    err: Lines,
    series: Vec<(Key, Series)>,
    this_ms: Figures,
    mean_ms: Figures,
    /// Means over many steps: how many, and milliseconds.
    epochs: Vec<(u64, f64)>,
    examples_per_s: Figures,
    remarks: Remarks,
    /// Number of lines that state a count.
    counts: u64,
}

/// The newest of many figures.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures(Vec<f64>);

impl Figures {
    fn push(&mut self, value: Option<f64>) {
        if self.0.len() >= MOST_FIGURES {
            self.0.drain(..MOST_FIGURES / 2);
        }
        self.0.extend(value);
    }

    pub(super) fn all(&self) -> &[f64] {
        &self.0
    }

    /// The median of the later half, because a program's own mean improves with time.
    pub(super) fn settled(&self) -> Option<f64> {
        stepscope_trace::statistics::median(self.0.get(self.0.len() / 2..)?)
    }
}

impl Listener {
    /// Reads bytes that arrived together, `at_s` seconds after the start.
    pub(super) fn hear(&mut self, stream: Stream, bytes: &[u8], at_s: f64) {
        let mut lines = self.take_lines(stream);
        let bytes = if bytes.len() >= FLOOD {
            lines = Lines::default();
            bytes.get(bytes.len() - TAIL..).unwrap_or(bytes)
        } else {
            bytes
        };
        lines.feed(bytes, &mut |line| self.line(stream, line, at_s));
        *self.lines(stream) = lines;
    }

    /// Ends the stream.
    pub(super) fn end(&mut self, stream: Stream, at_s: f64) {
        self.take_lines(stream).end(&mut |line| self.line(stream, line, at_s));
    }

    fn lines(&mut self, stream: Stream) -> &mut Lines {
        match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        }
    }

    fn take_lines(&mut self, stream: Stream) -> Lines {
        std::mem::take(self.lines(stream))
    }

    fn line(&mut self, stream: Stream, line: Line<'_>, at_s: f64) {
        let (text, whole) = match line {
            Line::Whole(text) => (text, true),
            Line::Open(text) => (text, false),
        };
        let Some(progress) = progress_of(text) else {
            if whole {
                self.remarks.hear(text, at_s);
            }
            return;
        };
        // A line that is not a bar may still grow: `step 1` into `step 12`.
        if !whole && !progress.at.is_some_and(|at| at.bar) {
            return;
        }
        if whole {
            self.this_ms.push(progress.this_ms);
            self.mean_ms.push(progress.mean_ms);
            let room = self.epochs.len() < MOST_FIGURES;
            self.epochs.extend(progress.mean_of.zip(progress.mean_ms).filter(|_| room));
            self.examples_per_s.push(progress.examples_per_s);
        }
        let Some(at) = progress.at else { return };
        self.counts += u64::from(whole);
        let key = Key { stream, bar: at.bar, examples: at.examples, of: at.of };
        if !self.series.iter().any(|(known, _)| *known == key) && self.series.len() < MOST_SERIES {
            self.series.push((key, Series::default()));
        }
        if let Some((_, series)) = self.series.iter_mut().find(|(known, _)| *known == key) {
            series.push(at.number, at_s);
        }
    }

    /// Lines that may be warnings.
    pub(super) fn remarks(&self) -> &[Remark] {
        self.remarks.all()
    }

    /// Whether the program counts up, but all of it arrived at once.
    pub(super) fn is_held_back(&self) -> bool {
        self.counts >= LEAST_COUNTS && self.moments() == 0
    }

    /// Number of moments at which the busiest counter increased.
    pub(super) fn moments(&self) -> usize {
        self.series.iter().map(|(_, series)| series.observed().len()).max().unwrap_or(0)
    }

    pub(super) fn counted(&self) -> Vec<Counted> {
        let one = |(key, series): &(Key, Series)| Counted {
            series: series.clone().without_last_burst(),
            examples: key.examples,
        };
        self.series.iter().map(one).collect()
    }

    pub(super) fn this_ms(&self) -> &Figures {
        &self.this_ms
    }

    pub(super) fn mean_ms(&self) -> &Figures {
        &self.mean_ms
    }

    /// Means that the program prints once per epoch: over how many steps, and milliseconds.
    pub(super) fn epochs(&self) -> &[(u64, f64)] {
        &self.epochs
    }

    pub(super) fn examples_per_s(&self) -> Option<f64> {
        self.examples_per_s.settled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_timed_when_it_is_drawn_not_when_it_is_drawn_over() {
        let mut listener = Listener::default();
        for step in 1..=4_u32 {
            let bar = format!("\r{step}/4 ━━━━ 0s 100ms/step - loss: 1");
            listener.hear(Stream::Out, bar.as_bytes(), f64::from(step));
        }
        listener.hear(Stream::Out, b"\n", 9.0);
        let counted = listener.counted();
        assert_eq!((counted.len(), counted[0].series.covered()), (1, 3.0));
        assert_eq!(listener.mean_ms().settled(), Some(100.0));
    }

    #[test]
    fn a_step_number_that_arrives_in_two_pieces_is_read_whole() {
        let mut listener = Listener::default();
        listener.hear(Stream::Out, b"step 9\nstep 1", 1.0);
        listener.hear(Stream::Out, b"0\n", 2.0);
        assert_eq!(listener.counted()[0].series.covered(), 1.0);
    }

    #[test]
    fn a_flood_costs_little_and_its_end_is_heard() {
        let mut listener = Listener::default();
        listener.hear(Stream::Out, b"step 1\n", 1.0);
        let mut flood = b"debug\n".repeat(20_000);
        flood.extend(b"step 2\n");
        listener.hear(Stream::Out, &flood, 2.0);
        assert_eq!(listener.moments(), 1);
    }
}
