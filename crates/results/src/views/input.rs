//! `stepscope input`: where batches come from (a tf.data pipeline as a tree, PyTorch's loaders, or Python code), and which
//! stage limits them.

use stepscope_analyze::Analysis;
use stepscope_analyze::input::{Input, InputPartial, Loader, Pipeline, Stage, Written};
use stepscope_analyze::time::python::{PythonFrame, PythonFrames};

use super::{Group, View, all_hosts, bar};
use crate::format::{decimal, duration_ms, percent, plural, short};
use crate::table::{Cell, Field, Table, columns, described};

/// Width of the bars in text.
const BAR: usize = 16;
/// Number of Python frames listed.
const FRAMES: usize = 10;
/// A wait below this share of the step is negligible.
const NEGLIGIBLE: f64 = 0.01;
/// A pipeline that could deliver this many times what is consumed is not a bottleneck.
const FAST_ENOUGH: f64 = 2.0;

pub(super) const VIEW: View = View {
    name: "input",
    title: "Input",
    group: Group::Time,
    question: "Where do batches come from, and what slows them down?",
    about: "Show the input pipeline: its stages as a tree, the slowest stage, the possible throughput",
    after_help: "Examples:\n  \
        stepscope input logs/                        tf.data, DataLoader or plain Python\n  \
        stepscope input logs/ --sort ms_per_batch    most expensive stage first\n  \
        stepscope input logs/ --json                 JSON for scripts",
    record: &[
        "TensorFlow: the stages of `tf.data` are recorded by default (host tracer level 2)",
        "PyTorch: `torch.utils.data.DataLoader` is recorded by default; for your own loop, add `with_stack=True`",
        "JAX: feed batches through `tf.data`, or mark the wait with `jax.profiler.TraceAnnotation('next batch')`",
    ],
    events: None,
    recording: false,
    sql: Some(("input_stage", "Stages of the input pipeline.")),
    columns: || described(columns()),
    members: "
        hosts?: integer -- Hosts.
        steps?: integer? -- Steps.
        wait_ms_per_step?: number? -- Time per step spent waiting for input.
        wait_fraction?: number? -- Share of the step spent waiting for input.
        batches?: integer? -- Batches.
        batches_per_second?: number? -- Batches per second.
        examples_per_second?: number? -- Examples per second.
        most_batches_per_second?: number? -- What the slowest stage can deliver at most.
        batch_size?: integer? -- Examples per batch.
        bounding_stage?: string? -- The slowest stage.
        has_prefetch_by_user?: boolean -- Whether the program prefetches.
        has_parallel_map?: boolean -- Whether a map runs in parallel.
        has_cache?: boolean -- Whether there is a cache.
        has_interleave?: boolean -- Whether files are interleaved.
        runs_python?: boolean -- Whether a stage runs Python.
    ",
    table: |hosts| table(&all_hosts(hosts, InputPartial::of, InputPartial::merge).finish()),
    groupings: &[],
};

fn columns<'a>() -> Vec<Field<Line<'a>>> {
    columns! { line: Line<'a>;
        source.known.hidden: Text "source", "tf.data or a loader" => line.source;
        stage.known.not_in_sql: Name "stage", "the stage in words" => line.shown.as_str();
        bar.drawn: Text "" => bar(line.bar.0, line.bar.1, BAR);
        ms_per_batch: Ms "per batch", "time per batch" => line.ms_per_batch;
        self_ms: Ms "self", "time without stages before it" => line.self_ms;
        function_ms: Ms "function", "time of its function" => line.of_stage(|stage| nonzero(stage.function_ms));
        wait_ms: Ms "wait", "time it waits" => line.of_stage(|stage| nonzero(stage.wait_ms));
        calls: Count "calls", "number of calls" => line.calls;
        parallelism: Count "parallel", "parallel calls" => line.parallelism;
        buffer.optional: Text "buffer", "its buffer" => line.of_stage(buffer_words);
        written.optional: Text "origin", "where it comes from" => line.of_stage(written_words);
        kind.optional: Text "kind", "what it does" => line.stage.map(|stage| stage.kind.key());
        bounds.hidden: Flag "bounds", "it limits the pipeline" => line.bounds;
        name.hidden: Name "name", "name of the stage" => line.name;
        path.hidden: Name "path", "names from the consumer" => line.stage.map(|stage| stage.path.as_str());
        depth.hidden: Id "depth", "distance from the consumer" => line.depth;
        dataset.hidden: Name "dataset", "its dataset" => line.of_stage(|stage| stage.dataset.clone());
        total_ms.hidden: Ms "total", "total time" => line.total_ms;
        autotune.hidden: Flag "autotune", "the parallelism is tuned" => line.of_stage(|stage| stage.autotune);
        deterministic.hidden: Flag "deterministic", "the order is kept" => line.of_stage(|stage| stage.deterministic);
        buffer_limit.hidden: Count "buffer limit", "size of its buffer" => line.of_stage(|stage| stage.buffer_limit);
        buffered.hidden: Short "buffered", "mean number of buffered elements" => line.of_stage(|stage| stage.buffered);
        starved_fraction.hidden: Percent "starved", "share of calls that found the buffer empty" => line.of_stage(|stage| stage.starved);
        batch_size.hidden: Count "batch size", "size of its batches" => line.of_stage(|stage| stage.batch_size);
        runs_python.hidden: Flag "runs Python", "it runs Python" => line.runs_python;
        ops_ms.hidden: Map "ops", "its ops, ms" => line.stage.map_or(Cell::Null, ops_ms);
    }
}

