//! Words for findings about a device that waits: `kernel-launch-bound`, `small-kernels`, `device-idle`,
//! `sync-stall`, `allocation-stall`, `serial-streams`.

use stepscope_analyze::Category;
use stepscope_analyze::bounding::{IdleCause, Waits};
use stepscope_analyze::vocabulary::Framework;
use stepscope_diagnose::{Finding, FindingId};

use super::{Words, lines, listed, number, owned, share, terms};
use crate::format::{decimal, duration_ms, short};

pub(super) fn kernels(
    finding: &Finding,
    per_step: f64,
    mean_us: f64,
    launch_us: Option<f64>,
    replays: bool,
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
    evidence.extend(
        launch_us
            .map(|launch| format!("The call that launches one takes {} µs at the median.", short(launch))),
    );
    evidence.push(format!("The device is busy for {} of the time.", share(busy)));
    let advice = if replays {
        evidence.push("Graphs of kernels start most of them already.".to_owned());
        lines(["Fuse kernels or use larger batches: fewer and longer kernels do the same work."])
    } else {
        fewer_launches(finding.framework)
    };
    Words { summary, evidence, advice }
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

pub(super) fn idle(
    busy: f64,
    meanwhile: &[(Category, f64)],
    causes: &[(IdleCause, f64)],
    after_waits_ms: f64,
    ranges: &[(String, f64)],
) -> Words {
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
    let mut evidence = reasons_in_words(meanwhile, causes, after_waits_ms);
    evidence.extend(ranges.iter().take(3).map(|(range, ms)| {
        format!("{} of it lies inside the range {}.", duration_ms(*ms), super::quoted(range))
    }));
    Words {
        summary: format!("Device idle: the device works {} of the time{host}.", share(busy)),
        evidence,
        advice: vec![match meanwhile.first() {
            Some((category, _)) => format!("Begin with `{}`: {}.", category.key(), first_step(*category)),
            None => "See the gaps one by one: `stepscope devices PATH`.".to_owned(),
        }],
    }
}

/// Causes where they are known, with their shares; categories otherwise.
fn reasons_in_words(
    meanwhile: &[(Category, f64)],
    causes: &[(IdleCause, f64)],
    after_waits_ms: f64,
) -> Vec<String> {
    let all: f64 = causes.iter().map(|(_, ms)| ms).sum();
    if all <= 0.0 {
        let told = meanwhile.iter().take(4).map(|(category, ms)| {
            format!("`{}`: {} a step ({}).", category.key(), duration_ms(*ms), terms::category(*category))
        });
        return told.collect();
    }
    let told = causes.iter().take(4).filter(|(_, ms)| *ms >= 0.01 * all);
    let mut lines: Vec<String> = told
        .map(|(cause, ms)| {
            format!("{} of the gaps: {} ({}).", share(ms / all), why_idle(*cause), duration_ms(*ms))
        })
        .collect();
    if after_waits_ms >= 0.05 * all {
        lines.push(format!(
            "{} of it comes right after a wait for the device: the host could not queue work ahead.",
            duration_ms(after_waits_ms)
        ));
    }
    lines
}

/// What the host does while the device has nothing to do.
fn why_idle(cause: IdleCause) -> &'static str {
    match cause {
        IdleCause::Input => "the host waits for a batch",
        IdleCause::Building => "graphs are traced or compiled",
        IdleCause::Output => "results are written",
        IdleCause::Startup => "the device's runtime is being set up",
        IdleCause::Allocation => "device memory is allocated or freed",
        IdleCause::Copy => "the host is blocked in a copy",
        IdleCause::Sync => "the host is blocked in a wait for the device",
        IdleCause::Launch => "the host launches work",
        IdleCause::Framework => "the framework prepares ops",
        IdleCause::Python => "the loop's own Python runs",
        IdleCause::Unknown => "nothing was recorded",
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

pub(super) fn sync(finding: &Finding, ms: f64, after_ms: f64) -> Words {
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
    let mut evidence = Vec::new();
    if ms > 0.0 {
        evidence.push(format!(
            "The host waits inside a blocking call while no kernel and no copy runs: {} a step.",
            duration_ms(ms)
        ));
    }
    if after_ms > 0.0 {
        evidence.push(format!(
            "After a wait the device has nothing to do for {} a step: the host could not prepare its work meanwhile.",
            duration_ms(after_ms)
        ));
    }
    let what = if ms >= after_ms {
        "the host is blocked on a device that has nothing to do"
    } else {
        "the host waits for the device, which then has nothing to do until the host has caught up"
    };
    Words { summary: format!("Sync stall: {what}, {}.", owned(finding, ms + after_ms)), evidence, advice }
}

pub(super) fn allocation(finding: &Finding, per_step: f64, ms: f64) -> Words {
    let mut advice = match finding.framework {
        Framework::PyTorch => lines([
            "The caching allocator runs out and empties itself: use less memory (smaller batches, `torch.utils.checkpoint`), \
             or `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` against splintered blocks.",
            "Leave out `torch.cuda.empty_cache()` in the loop.",
        ]),
        Framework::TensorFlow | Framework::Keras => lines([
            "Let TensorFlow keep its memory: without `set_memory_growth`, or with `TF_GPU_ALLOCATOR=cuda_malloc_async`.",
        ]),
        Framework::Jax => lines(["Leave `XLA_PYTHON_CLIENT_PREALLOCATE` on, so that memory is taken once."]),
        Framework::Unknown => lines([
            "Allocate before the loop and reuse, or take memory from a pool: `cudaMallocAsync` instead of `cudaMalloc`.",
        ]),
    };
    advice.push("Shapes that change from step to step need new blocks: pad them to a few sizes.".to_owned());
    Words {
        summary: format!(
            "Allocation stall: the device waits {} while its memory is allocated and freed.",
            owned(finding, ms)
        ),
        evidence: vec![format!(
            "{} calls a step allocate or free device memory; steady steps need none.",
            number(per_step)
        )],
        advice,
    }
}

pub(super) fn serial(streams: &[(i64, f64)], overlap_ms: f64, winnable_ms: f64, waits: Waits) -> Words {
    let known = match waits {
        Waits::Recorded => "What recorded waits of one stream for another put in order is left out of that.",
        Waits::Unrecorded => {
            "No wait of one stream for another is recorded, and many recorders leave them out: they may need each \
             other's results all the same."
        }
        Waits::CallsOnly => {
            "The host makes streams wait for one another (`cudaStreamWaitEvent`), but which for which is not recorded: \
             they may well need each other's results, so nothing is promised."
        }
    };
    let each: Vec<String> = streams
        .iter()
        .take(4)
        .map(|(number, ms)| format!("{} on stream {number}", duration_ms(*ms)))
        .collect();
    Words {
        summary: format!(
            "Serial streams: kernels on {} streams take turns although they leave room for one another.",
            streams.len()
        ),
        evidence: vec![
            format!("Kernels a step: {}.", listed(&each)),
            format!(
                "Two of them run at once for {} a step; side by side they could spare {} at the most.",
                duration_ms(overlap_ms),
                duration_ms(winnable_ms)
            ),
            known.into(),
        ],
        advice: lines([
            "See what orders them: an event that one stream waits for, work on the default stream between them, or a \
             wait of the host.",
            "Where they do not need each other's results, launch both before waiting for either; streams made with \
             `cudaStreamNonBlocking` do not wait for the default one.",
        ]),
    }
}
