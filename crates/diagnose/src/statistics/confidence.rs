//! How sure an interval is, when data is looked at once or several times.
//!
//! An interval of 95 % is wrong once in twenty looks. Recording more runs until something shows, and testing after each,
//! finds a difference far more often than that where there is none. Pocock's boundaries keep the error of all looks
//! together at 5 %: each look requires a little more.

/// Pocock's boundaries for up to ten looks with a total two-sided error of 5 %, in standard deviations (Jennison and
/// Turnbull, Group Sequential Methods, table 2.1).
const BOUNDARIES: [f64; 10] = [1.960, 2.178, 2.289, 2.361, 2.413, 2.453, 2.485, 2.512, 2.535, 2.555];

/// The level of an interval.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Confidence {
    /// Half the width of a normal interval, in standard deviations.
    z: f64,
}

impl Default for Confidence {
    fn default() -> Self {
        Confidence::of_looks(1)
    }
}

impl Confidence {
    /// The most looks that there are boundaries for.
    pub const MOST_LOOKS: usize = BOUNDARIES.len();

    /// Such that `looks` looks at growing data are together wrong at most once in twenty times; more than
    /// [`Self::MOST_LOOKS`] are taken as that many.
    pub fn of_looks(looks: usize) -> Self {
        let last = BOUNDARIES.len() - 1;
        Confidence { z: BOUNDARIES[looks.saturating_sub(1).min(last)] }
    }

    /// Half the width of an interval around a normal estimate, in standard deviations.
    pub fn normal(self) -> f64 {
        self.z
    }

    /// The same for a standard deviation that is itself estimated, with `freedom` degrees of freedom: Student's quantile
    /// by Cornish and Fisher's expansion, within 4 % from three degrees on, below which it is held.
    pub(crate) fn student(self, freedom: f64) -> f64 {
        let (z, freedom) = (self.z, freedom.max(3.0));
        let first = (z.powi(3) + z) / 4.0;
        let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
        let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
        z + first / freedom + second / freedom.powi(2) + third / freedom.powi(3)
    }

    /// The share of chance outside the interval, both ends together.
    pub fn error(self) -> f64 {
        super::rank::two_sided(self.z)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Random;

    #[test]
    fn students_quantiles_are_those_of_the_tables() {
        let once = Confidence::default();
        for (freedom, table) in [(3.0, 3.182), (5.0, 2.571), (10.0, 2.228), (30.0, 2.042), (1e9, 1.960)] {
            let quantile = once.student(freedom);
            assert!((quantile / table - 1.0).abs() < 0.04, "{freedom}: {quantile}");
        }
        assert!((once.error() - 0.05).abs() < 0.001, "{}", once.error());
    }

    #[test]
    fn many_looks_at_growing_data_are_together_wrong_once_in_twenty() {
        let mut random = Random::new(5);
        let mut normal = || (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        let mut wrong = |looks: usize, confidence: Confidence| {
            let trials = 4000;
            let ends = (0..trials).filter(|_| {
                let mut sum = 0.0;
                (1..=looks).any(|look| {
                    sum += normal();
                    (sum / (look as f64).sqrt()).abs() > confidence.normal()
                })
            });
            ends.count() as f64 / f64::from(trials)
        };
        for looks in [1, 3, 6, 10] {
            let honest = wrong(looks, Confidence::of_looks(looks));
            assert!((0.035..0.065).contains(&honest), "{looks} looks: {honest}");
        }
        assert!(wrong(6, Confidence::of_looks(1)) > 0.10, "without the boundaries they are not");
    }
}
