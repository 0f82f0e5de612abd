//! Marks laid end to end: a step lasts from its start to the start of the next one, as a stopwatch in the loop has it.
//!
//! A long time between two marks is part of the loop if it recurs: a shuffle buffer that fills at the start of each
//! epoch, an evaluation, a checkpoint. A wait for a batch belongs to the step that needs the batch, anything else to the
//! step before it. What happens once, such as a pause of the machine or the recorder's own stop, is in no step.

use stepscope_trace::statistics::median_duration;
use stepscope_trace::{Dur, Span};

use super::gaps::{Filling, Gaps};
use super::{Exclusion, Pause, Step};

/// Gaps between markers smaller than this share of a step are excluded: they are the cost of the marker itself,
/// and a stopwatch in the loop does not see them either.
const NEGLIGIBLE_GAP: f64 = 0.02;
/// A gap that exceeds the usual one by this share of a step is something that the loop does between two steps.
const NOTABLE_GAP: f64 = 0.1;
/// A gap of this many steps is not part of the loop, unless such gaps recur.
const INTERRUPTION: i64 = 5;
/// This many equally spaced pauses are not a coincidence, whatever fills them.
const REGULAR: usize = 3;
/// A gap recurs if others with the same filling take at least this share of its time together. Less is something else:
/// the first wait for a loader that starts its workers, before short waits.
const COMES_BACK: f64 = 0.5;

/// Marks, and what the time between them is.
pub(super) struct Layout<'m> {
    marks: &'m [(i64, Span)],
    ends_known: bool,
    /// The usual gap.
    gap: Dur,
    /// Whether the usual gap is nothing.
    tight: bool,
    /// Gaps that recur, by the mark before them; in order. Waits for a batch start at the wait.
    recurring: Vec<(usize, Span, Filling)>,
    /// Gaps of other loops that do not, likewise.
    others: Vec<usize>,
    /// Pauses that do not, likewise.
    pauses: Vec<usize>,
    /// The wait for the first batch, if such waits recur. It was recorded with its step.
    first_wait: Option<Span>,
}

/// A gap that is longer than usual.
#[derive(Copy, Clone)]
struct LongGap {
    /// The mark before it; `None` before the first mark or after the last.
    after: Option<usize>,
    length: Dur,
    filling: Filling,
}

impl<'m> Layout<'m> {
    pub(super) fn of(marks: &'m [(i64, Span)], ends_known: bool, gaps: &impl Gaps) -> Self {
        let lengths: Vec<Dur> = marks.windows(2).map(|pair| pair[1].1.start - pair[0].1.end).collect();
        let length = median_duration(marks.iter().map(|(_, span)| span.dur()));
        let gap = median_duration(lengths.iter().copied());
        let tight = ends_known && gap.fraction_of(length) < NEGLIGIBLE_GAP;
        let longest = Dur::from_ps((length + gap.at_least_zero()).ps().saturating_mul(INTERRUPTION));
        let stands_out = |of: Dur| {
            (of - gap.at_least_zero()).fraction_of(length) >= NOTABLE_GAP
                && of.ps() >= gap.ps().saturating_mul(2)
        };
        let place = |index: usize| Span::new(marks[index].1.end, marks[index + 1].1.start);
        let mut long: Vec<LongGap> = (0..lengths.len())
            .filter(|&index| stands_out(lengths[index]))
            .map(|index| LongGap {
                after: Some(index),
                length: lengths[index],
                filling: gaps.filling(place(index)),
            })
            .collect();
        // The rest belongs to the steps as it is.
        let in_doubt = |gap: &LongGap| {
            let far = gap.length > longest;
            let quiet = || gap.after.is_some_and(|index| !gaps.device_works(place(index)));
            tight || gap.filling == Filling::AnotherLoop || far && quiet()
        };
        let doubtful: Vec<LongGap> = long.iter().copied().filter(in_doubt).collect();
        if !doubtful.is_empty() {
            let ends = ends(marks, gaps.recorded()).into_iter().filter(|end| stands_out(end.dur()));
            long.extend(ends.map(|end| LongGap {
                after: None,
                length: end.dur(),
                filling: gaps.filling(end),
            }));
        }
        let regular = is_regular(doubtful.iter().filter(|gap| gap.filling != Filling::AnotherLoop));
        let mut laid = Layout {
            marks,
            ends_known,
            gap: gap.at_least_zero(),
            tight,
            recurring: Vec::new(),
            others: Vec::new(),
            pauses: Vec::new(),
            first_wait: None,
        };
        for found in &doubtful {
            let Some(after) = found.after else { continue };
            let other = found.filling == Filling::AnotherLoop;
            if comes_back(found, &long) || regular && !other {
                let gap = place(after);
                let wait = gaps.wait(gap).filter(|_| found.filling == Filling::Input);
                let span = Span::new(wait.map_or(gap.start, |wait| wait.start), gap.end);
                laid.recurring.push((after, span, found.filling));
            } else if other {
                laid.others.push(after);
            } else if !tight {
                laid.pauses.push(after);
            }
        }
        laid.first_wait = laid.wait_before_all(gaps);
        laid
    }

