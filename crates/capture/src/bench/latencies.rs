//! Recorded times, and their percentiles.
//!
//! Up to a limit, all values are kept, so that percentiles are exact. Beyond it, values are counted in buckets
//! whose width is below 1 % of their value, so that a long run takes no more memory than a short one. If there
//! are too few values to estimate a percentile, it is unknown.

use std::time::Duration;

/// Number of values kept exactly: 32 MB.
const EXACT: usize = 4_000_000;
/// Buckets between one power of two and the next. A bucket is at most 1/128 of its value wide, so its middle is
/// within 0.4 % of every value in it.
const STEPS: u64 = 128;
const STEP_BITS: u32 = STEPS.trailing_zeros();
/// Number of buckets that 64 bits can need.
const BUCKETS: usize = (64 - STEP_BITS as usize + 1) * STEPS as usize;
/// Required confidence that the largest value seen lies beyond a percentile before it is reported.
const SURE: f64 = 0.95;

/// Collects values one by one.
#[derive(Clone, Debug)]
pub struct Recorder {
    exact: Vec<u64>,
    /// Empty while all values fit into `exact`.
    buckets: Vec<u64>,
    limit: usize,
    count: u64,
    sum: u128,
    least: u64,
    most: u64,
}

impl Default for Recorder {
    fn default() -> Self {
        Recorder::with_limit(EXACT)
    }
}

impl Recorder {
    fn with_limit(limit: usize) -> Self {
        Recorder { exact: Vec::new(), buckets: Vec::new(), limit, count: 0, sum: 0, least: u64::MAX, most: 0 }
    }

    /// Records one value.
    pub fn record(&mut self, value: Duration) {
        let ns = u64::try_from(value.as_nanos()).unwrap_or(u64::MAX);
        self.count += 1;
        self.sum += u128::from(ns);
        self.least = self.least.min(ns);
        self.most = self.most.max(ns);
        if self.buckets.is_empty() && self.exact.len() < self.limit {
            self.exact.push(ns);
            return;
        }
        if self.buckets.is_empty() {
            self.buckets = vec![0; BUCKETS];
            for ns in std::mem::take(&mut self.exact) {
                count_in(&mut self.buckets, ns);
            }
        }
        count_in(&mut self.buckets, ns);
    }

    /// Ends the recording.
    pub fn finish(mut self) -> Distribution {
        self.exact.sort_unstable();
        Distribution {
            sorted: self.exact,
            buckets: self.buckets,
            count: self.count,
            sum: self.sum,
            least: self.least,
            most: self.most,
        }
    }
}

fn count_in(buckets: &mut [u64], ns: u64) {
    if let Some(bucket) = buckets.get_mut(bucket_of(ns)) {
        *bucket += 1;
    }
}

/// Values below 128 have a bucket each; beyond that, the seven bits after the leading one decide.
fn bucket_of(ns: u64) -> usize {
    if ns < STEPS {
        return ns as usize;
    }
    let shift = ns.ilog2() - STEP_BITS;
    (u64::from(shift) * STEPS + (ns >> shift)) as usize
}

/// The middle of a bucket.
fn middle_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * STEPS {
        return bucket;
    }
    let shift = bucket / STEPS - 1;
    let low = (bucket - shift * STEPS) << shift;
    low + (1_u64 << shift) / 2
}

/// The recorded values.
#[derive(Clone, Debug)]
pub struct Distribution {
    sorted: Vec<u64>,
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    least: u64,
    most: u64,
}

/// Number of values in a range of time.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Bin {
    /// Start of the range.
    pub from: Duration,
    /// End of the range.
    pub to: Duration,
    /// Number of values.
    pub count: u64,
}

