//! Time: whole picoseconds from the trace's origin, so that neither TPU ops shorter than a nanosecond nor sums
//! over millions of events lose precision. 64 bits reach 106 days in either direction; arithmetic saturates.
//!
//! Wall-clock time is stored separately, in [`Clock`]: picoseconds since the epoch would not fit.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

const PS_PER_NS: i64 = 1_000;

/// A point in time: picoseconds since the trace's origin; may be negative.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[repr(transparent)]
pub struct Time(i64);

/// A duration in picoseconds. Negative only as the difference of two points in time.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[repr(transparent)]
pub struct Dur(i64);

impl Time {
    /// The origin.
    pub const ZERO: Time = Time(0);
    /// Before everything.
    pub const MIN: Time = Time(i64::MIN);
    /// After everything.
    pub const MAX: Time = Time(i64::MAX);

    /// `ps` picoseconds after the origin.
    #[inline]
    pub const fn from_ps(ps: i64) -> Self {
        Time(ps)
    }

    /// `ns` nanoseconds after the origin.
    #[inline]
    pub const fn from_ns(ns: i64) -> Self {
        Time(ns.saturating_mul(PS_PER_NS))
    }

    /// Picoseconds since the origin.
    #[inline]
    pub const fn ps(self) -> i64 {
        self.0
    }

    /// Whole nanoseconds since the origin, rounded down.
    #[inline]
    pub const fn ns(self) -> i64 {
        self.0.div_euclid(PS_PER_NS)
    }

    /// Milliseconds since the origin, for people and JSON.
    #[inline]
    pub fn ms(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Dur {
    /// Zero.
    pub const ZERO: Dur = Dur(0);

    /// `ps` picoseconds.
    #[inline]
    pub const fn from_ps(ps: i64) -> Self {
        Dur(ps)
    }

    /// `ns` nanoseconds.
    #[inline]
    pub const fn from_ns(ns: i64) -> Self {
        Dur(ns.saturating_mul(PS_PER_NS))
    }

    /// `us` microseconds.
    #[inline]
    pub const fn from_us(us: i64) -> Self {
        Dur(us.saturating_mul(PS_PER_NS * 1_000))
    }

    /// The length in picoseconds.
    #[inline]
    pub const fn ps(self) -> i64 {
        self.0
    }

    /// The length in milliseconds, for people and JSON.
    #[inline]
    pub fn ms(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The length in seconds.
    #[inline]
    pub fn secs(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// Whether it is zero.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// This duration, or zero if it is negative.
    #[inline]
    pub fn at_least_zero(self) -> Self {
        Dur(self.0.max(0))
    }

    /// Its share of `whole`; zero if `whole` is zero.
    #[inline]
    pub fn fraction_of(self, whole: Dur) -> f64 {
        if whole.0 > 0 { self.0 as f64 / whole.0 as f64 } else { 0.0 }
    }
}

impl Add<Dur> for Time {
    type Output = Time;
    #[inline]
    fn add(self, by: Dur) -> Time {
        Time(self.0.saturating_add(by.0))
    }
}

impl Sub<Dur> for Time {
    type Output = Time;
    #[inline]
    fn sub(self, by: Dur) -> Time {
        Time(self.0.saturating_sub(by.0))
    }
}

impl Sub for Time {
    type Output = Dur;
    #[inline]
    fn sub(self, earlier: Time) -> Dur {
        Dur(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Dur {
    type Output = Dur;
    #[inline]
    fn add(self, other: Dur) -> Dur {
        Dur(self.0.saturating_add(other.0))
    }
}

impl Sub for Dur {
    type Output = Dur;
    #[inline]
    fn sub(self, other: Dur) -> Dur {
        Dur(self.0.saturating_sub(other.0))
    }
}

impl AddAssign for Dur {
    #[inline]
    fn add_assign(&mut self, other: Dur) {
        *self = *self + other;
    }
}

impl Sum for Dur {
    fn sum<I: Iterator<Item = Dur>>(iter: I) -> Dur {
        iter.fold(Dur::ZERO, Add::add)
    }
}

/// From `start` up to, but not including, `end`. Empty if `end <= start`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
pub struct Span {
    /// The first instant inside.
    pub start: Time,
    /// The first instant after.
    pub end: Time,
}

impl Span {
    /// From `start` up to `end`.
    #[inline]
    pub const fn new(start: Time, end: Time) -> Self {
        Span { start, end }
    }

    /// Its duration; never negative.
    #[inline]
    pub fn dur(self) -> Dur {
        (self.end - self.start).at_least_zero()
    }

    /// Whether it is empty.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Whether `at` is inside.
    #[inline]
    pub fn contains(self, at: Time) -> bool {
        self.start <= at && at < self.end
    }

    /// The overlap; empty if there is none.
    #[inline]
    pub fn intersect(self, other: Span) -> Span {
        Span::new(self.start.max(other.start), self.end.min(other.end))
    }

    /// The smallest span that contains both.
    #[inline]
    pub fn hull(self, other: Span) -> Span {
        Span::new(self.start.min(other.start), self.end.max(other.end))
    }
}

/// How a trace's time relates to wall-clock time, and its resolution.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct Clock {
    /// Nanoseconds since the Unix epoch at the trace's origin. `None` if the file only has relative times.
    pub wall_ns_at_origin: Option<i64>,
    /// The clock resolution. Two events whose edges differ by no more than this may actually touch, so nesting
    /// tolerates this much.
    pub resolution: Dur,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Time::MAX + Dur::from_ps(1), Time::MAX);
        assert_eq!(Time::MIN - Time::MAX, Dur::from_ps(i64::MIN));
        assert_eq!(Time::from_ns(i64::MAX), Time::MAX);
    }

    #[test]
    fn nanoseconds_round_down_on_both_sides_of_the_origin() {
        assert_eq!(Time::from_ps(1_999).ns(), 1);
        assert_eq!(Time::from_ps(-1).ns(), -1);
    }

    #[test]
    fn spans_that_do_not_meet_have_an_empty_intersection() {
        let a = Span::new(Time::from_ps(0), Time::from_ps(5));
        let b = Span::new(Time::from_ps(7), Time::from_ps(9));
        assert!(a.intersect(b).is_empty());
        assert_eq!(a.intersect(b).dur(), Dur::ZERO);
        assert_eq!(a.hull(b).dur(), Dur::from_ps(9));
    }
}
