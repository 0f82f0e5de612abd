//! Collectives that are too many and too small: each costs a round of messages, whatever its size.

use stepscope_analyze::devices::collectives::{RankWaiting, Waiting};
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{decimal, duration_ms};

use super::{MANY, SETTING_UP, SMALL};

/// Collectives that are too many and too small.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Many {
    /// How many per step.
    pub per_step: f64,
    /// The median time of one, without waiting, in milliseconds.
    pub each_ms: f64,
    /// Milliseconds per step in which they are set up on the rank that this takes longest.
    pub setup_ms: f64,
}

/// Whether there are too many of them, and whether they are small.
pub(super) fn many(waiting: &Waiting) -> Option<Many> {
    let sets_up = |rank: &RankWaiting| rank.setup_ms >= SETTING_UP * (rank.transfer_ms + rank.waiting_ms);
    let small = match waiting.elements {
        Some(elements) => (elements as f64) < SMALL,
        None => waiting.ranks.iter().any(|rank| rank.setup_ms > 0.0 && sets_up(rank)),
    };
    (waiting.collectives_per_step >= MANY && small).then(|| Many {
        per_step: waiting.collectives_per_step,
        each_ms: waiting.each_ms,
        setup_ms: waiting.ranks.iter().map(|rank| rank.setup_ms).fold(0.0, f64::max),
    })
}

/// How many there are, and what each costs.
pub(super) fn counted(many: Many) -> String {
    let setup = if many.setup_ms > 0.0 {
        format!(", and setting all of them up takes up to {} per step", duration_ms(many.setup_ms))
    } else {
        String::new()
    };
    format!(
        "There are {} collectives per step; the median one takes {}{setup}.",
        decimal(many.per_step, 0),
        duration_ms(many.each_ms)
    )
}

/// How to have fewer collectives.
pub(super) fn in_larger_packs(framework: Framework) -> &'static str {
    match framework {
        Framework::TensorFlow | Framework::Keras => {
            "Exchange in fewer, larger packs: leave `bytes_per_pack` of \
             `tf.distribute.experimental.CommunicationOptions` unset, or set it to 50 MB. Each collective costs a round of \
             messages, whatever its size."
        }
        Framework::PyTorch => {
            "Exchange in fewer, larger buckets: raise `bucket_cap_mb` of `DistributedDataParallel` (25 by default). Each \
             collective costs a round of messages, whatever its size."
        }
        _ => {
            "Exchange in fewer, larger pieces: each collective costs a round of messages, whatever its size."
        }
    }
}