impl Distribution {
    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The arithmetic mean.
    pub fn mean(&self) -> Option<Duration> {
        let mean = self.sum.checked_div(u128::from(self.count))?;
        Some(Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }

    /// The smallest.
    pub fn least(&self) -> Option<Duration> {
        (self.count > 0).then(|| Duration::from_nanos(self.least))
    }

    /// The largest.
    pub fn most(&self) -> Option<Duration> {
        (self.count > 0).then(|| Duration::from_nanos(self.most))
    }

    /// The value that a share of `q` (0 to 1) does not exceed; `None` if there are too few values.
    ///
    /// Too few means that even the largest value may well lie below the percentile: with 200 values, the chance
    /// that all of them are among the fastest 99.9 % is 82 %, so the duration of the slowest 0.1 % is unknown.
    pub fn percentile(&self, q: f64) -> Option<Duration> {
        if self.count < needed_for(q) {
            return None;
        }
        let rank = ((q * self.count as f64).ceil() as u64).clamp(1, self.count);
        let ns = if self.buckets.is_empty() {
            *self.sorted.get(rank as usize - 1)?
        } else {
            let mut seen = 0;
            let bucket = self.buckets.iter().position(|count| {
                seen += count;
                seen >= rank
            })?;
            middle_of(bucket).clamp(self.least, self.most)
        };
        Some(Duration::from_nanos(ns))
    }

    /// At most `rows` ranges with equal ratios, from the smallest to the largest value.
    pub fn histogram(&self, rows: usize) -> Vec<Bin> {
        let (Some(least), Some(most)) = (self.least(), self.most()) else { return Vec::new() };
        let (low, high) = (least.as_secs_f64().max(1e-9), most.as_secs_f64().max(1e-9));
        // Rows narrower than a tenth of their value would only show noise.
        let rows = rows.clamp(1, ((high / low).ln() / 1.1_f64.ln()).ceil().max(1.0) as usize);
        let edge = |row: usize| match row {
            0 => least,
            row if row == rows => most,
            row => Duration::from_secs_f64(low * (high / low).powf(row as f64 / rows as f64)),
        };
        let mut bins: Vec<Bin> =
            (0..rows).map(|row| Bin { from: edge(row), to: edge(row + 1), count: 0 }).collect();
        let mut add = |ns: u64, count: u64| {
            let value = Duration::from_nanos(ns);
            let row = bins.partition_point(|bin| bin.to < value).min(rows - 1);
            if let Some(bin) = bins.get_mut(row) {
                bin.count += count;
            }
        };
        self.sorted.iter().for_each(|ns| add(*ns, 1));
        let filled = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.for_each(|(bucket, count)| add(middle_of(bucket).clamp(self.least, self.most), *count));
        bins
    }
}

/// Number of values needed to estimate the percentile `q`.
pub fn needed_for(q: f64) -> u64 {
    if q <= 0.0 || q >= 1.0 {
        return 1;
    }
    ((1.0 - SURE).ln() / q.ln()).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(limit: usize, values: impl Iterator<Item = u64>) -> Distribution {
        let mut recorder = Recorder::with_limit(limit);
        values.for_each(|ns| recorder.record(Duration::from_nanos(ns)));
        recorder.finish()
    }

    /// Values over six powers of ten, in no order.
    fn spread() -> impl Iterator<Item = u64> {
        (0..20_000_u64).map(|i| (100.0 * 10_f64.powf(6.0 * (i * 7_919 % 20_000) as f64 / 20_000.0)) as u64)
    }

    #[test]
    fn buckets_agree_with_all_values_to_one_per_cent() {
        let (exact, counted) = (filled(usize::MAX, spread()), filled(1_000, spread()));
        assert!(exact.buckets.is_empty() && counted.sorted.is_empty());
        assert_eq!((exact.mean(), exact.most()), (counted.mean(), counted.most()));
        for q in [0.001, 0.25, 0.5, 0.9, 0.99, 0.999] {
            let (all, some) = (exact.percentile(q).unwrap(), counted.percentile(q).unwrap());
            let off = (some.as_secs_f64() / all.as_secs_f64() - 1.0).abs();
            assert!(off < 0.01, "p{q}: {all:?} and {some:?}");
        }
    }

    #[test]
    fn every_value_falls_into_a_bucket_around_it() {
        for bits in 0..64 {
            for ns in [1_u64 << bits, (1 << bits) + 1, (1_u64 << bits).wrapping_mul(3) / 2, u64::MAX >> bits]
            {
                let middle = middle_of(bucket_of(ns));
                assert!(bucket_of(ns) < BUCKETS);
                assert!((middle as f64 / ns as f64 - 1.0).abs() < 0.008, "{ns} became {middle}");
            }
        }
    }

    #[test]
    fn few_values_carry_no_high_percentile() {
        assert_eq!(
            (needed_for(0.5), needed_for(0.9), needed_for(0.99), needed_for(0.999)),
            (5, 29, 299, 2995)
        );
        let few = filled(usize::MAX, 1..=298);
        assert_eq!(few.percentile(0.99), None);
        assert_eq!(few.percentile(0.9), Some(Duration::from_nanos(269)));
        let enough = filled(usize::MAX, 1..=1_000);
        assert_eq!(enough.percentile(0.99), Some(Duration::from_nanos(990)));
        assert_eq!(enough.percentile(0.999), None);
        assert_eq!(filled(9, std::iter::empty()).percentile(0.5), None);
    }

    #[test]
    fn a_histogram_loses_no_value() {
        for limit in [100, usize::MAX] {
            let bins = filled(limit, spread()).histogram(12);
            assert_eq!(bins.len(), 12);
            assert_eq!(bins.iter().map(|bin| bin.count).sum::<u64>(), 20_000);
            // Values spread evenly over powers of ten fill rows of equal ratio evenly.
            assert!(bins.iter().all(|bin| (1_500..1_850).contains(&bin.count)), "{bins:?}");
        }
        assert_eq!(filled(9, [5, 5, 5].into_iter()).histogram(12).len(), 1);
        assert!(filled(9, std::iter::empty()).histogram(12).is_empty());
    }
}
