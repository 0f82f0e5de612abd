//! The due times of requests, and sleeping until exactly that time.
//!
//! The schedule is fixed before the first request and does not depend on answers. This makes the loop an open
//! one.

use std::time::{Duration, Instant};
use std::{fs, thread};

use super::Arrivals;

/// The intervals between requests.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    arrivals: Arrivals,
    per_second: f64,
    sent: u64,
    at: f64,
    state: u64,
}

/// The same for every run, so that two measurements offer the same load.
const SEED: u64 = 0x4C4F_4144_4C4F_4144;

impl Schedule {
    pub(super) fn new(arrivals: Arrivals, per_second: f64) -> Schedule {
        Schedule { arrivals, per_second, sent: 0, at: 0.0, state: SEED }
    }

    /// From 0 (exclusive) to 1, by SplitMix64.
    fn chance(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64 + f64::EPSILON
    }
}

/// Time since the start, ascending; never ends.
impl Iterator for Schedule {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let at = match self.arrivals {
            // Multiplied instead of added up, so that errors do not accumulate.
            Arrivals::Constant => self.sent as f64 / self.per_second,
            Arrivals::Poisson => {
                self.at -= self.chance().ln() / self.per_second;
                self.at
            }
        };
        self.sent += 1;
        Duration::try_from_secs_f64(at).ok()
    }
}

/// Asks the system to wake this thread on time. By default it may sleep 50 µs longer, so that wake-ups can be
/// combined. If the request fails, sleeping stays inaccurate, and the measured delay shows it.
pub(super) fn sleep_exactly() {
    let Ok(link) = fs::read_link("/proc/thread-self") else { return };
    if let Some(thread) = link.file_name() {
        let _ = fs::write(std::path::Path::new("/proc").join(thread).join("timerslack_ns"), "1000");
    }
}

/// Sleeps until `due`, at most a tenth of a second at a time; returns `false` if `stopped` says so.
pub(super) fn sleep_until(due: Instant, stopped: impl Fn() -> bool) -> bool {
    loop {
        if stopped() {
            return false;
        }
        match due.saturating_duration_since(Instant::now()) {
            Duration::ZERO => return true,
            left => thread::sleep(left.min(Duration::from_millis(100))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_arrivals_keep_their_distance_for_ever() {
        let late = Schedule::new(Arrivals::Constant, 300.0).nth(3_000_000).unwrap();
        assert_eq!(late, Duration::from_secs(10_000));
    }

    #[test]
    fn random_arrivals_keep_the_rate_and_scatter_as_they_should() {
        let due: Vec<f64> =
            Schedule::new(Arrivals::Poisson, 100.0).take(20_000).map(|at| at.as_secs_f64()).collect();
        assert!((195.0..205.0).contains(due.last().unwrap()), "{:?}", due.last());
        // Half of all gaps are below ln 2 of the mean.
        let short = due.windows(2).filter(|pair| pair[1] - pair[0] < 2_f64.ln() / 100.0).count();
        assert!((9_700..10_300).contains(&short), "{short}");
        assert!(due.is_sorted());
    }
}
