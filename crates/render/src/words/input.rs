//! Words for `input-bound`: which stage is too slow, as the user wrote it, and what makes it faster.

use stepscope_analyze::vocabulary::Framework;
use stepscope_diagnose::Finding;
use stepscope_diagnose::finding::{Loader, Pipeline, PythonLine};

use super::{Words, listed, owned, quoted};
use crate::format::{duration_ms, short};

pub(super) fn words(finding: &Finding, loader: &Loader, wait_ms: f64) -> Words {
    let (why, evidence, advice) = match loader {
        Loader::TfData(pipeline) => {
            (tf_data_why(pipeline), tf_data_evidence(pipeline), tf_data_advice(pipeline, finding.framework))
        }
        Loader::TorchLoader { workers, inside } => {
            let (why, mut evidence, advice) = torch(*workers);
            evidence.extend(inside.as_ref().map(|line| {
                let cost = duration_ms(line.ms_per_step);
                format!("Inside it, {} takes {cost} per step.", quoted(&line.place))
            }));
            (why, evidence, advice)
        }
        Loader::Python(lines) => python(lines, finding.framework),
        Loader::Unknown => unknown(finding.framework),
    };
    let measured = || vec![format!("The step waits {} for its batch.", duration_ms(wait_ms))];
    Words {
        summary: format!("Input-bound: the step waits {} for its next batch{why}.", owned(finding, wait_ms)),
        evidence: if evidence.is_empty() { measured() } else { evidence },
        advice,
    }
}

/// What sort of stage bounds the pipeline, by the name it was written as.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Sort {
    Map,
    Reading,
    Interleave,
    Batch,
    Shuffle,
    Generator,
    Other,
}

/// The stages that TensorFlow made one of: `fused(MapDataset:4,BatchDatasetV2:5)`; one that was not fused is its own only
/// part.
fn parts(stage: &str) -> Vec<&str> {
    let fused = stage.strip_prefix("fused(").and_then(|inner| inner.strip_suffix(')'));
    fused.map_or_else(|| vec![stage], |inner| inner.split(',').collect())
}

/// The dataset op's bare name: `ParallelMapDatasetV2:1` is `Map`; of fused ones, the first.
fn bare(stage: &str) -> &str {
    let stage = parts(stage).first().copied().unwrap_or(stage);
    let name = stage.split([':', '[']).next().unwrap_or(stage);
    let name = name.rsplit('/').next().unwrap_or(name);
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let name = name.strip_suffix('V').unwrap_or(name);
    let name = name.strip_suffix("Dataset").unwrap_or(name);
    name.strip_prefix("Parallel").unwrap_or(name)
}

fn stage(pipeline: &Pipeline) -> Option<&str> {
    pipeline.written_as.as_deref().or(pipeline.bounding_stage.as_deref()).map(bare)
}

fn sort(pipeline: &Pipeline) -> Sort {
    match stage(pipeline).unwrap_or_default() {
        "Map" | "MapAndBatch" | "Filter" | "ParseExample" | "Scan" => Sort::Map,
        "TFRecord" | "TextLine" | "FixedLengthRecord" | "CSV" | "Sql" | "Snapshot" => Sort::Reading,
        "Interleave" | "LegacyParallelInterleave" => Sort::Interleave,
        "Batch" | "PaddedBatch" | "Rebatch" => Sort::Batch,
        "Shuffle" | "ShuffleAndRepeat" => Sort::Shuffle,
        "Generator" | "FromGenerator" => Sort::Generator,
        "FlatMap" if pipeline.python_inside => Sort::Generator,
        _ => Sort::Other,
    }
}

/// A stage as it stands in the user's code; those that TensorFlow fused, one after the other.
fn as_code(stage: &str) -> String {
    let codes: Option<Vec<&str>> = parts(stage).into_iter().map(code).collect();
    codes.map_or_else(|| quoted(stage), |codes| format!("`{}`", codes.concat()))
}

fn code(stage: &str) -> Option<&'static str> {
    Some(match bare(stage) {
        "Map" => ".map(...)",
        "MapAndBatch" => ".map(...).batch(...)",
        "FlatMap" => ".flat_map(...)",
        "Filter" => ".filter(...)",
        "Scan" => ".scan(...)",
        "ParseExample" => ".map(tf.io.parse_example)",
        "Batch" => ".batch(...)",
        "PaddedBatch" => ".padded_batch(...)",
        "Unbatch" => ".unbatch()",
        "Shuffle" | "ShuffleAndRepeat" => ".shuffle(...)",
        "Repeat" | "ForeverRepeat" | "FiniteRepeat" => ".repeat(...)",
        "Interleave" | "LegacyParallelInterleave" => ".interleave(...)",
        "Prefetch" => ".prefetch(...)",
        "Cache" | "MemoryCache" | "FileCache" => ".cache(...)",
        "Window" => ".window(...)",
        "Zip" => "tf.data.Dataset.zip(...)",
        "Generator" | "FromGenerator" => "tf.data.Dataset.from_generator(...)",
        "TensorSlice" => "tf.data.Dataset.from_tensor_slices(...)",
        "Range" => "tf.data.Dataset.range(...)",
        "TFRecord" => "tf.data.TFRecordDataset(...)",
        "TextLine" => "tf.data.TextLineDataset(...)",
        "FixedLengthRecord" => "tf.data.FixedLengthRecordDataset(...)",
        _ => return None,
    })
}

