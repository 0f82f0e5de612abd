//! The source of batches: the tf.data pipeline as a tree, PyTorch's loaders, or Python code, with the stage
//! that limits them.

use stepscope_analyze::input::{Input, Loader, Pipeline, Stage, Written};
use stepscope_analyze::time::python::{PythonFrame, PythonFrames};

use crate::format::{decimal, duration_ms, percent, plural, short};
use crate::{Cell, Column, Format, Table};

/// Width of the bars in text.
const BAR: usize = 16;
/// Number of Python frames listed.
const FRAMES: usize = 10;
/// A wait below this share of the step is negligible.
const NEGLIGIBLE: f64 = 0.01;
/// A pipeline that could deliver this many times what is consumed is not a bottleneck.
const FAST_ENOUGH: f64 = 2.0;

/// The table.
pub fn table(input: &Input) -> Table {
    let piped = input.pipeline.is_some();
    let of_pipelines = |column: Column| if piped { column } else { column.hidden() };
    let per = if piped || !input.loaders.is_empty() { "per batch" } else { "per step" };
    let mut table = Table::new(
        "input",
        vec![
            Column::new("source", "source", Format::Text).hidden(),
            Column::new("stage", "stage", Format::Name),
            Column::new("bar", "", Format::Text).drawn(),
            Column::new("ms_per_batch", per, Format::Ms),
            of_pipelines(Column::new("self_ms", "self", Format::Ms)),
            of_pipelines(Column::new("function_ms", "function", Format::Ms)),
            of_pipelines(Column::new("wait_ms", "wait", Format::Ms)),
            Column::new("calls", "calls", Format::Count),
            of_pipelines(Column::new("parallelism", "parallel", Format::Count)),
            of_pipelines(Column::new("buffer", "buffer", Format::Text).optional()),
            of_pipelines(Column::new("written", "origin", Format::Text).optional()),
            of_pipelines(Column::new("kind", "kind", Format::Text).optional()),
            Column::new("bounds", "bounds", Format::Text).hidden(),
            Column::new("name", "name", Format::Name).hidden(),
            Column::new("path", "path", Format::Name).hidden(),
            Column::new("depth", "depth", Format::Id).hidden(),
            Column::new("dataset", "dataset", Format::Name).hidden(),
            Column::new("total_ms", "total", Format::Ms).hidden(),
            Column::new("autotune", "autotune", Format::Text).hidden(),
            Column::new("deterministic", "deterministic", Format::Text).hidden(),
            Column::new("buffer_limit", "buffer limit", Format::Count).hidden(),
            Column::new("buffered", "buffered", Format::Short).hidden(),
            Column::new("starved_fraction", "starved", Format::Percent).hidden(),
            Column::new("batch_size", "batch size", Format::Count).hidden(),
            Column::new("runs_python", "runs Python", Format::Text).hidden(),
            Column::new("ops_ms", "ops", Format::Text).hidden(),
        ],
    );
    table.headline = Some(headline(input));
    members(&mut table, input);
    if let Some(pipeline) = &input.pipeline {
        push_pipeline(&mut table, pipeline);
    }
    input.loaders.iter().for_each(|loader| push_loader(&mut table, loader));
    // With a pipeline or a loader, another view shows the Python code.
    if input.pipeline.is_none() && input.loaders.is_empty() {
        push_python(&mut table, &input.python);
    }
    notes(&mut table, input);
    table
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

fn push_pipeline(table: &mut Table, pipeline: &Pipeline) {
    let most = pipeline.stages.iter().filter_map(|stage| stage.ms_per_batch).fold(0.0, f64::max);
    let bottleneck = pipeline.bound.as_ref().map(|bound| bound.stage);
    for (place, stage) in pipeline.stages.iter().enumerate() {
        table.push(stage_row(stage, bottleneck == Some(place), most));
    }
}

fn stage_row(stage: &Stage, bounds: bool, most: f64) -> Vec<Cell> {
    let branch = if stage.depth == 0 { String::new() } else { "  ".repeat(stage.depth - 1) + "└ " };
    let mark = if bounds { "  ◀ slowest" } else { "" };
    let ops = stage.ops.iter().map(|op| (op.op.clone(), op.time.ms())).collect();
    vec![
        "tf.data".into(),
        format!("{branch}{}{mark}", stage.name).into(),
        bar(stage.ms_per_batch.unwrap_or(0.0), most).into(),
        stage.ms_per_batch.into(),
        stage.self_ms.into(),
        nonzero(stage.function_ms),
        nonzero(stage.wait_ms),
        stage.calls.into(),
        stage.parallelism.into(),
        buffer_words(stage).into(),
        written_words(stage).into(),
        stage.kind.key().into(),
        bounds.into(),
        stage.name.as_str().into(),
        stage.path.as_str().into(),
        stage.depth.into(),
        stage.dataset.clone().into(),
        stage.total_ms.into(),
        stage.autotune.into(),
        stage.deterministic.into(),
        stage.buffer_limit.into(),
        stage.buffered.into(),
        stage.starved.into(),
        stage.batch_size.into(),
        stage.runs_python.into(),
        if stage.ops.is_empty() { Cell::Null } else { Cell::Map(ops) },
    ]
}

fn nonzero(ms: f64) -> Cell {
    if ms > 0.0 { ms.into() } else { Cell::Null }
}

fn bar(length: f64, longest: f64) -> String {
    let filled = if longest > 0.0 { (length / longest * BAR as f64).round() as usize } else { 0 };
    "█".repeat(filled.min(BAR))
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

fn push_loader(table: &mut Table, loader: &Loader) {
    let mean = loader.fetch_ms.map(|fetch| fetch.mean);
    let total = mean.map(|mean| mean * loader.fetches as f64);
    let cells = vec![
        ("source", "DataLoader".into()),
        ("stage", loader.name.as_str().into()),
        ("name", loader.name.as_str().into()),
        ("bar", bar(1.0, 1.0).into()),
        ("ms_per_batch", mean.into()),
        ("calls", loader.fetches.into()),
        ("total_ms", total.into()),
        ("depth", 0_u64.into()),
        ("bounds", true.into()),
        ("parallelism", if loader.has_workers == Some(false) { 1_u64.into() } else { Cell::Null }),
    ];
    let row = row_of(table, cells);
    table.push(row);
    for op in &loader.ops {
        let per_batch = op.time.ms() / loader.fetches.max(1) as f64;
        let cells = vec![
            ("source", "DataLoader".into()),
            ("stage", format!("└ {}", op.op).into()),
            ("name", op.op.as_str().into()),
            ("bar", bar(per_batch, mean.unwrap_or(0.0)).into()),
            ("ms_per_batch", per_batch.into()),
            ("total_ms", op.time.ms().into()),
            ("calls", op.count.into()),
            ("depth", 1_u64.into()),
        ];
        let row = row_of(table, cells);
        table.push(row);
    }
}

/// A row with only these cells.
fn row_of(table: &Table, cells: Vec<(&str, Cell)>) -> Vec<Cell> {
    let mut row = vec![Cell::Null; table.columns().len()];
    for (key, cell) in cells {
        if let Some(at) = table.columns().iter().position(|column| column.key == key) {
            row[at] = cell;
        }
    }
    row
}

fn push_python(table: &mut Table, python: &PythonFrames) {
    let steps = python.steps.max(1) as f64;
    let most = python.frames.first().map_or(0.0, |frame| frame.own_ms);
    for frame in python.frames.iter().take(FRAMES).filter(|frame| frame.own_ms > 0.0) {
        let cells = vec![
            ("source", "python".into()),
            ("stage", frame_words(frame).into()),
            ("name", frame.function.as_str().into()),
            ("bar", bar(frame.own_ms, most).into()),
            ("ms_per_batch", (frame.own_ms / steps).into()),
            ("self_ms", frame.own_ms.into()),
            ("total_ms", frame.inclusive_ms.into()),
            ("calls", frame.calls.into()),
            ("runs_python", true.into()),
        ];
        let row = row_of(table, cells);
        table.push(row);
    }
}

/// `load (train.py:12)`.
pub(crate) fn frame_words(frame: &PythonFrame) -> String {
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
