//! Words for findings about copies: `transfer-bound`, `pageable-copies`, `blocking-copies`. Pinned memory is only
//! advised where it is not in use, as far as that is known.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::Framework;
use stepscope_diagnose::finding::CopyFacts;
use stepscope_diagnose::{Finding, FindingId};

use super::{Words, lines, listed, number, owned, share};
use crate::format::{duration_ms, short};

/// Words for copies that are slower, or hold up more, than they need.
pub(super) fn words(finding: &Finding, copies: &CopyFacts, in_ms: f64, after_ms: f64) -> Words {
    let pin = match finding.framework {
        Framework::PyTorch => {
            "Copy from pinned memory without waiting: `DataLoader(..., pin_memory=True)` and `x.to(device, \
             non_blocking=True)`."
        }
        Framework::TensorFlow | Framework::Keras => {
            "Copy ahead of the step: `ds.apply(tf.data.experimental.prefetch_to_device(\"/gpu:0\"))` as the last stage."
        }
        Framework::Jax => "Copy ahead of the step: `jax.device_put(next_batch)` in a background thread.",
        Framework::Unknown => "Copy from pinned memory (`cudaMallocHost`) with `cudaMemcpyAsync`.",
    };
    let mut advice = Vec::new();
    if may_pin(Some(copies)) {
        advice.push(pin.to_owned());
    }
    let summary = if finding.id == FindingId::PageableCopies {
        format!(
            "Pageable copies: copies from or to pageable memory take {}.",
            owned(finding, finding.claimed_ms())
        )
    } else {
        advice.push(super::host::few_reads(finding.framework).to_owned());
        advice.push(
            "Launch the next work before you wait for a copy, so that the device has something to do."
                .to_owned(),
        );
        let when = if in_ms >= after_ms { "while it waits" } else { "after them" };
        format!(
            "Blocking copies: copies hold up the host, and the device has nothing to do {when} for {}.",
            owned(finding, in_ms + after_ms)
        )
    };
    let mut evidence = known(copies);
    if in_ms > 0.0 {
        evidence.push(format!(
            "The host is blocked inside calls for copies while the device has nothing to do: {} per step.",
            duration_ms(in_ms)
        ));
    }
    if after_ms > 0.0 {
        evidence.push(format!(
            "After such calls the device has nothing to do for {} per step, until the host has launched again.",
            duration_ms(after_ms)
        ));
    }
    Words { summary, evidence, advice }
}

pub(super) fn transfer(
    finding: &Finding,
    directions: &[(Category, f64)],
    hidden_ms: f64,
    copies: Option<&CopyFacts>,
) -> Words {
    let all = directions.iter().map(|(_, ms)| ms).sum();
    let way = |category: Category| match category {
        Category::TransferIn => "to the device",
        Category::TransferOut => "from the device",
        _ => "between devices",
    };
    let mut evidence: Vec<String> = directions
        .iter()
        .map(|(category, ms)| format!("Copies {}: {} a step not hidden.", way(*category), duration_ms(*ms)))
        .collect();
    if hidden_ms > 0.0 {
        evidence.push(format!("{} a step of copies hide under compute.", duration_ms(hidden_ms)));
    }
    evidence.extend(copies.into_iter().flat_map(known));
    let mostly = directions.first().map(|(category, _)| *category);
    let towards = mostly.map_or(String::new(), |category| format!(", mostly {},", way(category)));
    Words {
        summary: format!("Transfer-bound: copies{towards} take {}.", owned(finding, all)),
        evidence,
        advice: copy_less(finding.framework, mostly.unwrap_or(Category::TransferIn), copies),
    }
}

/// From this share on, nearly all copies are from or to one sort of memory.
const MOST: f64 = 0.9;

/// What is known of the copies' memory, speed and streams.
fn known(copies: &CopyFacts) -> Vec<String> {
    let mut facts = Vec::new();
    facts.extend(copies.pageable.map(|part| match part {
        part if part >= MOST => {
            "They go from or to pageable memory, through a buffer of the driver's.".to_owned()
        }
        part if part <= 1.0 - MOST => "They go from or to pinned memory already.".to_owned(),
        part => format!("{} of their time goes from or to pageable memory.", share(part)),
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
            "{} of them a step hold up the host, for {} together.",
            number(copies.blocking),
            duration_ms(copies.blocked_ms)
        ));
    }
    facts
}

/// May pinned memory help? Not where it is in use.
fn may_pin(copies: Option<&CopyFacts>) -> bool {
    copies.and_then(|copies| copies.pageable).is_none_or(|part| part > 1.0 - MOST)
}

fn copy_less(framework: Framework, mostly: Category, copies: Option<&CopyFacts>) -> Vec<String> {
    let pins = may_pin(copies);
    match (mostly, framework) {
        (Category::TransferIn, Framework::PyTorch) if !pins => lines([
            "Pinned memory is in use, so the bus is the limit: keep weights and buffers on the device instead of copying \
             them in every step.",
            "Copy the next batch or layer on a stream of its own while this one computes: `with torch.cuda.stream(copying):` \
             and `x.to(device, non_blocking=True)`.",
            "Copy less: 16 bits or `uint8` on the way, converted on the device.",
        ]),
        (Category::TransferIn, Framework::PyTorch) => lines([
            "Copy from pinned memory without waiting: `DataLoader(..., pin_memory=True)` and \
             `x.to(device, non_blocking=True)`.",
            "Copy less: send `uint8` images and convert on the device.",
        ]),
        (Category::TransferIn, Framework::TensorFlow | Framework::Keras) => lines([
            "Copy ahead of the step: `ds.apply(tf.data.experimental.prefetch_to_device(\"/gpu:0\"))` as the last stage.",
            "Copy less: send `uint8` images and convert on the device.",
        ]),
        (Category::TransferIn, Framework::Jax) => lines([
            "Copy ahead of the step: `jax.device_put(next_batch)` in a background thread while this step computes.",
            "Copy less: send `uint8` images and convert on the device; keep state on the device.",
        ]),
        (Category::TransferOut, framework) => vec![
            super::host::few_reads(framework).to_owned(),
            "Reduce on the device before you copy: send sums, not whole tensors.".to_owned(),
        ],
        (Category::TransferDevice, Framework::Jax) => lines([
            "Reuse buffers instead of copying: `jax.jit(step, donate_argnums=0)`.",
            "See that arrays are placed where they are used: check their `.sharding`.",
        ]),
        (Category::TransferDevice, _) => lines([
            "Keep tensors where they are used, and one layout throughout: each change of it is a copy.",
        ]),
        _ if pins => lines(["Copy from pinned memory, ahead of the step, and less: convert on the device."]),
        _ => lines([
            "Pinned memory is in use, so the bus is the limit: keep on the device what is copied in every step, or copy it \
             on a stream of its own while the device computes.",
            "Copy less: smaller types on the way, converted on the device.",
        ]),
    }
}