/// A stage of a pipeline, a loader, an op of a loader, or a line of Python.
#[derive(Default)]
struct Line<'a> {
    source: &'static str,
    /// The stage in words.
    shown: String,
    name: &'a str,
    /// Its time beside the longest.
    bar: (f64, f64),
    ms_per_batch: Option<f64>,
    self_ms: Option<f64>,
    total_ms: Option<f64>,
    calls: u64,
    depth: Option<usize>,
    bounds: Option<bool>,
    parallelism: Option<u64>,
    runs_python: Option<bool>,
    /// The stage, if it is one.
    stage: Option<&'a Stage>,
}

impl Line<'_> {
    /// Something that only stages have.
    fn of_stage<T>(&self, of: impl Fn(&Stage) -> Option<T>) -> Option<T> {
        self.stage.and_then(of)
    }
}

/// Columns that only a pipeline fills.
const OF_PIPELINES: &[&str] =
    &["self_ms", "function_ms", "wait_ms", "parallelism", "buffer", "written", "kind"];

fn table(input: &Input) -> Table {
    let mut lines: Vec<Line<'_>> = input.pipeline.iter().flat_map(stages).collect();
    lines.extend(input.loaders.iter().flat_map(loader));
    // With a pipeline or a loader, another view shows the Python code.
    let only_python = input.pipeline.is_none() && input.loaders.is_empty();
    if only_python {
        lines.extend(python(&input.python));
    }
    let mut table = Table::of("input", &columns(), &lines);
    if only_python {
        table.entitle("ms_per_batch", "per step");
    }
    if input.pipeline.is_none() {
        table.hide(OF_PIPELINES);
    }
    table.headline = Some(headline(input));
    members(&mut table, input);
    notes(&mut table, input);
    table
}

fn stages(pipeline: &Pipeline) -> Vec<Line<'_>> {
    let most = pipeline.stages.iter().filter_map(|stage| stage.ms_per_batch).fold(0.0, f64::max);
    let bottleneck = pipeline.bound.as_ref().map(|bound| bound.stage);
    let lines = pipeline.stages.iter().enumerate().map(|(place, stage)| {
        let bounds = bottleneck == Some(place);
        let branch = if stage.depth == 0 { String::new() } else { "  ".repeat(stage.depth - 1) + "└ " };
        let mark = if bounds { "  ◀ slowest" } else { "" };
        Line {
            source: "tf.data",
            shown: format!("{branch}{}{mark}", stage.name),
            name: &stage.name,
            bar: (stage.ms_per_batch.unwrap_or(0.0), most),
            ms_per_batch: stage.ms_per_batch,
            self_ms: Some(stage.self_ms),
            total_ms: Some(stage.total_ms),
            calls: stage.calls,
            depth: Some(stage.depth),
            bounds: Some(bounds),
            parallelism: stage.parallelism,
            runs_python: Some(stage.runs_python),
            stage: Some(stage),
        }
    });
    lines.collect()
}

