//! Whole cycles: steps and the pause that follows every so many of them, such as an epoch and its evaluation.
//!
//! A recording of a few cycles starts and ends within one. The mean of all its steps has too many pauses, or too few. If
//! that matters, only the steps of whole cycles count.

use stepscope_trace::Dur;

use super::{Exclusion, Filling, Pause, Step};

/// A mean that is wrong by less does not matter: on a busy machine, steps vary by as much from run to run.
const TOLERATED: f64 = 0.1;
/// Fewer pauses show no distance between them.
const PAUSES: usize = 2;

/// Excludes the steps of incomplete cycles at either end if the mean is wrong otherwise.
pub(super) fn count(steps: &mut [Step], pauses: &[Pause]) {
    // How many steps come before each pause; the step that waits for a batch comes after its wait.
    let before = |pause: &Pause| pause.step + usize::from(pause.filling != Filling::Input);
    let before: Vec<usize> = pauses.iter().map(before).collect();
    let (Some(&head), Some(&tail)) = (before.first(), before.last()) else { return };
    let apart = || before.windows(2).map(|pair| pair[1] - pair[0]);
    let (least, most) = (apart().min().unwrap_or(0), apart().max().unwrap_or(0));
    if pauses.len() < PAUSES || most - least > 1 {
        return;
    }
    let every = (tail - head) as f64 / (pauses.len() - 1) as f64;
    // Larger ones first; a cycle starts or ends with its pause.
    let mut choices = [(0, steps.len()), (0, tail), (head, steps.len()), (head, tail)];
    choices.sort_by_key(|(from, to)| std::cmp::Reverse(to.saturating_sub(*from)));
    let fits = |&(from, to): &(usize, usize)| {
        let held = pauses.iter().filter(|pause| (from..to).contains(&pause.step));
        let lengths: Vec<f64> = held.map(|pause| pause.span.dur().ms()).collect();
        let counted = || steps[from..to].iter().filter(|step| step.excluded.is_none());
        let (count, time) = (counted().count() as f64, counted().map(|step| step.span.dur()).sum::<Dur>());
        let (paused, many) = (lengths.iter().sum::<f64>(), lengths.len());
        let mean = time.ms() / count;
        let fair = (time.ms() - paused) / count + paused / many as f64 / every;
        many >= PAUSES && (mean - fair).abs() <= TOLERATED * fair
    };
    if let Some(&(from, to)) = choices.iter().find(|choice| fits(choice)) {
        for (index, step) in steps.iter_mut().enumerate() {
            if !(from..to).contains(&index) && step.excluded.is_none() {
                step.excluded = Some(Exclusion::IncompleteCycle);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use stepscope_trace::{Span, Time};

    use super::*;
    /// The number of counted steps and their mean, of so many steps of 10 units with a pause of this length after some.
    fn counted(steps: usize, pause_after: &[usize], pause: i64) -> (usize, i64) {
        let mut at = Time::ZERO;
        let (mut all, mut pauses) = (Vec::new(), Vec::new());
        for number in 0..steps {
            let paused = pause_after.contains(&number);
            let own = Span::new(at, at + Dur::from_ps(10));
            let end = own.end + Dur::from_ps(if paused { pause } else { 0 });
            all.push(Step { number: number as i64, span: Span::new(at, end), excluded: None });
            if paused {
                let span = Span::new(own.end, end);
                pauses.push(Pause { step: number, span, filling: Filling::Output });
            }
            at = end;
        }
        count(&mut all, &pauses);
        let counted: Vec<Dur> =
            all.iter().filter(|step| step.excluded.is_none()).map(|step| step.span.dur()).collect();
        (counted.len(), counted.iter().copied().sum::<Dur>().ps() / counted.len() as i64)
    }

    #[test]
    fn an_epoch_without_its_pause_does_not_dilute_the_mean() {
        assert_eq!(counted(23, &[7, 15], 240), (16, 40), "the last epoch lacks its pause");
        assert_eq!(counted(20, &[1, 9, 17], 240), (18, 36), "the first lacks most of its steps");
        assert_eq!(counted(16, &[3, 11], 240), (16, 40), "both ends make up for each other");
        assert_eq!(counted(23, &[7, 15], 4), (23, 10), "a short pause does not matter");
    }

    #[test]
    fn without_a_rhythm_all_steps_count() {
        assert_eq!(counted(23, &[2, 6, 19], 240).0, 23);
        assert_eq!(counted(23, &[15], 240).0, 23);
        assert_eq!(counted(23, &[], 240), (23, 10));
    }
}
