//! Where on a run's curve a profile was recorded, and whether the steps there were typical of the run.

use super::pace::{Pace, Unit, Why};

/// A profile's place in a run. What is not known is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// The run.
    pub run: String,
    /// The tag that shows its pace.
    pub tag: String,
    /// What it counts.
    pub unit: Unit,
    /// The first step of the stretch that holds the profile.
    pub from_step: i64,
    /// The last one.
    pub step: i64,
    /// The last step that was logged.
    pub last_step: i64,
    /// Seconds per step there; unknown if the log shows only a pause.
    pub there_s: Option<f64>,
    /// The typical seconds per step of the run.
    pub typical_s: f64,
    /// Were the steps there typical? Unknown if too little is known of the run, or nothing of the steps there.
    pub typical: Option<Typical>,
    /// A pause that the profile lies in.
    pub pause: Option<Why>,
}

/// How a profiled window compares with its run.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Typical {
    /// As the others.
    Yes,
    /// Slower than nine in ten others.
    Slower,
    /// Faster than nine in ten others.
    Faster,
}

/// Fewer stretches do not show what is typical.
const ENOUGH: usize = 10;
/// What differs from the median by less is typical, however steady the others are.
const NEAR: f64 = 0.1;

impl Placed {
    /// The place of a time window in a run; `None` if the run logged nothing then.
    pub fn of(run: &str, pace: &Pace, from_s: f64, until_s: f64) -> Option<Self> {
        let overlaps = |from: f64, until: f64| from < until_s && until > from_s;
        let (mut steps, mut seconds) = (0.0, 0.0);
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        for piece in pace.pieces.iter().filter(|piece| overlaps(piece.from_s, piece.until_s)) {
            steps += piece.steps();
            seconds += piece.steps() * piece.seconds;
            (first, last) = (first.min(piece.from_step), last.max(piece.step));
        }
        let pause = pace.pauses.iter().find(|pause| overlaps(pause.from_s, pause.until_s));
        if let Some(pause) = pause {
            (first, last) = (first.min(pause.step), last.max(pause.step));
        }
        if first > last {
            return None;
        }
        let there_s = (steps > 0.0).then(|| seconds / steps);
        let enough = pace.stretches >= ENOUGH;
        Some(Placed {
            run: run.to_owned(),
            tag: pace.tag.clone(),
            unit: pace.unit,
            from_step: first,
            step: last,
            last_step: pace.pieces.iter().map(|piece| piece.step).max()?.max(last),
            there_s,
            typical_s: pace.typical_s,
            typical: there_s.filter(|_| enough).map(|there| typical(there, pace)),
            pause: pause.map(|pause| pause.why),
        })
    }
}

fn typical(there_s: f64, pace: &Pace) -> Typical {
    if (there_s / pace.typical_s - 1.0).abs() <= NEAR {
        Typical::Yes
    } else if there_s > pace.slow_s {
        Typical::Slower
    } else if there_s < pace.fast_s {
        Typical::Faster
    } else {
        Typical::Yes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curves::pace::PaceSource;
    use crate::curves::pace::{Pause, Piece};

    fn pace(slow: std::ops::Range<i64>) -> Pace {
        let piece = |at: i64| {
            let seconds = if slow.contains(&at) { 0.2 } else { 0.1 };
            let (from_s, until_s) = (at as f64, at as f64 + 1.0);
            Piece { from_step: 10 * at, step: 10 * at + 10, from_s, until_s, seconds }
        };
        Pace {
            tag: "loss".to_owned(),
            source: PaceSource::Clock,
            unit: Unit::Step,
            pieces: (0..100).map(piece).collect(),
            pauses: vec![Pause {
                step: 1000,
                from_s: 100.0,
                until_s: 110.0,
                seconds: 9.0,
                why: Why::Evaluation,
            }],
            stretches: 100,
            typical_s: 0.1,
            fast_s: 0.1,
            slow_s: 0.1,
            interval_s: 1.0,
        }
    }

    #[test]
    fn a_window_among_slow_steps_is_not_typical() {
        let at = |from, until| Placed::of("train", &pace(50..60), from, until);
        let there = at(52.2, 52.8).unwrap();
        assert_eq!((there.from_step, there.step, there.last_step), (520, 530, 1000));
        assert_eq!((there.there_s, there.typical), (Some(0.2), Some(Typical::Slower)));
        assert_eq!(at(10.5, 11.5).unwrap().typical, Some(Typical::Yes));
        assert_eq!(at(500.0, 501.0), None, "nothing was logged then");
    }

    #[test]
    fn a_window_in_a_pause_is_unknown() {
        let there = Placed::of("train", &pace(0..0), 104.0, 105.0).unwrap();
        assert_eq!((there.there_s, there.typical, there.pause), (None, None, Some(Why::Evaluation)));
        let few = Pace { stretches: 5, ..pace(0..0) };
        assert_eq!(Placed::of("train", &few, 10.2, 10.4).unwrap().typical, None);
    }
}
