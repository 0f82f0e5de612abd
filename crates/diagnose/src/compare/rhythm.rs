//! What only some steps pay: a checkpoint every hundred steps, a trace in every fourth.
//!
//! The mean of a loop is its typical step plus what the slow steps cost on top, spread over all. Told apart, a user
//! sees whether the step itself changed or what comes in between.

use crate::statistics::{mean, median};

/// A step is slow if it takes this much longer than the typical one. Load makes steps slower by less, or makes so many
/// slower that they are the typical ones.
const SLOW: f64 = 2.0;
/// More slow steps than this share are no exception.
const MOST_SLOW: f64 = 0.4;
/// A single slow step is an accident, not a rhythm.
const LEAST_SLOW: usize = 2;
/// A smaller share of the loop's time is not worth a word.
const NOTABLE: f64 = 0.05;

/// What only some steps pay.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Rhythm {
    /// The typical step in milliseconds.
    pub typical_ms: f64,
    /// How many steps go by from one slow step to the next, on average.
    pub every: f64,
    /// What a slow step costs on top of a typical one, in milliseconds.
    pub extra_ms: f64,
    /// A step that takes longer is slow, in milliseconds.
    pub slow_ms: f64,
}

/// The rhythm of a side's steps; `None` where slow steps are no part of it.
pub fn rhythm(steps: &[f64]) -> Option<Rhythm> {
    let middle = median(steps).filter(|middle| *middle > 0.0)?;
    let (slow, others): (Vec<f64>, Vec<f64>) = steps.iter().partition(|ms| **ms > SLOW * middle);
    let share = slow.len() as f64 / steps.len() as f64;
    let typical_ms = mean(&others)?;
    let extra_ms = mean(&slow)? - typical_ms;
    let notable = extra_ms * share >= NOTABLE * mean(steps)?;
    (slow.len() >= LEAST_SLOW && share <= MOST_SLOW && notable).then(|| Rhythm {
        typical_ms,
        every: 1.0 / share,
        extra_ms,
        slow_ms: SLOW * middle,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_in_every_fourth_step_is_told_apart() {
        let steps: Vec<f64> = (0..24).map(|i| if i % 4 == 3 { 255.0 } else { 5.0 }).collect();
        let rhythm = rhythm(&steps).unwrap();
        assert_eq!((rhythm.typical_ms, rhythm.every, rhythm.extra_ms), (5.0, 4.0, 250.0));
        // The parts make up the mean.
        assert_eq!(rhythm.typical_ms + rhythm.extra_ms / rhythm.every, mean(&steps).unwrap());
    }

    #[test]
    fn even_steps_and_single_accidents_have_no_rhythm() {
        assert_eq!(rhythm(&[5.0; 20]), None);
        assert_eq!(rhythm(&[]), None);
        let mut accident = [5.0; 20];
        accident[7] = 500.0;
        assert_eq!(rhythm(&accident), None);
    }
}
