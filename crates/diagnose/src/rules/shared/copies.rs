//! Copies between host and device: what is known of them, and advice that `transfer-bound`, `pageable-copies` and
//! `blocking-copies` share. Pinned memory is advised only if it is not in use, as far as that is known.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{duration_ms, listed, several, share, short};

use crate::facts::CopyFacts;

/// The time of copies that do not hide under compute.
pub(in crate::rules) const COPIES: [Category; 3] =
    [Category::TransferIn, Category::TransferOut, Category::TransferDevice];

/// From this share on, nearly all copies use one kind of memory.
const MOST: f64 = 0.9;

/// What is known of the copies' memory, speed and streams.
pub(in crate::rules) fn known(copies: &CopyFacts) -> Vec<String> {
    let mut facts = Vec::new();
    facts.extend(copies.pageable.map(|part| match part {
        part if part >= MOST => {
            "They use pageable memory, through a staging buffer of the driver.".to_owned()
        }
        part if part <= 1.0 - MOST => "They use pinned memory already.".to_owned(),
        part => format!("{} of their time uses pageable memory.", share(part)),
    }));
    let speeds = [(copies.bandwidth_in, "to the device"), (copies.bandwidth_out, "from it")];
    let speeds: Vec<String> = speeds
        .into_iter()
        .filter_map(|(speed, way)| Some(format!("{} GB/s {way}", short(speed? / 1e9))))
        .collect();
    if !speeds.is_empty() {
        facts.push(format!("They run at {}.", listed(&speeds)));
    }
    if copies.on_computing_streams >= 0.5 {
        facts.push(format!(
            "{} of their time is on streams that also compute, where nothing overlaps.",
            share(copies.on_computing_streams)
        ));
    }
    if copies.blocking >= 0.5 && copies.blocked_ms > 0.0 {
        facts.push(format!(
            "{} the host, for {} in total.",
            several(copies.blocking, "copy per step blocks", "copies per step block"),
            duration_ms(copies.blocked_ms)
        ));
    }
    facts
}

/// May pinned memory help? Not if it is in use.
pub(in crate::rules) fn may_pin(copies: Option<&CopyFacts>) -> bool {
    copies.and_then(|copies| copies.pageable).is_none_or(|part| part > 1.0 - MOST)
}

/// How to copy without waiting.
pub(in crate::rules) fn pin(framework: Framework) -> &'static str {
    match framework {
        Framework::PyTorch => {
            "Copy from pinned memory without waiting: `DataLoader(..., pin_memory=True)` and `x.to(device, \
             non_blocking=True)`."
        }
        Framework::TensorFlow | Framework::Keras => {
            "Copy ahead of the step: `ds.apply(tf.data.experimental.prefetch_to_device(\"/gpu:0\"))` as the last stage."
        }
        Framework::Jax => "Copy ahead of the step: `jax.device_put(next_batch)` in a background thread.",
        Framework::Unknown => "Copy from pinned memory (`cudaMallocHost`) with `cudaMemcpyAsync`.",
    }
}

/// Copies as tests need them.
#[cfg(test)]
pub(in crate::rules) fn sample(pageable: Option<f64>) -> CopyFacts {
    CopyFacts {
        per_step: 4.0,
        pageable,
        bandwidth_in: Some(12e9),
        bandwidth_out: None,
        on_computing_streams: 1.0,
        blocking: 4.0,
        blocked_ms: 2.0,
    }
}
