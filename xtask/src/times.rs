//! How long each part of a check took, so that a part that becomes slow is seen.

use std::fmt;
use std::time::{Duration, Instant};

/// The parts so far, in the order in which they ran.
#[derive(Debug)]
pub(crate) struct Times {
    began: Instant,
    parts: Vec<(&'static str, Duration)>,
}

impl Times {
    /// No part ran yet.
    pub(crate) fn start() -> Self {
        Times { began: Instant::now(), parts: Vec::new() }
    }

    /// Runs a part. One that fails counts too.
    pub(crate) fn part<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = work();
        self.parts.push((name, began.elapsed()));
        result
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.parts.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max("total".len());
        writeln!(f, "==> time per part")?;
        for (name, took) in &self.parts {
            writeln!(f, "    {name:width$} {:6.0} s", took.as_secs_f64())?;
        }
        let total = self.began.elapsed().as_secs_f64();
        write!(f, "    {:width$} {total:6.0} s ({:.1} min)", "total", total / 60.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_listed_as_they_ran_with_a_total() {
        let mut times = Times::start();
        assert_eq!(times.part("tests", || 7), 7);
        let failed: Result<(), String> = times.part("a longer name", || Err("no".to_owned()));
        assert!(failed.is_err());
        times.parts[0].1 = Duration::from_millis(61_600);
        let text = times.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "==> time per part",
                "    tests             62 s",
                "    a longer name      0 s",
                "    total              0 s (0.0 min)"
            ]
        );
    }
}
