//! Counters and the times at which they increased → step durations.
//!
//! If a program reports step 12 now and step 15 later, there are three steps in between. What arrives together
//! (output to a pipe often arrives only when the buffer is full) counts as one moment: its last step counts, so
//! that the mean is right even if single steps cannot be timed.

/// Some consecutive steps, and their duration.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Observation {
    /// The number of the last step, as counted by the program.
    pub step: u64,
    /// Number of steps.
    pub steps: u64,
    /// Seconds from the start of the run to their end.
    pub end_s: f64,
    /// Their total duration in seconds.
    pub seconds: f64,
}

impl Observation {
    /// Milliseconds per step.
    pub fn ms(&self) -> f64 {
        self.seconds * 1e3 / self.steps.max(1) as f64
    }
}

/// Longer series are made coarser by merging neighbours.
const MOST: usize = 1 << 16;

/// A number that counts up.
#[derive(Clone, Debug, Default)]
pub(super) struct Series {
    observed: Vec<Observation>,
    /// The last number, and when it was seen, in seconds.
    last: Option<(u64, f64)>,
    /// When the first number was seen.
    first: Option<f64>,
    /// How often the number restarted: epochs.
    restarts: u32,
    /// Observations with more than one number, because several arrived together.
    bursts: usize,
    /// Number of neighbours still to merge until the series is thin enough.
    coarse: usize,
}

impl Series {
    /// Records that the number was `number` at `at_s` seconds.
    pub(super) fn push(&mut self, number: u64, at_s: f64) {
        self.first.get_or_insert(at_s);
        let Some((last, then)) = self.last else {
            self.last = Some((number, at_s));
            return;
        };
        if number < last {
            self.restarts += 1;
            self.last = Some((number, at_s));
        } else if number > last {
            let steps = number - last;
            self.last = Some((number, at_s));
            let same_moment = at_s <= then;
            match self.observed.last_mut() {
                Some(open) if same_moment && open.end_s >= then => {
                    self.bursts += usize::from(open.step + 1 == number || steps == 1);
                    (open.step, open.steps) = (number, open.steps + steps);
                }
                // Several before anything was measured: only the last can be a start.
                _ if same_moment => {}
                _ => self.add(Observation { step: number, steps, end_s: at_s, seconds: at_s - then }),
            }
        }
    }

    fn add(&mut self, one: Observation) {
        let joined = self.observed.last_mut().filter(|last| {
            // In a coarse series only true neighbours are merged: the end of an epoch is not a step.
            self.coarse > 0 && last.step + one.steps == one.step && (last.steps as usize) < self.coarse
        });
        match joined {
            Some(last) => *last = join(*last, one),
            None => self.observed.push(one),
        }
        if self.observed.len() >= MOST {
            let halves = self.observed.chunks(2).flat_map(|pair| match *pair {
                [a, b] if a.step + b.steps == b.step => [Some(join(a, b)), None],
                [a, b] => [Some(a), Some(b)],
                [a] => [Some(a), None],
                _ => [None, None],
            });
            self.observed = halves.flatten().collect();
            let longest = self.observed.iter().map(|it| it.steps as usize).max().unwrap_or(1);
            self.coarse = (self.coarse * 2).max(longest);
        }
    }

    pub(super) fn observed(&self) -> &[Observation] {
        &self.observed
    }

    /// Seconds in which steps were seen.
    pub(super) fn covered(&self) -> f64 {
        self.observed.iter().map(|one| one.seconds).sum()
    }

    /// When the first number was seen.
    pub(super) fn first(&self) -> Option<f64> {
        self.first
    }

    /// How often the number restarted.
    pub(super) fn restarts(&self) -> u32 {
        self.restarts
    }

    /// Whether most observations are bundles that arrived together.
    pub(super) fn is_bursty(&self) -> bool {
        self.bursts > 2 * self.observed.len()
    }

    /// In bursts, the last one came at the end of the program and includes its shutdown.
    pub(super) fn without_last_burst(mut self) -> Self {
        if self.is_bursty() {
            self.observed.pop();
        }
        self
    }
}

fn join(a: Observation, b: Observation) -> Observation {
    Observation { step: b.step, steps: a.steps + b.steps, end_s: b.end_s, seconds: a.seconds + b.seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(points: &[(u64, f64)]) -> Series {
        let mut series = Series::default();
        points.iter().for_each(|&(number, at)| series.push(number, at));
        series
    }

    #[test]
    fn steps_are_timed_between_the_lines_that_tell_of_them() {
        let series = of(&[(1, 10.0), (2, 10.5), (4, 11.5), (4, 11.6)]);
        let ms: Vec<f64> = series.observed().iter().map(Observation::ms).collect();
        assert_eq!(ms, [500.0, 500.0]);
        assert_eq!(series.observed()[1].steps, 2);
        assert_eq!(series.first(), Some(10.0));
    }

    #[test]
    fn what_lies_between_epochs_is_no_step() {
        let series = of(&[(1, 0.0), (2, 1.0), (3, 2.0), (1, 9.0), (2, 10.0)]);
        assert_eq!(series.observed().len(), 3);
        assert_eq!((series.covered(), series.restarts()), (3.0, 1));
    }

    #[test]
    fn bursts_keep_the_mean() {
        let mut points = Vec::new();
        for burst in 0..5_u64 {
            points.extend((0..100).map(|step| (burst * 100 + step, burst as f64)));
        }
        let series = of(&points);
        assert!(series.is_bursty());
        let ms: Vec<f64> = series.observed().iter().map(Observation::ms).collect();
        assert_eq!(ms, [10.0; 4]);
        assert_eq!(series.without_last_burst().observed().len(), 3);
    }

    #[test]
    fn a_long_run_takes_bounded_memory_and_loses_no_time() {
        let mut series = Series::default();
        for step in 0..300_000_u64 {
            series.push(step, step as f64 * 0.25);
        }
        assert!(series.observed().len() <= MOST);
        assert!((series.covered() - 299_999.0 * 0.25).abs() < 1e-6);
        let steps: u64 = series.observed().iter().map(|one| one.steps).sum();
        assert_eq!(steps, 299_999);
    }
}
