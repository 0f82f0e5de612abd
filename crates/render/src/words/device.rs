//! Words for findings about a device that waits: `kernel-launch-bound`, `small-kernels`, `device-idle`,
//! `sync-stall`, `transfer-bound`.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::Framework;
use stepscope_diagnose::{Finding, FindingId};

use super::{Words, lines, listed, owned, share, terms};
use crate::format::{decimal, duration_ms, short};

pub(super) fn kernels(
    finding: &Finding,
    per_step: f64,
    mean_us: f64,
    launch_us: Option<f64>,
    busy: f64,
) -> Words {
    let many = decimal(per_step, 0);
    let summary = if finding.id == FindingId::SmallKernels {
        format!(
            "Small kernels: {many} kernels a step of {} µs each; starting one costs about as much as running it.",
            short(mean_us)
        )
    } else {
        format!(
            "Kernel-launch-bound: the device waits {} for the host to launch its {many} kernels.",
            owned(finding, finding.claimed_ms())
        )
    };
    let mut evidence = vec![format!("A kernel runs {} µs on average; {many} run a step.", short(mean_us))];
    evidence
        .extend(launch_us.map(|launch| format!("The call that launches one takes {} µs.", short(launch))));
    evidence.push(format!("The device is busy for {} of the time.", share(busy)));
    Words { summary, evidence, advice: fewer_launches(finding.framework) }
}

fn fewer_launches(framework: Framework) -> Vec<String> {
    match framework {
        Framework::Keras => lines([
            "Fuse ops and run several batches a call: `model.compile(..., jit_compile=True, steps_per_execution=16)`.",
            "Use larger batches: the same launches then do more work.",
        ]),
        Framework::TensorFlow => lines([
            "Fuse ops: `@tf.function(jit_compile=True)` around the whole step.",
            "Use larger batches: the same launches then do more work.",
        ]),
        Framework::Jax => lines([
            "Put the whole step under one `jax.jit`, optimizer included, so that XLA fuses it.",
            "Use larger batches, or several steps a call with `jax.lax.scan`.",
        ]),
        Framework::PyTorch => lines([
            "Fuse ops and replay launches as a CUDA graph: `torch.compile(model, mode=\"reduce-overhead\")`.",
            "Update all parameters in a few kernels: `torch.optim.AdamW(..., fused=True)`.",
            "Use larger batches: the same launches then do more work.",
        ]),
        Framework::Unknown => lines(["Fuse kernels, capture them in a CUDA graph, or use larger batches."]),
    }
}

pub(super) fn idle(busy: f64, meanwhile: &[(Category, f64)]) -> Words {
    let reasons: Vec<String> = meanwhile
        .iter()
        .take(3)
        .map(|(category, ms)| format!("`{}` {}", category.key(), duration_ms(*ms)))
        .collect();
    let host = if reasons.is_empty() {
        String::new()
    } else {
        format!("; meanwhile the host spends {}", listed(&reasons))
    };
    Words {
        summary: format!("Device idle: the device works {} of the time{host}.", share(busy)),
        evidence: meanwhile
            .iter()
            .take(4)
            .map(|(category, ms)| {
                format!("`{}`: {} a step ({}).", category.key(), duration_ms(*ms), terms::category(*category))
            })
            .collect(),
        advice: vec![match meanwhile.first() {
            Some((category, _)) => format!("Begin with `{}`: {}.", category.key(), first_step(*category)),
            None => "See the gaps one by one: `stepscope devices PATH`.".to_owned(),
        }],
    }
}

/// What to do first against a sort of idle time.
fn first_step(category: Category) -> &'static str {
    match category {
        Category::Input => "load data beside the step",
        Category::Tracing | Category::Compile => "build functions once, before the loop",
        Category::Launch | Category::Dispatch => "do more a call: larger batches, fused or captured kernels",
        Category::Python => "take Python out of the loop",
        Category::Output => "write less often, or beside the loop",
        Category::Sync => "read results back only when you log",
        _ => "see the gaps one by one with `stepscope devices PATH`",
    }
}

pub(super) fn sync(finding: &Finding, ms: f64) -> Words {
    let mut advice = vec![super::host::few_reads(finding.framework).to_owned()];
    let explicit = match finding.framework {
        Framework::PyTorch => Some(
            "Leave out `torch.cuda.synchronize()` in the loop, and `if loss > x:` or `tensor.nonzero()`, which wait \
             too.",
        ),
        Framework::Jax => Some("Call `jax.block_until_ready` once after the loop, not in every step."),
        Framework::Keras => Some(
            "Callbacks that read `logs` in `on_train_batch_end` wait for the device at every batch: do it every \
             hundred.",
        ),
        Framework::TensorFlow | Framework::Unknown => None,
    };
    advice.extend(explicit.map(str::to_owned));
    Words {
        summary: format!(
            "Sync stall: the host is blocked on a device that has nothing to do, {}.",
            owned(finding, ms)
        ),
        evidence: lines(["The host waits inside a blocking call while no kernel and no copy runs."]),
        advice,
    }
}

pub(super) fn transfer(finding: &Finding, directions: &[(Category, f64)], hidden_ms: f64) -> Words {
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
    let mostly = directions.first().map(|(category, _)| *category);
    let towards = mostly.map_or(String::new(), |category| format!(", mostly {},", way(category)));
    Words {
        summary: format!("Transfer-bound: copies{towards} take {}.", owned(finding, all)),
        evidence,
        advice: copy_less(finding.framework, mostly.unwrap_or(Category::TransferIn)),
    }
}

fn copy_less(framework: Framework, mostly: Category) -> Vec<String> {
    match (mostly, framework) {
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
        _ => lines(["Copy from pinned memory, ahead of the step, and less: convert on the device."]),
    }
}