/// A loader and its longest ops.
fn loader(loader: &Loader) -> Vec<Line<'_>> {
    let mean = loader.fetch_ms.map(|fetch| fetch.mean);
    let whole = Line {
        source: "DataLoader",
        shown: loader.name.clone(),
        name: &loader.name,
        bar: (1.0, 1.0),
        ms_per_batch: mean,
        total_ms: mean.map(|mean| mean * loader.fetches as f64),
        calls: loader.fetches,
        depth: Some(0),
        bounds: Some(true),
        parallelism: (loader.has_workers == Some(false)).then_some(1),
        ..Line::default()
    };
    let ops = loader.ops.iter().map(|op| {
        let per_batch = op.time.ms() / loader.fetches.max(1) as f64;
        Line {
            source: "DataLoader",
            shown: format!("└ {}", op.op),
            name: &op.op,
            bar: (per_batch, mean.unwrap_or(0.0)),
            ms_per_batch: Some(per_batch),
            total_ms: Some(op.time.ms()),
            calls: op.count,
            depth: Some(1),
            ..Line::default()
        }
    });
    std::iter::once(whole).chain(ops).collect()
}

fn python(python: &PythonFrames) -> Vec<Line<'_>> {
    let steps = python.steps.max(1) as f64;
    let most = python.frames.first().map_or(0.0, |frame| frame.own_ms);
    let frames = python.frames.iter().take(FRAMES).filter(|frame| frame.own_ms > 0.0);
    let lines = frames.map(|frame| Line {
        source: "python",
        shown: frame_words(frame),
        name: &frame.function,
        bar: (frame.own_ms, most),
        ms_per_batch: Some(frame.own_ms / steps),
        self_ms: Some(frame.own_ms),
        total_ms: Some(frame.inclusive_ms),
        calls: frame.calls,
        runs_python: Some(true),
        ..Line::default()
    });
    lines.collect()
}

fn members(table: &mut Table, input: &Input) {
    let pipeline = input.pipeline.as_ref();
    table.member("hosts", input.hosts);
    table.member("steps", input.steps);
    table.member("wait_ms_per_step", input.wait_ms_per_step);
    table.member("wait_fraction", input.wait_fraction);
    table.member("batches", pipeline.map(|pipeline| pipeline.batches));
    table.member("batches_per_second", pipeline.and_then(|pipeline| pipeline.batches_per_second));
    table.member("examples_per_second", pipeline.and_then(Pipeline::examples_per_second));
    table.member("most_batches_per_second", most(input));
    table.member("batch_size", pipeline.and_then(|pipeline| pipeline.batch_size).map(|(size, _)| size));
    table.member("bounding_stage", pipeline.and_then(Pipeline::bottleneck).map(|stage| stage.path.clone()));
    if let Some(pipeline) = pipeline {
        table.member("has_prefetch_by_user", pipeline.has_prefetch_by_user);
        table.member("has_parallel_map", pipeline.has_parallel_map);
        table.member("has_cache", pipeline.has_cache);
        table.member("has_interleave", pipeline.has_interleave);
        table.member("runs_python", pipeline.runs_python);
    }
}

fn most(input: &Input) -> Option<f64> {
    let loader = input.loaders.first().and_then(|loader| loader.most_batches_per_second);
    input.pipeline.as_ref().and_then(|pipeline| pipeline.most_batches_per_second).or(loader)
}

fn headline(input: &Input) -> String {
    let waits = match input.wait_ms_per_step {
        None if input.wait_fraction < NEGLIGIBLE => {
            "No steps found; the capture hardly waits for input".to_owned()
        }
        _ if input.wait_fraction < NEGLIGIBLE => "Steps hardly wait for input".to_owned(),
        Some(wait) => {
            format!("Steps wait {} ({}) for input", duration_ms(wait), percent(input.wait_fraction))
        }
        None => {
            format!("No steps found; {} of the capture waits for input", percent(input.wait_fraction))
        }
    };
    let Some(pipeline) = &input.pipeline else {
        return match (&input.loaders[..], input.python.frames.first()) {
            ([], None) => format!("{waits}; no input pipeline was recorded"),
            ([], Some(_)) => {
                "No input pipeline was recorded; these lines of Python take up the step time".to_owned()
            }
            ([loader, ..], _) => format!("{waits}; {}", loader_words(loader)),
        };
    };
    if let (Some(most), Some(taken)) = (pipeline.most_batches_per_second, pipeline.batches_per_second)
        && most > FAST_ENOUGH * taken
    {
        let (most, taken) = (short(most), short(taken));
        return format!("{waits}; the pipeline could deliver {most} batches/s, the steps take {taken}");
    }
    match (pipeline.bottleneck(), &pipeline.bound) {
        (Some(stage), Some(bound)) => {
            let at_most = pipeline.most_batches_per_second.map_or(String::new(), |most| {
                format!(", so the pipeline delivers at most {} batches/s", short(most))
            });
            let cost = duration_ms(bound.ms_per_batch);
            format!("{waits}; the slowest stage, {}, takes {cost} per batch{at_most}", stage.name)
        }
        _ => waits,
    }
}

