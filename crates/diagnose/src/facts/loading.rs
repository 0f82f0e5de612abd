//! How data is loaded, and the lines of Python that cost most, in the shape that rules need.

use stepscope_analyze::input::{Input, Pipeline as InputPipeline, Stage, Written};
use stepscope_analyze::session::Session;
use stepscope_analyze::time::checkpoint_cost::CheckpointCost;
use stepscope_analyze::time::python::PythonFrame;
use stepscope_analyze::vocabulary::takes_from_queue;

use super::{Evidence, Loader, Pipeline, PythonLine, ServiceFacts};

impl Loader {
    /// Of a session.
    pub fn of(input: &Input) -> Self {
        if let Some(pipeline) = &input.pipeline {
            let python = lines_of(&input.python.elsewhere, input.python.steps).into_iter().next();
            return Loader::TfData(Pipeline {
                python_line: python.filter(|_| pipeline.runs_python),
                service: service(input),
                ..tf_data(pipeline)
            });
        }
        if let Some(loader) = input.loaders.first() {
            let inside = waiting_lines(input).into_iter().next();
            return Loader::TorchLoader { workers: loader.has_workers == Some(true), inside };
        }
        if input.python.waiting.first().is_some_and(|frame| takes_from_queue(&frame.file, &frame.function)) {
            return Loader::Queue;
        }
        let mut lines = waiting_lines(input);
        if lines.is_empty() {
            lines = python_lines(input);
        }
        if lines.is_empty() { Loader::Unknown } else { Loader::Python(lines) }
    }

    /// The user's code that makes batches, if it was sampled or traced.
    pub fn line(&self) -> Option<&PythonLine> {
        match self {
            Loader::TfData(pipeline) => pipeline.python_line.as_ref(),
            Loader::TorchLoader { inside, .. } => inside.as_ref(),
            Loader::Python(lines) => lines.first(),
            Loader::Queue | Loader::Unknown => None,
        }
    }
}

/// Where this share of the waiting is inside calls to the tf.data service, the service is what is awaited.
const SERVED: f64 = 0.6;

/// The service, if batches are awaited there.
fn service(input: &Input) -> Option<Box<ServiceFacts>> {
    let service = input.service.as_ref().filter(|service| service.share >= SERVED)?;
    let all: f64 = service.addresses.iter().map(|worker| worker.ms_per_step).sum();
    let share = |ms: f64| if all > 0.0 { ms / all } else { 0.0 };
    let named = service.addresses.iter().filter(|worker| !worker.address.is_empty());
    let now = service.tasks.unwrap_or(0).max(service.addresses.len() as u64).max(1);
    // While the step starves, the workers deliver one batch per step, all together.
    let rest = 1.0 - input.wait_fraction;
    let needed = (rest > 0.0).then(|| (now as f64 / rest).ceil() as u64).filter(|needed| *needed > now);
    let here = || Some(Box::new(ServiceFacts { here: true, ..ServiceFacts::default() }));
    Some(Box::new(ServiceFacts {
        workers: named.map(|worker| (worker.address.clone(), share(worker.ms_per_step))).collect(),
        needed,
        now,
        pipeline: service
            .pipeline
            .as_ref()
            .map(|pipeline| Box::new(Pipeline { service: here(), ..tf_data(pipeline) })),
        here: false,
    }))
}

fn tf_data(pipeline: &InputPipeline) -> Pipeline {
    let bound = pipeline.bound.as_ref();
    let stage = pipeline.bottleneck();
    // Stages stand before their inputs, so the one that feeds a stage follows it, one deeper.
    let after = bound.and_then(|bound| {
        let (own, next) = (pipeline.stages.get(bound.stage)?, pipeline.stages.get(bound.stage + 1)?);
        (next.depth > own.depth).then(|| next.name.clone())
    });
    Pipeline {
        bottleneck_stage: stage.map(|stage| stage.name.clone()),
        written_as: stage.and_then(|stage| stage.dataset.clone()),
        after,
        stage_ms: bound.map(|bound| bound.ms_per_batch),
        parallelism: stage.and_then(|stage| stage.parallelism).map(|parallelism| parallelism as f64),
        prefetches: pipeline.has_prefetch_by_user,
        parallel: stage.is_some_and(asked_for_parallel_calls),
        ran_parallel: stage.is_some_and(|stage| {
            stage.parallelism.map_or(stage.name.starts_with("Parallel"), |ways| ways > 1)
        }),
        heaviest: stage.and_then(|stage| stage.ops.first()).map(|op| op.op.clone()),
        call_us: stage
            .filter(|stage| stage.function_calls > 0 && stage.function_ms > 0.0)
            .map(|stage| stage.function_ms * 1e3 / stage.function_calls as f64),
        batch_size: pipeline.batch_size.map(|(size, _)| size),
        python_inside: pipeline.runs_python,
        python_line: None,
        caches: pipeline.has_cache,
        service: None,
    }
}

/// Whether the user wrote `num_parallel_calls`: the stage as it was written has it in its name, also if TensorFlow fused it
/// with others.
fn asked_for_parallel_calls(stage: &Stage) -> bool {
    match stage.written {
        Written::ByUser | Written::Unknown => stage.name.starts_with("Parallel"),
        Written::Fused => stage.dataset.as_deref().is_some_and(|dataset| dataset.contains("Parallel")),
        Written::MadeParallel | Written::Injected => false,
    }
}

/// Lines of the user's Python, the costliest first.
#[derive(Clone, Debug)]
pub struct PythonLines(pub Vec<PythonLine>);

impl Evidence for PythonLines {
    fn of(session: &Session) -> Self {
        PythonLines(python_lines(&session.input))
    }
}

fn python_lines(input: &Input) -> Vec<PythonLine> {
    lines_of(&input.python.frames, input.python.steps)
}

/// The user's ranges around Python, the costliest first; empty if a tracer saw lines.
pub(crate) fn python_ranges(input: &Input) -> Vec<PythonLine> {
    lines_of(&input.python.ranges, input.python.steps)
}

/// Where the loop waits for its batch.
fn waiting_lines(input: &Input) -> Vec<PythonLine> {
    lines_of(&input.python.waiting, input.python.steps)
}

/// Lines of Python that write, if a Python tracer saw them, longest first.
pub(crate) fn writing_lines(cost: &CheckpointCost) -> Vec<PythonLine> {
    cost.writers_ms().into_iter().map(|(place, ms)| PythonLine::new(place, ms)).collect()
}

fn lines_of(frames: &[PythonFrame], steps: usize) -> Vec<PythonLine> {
    let steps = steps.max(1) as f64;
    let line = |frame: &PythonFrame| {
        let place = match frame.line {
            Some(line) => format!("{}:{line} {}", frame.file, frame.function),
            None => format!("{} {}", frame.file, frame.function).trim_end().to_owned(),
        };
        let through = frame.through.as_ref().filter(|(_, ms)| *ms >= 0.5 * frame.own_ms);
        let through = through.map(|(call, _)| call.clone());
        PythonLine { place, ms_per_step: frame.own_ms / steps, through }
    };
    frames.iter().map(line).collect()
}
