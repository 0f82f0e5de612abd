//! Words for the typed vocabulary of the analyses: categories, frameworks, how steps were found, why one does
//! not count.

use stepscope_analyze::Category;
use stepscope_analyze::devices::collectives::clock::Unaligned;
use stepscope_analyze::job::JobPart;
use stepscope_analyze::steps::{Exclusion, How, Origin, StepKind};
use stepscope_analyze::time::critical::{NoPath, Piece};
use stepscope_analyze::time::summary::HostSummary;
use stepscope_analyze::vocabulary::Framework;
use stepscope_trace::DeviceKind;

use crate::format::{duration_ms, percent, plural, thousands};

pub use stepscope_diagnose::words::{category, how};

/// What a category is called.
pub fn category_title(category: Category) -> &'static str {
    match category {
        Category::Compute => "Compute",
        Category::Communication => "Communication",
        Category::TransferIn => "Transfer in",
        Category::TransferOut => "Transfer out",
        Category::TransferDevice => "Transfer between devices",
        Category::Input => "Input",
        Category::Tracing => "Tracing",
        Category::Compile => "Compile",
        Category::Launch => "Launch",
        Category::Dispatch => "Dispatch",
        Category::Python => "Python",
        Category::Output => "Output",
        Category::Sync => "Sync",
        Category::Idle => "Idle",
        Category::Unknown => "Unknown",
    }
}

/// A part in a distributed job, as TensorFlow numbers it.
pub(crate) fn job_part(part: JobPart) -> String {
    match part {
        JobPart::Worker(number) => format!("worker/{number}"),
        JobPart::Server(number) => format!("ps/{number}"),
        JobPart::Coordinator => "coordinator".to_owned(),
        JobPart::DataWorker => "data worker".to_owned(),
    }
}

/// The name of a framework.
pub fn framework(framework: Framework) -> &'static str {
    match framework {
        Framework::TensorFlow => "TensorFlow",
        Framework::Keras => "Keras",
        Framework::Jax => "JAX",
        Framework::PyTorch => "PyTorch",
        Framework::Unknown => "unknown framework",
    }
}

/// Why the critical path of a step is unknown.
pub fn no_path(why: NoPath) -> String {
    match why {
        NoPath::Steps => "there are no steps".to_owned(),
        NoPath::Device => "no device work was recorded".to_owned(),
        NoPath::Launches => "no correlation ids join calls with the work that they launched".to_owned(),
        NoPath::Cut(known) => {
            format!("the launching call was recorded for {} of the device time only", percent(known))
        }
    }
}

/// What a piece of a critical path is called that has no event of its own.
pub(crate) fn unnamed_piece(piece: Piece) -> &'static str {
    match piece {
        Piece::Latency => "from the launch to the start of the work",
        Piece::Queue => "between two pieces of work on a stream",
        Piece::Unknown => "nothing recorded",
        _ => "between ops",
    }
}

/// Why a host's clock cannot be aligned with the others'.
pub fn unaligned(why: Unaligned) -> String {
    match why {
        Unaligned::Apart => "no collective is shared with the other hosts".to_owned(),
        Unaligned::Few(found) => {
            format!("only {} shared with the other hosts", plural(found as u64, "collective", "collectives"))
        }
        Unaligned::Loose(spread) => {
            format!("the ends of shared collectives scatter by {}", duration_ms(spread.ms()))
        }
    }
}

/// The public name of how far steps can be trusted.
pub fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Marker => "marker",
        Origin::Inferred => "inferred",
        Origin::None => "none",
    }
}

/// What a step is called.
pub fn step_name(how: &How) -> String {
    match how {
        How::Marker(name)
        | How::FunctionCalls(name)
        | How::Sequence(name)
        | How::ModuleRuns(name)
        | How::OptimizerSteps(name)
        | How::Batches(name)
        | How::Annotations(name)
        | How::Requests { name, .. }
        | How::Pipelines(name, _) => name.clone(),
        How::DeviceSteps => "Steps".to_owned(),
        How::Period(length) => format!("{length} kernels"),
        How::Unclear { .. } | How::Nothing => "capture".to_owned(),
    }
}

/// Why steps do not count.
pub fn excluded(reason: Exclusion) -> &'static str {
    match reason {
        Exclusion::Incomplete => "cut off",
        Exclusion::Startup => "start-up",
        Exclusion::Interrupted => "before a pause",
        Exclusion::Unrecorded => "not recorded on the device",
        Exclusion::IncompleteCycle => "in an incomplete cycle",
        Exclusion::Empty => "without work",
    }
}

/// How many steps of a host were excluded and why: `3 excluded (2 start-up, 1 cut off)`.
pub fn all_excluded(host: &HostSummary) -> Option<String> {
    let counted = Exclusion::ALL.map(|reason| {
        (reason, host.steps.iter().filter(|step| step.excluded == Some(reason)).count() as u64)
    });
    let sum: u64 = counted.iter().map(|(_, count)| count).sum();
    let reasons: Vec<_> = counted.into_iter().filter(|(_, count)| *count > 0).collect();
    let why = match reasons.as_slice() {
        [] => return None,
        // One reason needs no count of its own.
        [(only, _)] => excluded(*only).to_owned(),
        several => {
            let told = several.iter().map(|(why, count)| format!("{} {}", thousands(*count), excluded(*why)));
            told.collect::<Vec<_>>().join(", ")
        }
    };
    Some(format!("{} excluded ({why})", thousands(sum)))
}

/// What one step of this kind is called, and several.
pub fn step_kind(kind: StepKind) -> (&'static str, &'static str) {
    match kind {
        StepKind::Training => ("step", "steps"),
        StepKind::Inference => ("prediction", "predictions"),
    }
}

/// The public name of a sort of device.
pub fn device_kind(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Cpu => "cpu",
        DeviceKind::Gpu => "gpu",
        DeviceKind::Tpu => "tpu",
        DeviceKind::Other => "other",
    }
}