fn loader_words(loader: &Loader) -> String {
    let fetch = loader
        .fetch_ms
        .map_or(String::new(), |fetch| format!(" takes {} per batch", duration_ms(fetch.mean)));
    let workers = match loader.has_workers {
        Some(false) => " in the training process (num_workers=0)",
        Some(true) => " in worker processes",
        None => "",
    };
    format!("the DataLoader{fetch}{workers}")
}

fn nonzero(ms: f64) -> Option<f64> {
    Some(ms).filter(|ms| *ms > 0.0)
}

fn ops_ms(stage: &Stage) -> Cell {
    let ops = stage.ops.iter().map(|op| (op.op.as_str(), op.time.ms()));
    if stage.ops.is_empty() { Cell::Null } else { Cell::named(ops) }
}

fn buffer_words(stage: &Stage) -> Option<String> {
    let limit = stage.buffer_limit?;
    let of = if limit == 0 { String::new() } else { format!(" of {}", decimal(limit as f64, 0)) };
    Some(match (stage.buffered, stage.starved) {
        (_, Some(starved)) if starved >= 0.5 => format!("empty{of}"),
        (Some(held), _) => format!("{}{of}", short(held)),
        (None, _) => format!("?{of}"),
    })
}

fn written_words(stage: &Stage) -> Option<&'static str> {
    match stage.written {
        Written::ByUser => Some("your code"),
        Written::MadeParallel => Some("parallelised"),
        Written::Fused => Some("fused"),
        Written::Injected => Some("added by TensorFlow"),
        Written::Unknown => None,
    }
}

/// `load (train.py:12)`.
fn frame_words(frame: &PythonFrame) -> String {
    let line = frame.line.map_or(String::new(), |line| format!(":{line}"));
    format!("{} ({}{line})", frame.function, frame.file)
}

fn notes(table: &mut Table, input: &Input) {
    if let Some(pipeline) = &input.pipeline {
        let took =
            pipeline.batches_per_second.map_or(String::new(), |rate| format!(", {} per second", short(rate)));
        let examples = match (pipeline.examples_per_second(), pipeline.batch_size) {
            (Some(rate), Some((size, _))) => {
                format!(" ({} examples/s, {size} per batch)", decimal(rate, 0))
            }
            _ => String::new(),
        };
        table.note(format!("{} consumed{took}{examples}.", plural(pipeline.batches, "batch", "batches")));
        table.note(
            "Time per batch: the stage's own work and its function, divided by its parallelism, without waiting. Other times \
             are totals.",
        );
        if let Some(note) = bottleneck_note(pipeline) {
            table.note(note);
        }
    }
    for loader in &input.loaders {
        let pins = if loader.pins_memory { ", pinned" } else { "" };
        table.note(format!("DataLoader: {}{pins}.", plural(loader.fetches, "batch", "batches")));
    }
}

fn bottleneck_note(pipeline: &Pipeline) -> Option<String> {
    let (stage, bound) = (pipeline.bottleneck()?, pipeline.bound.as_ref()?);
    let ops: Vec<String> =
        stage.ops.iter().take(3).map(|op| format!("{} {}", op.op, duration_ms(op.time.ms()))).collect();
    let within =
        if ops.is_empty() { String::new() } else { format!("; its function runs {}", ops.join(", ")) };
    let place = if bound.on_consumer {
        " runs on the thread that requests batches, so nothing is prepared while the model computes"
    } else {
        " runs in parallel with the model"
    };
    Some(format!("{}{place}{within}.", stage.name))
}
