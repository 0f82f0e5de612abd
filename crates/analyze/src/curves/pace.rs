//! How long a run's steps took, from what it logged: by the clock between points of any tag, or as the program says.
//!
//! The motivating situation: a run logs its loss every hundred steps, evaluates every thousand, and at some point gets
//! slower. The stretch with the evaluation is a pause, and is no part of the step time; the stretches behind the point
//! are slow steps. A pause stands alone; slow steps follow one another.

use stepscope_trace::series::{RunLog, Series};

use super::tags::{TagSpeed, counts_epochs, is_evaluation, speed_of_tag};
use stepscope_trace::statistics::quantile;

/// What a run counts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Steps.
    Step,
    /// Epochs: no tag counts steps.
    Epoch,
}

/// How the time of steps is known.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum PaceSource {
    /// By the time between points.
    Clock,
    /// The program logged it.
    Logged,
}

/// A stretch between two points.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Piece {
    /// The step before it.
    pub from_step: i64,
    /// Its last step.
    pub step: i64,
    /// When it began, in seconds since 1970.
    pub from_s: f64,
    /// When it ended.
    pub until_s: f64,
    /// Seconds per step.
    pub seconds: f64,
}

impl Piece {
    /// How many steps it has.
    pub fn steps(&self) -> f64 {
        self.step.saturating_sub(self.from_step) as f64
    }

    fn length_s(&self) -> f64 {
        self.until_s - self.from_s
    }
}

/// What a pause was for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The model was evaluated: values of an evaluation were logged in it.
    Evaluation,
    /// A checkpoint was saved: the log says so.
    Checkpoint,
    /// The program began a new file.
    Restart,
    /// The log does not show it.
    Unknown,
}

/// Time between two steps that neither of them took.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Pause {
    /// The step before it.
    pub step: i64,
    /// When the stretch that holds it began, in seconds since 1970.
    pub from_s: f64,
    /// When that ended.
    pub until_s: f64,
    /// Its length: the stretch, without what its steps take usually.
    pub seconds: f64,
    /// What it was for.
    pub why: Why,
}

/// The speed of a run's steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    /// The tag that shows it.
    pub tag: String,
    /// How.
    pub source: PaceSource,
    /// What it counts.
    pub unit: Unit,
    /// Stretches without pauses, in order; neighbours are put together where there are many.
    pub pieces: Vec<Piece>,
    /// Pauses, in order.
    pub pauses: Vec<Pause>,
    /// How many stretches there were, before they were put together.
    pub stretches: usize,
    /// The median of seconds per step.
    pub typical_s: f64,
    /// One in ten stretches is faster than this.
    pub fast_s: f64,
    /// One in ten is slower than this.
    pub slow_s: f64,
    /// The median time from one point to the next, in seconds.
    pub interval_s: f64,
}

/// Fewer stretches have no pace.
const LEAST: usize = 3;
/// More pieces than this say nothing more about a run, and cost time.
const MOST_PIECES: usize = 2048;
/// Neighbours on each side that a stretch is measured by.
const AROUND: usize = 10;
/// A stretch that is so many times as long as its neighbours may hold a pause.
const LONG: f64 = 3.0;
/// The same where the log shows what the pause was for.
const LONG_IF_SHOWN: f64 = 1.25;
/// So many long stretches in a row are still a pause; more are slow steps.
const ALONE: usize = 2;

impl Pace {
    /// The pace of a run; `None` if too little was logged, or nothing that counts up.
    pub fn of(log: &RunLog) -> Option<Self> {
        let clock = by_clock(log);
        let typical = clock.as_ref().map(|clock| clock.typical_s);
        let spoken =
            by_word(log, typical.filter(|_| clock.as_ref().is_some_and(|clock| clock.unit == Unit::Step)));
        match (clock, spoken) {
            // The clock sees pauses, and does not depend on what the program counts as a step's time.
            (Some(clock), Some(spoken))
                if clock.unit == Unit::Step && 2 * clock.stretches >= spoken.stretches =>
            {
                Some(clock)
            }
            (_, Some(spoken)) => Some(spoken),
            (clock, None) => clock,
        }
    }

    /// From the first to the last moment that it covers.
    pub fn covers_s(&self) -> (f64, f64) {
        let all = || {
            let pieces = self.pieces.iter().map(|piece| (piece.from_s, piece.until_s));
            pieces.chain(self.pauses.iter().map(|pause| (pause.from_s, pause.until_s)))
        };
        all().fold((f64::INFINITY, f64::NEG_INFINITY), |(from, to), (start, end)| {
            (from.min(start), to.max(end))
        })
    }