fn named(pipeline: &Pipeline) -> Option<String> {
    if sort(pipeline) == Sort::Generator {
        return Some(as_code("Generator"));
    }
    pipeline.written_as.as_deref().or(pipeline.bounding_stage.as_deref()).map(as_code)
}

fn tf_data_why(pipeline: &Pipeline) -> String {
    let Some(name) = named(pipeline) else { return String::new() };
    let how = match (pipeline.python_inside, pipeline.parallelism) {
        (true, _) => "runs Python, one element at a time".to_owned(),
        (false, _) if sort(pipeline) == Sort::Map && !pipeline.parallel && !pipeline.ran_parallel => {
            "does the work on one thread".to_owned()
        }
        (false, Some(many)) if many >= 1.5 => format!("cannot keep up with {} at once", short(many.round())),
        _ => "cannot keep up".to_owned(),
    };
    format!("; {name} {how}")
}

fn tf_data_evidence(pipeline: &Pipeline) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(name) = named(pipeline) {
        let run_as = pipeline.bounding_stage.as_deref().map(quoted);
        let run_as = run_as.map_or(String::new(), |stage| format!(" (run as {stage})"));
        let after =
            pipeline.after.as_deref().map_or(String::new(), |stage| format!(" after {}", quoted(stage)));
        let cost = pipeline.stage_ms.map_or(String::new(), |ms| format!(": {} a batch", duration_ms(ms)));
        said.push(format!("The slowest stage is {name}{run_as}{after}{cost}."));
    }
    match pipeline.parallelism {
        Some(at_once) if at_once >= 1.5 => {
            said.push(format!("On average {} of its calls run at once.", short(at_once)));
        }
        Some(_) => said.push("Its calls run one at a time.".to_owned()),
        None => {}
    }
    if let Some(op) = &pipeline.heaviest {
        said.push(format!("Its function spends most of its time in {}.", quoted(op)));
    }
    let mut there = Vec::new();
    let mut missing = Vec::new();
    let by_itself = pipeline.ran_parallel && !pipeline.parallel;
    let parts = [
        (
            pipeline.parallel || pipeline.ran_parallel,
            if by_itself { "parallel calls, by TensorFlow itself" } else { "parallel calls" },
        ),
        (pipeline.prefetches, "prefetch"),
        (pipeline.caches, "cache"),
    ];
    for (has, what) in parts {
        if has { there.push(what.to_owned()) } else { missing.push(what.to_owned()) }
    }
    if !there.is_empty() {
        said.push(format!("The pipeline has: {}.", listed(&there)));
    }
    if !missing.is_empty() {
        said.push(format!("It does not have: {}.", listed(&missing)));
    }
    said
}

fn tf_data_advice(pipeline: &Pipeline, framework: Framework) -> Vec<String> {
    let mut advice = vec![main_advice(pipeline)];
    if pipeline.prefetches {
        advice.push(
            "The prefetch that is there runs empty: a larger buffer does not help, only a faster producer."
                .to_owned(),
        );
    } else if !names_prefetch(pipeline) {
        advice.push(
            "Let it work ahead of the step: end the pipeline with `.prefetch(tf.data.AUTOTUNE)`.".to_owned(),
        );
    }
    let repeats_work =
        matches!(sort(pipeline), Sort::Map | Sort::Reading | Sort::Interleave | Sort::Generator);
    if !pipeline.caches && repeats_work {
        advice.push(
            "If the prepared data fits in memory, keep it: `.cache()` before shuffling and random augmentation."
                .to_owned(),
        );
    }
    if framework == Framework::Jax {
        advice.push(
            "Put the next batch on the device while this one computes: call `jax.device_put` from a background \
             thread."
                .to_owned(),
        );
    }
    advice
}

/// Does the first advice end in a prefetch already?
fn names_prefetch(pipeline: &Pipeline) -> bool {
    sort(pipeline) == Sort::Map && !pipeline.parallel && !pipeline.ran_parallel && !pipeline.python_inside
}

/// A call that is shorter than this costs about as much to start as to run, in microseconds.
const SHORT_CALL_US: f64 = 200.0;

/// What to do about a function that runs in parallel already.
fn cheaper(pipeline: &Pipeline) -> String {
    let quick =
        pipeline.call_us.filter(|us| *us < SHORT_CALL_US && pipeline.batch_size.is_some_and(|size| size > 1));
    match quick {
        Some(us) => format!(
            "Batch first and map whole batches: `ds.batch(n).map(f)`, with `tf.io.parse_example` for a whole batch. One \
             call of the function takes {} µs, so starting it for every element costs about as much.",
            short(us)
        ),
        None => "Make the mapped function cheaper: it runs in parallel already, and more calls at once help only while \
                 cores are free. Batch before it and work on whole batches, decode to the size you need \
                 (`tf.io.decode_jpeg(x, ratio=2)`), prepare offline, or give the input more cores (`tf.data` service)."
            .to_owned(),
    }
}

