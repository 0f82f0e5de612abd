//! The origin of the trace's time.
//!
//! Each line states in nanoseconds where its time starts: after the start of the profile in most files, after
//! the Unix epoch in some, as the format defines. The latter do not fit 64 bits of picoseconds, so the earliest
//! of them becomes the origin.

/// Beyond twice this distance from zero, a time in picoseconds does not fit; no profile lasts 53 days.
const FAR_NS: i64 = i64::MAX / 1_000 / 2;

/// The year 2000. Times that are far from zero but before this count from boot, not from the epoch.
const CALENDAR_NS: i64 = 946_684_800_000_000_000;

/// Whether a time counts from the epoch.
pub(super) fn is_calendar(ns: i64) -> bool {
    ns >= CALENDAR_NS
}

/// The origin of a trace's time.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// Amount to subtract from far timestamps; `None` if there are none.
    far_ns: Option<i64>,
}

impl Origin {
    /// The origin for a file whose lines start at these times.
    pub fn of(timestamps: impl Iterator<Item = i64>) -> Self {
        Origin { far_ns: timestamps.filter(|&ns| ns > FAR_NS).min() }
    }

    /// Start of a line's time, in picoseconds after the origin.
    pub(crate) fn base_ps(self, timestamp_ns: i64) -> i128 {
        let origin = self.far_ns.filter(|_| timestamp_ns > FAR_NS).unwrap_or(0);
        (i128::from(timestamp_ns) - i128::from(origin)) * 1_000
    }

    /// The wall clock at the origin; `profile_start_ns` is the start that the profile states.
    pub fn wall_ns(self, profile_start_ns: Option<i64>) -> Option<i64> {
        match self.far_ns {
            Some(ns) => is_calendar(ns).then_some(ns),
            None => profile_start_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_times_stay_and_the_profile_knows_the_wall_clock() {
        let origin = Origin::of([0, 212_990].into_iter());
        assert_eq!(origin.base_ps(212_990), 212_990_000);
        assert_eq!(origin.wall_ns(Some(1_741_722_099_081_044_120)), Some(1_741_722_099_081_044_120));
        assert_eq!(origin.wall_ns(None), None);
    }

    #[test]
    fn epoch_times_count_from_the_earliest() {
        let epoch = 1_700_000_000_000_000_000;
        let origin = Origin::of([epoch + 5, epoch].into_iter());
        assert_eq!(origin.base_ps(epoch + 5), 5_000);
        assert_eq!(origin.wall_ns(Some(1)), Some(epoch));
        assert_eq!(origin.base_ps(7), 7_000, "a relative line among them stays relative");
        let uptime = Origin::of([FAR_NS + 1].into_iter());
        assert_eq!((uptime.base_ps(FAR_NS + 1), uptime.wall_ns(None)), (0, None));
    }

    #[test]
    fn absurd_times_do_not_overflow() {
        let origin = Origin::of([i64::MAX, i64::MIN].into_iter());
        assert_eq!(origin.base_ps(i64::MAX), 0);
        assert_eq!(origin.base_ps(i64::MIN), i128::from(i64::MIN) * 1_000);
    }
}
