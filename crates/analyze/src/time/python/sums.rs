//! What is summed up per frame, and which frames are kept in files.

use stepscope_trace::Dur;

use super::{MOST_FRAMES, PythonPartial};

#[derive(Copy, Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Wait {
    pub(super) calls: u64,
    pub(super) inclusive: Dur,
    pub(super) user: bool,
}

#[derive(Copy, Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Sums {
    pub(super) calls: u64,
    pub(super) inclusive: Dur,
    pub(super) own: Dur,
}

impl PythonPartial {
    /// Keeps the longest frames, a few times as many as a result shows.
    pub(crate) fn bound(&mut self) {
        const FRAMES: usize = 4 * MOST_FRAMES;
        if self.frames.len() > FRAMES {
            let all = self.frames.drain();
            let kept = crate::stored::keep_largest(all, FRAMES, |sums| (sums.own, sums.inclusive)).0;
            self.frames = kept.into_iter().collect();
            self.through.retain(|place, _| self.frames.contains_key(place));
        }
        if self.waiting.len() > FRAMES {
            let kept = crate::stored::keep_largest(self.waiting.drain(), FRAMES, |wait| wait.inclusive).0;
            self.waiting = kept.into_iter().collect();
        }
    }
}