    /// Names pauses after what other runs beside this one did at the time, e.g. `validation` beside `train`.
    pub fn explain(&mut self, evaluated_s: &[f64]) {
        for pause in self.pauses.iter_mut().filter(|pause| pause.why == Why::Unknown) {
            if any_within(evaluated_s, pause.from_s, pause.until_s) {
                pause.why = Why::Evaluation;
            }
        }
    }
}

/// When a run evaluated its model: the times of tags that say so, or of all where its own name does.
pub(crate) fn evaluated_s(log: &RunLog) -> Vec<f64> {
    let whole = is_evaluation(&log.name);
    let series = log.series.iter().filter(|series| whole || is_evaluation(&series.tag));
    let mut all: Vec<f64> = series.flat_map(|series| series.wall_s.iter().copied()).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

/// By the tag with the most points, of steps if there is one.
fn by_clock(log: &RunLog) -> Option<Pace> {
    let usable = |series: &&Series| series.steps.len() > LEAST && !is_evaluation(&series.tag);
    let most = |epochs: bool| {
        let counting =
            log.series.iter().filter(usable).filter(move |series| counts_epochs(&series.tag) == epochs);
        // Of equal ones the first counts.
        counting.reduce(|best, next| if next.steps.len() > best.steps.len() { next } else { best })
    };
    let (series, unit) =
        most(false).map(|it| (it, Unit::Step)).or_else(|| most(true).map(|it| (it, Unit::Epoch)))?;
    let marks = Marks::of(log);
    let (pieces, pauses) = part(stretches(series), &marks);
    made(series, PaceSource::Clock, unit, pieces, pauses)
}

/// By a tag in which the program logged it.
fn by_word(log: &RunLog, clock_s: Option<f64>) -> Option<Pace> {
    let spoken = log.series.iter().filter_map(|series| Some((series, speed_of_tag(&series.tag)?)));
    let usable = spoken.filter_map(|(series, speed)| {
        let pieces = spoken_pieces(series, speed, clock_s);
        (pieces.len() >= LEAST).then_some((series, pieces))
    });
    let (series, pieces) =
        usable.reduce(|best, next| if next.1.len() > best.1.len() { next } else { best })?;
    made(series, PaceSource::Logged, Unit::Step, pieces, Vec::new())
}

/// The step times that a tag names, if its unit is known or the clock confirms one.
pub(crate) fn spoken_pieces(series: &Series, speed: TagSpeed, clock_s: Option<f64>) -> Vec<Piece> {
    let factor = match speed {
        TagSpeed::Rate => None,
        TagSpeed::Time(Some(unit)) => Some(unit),
        TagSpeed::Time(None) => match confirmed(series, clock_s) {
            Some(unit) => Some(unit),
            None => return Vec::new(),
        },
    };
    let seconds = |value: f64| factor.map_or(1.0 / value, |unit| value * unit);
    let mut before: Option<(i64, f64)> = None;
    let mut pieces = Vec::new();
    for ((&step, &at), &value) in series.steps.iter().zip(&series.wall_s).zip(&series.values) {
        let (from_step, from_s) =
            before.filter(|(known, _)| *known < step).unwrap_or((step.saturating_sub(1), at));
        before = Some((step, at));
        let seconds = seconds(value);
        if seconds.is_finite() && seconds > 0.0 {
            pieces.push(Piece { from_step, step, from_s, until_s: at.max(from_s), seconds });
        }
    }
    pieces
}

/// The unit with which a tag's values are what the clock shows.
fn confirmed(series: &Series, clock_s: Option<f64>) -> Option<f64> {
    let mut values: Vec<f64> =
        series.values.iter().copied().filter(|value| value.is_finite() && *value > 0.0).collect();
    values.sort_by(f64::total_cmp);
    let (typical, clock_s) = (quantile(&values, 0.5)?, clock_s?);
    [1.0, 1e-3, 1e-6].into_iter().find(|unit| (0.5..2.0).contains(&(typical * unit / clock_s)))
}

/// Stretches between points at which steps and time went on.
pub fn stretches(series: &Series) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut before: Option<(i64, f64)> = None;
    for (&step, &at) in series.steps.iter().zip(&series.wall_s) {
        let Some((from_step, from_s)) = before else {
            before = Some((step, at));
            continue;
        };
        if step > from_step && at > from_s {
            let seconds = (at - from_s) / step.saturating_sub(from_step) as f64;
            pieces.push(Piece { from_step, step, from_s, until_s: at, seconds });
        }
        // Several points of one step: the first counts. Steps that go back begin anew.
        if step != from_step {
            before = Some((step, at));
        }
    }
    pieces
}

/// What the log shows besides steps.
struct Marks {
    evaluated: Vec<f64>,
    saved: Vec<f64>,
    opened: Vec<f64>,
}