    /// The wait for the first batch right before the first mark, if waits as long recur later.
    fn wait_before_all(&self, gaps: &impl Gaps) -> Option<Span> {
        let first = self.marks.first()?.1;
        let head = ends(self.marks, gaps.recorded()).into_iter().find(|end| end.end == first.start)?;
        let wait = gaps.wait(head)?;
        let later = self.pauses().into_iter().filter(|pause| pause.filling == Filling::Input);
        let longest = later.map(|pause| pause.span.dur()).max()?;
        let before = Span::new(wait.start, first.start);
        let fills = wait.dur().fraction_of(before.dur()) >= COMES_BACK;
        (fills && longest.fraction_of(wait.dur()) >= COMES_BACK).then_some(before)
    }

    /// The steps. `ends` are the marks with what is known to follow each of them.
    pub(super) fn steps(&self, ends: &[(i64, Span)]) -> Vec<Step> {
        let step = |(index, &(number, span)): (usize, &(i64, Span))| {
            let (own_end, next) = (ends[index].1.end, self.marks.get(index + 1).map(|(_, next)| next.start));
            let (end, excluded) = match next {
                // The last one has no successor: its marker says where it ended; otherwise its end is unknown.
                None => (own_end, (!self.ends_known).then_some(Exclusion::Incomplete)),
                Some(next) if self.recurring_after(index).is_some() => {
                    (self.wait_after(index).map_or(next, |wait| wait.start), None)
                }
                Some(next) if self.pauses.binary_search(&index).is_ok() => {
                    (own_end.min(next), Some(Exclusion::Interrupted))
                }
                Some(next) if self.tight => (own_end.min(next), None),
                Some(next) if self.others.binary_search(&index).is_ok() => {
                    ((own_end + self.gap).min(next), None)
                }
                Some(next) => (next, None),
            };
            let wait = index.checked_sub(1).map_or(self.first_wait, |before| self.wait_after(before));
            let start = wait.map_or(span.start, |wait| wait.start);
            Step { number, span: Span::new(start, end), excluded }
        };
        self.marks.iter().enumerate().map(step).collect()
    }

    /// The gap after a mark, if it recurs.
    fn recurring_after(&self, index: usize) -> Option<(Span, Filling)> {
        let place = self.recurring.binary_search_by_key(&index, |(after, ..)| *after).ok()?;
        self.recurring.get(place).map(|&(_, span, filling)| (span, filling))
    }

    /// The recurring wait for the batch of the step after a mark.
    fn wait_after(&self, index: usize) -> Option<Span> {
        self.recurring_after(index).filter(|(_, filling)| *filling == Filling::Input).map(|(span, _)| span)
    }

    /// The gaps that recur.
    pub(super) fn pauses(&self) -> Vec<Pause> {
        let first = self.first_wait.map(|span| Pause { step: 0, span, filling: Filling::Input });
        let pause = |&(after, span, filling): &(usize, Span, Filling)| Pause {
            step: if filling == Filling::Input { after + 1 } else { after },
            span,
            filling,
        };
        first.into_iter().chain(self.recurring.iter().map(pause)).collect()
    }
}

/// The recorded time before the first mark and after the last.
fn ends(marks: &[(i64, Span)], recorded: Option<Span>) -> Vec<Span> {
    let (Some(all), Some((_, first)), Some((_, last))) = (recorded, marks.first(), marks.last()) else {
        return Vec::new();
    };
    let ends = [(all.start, first.start), (last.end, all.end)];
    ends.into_iter().filter(|(start, end)| start < end).map(|(start, end)| Span::new(start, end)).collect()
}

