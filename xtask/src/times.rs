//! Which part of a check runs, and how long each part took, so that a long check can be followed and a part that becomes slow
//! is seen.

use std::fmt;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How often a part that runs says so. Compilers and tests are silent for minutes.
const BEAT: Duration = Duration::from_secs(60);

/// The parts so far, in the order in which they ran.
#[derive(Debug)]
pub(crate) struct Times {
    began: Instant,
    /// How many parts there will be.
    of: usize,
    parts: Vec<(&'static str, Duration)>,
}

impl Times {
    /// No part of so many ran yet.
    pub(crate) fn start(of: usize) -> Self {
        Times { began: Instant::now(), of, parts: Vec::new() }
    }

    /// Runs a part, and says when it begins, every minute, and how long it took. One that fails counts too.
    pub(crate) fn part<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        let number = format!("[{}/{}]", self.parts.len() + 1, self.of);
        println!("{number} {name} (after {})", minutes(self.began.elapsed()));
        let began = Instant::now();
        let (done, running) = channel::<()>();
        let watch = thread::spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = running.recv_timeout(BEAT) {
                println!("    … {name} runs for {}", minutes(began.elapsed()));
            }
        });
        let result = work();
        let took = began.elapsed();
        drop(done);
        // It only prints; a part is not worth less if that failed.
        let _ = watch.join();
        println!("{number} {name}: {}", minutes(took));
        self.parts.push((name, took));
        result
    }
}

/// `3 min 05 s`, or seconds if there are few.
fn minutes(time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    if seconds < 60 { format!("{seconds} s") } else { format!("{} min {:02} s", seconds / 60, seconds % 60) }
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
        let mut times = Times::start(2);
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
        assert_eq!(minutes(Duration::from_millis(185_400)), "3 min 05 s");
        assert_eq!(minutes(Duration::from_millis(7_900)), "8 s");
    }
}