impl Marks {
    fn of(log: &RunLog) -> Self {
        let sorted = |times: &[f64]| {
            let mut times = times.to_vec();
            times.sort_by(f64::total_cmp);
            times
        };
        let evaluated = if is_evaluation(&log.name) { Vec::new() } else { evaluated_s(log) };
        Marks { evaluated, saved: sorted(&log.saved_s), opened: sorted(&log.opened_s) }
    }

    fn why(&self, piece: &Piece) -> Why {
        let within = |times: &[f64]| any_within(times, piece.from_s, piece.until_s);
        if within(&self.opened) {
            Why::Restart
        } else if within(&self.evaluated) {
            Why::Evaluation
        } else if within(&self.saved) {
            Why::Checkpoint
        } else {
            Why::Unknown
        }
    }
}

/// Is one of these sorted times later than `from` and not later than `until`?
fn any_within(times: &[f64], from: f64, until: f64) -> bool {
    times.get(times.partition_point(|time| *time <= from)).is_some_and(|time| *time <= until)
}

/// Tells stretches with a pause from those without.
fn part(stretches: Vec<Piece>, marks: &Marks) -> (Vec<Piece>, Vec<Pause>) {
    let usual = usual_nearby(&stretches);
    let whys: Vec<Why> = stretches.iter().map(|piece| marks.why(piece)).collect();
    let long: Vec<bool> = stretches
        .iter()
        .zip(&usual)
        .zip(&whys)
        .map(|((piece, usual), why)| {
            piece.seconds >= usual * if *why == Why::Unknown { LONG } else { LONG_IF_SHOWN }
        })
        .collect();
    let (mut pieces, mut pauses) = (Vec::new(), Vec::new());
    let mut at = 0;
    for run in long.chunk_by(|a, b| a == b) {
        let is_pause = run.first() == Some(&true) && run.len() <= ALONE;
        for place in at..at + run.len() {
            let piece = stretches[place];
            if is_pause {
                let seconds = (piece.length_s() - usual[place] * piece.steps()).max(0.0);
                pauses.push(Pause {
                    step: piece.from_step,
                    from_s: piece.from_s,
                    until_s: piece.until_s,
                    seconds,
                    why: whys[place],
                });
            } else {
                pieces.push(piece);
            }
        }
        at += run.len();
    }
    (pieces, pauses)
}

/// The median of seconds per step around each stretch.
fn usual_nearby(stretches: &[Piece]) -> Vec<f64> {
    let mut room: Vec<f64> = Vec::with_capacity(2 * AROUND + 1);
    let last = stretches.len();
    (0..last)
        .map(|at| {
            room.clear();
            let (from, to) = (at.saturating_sub(AROUND), (at + AROUND + 1).min(last));
            room.extend(stretches[from..to].iter().map(|piece| piece.seconds));
            let middle = room.len() / 2;
            *room.select_nth_unstable_by(middle, f64::total_cmp).1
        })
        .collect()
}

