//! Words for findings about many devices and hosts: `communication-bound`, `straggler`.

use stepscope_analyze::vocabulary::Framework;
use stepscope_diagnose::Finding;

use super::{Words, lines, owned, quoted, share};
use crate::format::{duration_ms, plural};

pub(super) fn communication(finding: &Finding, ms: f64, hidden_ms: f64) -> Words {
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
    let advice = match finding.framework {
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
    Words {
        summary: format!("Communication-bound: collectives take {}.", owned(finding, ms)),
        evidence,
        advice,
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