fn main_advice(pipeline: &Pipeline) -> String {
    let name = named(pipeline);
    let end = if pipeline.prefetches { "" } else { ".prefetch(tf.data.AUTOTUNE)" };
    match sort(pipeline) {
        Sort::Generator => {
            "Replace the Python generator: write the data to TFRecord files or arrays and read them \
                            with tf.data, or at least let the generator yield whole batches."
                .to_owned()
        }
        _ if pipeline.python_inside => format!(
            "Replace the `tf.py_function` / `tf.numpy_function` in {} by TensorFlow ops: Python runs one call at \
             a time, whatever `num_parallel_calls` says.",
            name.unwrap_or_else(|| "the pipeline".to_owned())
        ),
        Sort::Map if !pipeline.parallel && !pipeline.ran_parallel => {
            format!("Run the map in parallel: `ds.map(f, num_parallel_calls=tf.data.AUTOTUNE){end}`.")
        }
        Sort::Map => cheaper(pipeline),
        Sort::Reading => "Read several files at once: `tf.data.Dataset.list_files(p).interleave(\
                          tf.data.TFRecordDataset, num_parallel_calls=tf.data.AUTOTUNE)`."
            .to_owned(),
        Sort::Interleave if !pipeline.parallel => {
            "Read in parallel: `.interleave(f, num_parallel_calls=tf.data.AUTOTUNE)`.".to_owned()
        }
        Sort::Interleave => {
            "Reading is parallel already: use fewer, larger files, faster or local storage, or a \
                             lighter compression."
                .to_owned()
        }
        Sort::Batch if !pipeline.parallel => {
            "Copy elements into batches in parallel: `.batch(n, num_parallel_calls=tf.data.AUTOTUNE)`."
                .to_owned()
        }
        Sort::Shuffle => {
            "Shuffle less at a time: a smaller buffer, or shuffle file names first and elements after."
                .to_owned()
        }
        Sort::Batch | Sort::Other => match name {
            Some(name) => format!("Do less in {name}: prepare it offline, or earlier and once."),
            None if pipeline.parallel => {
                "Make the pipeline's functions cheaper: prepare data offline.".to_owned()
            }
            None => format!("Run it in parallel: `ds.map(f, num_parallel_calls=tf.data.AUTOTUNE){end}`."),
        },
    }
}

type Parts = (String, Vec<String>, Vec<String>);

fn torch(workers: bool) -> Parts {
    if workers {
        return (
            "; the DataLoader's workers cannot keep up".to_owned(),
            vec!["The DataLoader has worker processes.".to_owned()],
            vec![
                "Use more workers, up to the cores there are, and let each keep more ready: raise `num_workers` \
                 and `prefetch_factor`."
                    .to_owned(),
                "Make `__getitem__` cheaper: decode to the size you need, do random transforms on the GPU, prepare \
                 the rest offline."
                    .to_owned(),
            ],
        );
    }
    (
        "; the DataLoader loads in the training process itself".to_owned(),
        vec!["The DataLoader has no worker processes (`num_workers=0`).".to_owned()],
        vec![
            "Load in other processes: `DataLoader(..., num_workers=4, pin_memory=True, persistent_workers=True)`."
                .to_owned(),
            "Then copy without waiting: `x.to(device, non_blocking=True)`.".to_owned(),
        ],
    )
}

fn python(lines: &[PythonLine], framework: Framework) -> Parts {
    let why = lines.first().map_or(String::new(), |line| format!("; {} loads it", quoted(&line.place)));
    let evidence = lines
        .iter()
        .take(3)
        .map(|line| format!("{}: {} a step.", quoted(&line.place), duration_ms(line.ms_per_step)))
        .collect();
    let place = lines.first().map_or_else(|| "the loader".to_owned(), |line| quoted(&line.place));
    (why, evidence, vec![beside_the_loop(&place, framework)])
}

fn unknown(framework: Framework) -> Parts {
    let mut advice = vec![beside_the_loop("the loader", framework)];
    advice.push("See which stage is slow: `stepscope input PATH`.".to_owned());
    (String::new(), Vec::new(), advice)
}

/// How to take a plain loader out of the loop.
fn beside_the_loop(place: &str, framework: Framework) -> String {
    match framework {
        Framework::PyTorch => format!(
            "Move {place} into a `Dataset` and load it with `DataLoader(..., num_workers=4, pin_memory=True, \
             persistent_workers=True)`."
        ),
        Framework::Jax => format!(
            "Run {place} in a background thread that keeps two batches ready on the device: \
             `q = queue.Queue(2)`, `q.put(jax.device_put(batch))`; or use a loader with workers such as Grain."
        ),
        Framework::TensorFlow | Framework::Keras => format!(
            "Build {place} as a tf.data pipeline: `ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)\
             .prefetch(tf.data.AUTOTUNE)`."
        ),
        Framework::Unknown => {
            format!("Run {place} in threads or processes of its own that keep a few batches ready.")
        }
    }
}
