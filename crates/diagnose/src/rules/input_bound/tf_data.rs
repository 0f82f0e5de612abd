//! Words about a tf.data pipeline: which stage is too slow, as the user wrote it, and what makes it faster.

use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{decimal, duration_ms, quoted, short};

use super::Said;
use crate::facts::Pipeline;
use crate::words::lines;

pub(super) fn said(pipeline: &Pipeline, framework: Framework) -> Said {
    let mut said =
        Said { why: why(pipeline), evidence: evidence(pipeline), advice: advice(pipeline, framework) };
    said.evidence.extend(pipeline.python_line.as_ref().map(super::inside));
    said
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
    pipeline.written_as.as_deref().or(pipeline.bottleneck_stage.as_deref()).map(bare)
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

pub(super) fn named(pipeline: &Pipeline) -> Option<String> {
    if sort(pipeline) == Sort::Generator {
        return Some(as_code("Generator"));
    }
    pipeline.written_as.as_deref().or(pipeline.bottleneck_stage.as_deref()).map(as_code)
}

/// Whether batches come from the tf.data service: what happens here is only unpacking.
fn is_served(pipeline: &Pipeline) -> bool {
    let service = |stage: Option<&str>| stage.is_some_and(|stage| stage.starts_with("DataService"));
    let unpacks = pipeline.heaviest.as_deref().is_some_and(|op| op.contains("UncompressElement"));
    service(pipeline.bottleneck_stage.as_deref()) || (unpacks && service(pipeline.after.as_deref()))
}

/// What a pipeline does where a single call of a stage lasts as long as the wait, and what to do about that.
pub(super) fn at_epoch_starts(pipeline: &Pipeline, stage: &str) -> (String, Vec<String>) {
    let name = as_code(stage);
    let mut advice = Vec::new();
    let why = if bare(stage).starts_with("Shuffle") {
        advice.push(
            "Use a smaller buffer: `.shuffle(n)` prepares `n` elements before it delivers the first one, again in each \
             epoch."
                .to_owned(),
        );
        let cached =
            if pipeline.caches { "" } else { "keep prepared elements with `.cache()` before it, or " };
        advice.push(format!(
            "Make its elements cheap: {cached}shuffle file names or raw records, and decode after `.shuffle`."
        ));
        format!("until {name} has filled its buffer again")
    } else {
        format!("for the first element of {name}")
    };
    advice.push(
        "Keep one iterator for all epochs, so that the next epoch is prepared while this one computes: `.repeat()` \
         in the pipeline and `.prefetch(tf.data.AUTOTUNE)` at its end."
            .to_owned(),
    );
    (why, advice)
}

fn why(pipeline: &Pipeline) -> String {
    if is_served(pipeline) {
        return "; the workers of the `tf.data` service cannot keep up".to_owned();
    }
    let Some(name) = named(pipeline) else { return String::new() };
    let how = match (pipeline.python_inside, pipeline.parallelism) {
        (true, _) => "runs Python, one element at a time".to_owned(),
        (false, _) if sort(pipeline) == Sort::Map && !pipeline.parallel && !pipeline.ran_parallel => {
            "runs on one thread".to_owned()
        }
        (false, Some(many)) if many >= 1.5 => {
            format!("cannot keep up with {} parallel calls", decimal(many.round(), 0))
        }
        _ => "cannot keep up".to_owned(),
    };
    format!("; {name} {how}")
}

fn evidence(pipeline: &Pipeline) -> Vec<String> {
    let mut said = Vec::new();
    if is_served(pipeline) {
        let cost = pipeline.stage_ms.map_or(String::new(), |ms| format!(" {} per batch", duration_ms(ms)));
        said.push(format!(
            "The pipeline waits{cost} for elements of the service, and only unpacks them here."
        ));
        return said;
    }
    if let Some(name) = named(pipeline) {
        let run_as = pipeline.bottleneck_stage.as_deref().map(quoted);
        let run_as = run_as.map_or(String::new(), |stage| format!(" (run as {stage})"));
        let after =
            pipeline.after.as_deref().map_or(String::new(), |stage| format!(" after {}", quoted(stage)));
        let cost = pipeline.stage_ms.map_or(String::new(), |ms| format!(": {} per batch", duration_ms(ms)));
        said.push(format!("The slowest stage is {name}{run_as}{after}{cost}."));
    }
    match pipeline.parallelism {
        Some(at_once) if at_once >= 1.5 => {
            said.push(format!("On average, {} of its calls run in parallel.", decimal(at_once, 1)));
        }
        Some(_) => said.push("Its calls run one at a time.".to_owned()),
        None => {}
    }
    if let Some(op) = &pipeline.heaviest {
        said.push(format!("Its function spends most of its time in {}.", quoted(op)));
    }
    let by_itself = pipeline.ran_parallel && !pipeline.parallel;
    let calls = if by_itself { "parallel calls (added by TensorFlow)" } else { "parallel calls" };
    let parts = [
        (pipeline.parallel || pipeline.ran_parallel, calls),
        (pipeline.prefetches, "prefetch"),
        (pipeline.caches, "cache"),
    ];
    for (has, label) in [(true, "In use"), (false, "Missing")] {
        let named: Vec<&str> = parts.iter().filter(|part| part.0 == has).map(|part| part.1).collect();
        if !named.is_empty() {
            said.push(format!("{label}: {}.", named.join(", ")));
        }
    }
    said
}

fn advice(pipeline: &Pipeline, framework: Framework) -> Vec<String> {
    if is_served(pipeline) {
        return lines([
            "Run more workers of the service, or make its pipeline faster: the slow stage is there.",
            "Record the workers too, with one `stepscope capture HOST:PORT HOST:PORT ...`, to see which stage it is.",
        ]);
    }
    let mut advice = vec![main_advice(pipeline)];
    if pipeline.prefetches {
        advice.push(
            "The existing prefetch runs empty: a larger buffer does not help, only a faster producer does."
                .to_owned(),
        );
    } else if !names_prefetch(pipeline) {
        advice.push(
            "Let it run ahead of the step: end the pipeline with `.prefetch(tf.data.AUTOTUNE)`.".to_owned(),
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
             call of the function takes {} µs; starting it for every element costs about as much.",
            short(us)
        ),
        None => format!(
            "Make the mapped function cheaper: it already runs in parallel, and more parallel calls help only while cores \
             are free. Batch before it and work on whole batches, decode to the size you need \
             (`tf.io.decode_jpeg(x, ratio=2)`), {}.",
            if pipeline.service.as_ref().is_some_and(|service| service.here) {
                "or prepare offline"
            } else {
                "prepare offline, or give the input more cores (`tf.data` service)"
            }
        ),
    }
}

pub(super) fn main_advice(pipeline: &Pipeline) -> String {
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
             a time, regardless of `num_parallel_calls`.",
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
            "Shuffle less at a time: use a smaller buffer, or shuffle file names first and elements afterwards."
                .to_owned()
        }
        Sort::Batch | Sort::Other => match name {
            Some(name) => format!("Do less in {name}: prepare the data offline, or once and earlier."),
            None if pipeline.parallel => {
                "Make the pipeline's functions cheaper: prepare data offline.".to_owned()
            }
            None => format!("Run it in parallel: `ds.map(f, num_parallel_calls=tf.data.AUTOTUNE){end}`."),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::{InputWait, RULE};
    use super::*;
    use crate::facts::Loader;
    use crate::rules::testing::words;

    fn advised(pipeline: Pipeline) -> String {
        let cause =
            InputWait { loader: Loader::TfData(pipeline), wait_ms: 30.0, locked_ms: None, long: None };
        words(&RULE, cause, Framework::TensorFlow).advice.join("\n")
    }

    #[test]
    fn what_is_in_use_is_not_recommended() {
        let map = |parallel, prefetches, caches| Pipeline {
            bottleneck_stage: Some("ParallelMapV2".into()),
            written_as: Some(if parallel { "ParallelMapDatasetV2" } else { "MapDataset" }.into()),
            parallel,
            prefetches,
            caches,
            ..Pipeline::default()
        };
        let plain = advised(map(false, false, false));
        assert!(plain.contains("ds.map(f, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)"));
        assert!(plain.contains(".cache()"));
        let prefetching = advised(map(false, true, true));
        assert!(
            prefetching.contains("num_parallel_calls") && !prefetching.contains(".prefetch("),
            "{prefetching}"
        );
        assert!(prefetching.contains("runs empty") && !prefetching.contains(".cache()"), "{prefetching}");
        let parallel = advised(map(true, false, false));
        assert!(!parallel.contains("num_parallel_calls") && parallel.contains(".prefetch("), "{parallel}");
    }

    #[test]
    fn the_service_is_not_blamed_on_what_unpacks_its_elements() {
        let served = Pipeline {
            bottleneck_stage: Some("ParallelMapV2".into()),
            after: Some("DataService".into()),
            heaviest: Some("UncompressElement".into()),
            ran_parallel: true,
            ..Pipeline::default()
        };
        let said = advised(served);
        assert!(said.contains("more workers of the service") && !said.contains("mapped function"), "{said}");
    }

    #[test]
    fn python_inside_a_pipeline_is_named() {
        let inside = |stage: &str| Pipeline {
            bottleneck_stage: Some(stage.into()),
            python_inside: true,
            ..Pipeline::default()
        };
        assert!(advised(inside("Generator")).contains("Replace the Python generator"));
        assert!(advised(inside("FlatMap")).contains("Replace the Python generator"));
        let called = advised(inside("ParallelMapV2"));
        assert!(called.contains("tf.py_function") && called.contains("`.map(...)`"), "{called}");
        assert!(!called.contains("num_parallel_calls=tf.data.AUTOTUNE"), "{called}");
    }
}