/// Whether gaps with the same filling show that this one is no accident.
fn comes_back(gap: &LongGap, long: &[LongGap]) -> bool {
    if gap.filling == Filling::Unknown {
        return false;
    }
    let alike = long.iter().filter(|other| other.filling == gap.filling);
    let all: Dur = alike.map(|other| other.length).sum();
    (all - gap.length).fraction_of(gap.length) >= COMES_BACK
}

/// Whether gaps come after every so many steps.
fn is_regular<'g>(gaps: impl Iterator<Item = &'g LongGap>) -> bool {
    let after: Vec<usize> = gaps.filter_map(|gap| gap.after).collect();
    let apart = || after.windows(2).map(|pair| pair[1] - pair[0]);
    let (least, most) = (apart().min().unwrap_or(0), apart().max().unwrap_or(0));
    after.len() >= REGULAR && most - least <= 1
}

#[cfg(test)]
mod tests {
    use stepscope_trace::Time;

    use super::*;

    /// Says the same about every gap.
    struct Told(Filling, bool);

    impl Gaps for Told {
        fn device_works(&self, _: Span) -> bool {
            self.1
        }

        fn filling(&self, _: Span) -> Filling {
            self.0
        }

        fn recorded(&self) -> Option<Span> {
            None
        }

        fn wait(&self, _: Span) -> Option<Span> {
            None
        }
    }

    const UNKNOWN: Told = Told(Filling::Unknown, false);

    fn laid(spans: &[(i64, i64)], ends_known: bool, gaps: &impl Gaps) -> Vec<Step> {
        let span = |&(start, end)| Span::new(Time::from_ps(start), Time::from_ps(end));
        let marks: Vec<_> = (0..).zip(spans.iter().map(span)).collect();
        Layout::of(&marks, ends_known, gaps).steps(&marks)
    }

    fn lengths(steps: &[Step]) -> Vec<(i64, Option<Exclusion>)> {
        steps.iter().map(|step| (step.span.dur().ps(), step.excluded)).collect()
    }

    #[test]
    fn markers_that_nearly_touch_keep_their_own_length() {
        let steps = laid(&[(0, 1000), (1005, 2005), (2010, 3010)], true, &UNKNOWN);
        assert_eq!(lengths(&steps), [(1000, None), (1000, None), (1000, None)]);
    }

    #[test]
    fn time_between_markers_belongs_to_the_step_before() {
        let steps = laid(&[(0, 600), (1000, 1600), (2000, 2600)], true, &UNKNOWN);
        assert_eq!(lengths(&steps), [(1000, None), (1000, None), (600, None)]);
    }

    #[test]
    fn a_pause_is_not_part_of_the_loop() {
        for filling in [Filling::Unknown, Filling::Input, Filling::Output, Filling::Work] {
            let spans = [(0, 600), (1000, 1600), (9000, 9600), (10_000, 10_600)];
            let steps = laid(&spans, true, &Told(filling, false));
            assert_eq!(lengths(&steps)[1], (600, Some(Exclusion::Interrupted)), "{filling:?}");
        }
    }

    /// Twenty steps of which the given ones are followed by a pause of twenty steps.
    fn paused(pause_after: &[i64]) -> Vec<(i64, i64)> {
        let paused = |number: i64| pause_after.iter().filter(|&&last| last < number).count() as i64;
        (0..20).map(|number| number * 1_000 + paused(number) * 20_000).map(|at| (at, at + 600)).collect()
    }

    #[test]
    fn pauses_after_every_so_many_steps_are_part_of_the_loop() {
        let excluded = |pause_after: &[i64], filling: Filling| {
            let steps = laid(&paused(pause_after), true, &Told(filling, false));
            steps.iter().filter(|step| step.excluded == Some(Exclusion::Interrupted)).count()
        };
        assert_eq!(excluded(&[4, 9, 14], Filling::Unknown), 0);
        assert_eq!(excluded(&[2, 9, 11], Filling::Unknown), 3, "now and then");
        assert_eq!(excluded(&[4, 9], Filling::Unknown), 2, "twice may be an accident");
        for filling in [Filling::Input, Filling::Output, Filling::Work] {
            assert_eq!(excluded(&[4, 9], filling), 0, "the same thing twice is none");
            assert_eq!(excluded(&[2, 9, 11], filling), 0, "nor if it comes now and then");
        }
    }

    /// The recorded time; all gaps are waits.
    struct Ends(Span);

