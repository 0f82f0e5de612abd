//! Phrases that the words of several findings share: categories, how steps were found, how often something happens,
//! and in [`frameworks`] what each framework calls the same thing.

pub mod frameworks;

use stepscope_analyze::Category;
use stepscope_analyze::steps::How;
use stepscope_analyze::time::recurrence::Recurrence;
use stepscope_text::{plural, quoted};

/// What a category's time is, in a few words.
pub fn category(category: Category) -> &'static str {
    match category {
        Category::Compute => "ops and kernels",
        Category::Communication => "collectives, not hidden",
        Category::TransferIn => "copies to the device, not hidden",
        Category::TransferOut => "copies from the device, not hidden",
        Category::TransferDevice => "copies between devices, not hidden",
        Category::Input => "waiting for the next batch",
        Category::Tracing => "building graphs from Python",
        Category::Compile => "compiling and loading code",
        Category::Launch => "launching work on an idle device",
        Category::Dispatch => "framework and runtime overhead",
        Category::Python => "Python in the training loop",
        Category::Output => "checkpoints, summaries, results",
        Category::Sync => "host blocked, device idle",
        Category::Idle => "nothing runs, cause unknown",
        Category::Unknown => "not recorded",
    }
}

/// By what steps were found.
pub fn how(how: &How) -> String {
    match how {
        How::Marker(name) => format!("marked {}", quoted(name)),
        How::DeviceSteps => "derived for the device by the profiler".to_owned(),
        How::FunctionCalls(name) => format!("found by calls of {}", quoted(name)),
        How::Sequence(name) => {
            format!("found by a repeating sequence of calls, most of it in {}", quoted(name))
        }
        How::ModuleRuns(name) => format!("found by runs of the program {}", quoted(name)),
        How::OptimizerSteps(name) => format!("found by optimizer steps, {}", quoted(name)),
        How::Batches(name) => format!("found by batches taken from {}", quoted(name)),
        How::Annotations(name) => format!("found by annotations {}", quoted(name)),
        How::Requests { name, threads } => {
            format!("found by answers of {} on {threads} threads at once", quoted(name))
        }
        How::Pipelines(name, 1) => format!("found by new input pipelines for {}", quoted(name)),
        How::Pipelines(name, count) => {
            format!("found by every {count} new input pipelines for {}", quoted(name))
        }
        How::Period(length) => {
            let period = plural(*length as u64, "op", "ops");
            format!("found by the period of {period} on the busiest track (equal layers would look the same)")
        }
        How::Unclear { parts, ops } => {
            let ops = plural(*ops as u64, "op", "ops");
            format!("{parts} equal parts of {ops} repeat, which may be layers of one step or steps")
        }
        How::Nothing => "nothing is marked and nothing repeats".to_owned(),
    }
}

/// `6 of 24 steps, every 4 steps`.
pub fn in_steps(often: &Recurrence) -> String {
    let steps = plural(often.of as u64, "step", "steps");
    let period = often.every.filter(|every| *every > 1).map(|every| format!(", every {every} steps"));
    format!("{} of {steps}{}", often.steps, period.unwrap_or_default())
}

/// The same text as an owned list.
pub fn lines<const N: usize>(all: [&str; N]) -> Vec<String> {
    all.map(str::to_owned).to_vec()
}
