//! Words for findings that say how far a recording can be trusted: what is missing, and the exact way to capture
//! it.

use stepscope_analyze::steps::How;
use stepscope_analyze::vocabulary::Framework;

use super::{Words, lines, quoted, share, terms};
use crate::format::{decimal, duration_ms, plural, thousands};

pub(super) fn damage(what: &str, offset: Option<u64>) -> Words {
    let at = offset.map_or(String::new(), |offset| format!(" at byte {}", thousands(offset)));
    Words {
        summary: format!("Truncated trace: the file is damaged{at}; only what comes before it is shown."),
        evidence: vec![format!("The reader stopped at: {}.", quoted(what))],
        advice: lines([
            "Copy the file again (a full disk or a killed program cuts it off), or record again and let the \
             profiler stop before the program ends.",
        ]),
    }
}

pub(super) fn dropped(count: u64, framework: Framework) -> Words {
    let (events, how_many) = match count {
        0 | 1 => ("events".to_owned(), "The recorder does not say how many."),
        many => (plural(many, "event", "events"), "By the recorder's own word or its exact limit."),
    };
    Words {
        summary: format!("Truncated trace: the recorder dropped {events}; times below are too short."),
        evidence: lines([how_many]),
        advice: vec![format!("Record fewer steps: {}.", capture(framework)), less_detail(framework)],
    }
}

pub(super) fn nothing_repeats(framework: Framework) -> Words {
    Words {
        summary: "No steps: nothing is marked and nothing repeats, so the breakdown is of the whole capture."
            .to_owned(),
        evidence: lines(["There is no step marker, no repeated function and no period in the ops."]),
        advice: vec![
            format!("Mark the steps: {}.", marker(framework)),
            format!("Record at least ten of them: {}.", capture(framework)),
        ],
    }
}

pub(super) fn startup(steps: usize, steady: usize, part: f64, framework: Framework) -> Words {
    let warm = plural(steps as u64, "warm-up step", "warm-up steps");
    let rest = match steady {
        0 => "no steady step follows".to_owned(),
        some => format!("only {} after it", plural(some as u64, "steady step", "steady steps")),
    };
    Words {
        summary: format!(
            "Start-up profiled: {warm} hold {} of the recorded step time, and {rest}.",
            share(part)
        ),
        evidence: lines(["They trace, compile or allocate for the first time, which later steps do not."]),
        advice: vec![format!("Record later, after ten steps or more: {}.", capture(framework))],
    }
}

pub(super) fn setting_up(ms: f64, part: f64, calls: &[(String, f64)], framework: Framework) -> Words {
    let named = calls.iter().map(|(call, ms)| format!("{}: {}.", quoted(call), duration_ms(*ms)));
    let mut evidence: Vec<String> = named.collect();
    evidence.push(
        "The device has nothing to do meanwhile. At its first use a context is made, a library is loaded, code is \
         compiled; too few steps were recorded to show whether these calls are as long again."
            .to_owned(),
    );
    let most = calls.first().map_or(String::new(), |(call, _)| format!(", mostly in {}", quoted(call)));
    Words {
        summary: format!(
            "Start-up profiled: setting up takes {} of the recorded time ({}){most}.",
            share(part),
            duration_ms(ms)
        ),
        evidence,
        advice: vec![format!("Record later, after ten steps or more: {}.", capture(framework))],
    }
}

pub(super) fn few_steps(count: usize, how: &How, framework: Framework) -> Words {
    let summary = match count {
        0 => "Too few steps: not one whole step was recorded, so nothing says what is usual.".to_owned(),
        1 => "Too few steps: only one whole step was recorded; it may be any odd one.".to_owned(),
        some => format!("Too few steps: only {some} count; how steps vary cannot be told."),
    };
    Words {
        summary,
        evidence: vec![format!("Steps are {}.", terms::how(how))],
        advice: vec![format!("Record at least ten steps: {}.", capture(framework))],
    }
}

pub(super) fn overhead(events_per_ms: f64, python_frames: f64, framework: Framework) -> Words {
    Words {
        summary: format!(
            "Overhead distorts: the recorder wrote {} events a millisecond, which slows Python down itself.",
            decimal(events_per_ms, 0)
        ),
        evidence: vec![format!(
            "{} of all events are frames of a Python tracer, at about a microsecond each.",
            share(python_frames)
        )],
        advice: vec![less_detail(framework)],
    }
}

/// How to record a few steady steps.
fn capture(framework: Framework) -> &'static str {
    match framework {
        Framework::Keras => {
            "`model.fit(..., callbacks=[tf.keras.callbacks.TensorBoard(logdir, profile_batch=(10, 20))])`"
        }
        Framework::TensorFlow => {
            "`tf.profiler.experimental.start(logdir)` after step 10, `tf.profiler.experimental.stop()` after step 20"
        }
        Framework::Jax => {
            "`jax.profiler.start_trace(logdir)` after step 10, `jax.block_until_ready(...)` and \
             `jax.profiler.stop_trace()` after step 20"
        }
        Framework::PyTorch => {
            "`torch.profiler.profile(schedule=torch.profiler.schedule(wait=5, warmup=5, active=10))` with \
             `prof.step()` at the end of each step"
        }
        Framework::Unknown => "start the profiler after step 10 and stop it after step 20",
    }
}

/// How to mark steps.
fn marker(framework: Framework) -> &'static str {
    match framework {
        Framework::TensorFlow | Framework::Keras => {
            "`with tf.profiler.experimental.Trace(\"train\", step_num=step, _r=1):` around the body of the loop"
        }
        Framework::Jax => {
            "`with jax.profiler.StepTraceAnnotation(\"train\", step_num=step):` around the body of the loop"
        }
        Framework::PyTorch => {
            "`prof.step()` at the end of the loop's body, inside `torch.profiler.profile(...)`"
        }
        Framework::Unknown => "put a range of one name with the step's number around the body of the loop",
    }
}

/// How to record with less detail.
fn less_detail(framework: Framework) -> String {
    match framework {
        Framework::TensorFlow | Framework::Keras => {
            "Record with less detail: `tf.profiler.experimental.ProfilerOptions(host_tracer_level=1, \
             python_tracer_level=0)`."
        }
        Framework::Jax => {
            "Record with less detail: `options = jax.profiler.ProfileOptions()`, \
             `options.python_tracer_level = 0`, `start_trace(logdir, profiler_options=options)`."
        }
        Framework::PyTorch => {
            "Record with less detail: `profile(with_stack=False, record_shapes=False, profile_memory=False)`."
        }
        Framework::Unknown => "Record with less detail: without Python frames, shapes and memory.",
    }
    .to_owned()
}