    impl Gaps for Ends {
        fn device_works(&self, _: Span) -> bool {
            false
        }
        fn filling(&self, _: Span) -> Filling {
            Filling::Input
        }
        fn recorded(&self) -> Option<Span> {
            Some(self.0)
        }
        fn wait(&self, within: Span) -> Option<Span> {
            Some(within)
        }
    }

    #[test]
    fn the_wait_for_the_first_batch_counts_if_such_waits_recur() {
        let shifted = |by: i64, pauses: &[i64]| -> Vec<(i64, i64)> {
            paused(pauses).iter().map(|(start, end)| (start + by, end + by)).collect()
        };
        let first = |by: i64, pauses: &[i64]| {
            let spans = shifted(by, pauses);
            lengths(&laid(&spans, true, &Ends(Span::new(Time::ZERO, Time::from_ps(spans[19].1)))))[0].0
        };
        assert_eq!(first(20_000, &[6, 13]), 21_000);
        assert_eq!(first(90_000, &[6, 13]), 1_000, "far longer than all later ones: start-up");
        assert_eq!(first(20_000, &[]), 1_000, "once");
    }

    #[test]
    fn one_pause_recurs_if_the_recording_ends_in_another() {
        let until = |end: i64| Ends(Span::new(Time::ZERO, Time::from_ps(end)));
        let spans = paused(&[9]);
        let end = spans[19].1;
        assert_eq!(lengths(&laid(&spans, true, &until(end)))[9].1, Some(Exclusion::Interrupted));
        let steps = laid(&spans, true, &until(end + 15_000));
        assert_eq!(
            lengths(&steps)[9..11],
            [(600, None), (21_400, None)],
            "with the step that needs the batch"
        );
    }

    /// Twenty steps of a microsecond that nearly touch, with a pause of this length after every fifth.
    fn epochs(pause: i64) -> Vec<(i64, i64)> {
        (0..20).map(|number| number * 1_000 + number / 5 * pause).map(|at| (at, at + 995)).collect()
    }

    #[test]
    fn what_the_loop_does_after_each_epoch_counts_even_if_steps_nearly_touch() {
        for pause in [300, 20_000] {
            let steps = laid(&epochs(pause), true, &UNKNOWN);
            assert_eq!(steps[3].span.dur(), Dur::from_ps(995));
            assert_eq!(steps[4].span.dur(), Dur::from_ps(1_000 + pause), "a checkpoint");
            assert!(steps.iter().all(|step| step.excluded.is_none()));
        }
        let once = [(0, 995), (1_000, 1_995), (90_000, 90_995), (91_000, 91_995)];
        assert_eq!(lengths(&laid(&once, true, &UNKNOWN))[1], (995, None), "once may be an accident");
        let short = [(0, 995), (1_000, 1_995), (2_300, 3_295), (3_300, 4_295)];
        assert_eq!(lengths(&laid(&short, true, &UNKNOWN))[1], (995, None), "however short");
    }

    #[test]
    fn another_loop_counts_where_it_recurs() {
        let other = Told(Filling::AnotherLoop, false);
        let marks = epochs(20_000);
        assert_eq!(lengths(&laid(&marks, true, &other))[4], (21_000, None), "an evaluation after each epoch");
        let once = [(0, 995), (1_000, 1_995), (90_000, 90_995), (91_000, 91_995)];
        assert_eq!(lengths(&laid(&once, true, &other))[1], (995, None), "its own length");
        let apart = [(0, 700), (1_000, 1_700), (90_000, 90_700), (91_000, 91_700)];
        assert_eq!(lengths(&laid(&apart, true, &other))[1], (1_000, None), "and the usual gap");
    }

    #[test]
    fn a_gap_in_which_a_device_works_is_no_pause() {
        let spans = [(0, 100), (200, 300), (400, 500), (3_000, 3_100), (5_600, 5_700)];
        let steps = laid(&spans, false, &Told(Filling::Unknown, true));
        assert!(steps[..4].iter().all(|step| step.excluded.is_none()), "{steps:?}");
    }

    #[test]
    fn a_step_whose_end_nobody_knows_is_incomplete() {
        let steps = laid(&[(0, 10), (1000, 1010), (2000, 2010)], false, &UNKNOWN);
        assert_eq!(lengths(&steps), [(1000, None), (1000, None), (10, Some(Exclusion::Incomplete))]);
    }
}
