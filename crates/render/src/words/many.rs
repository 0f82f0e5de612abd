//! Words for findings about many devices and hosts: `communication-bound`, `straggler`.

use stepscope_analyze::collectives::Waiting;
use stepscope_analyze::vocabulary::Framework;
use stepscope_diagnose::Finding;

use super::{Words, lines, owned, quoted, share};
use crate::format::{duration_ms, plural};

pub(super) fn communication(finding: &Finding, ms: f64, hidden_ms: f64, waiting: Option<&Waiting>) -> Words {
    let mut evidence = vec![format!("{} a step of collectives do not hide under compute.", duration_ms(ms))];
    let all = ms + hidden_ms;
    if hidden_ms > 0.0 {
        evidence.push(format!(
            "{} a step hide under it ({} of all).",
            duration_ms(hidden_ms),
            share(hidden_ms / all)
        ));
    } else {
        evidence.push("None of them hides under compute.".to_owned());
    }
    evidence.extend(waiting.into_iter().flat_map(waits));
    let mut advice = match finding.framework {
        Framework::PyTorch => lines([
            "Exchange less often: accumulate gradients under `with model.no_sync():`, or use larger batches a device.",
            "Exchange less: `model.register_comm_hook(None, default_hooks.bf16_compress_hook)`; overlap better with \
             another `bucket_cap_mb` and `gradient_as_bucket_view=True`.",
        ]),
        Framework::TensorFlow | Framework::Keras => lines([
            "Use larger batches a replica, so that more compute covers the same exchange.",
            "Exchange in larger packs and over NCCL: `tf.distribute.experimental.CommunicationOptions(\
             bytes_per_pack=50 * 1024 * 1024)`.",
        ]),
        Framework::Jax => lines([
            "Let XLA overlap collectives with compute: `XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=true` \
             (on GPUs).",
            "Use larger batches a device, or shard so that fewer axes need an exchange.",
        ]),
        Framework::Unknown => {
            lines(["Exchange less often, less, or while computing; use larger batches a device."])
        }
    };
    // Faster links and fewer bytes do nothing against waiting.
    if waiting.is_some_and(|found| found.waiting_ms() > found.transfer_ms()) {
        let balance = "Balance the ranks first: give each the same work and the same amount of data; most of this is waiting.";
        advice.insert(0, balance.to_owned());
    }
    Words {
        summary: format!("Communication-bound: collectives take {}.", owned(finding, ms)),
        evidence,
        advice,
    }
}

/// Waiting and transfer, and who is late.
fn waits(found: &Waiting) -> Vec<String> {
    let mut facts = vec![format!(
        "Over {} ranks, a rank waits {} a step for the last one to arrive and exchanges data for {}.",
        found.ranks.len(),
        duration_ms(found.waiting_ms()),
        duration_ms(found.transfer_ms())
    )];
    let latest = found.latest().filter(|rank| rank.last > 0.5);
    facts.extend(latest.map(|rank| {
        format!("{} is the last at {} of the collectives.", quoted(&rank.name), share(rank.last))
    }));
    facts
}

pub(super) fn latecomer(name: &str, last: f64, waiting_ms: f64, of: usize) -> Words {
    let rank = quoted(name);
    Words {
        summary: format!(
            "Straggler: {rank} is the last of {} at {} of the collectives; others wait for it up to {} a step.",
            plural(of as u64, "rank", "ranks"),
            share(last),
            duration_ms(waiting_ms)
        ),
        evidence: vec![format!(
            "The same collective on all ranks, by order and size: it begins last on {rank} in {} of them.",
            share(last)
        )],
        advice: lines([
            "See what it does before its collectives that others do not: more data, another device, other processes.",
            "Usual causes: uneven data, a throttled device, a slower link to the host, other jobs on the machine.",
        ]),
    }
}

pub(super) fn slowest(name: &str, ms: f64, usual_ms: f64, of: usize) -> Words {
    let slower = if usual_ms > 0.0 { ms / usual_ms - 1.0 } else { 0.0 };
    let host = quoted(name);
    Words {
        summary: format!(
            "Straggler: {host} needs {} a step where the middle of {} needs {} ({} more); all wait for it.",
            duration_ms(ms),
            plural(of as u64, "host", "hosts"),
            duration_ms(usual_ms),
            share(slower)
        ),
        evidence: vec![format!(
            "Median steps: {} on {host}, {} in the middle.",
            duration_ms(ms),
            duration_ms(usual_ms)
        )],
        advice: vec![
            format!(
                "See what it does otherwise: `stepscope report PATH --host` {host}, beside the report of another host."
            ),
            "Usual causes: other jobs on the same machine, a throttled device, uneven data, slower storage."
                .to_owned(),
        ],
    }
}