fn made(
    series: &Series,
    source: PaceSource,
    unit: Unit,
    pieces: Vec<Piece>,
    pauses: Vec<Pause>,
) -> Option<Pace> {
    let count = pieces.len();
    if count < LEAST {
        return None;
    }
    let sorted = |of: &dyn Fn(&Piece) -> f64| {
        let mut all: Vec<f64> = pieces.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let (seconds, lengths) = (sorted(&|piece| piece.seconds), sorted(&Piece::length_s));
    Some(Pace {
        tag: series.tag.clone(),
        source,
        unit,
        typical_s: quantile(&seconds, 0.5)?,
        fast_s: quantile(&seconds, 0.1)?,
        slow_s: quantile(&seconds, 0.9)?,
        interval_s: quantile(&lengths, 0.5)?,
        stretches: count,
        pieces: together(&pieces, count.div_ceil(MOST_PIECES)),
        pauses,
    })
}

/// Puts so many neighbours together.
fn together(pieces: &[Piece], group: usize) -> Vec<Piece> {
    let one = |group: &[Piece]| {
        let (first, last) = (group.first()?, group.last()?);
        let steps: f64 = group.iter().map(Piece::steps).sum();
        let seconds: f64 = group.iter().map(|piece| piece.seconds * piece.steps()).sum();
        let mean = if steps > 0.0 { seconds / steps } else { last.seconds };
        Some(Piece {
            from_step: first.from_step,
            step: last.step,
            from_s: first.from_s,
            until_s: last.until_s,
            seconds: mean,
        })
    };
    pieces.chunks(group.max(1)).filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run whose nth stretch of ten steps takes so many seconds.
    fn log(lengths: impl IntoIterator<Item = f64>) -> RunLog {
        let mut series = Series { tag: "loss".to_owned(), ..Series::default() };
        let mut at = 1000.0;
        for (place, length) in std::iter::once(0.0).chain(lengths).enumerate() {
            at += length;
            series.steps.push(10 * place as i64);
            series.wall_s.push(at);
            series.values.push(1.0);
        }
        RunLog { name: "train".to_owned(), series: vec![series], ..RunLog::default() }
    }

    fn with(mut log: RunLog, tag: &str, values: &[f64]) -> RunLog {
        let wall_s: Vec<f64> = (0..values.len()).map(|at| 1001.0 + at as f64).collect();
        let steps = (1..=values.len() as i64).map(|step| 10 * step).collect();
        log.series.push(Series {
            tag: tag.to_owned(),
            steps,
            wall_s,
            values: values.to_vec(),
            ..Series::default()
        });
        log
    }

    #[test]
    fn an_evaluation_is_a_pause_and_no_part_of_the_step_time() {
        let lengths = (1..=60).map(|at| if at % 20 == 0 { 6.0 } else { 1.0 });
        let pace = Pace::of(&log(lengths)).unwrap();
        assert_eq!((pace.pieces.len(), pace.pauses.len()), (57, 3));
        assert!((pace.typical_s - 0.1).abs() < 1e-9 && (pace.slow_s - 0.1).abs() < 1e-9);
        assert!((pace.pauses[0].seconds - 5.0).abs() < 1e-9);
        assert_eq!((pace.pauses[0].step, pace.pauses[0].why), (190, Why::Unknown));
        assert_eq!((pace.tag.as_str(), pace.source, pace.unit), ("loss", PaceSource::Clock, Unit::Step));
    }

    #[test]
    fn slow_steps_that_follow_one_another_are_no_pause() {
        let lengths = (1..=60).map(|at| if at > 30 { 4.0 } else { 1.0 });
        let pace = Pace::of(&log(lengths)).unwrap();
        assert_eq!((pace.pieces.len(), pace.pauses.len()), (60, 0));
    }

    #[test]
    fn pauses_are_named_after_what_the_log_shows() {
        let lengths = || (1..=60).map(|at| if at % 20 == 0 { 1.5 } else { 1.0 });
        assert_eq!(Pace::of(&log(lengths())).unwrap().pauses, [], "too short to tell from slow steps");
        let mut saved = log(lengths());
        // The stretch from step 190 to step 200 ends at 1000 + 19 + 1.5.
        saved.saved_s = vec![1020.0];
        assert_eq!(
            Pace::of(&saved).unwrap().pauses.iter().map(|it| it.why).collect::<Vec<_>>(),
            [Why::Checkpoint]
        );
        let mut pace = Pace::of(&log((1..=60).map(|at| if at == 20 { 9.0 } else { 1.0 }))).unwrap();
        pace.explain(&[5.0, 1025.0]);
        assert_eq!(pace.pauses[0].why, Why::Evaluation);
    }

    #[test]
    fn what_the_program_says_is_taken_where_the_clock_says_less() {
        let said = with(log([]), "batch_steps_per_second", &[10.0; 8]);
        let pace = Pace::of(&said).unwrap();
        assert_eq!((pace.source, pace.typical_s), (PaceSource::Clock, 0.1), "its own points have times too");
        let mut epochs = log([]);
        epochs.series.clear();
        let pace =
            Pace::of(&with(with(epochs, "epoch_steps_per_second", &[4.0; 8]), "epoch_loss", &[1.0; 8]))
                .unwrap();
        assert_eq!((pace.source, pace.typical_s, pace.unit), (PaceSource::Logged, 0.25, Unit::Step));
    }

    #[test]
    fn a_time_without_a_unit_counts_only_if_the_clock_confirms_one() {
        let clock = log([1.0; 20]);
        let pieces = |value: f64| {
            let with = with(clock.clone(), "perf/step_time", &[value; 6]);
            spoken_pieces(&with.series[1], TagSpeed::Time(None), Some(0.1))
        };
        assert!((pieces(110.0)[0].seconds - 0.11).abs() < 1e-9, "milliseconds");
        assert!((pieces(0.09)[0].seconds - 0.09).abs() < 1e-9, "seconds");
        assert_eq!(pieces(7.0), []);
    }

    #[test]
    fn of_too_little_nothing_is_said() {
        assert_eq!(Pace::of(&RunLog::default()), None);
        assert_eq!(Pace::of(&log([1.0, 1.0])), None);
        let mut still = log([1.0; 10]);
        still.series[0].steps = vec![0; 11];
        assert_eq!(Pace::of(&still), None, "nothing counts up");
    }

    #[test]
    fn many_pieces_are_put_together_and_keep_their_time() {
        let pace = Pace::of(&log(std::iter::repeat_n(1.0, 10_000))).unwrap();
        assert!(pace.pieces.len() <= MOST_PIECES && pace.stretches == 10_000);
        assert!(pace.pieces.iter().all(|piece| (piece.seconds - 0.1).abs() < 1e-9));
    }
}
