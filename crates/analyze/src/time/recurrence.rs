//! How often something happens over the steps: in all, in every fourth, in some, once.

/// The steps in which something happens.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Recurrence {
    /// Number of steps in which it happens.
    pub steps: usize,
    /// Number of steps analysed.
    pub of: usize,
    /// The period in steps, if they are equally spaced; `None` otherwise, or if there are fewer than two.
    pub every: Option<usize>,
}

impl Recurrence {
    /// From one value per step, in order.
    pub fn of(happens: impl IntoIterator<Item = bool>) -> Self {
        let happens: Vec<bool> = happens.into_iter().collect();
        let at: Vec<usize> = (0..happens.len()).filter(|&step| happens[step]).collect();
        let mut distances = at.windows(2).map(|pair| pair[1] - pair[0]);
        let every = distances.next().filter(|first| distances.all(|distance| distance == *first));
        Recurrence { steps: at.len(), of: happens.len(), every }
    }

    /// Whether it recurs. If there is only one step, it may.
    pub fn recurs(&self) -> bool {
        self.steps >= 2 || (self.steps == 1 && self.of == 1)
    }

    /// Whether it happens at equal distances from the beginning of the recording to its end. Steps that follow one
    /// another, or a few at equal distances in one part, may be a slow phase of the machine.
    pub fn is_periodic(&self) -> bool {
        self.every.is_some_and(|every| every > 1 && (self.steps + 1) * every >= self.of)
    }

    /// Whether it happens in all steps, or all but a few.
    pub fn is_usual(&self) -> bool {
        self.steps * 3 >= self.of * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_distances_make_a_period() {
        let every = |period: usize| Recurrence::of((0..12).map(|step| step % period == period - 1));
        assert_eq!(every(4), Recurrence { steps: 3, of: 12, every: Some(4) });
        assert_eq!(every(1).every, Some(1));
        assert!(every(1).is_usual() && !every(4).is_usual() && every(4).recurs());
        assert!(every(4).is_periodic() && !every(1).is_periodic());
        let open = Recurrence::of((0..12).map(|step| step % 4 == 3 && step < 11));
        assert!(open.is_periodic(), "what follows the last step was not recorded");
        let phase = Recurrence::of((0..12).map(|step| (7..10).contains(&step)));
        assert!(phase.recurs() && !phase.is_periodic());
        let uneven = Recurrence::of([true, false, true, true]);
        assert_eq!((uneven.steps, uneven.every), (3, None));
        assert!(!Recurrence::of([false, true, false]).recurs());
        assert_eq!(Recurrence::of([]), Recurrence::default());
    }
}
