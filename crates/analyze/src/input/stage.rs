//! One stage of a tf.data pipeline: its totals and the kind of its work.

use stepscope_trace::Dur;

/// The kind of work of a stage.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum StageKind {
    /// Reads files or records.
    Reading,
    /// Takes elements from memory.
    Source,
    /// Runs a function on elements, or filters them.
    Preprocessing,
    /// Combines or splits elements.
    Batching,
    /// Changes the order.
    Shuffling,
    /// Buffers elements.
    Buffering,
    /// Gets elements from Python.
    Generator,
    /// Caches results.
    Cache,
    /// Moves batches to a device.
    Transfer,
    /// Only connects others: roots, options, repeats, zips.
    Structure,
}

impl StageKind {
    /// Its public key.
    pub fn key(self) -> &'static str {
        match self {
            StageKind::Reading => "reading",
            StageKind::Source => "source",
            StageKind::Preprocessing => "preprocessing",
            StageKind::Batching => "batching",
            StageKind::Shuffling => "shuffling",
            StageKind::Buffering => "buffering",
            StageKind::Generator => "generator",
            StageKind::Cache => "cache",
            StageKind::Transfer => "transfer",
            StageKind::Structure => "structure",
        }
    }

    /// By the stage's name, e.g. `ParallelMapV2`. The first matching prefix decides.
    pub(super) fn of(name: &str) -> Self {
        const BEGINNINGS: &[(&str, StageKind)] = &[
            ("TFRecord", StageKind::Reading),
            ("TextLine", StageKind::Reading),
            ("FixedLengthRecord", StageKind::Reading),
            ("ArrayRecord", StageKind::Reading),
            ("SSTable", StageKind::Reading),
            ("RecordIO", StageKind::Reading),
            ("CSV", StageKind::Reading),
            ("Sql", StageKind::Reading),
            ("LMDB", StageKind::Reading),
            ("MatchingFiles", StageKind::Reading),
            ("Interleave", StageKind::Reading),
            ("ParallelInterleave", StageKind::Reading),
            ("LegacyParallelInterleave", StageKind::Reading),
            ("Snapshot", StageKind::Reading),
            ("Load", StageKind::Reading),
            ("DataService", StageKind::Reading),
            ("TensorSlice", StageKind::Source),
            ("FromTensor", StageKind::Source),
            ("Tensor", StageKind::Source),
            ("Range", StageKind::Source),
            ("SparseTensorSlice", StageKind::Source),
            ("MapAndBatch", StageKind::Preprocessing),
            ("Map", StageKind::Preprocessing),
            ("ParallelMap", StageKind::Preprocessing),
            ("Filter", StageKind::Preprocessing),
            ("ParallelFilter", StageKind::Preprocessing),
            ("ParseExample", StageKind::Preprocessing),
            ("Scan", StageKind::Preprocessing),
            ("Batch", StageKind::Batching),
            ("ParallelBatch", StageKind::Batching),
            ("PaddedBatch", StageKind::Batching),
            ("Unbatch", StageKind::Batching),
            ("Rebatch", StageKind::Batching),
            ("Window", StageKind::Batching),
            ("GroupBy", StageKind::Batching),
            ("DenseToRagged", StageKind::Batching),
            ("DenseToSparse", StageKind::Batching),
            ("Shuffle", StageKind::Shuffling),
            ("GlobalShuffle", StageKind::Shuffling),
            ("Prefetch", StageKind::Buffering),
            ("Generator", StageKind::Generator),
            ("MemoryCache", StageKind::Cache),
            ("FileCache", StageKind::Cache),
            ("Cache", StageKind::Cache),
            ("Memory", StageKind::Cache),
            ("MultiDevice", StageKind::Transfer),
            ("CopyToDevice", StageKind::Transfer),
        ];
        BEGINNINGS
            .iter()
            .find(|(beginning, _)| name.starts_with(beginning))
            .map_or(StageKind::Structure, |(_, kind)| *kind)
    }
}

/// Whether this stage's inputs run on its own threads, so that its caller only waits for what is ready.
pub(super) fn is_asynchronous(name: &str) -> bool {
    const BEGINNINGS: &[&str] =
        &["Prefetch", "Parallel", "MapAndBatch", "LegacyParallelInterleave", "DataService"];
    BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// Whether this stage's parallel calls also run its inputs, not only its function.
pub(super) fn runs_inputs_in_parallel(name: &str) -> bool {
    name.starts_with("ParallelInterleave") || name.starts_with("LegacyParallelInterleave")
}

/// An op run by a stage's function.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FunctionOp {
    /// Its type, e.g. `DecodeJpeg`.
    pub op: String,
    /// Number of executions.
    pub count: u64,
    /// Total time.
    pub time: Dur,
}

/// Totals of one stage.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Tally {
    /// The names from the root; an index only if it distinguishes inputs: `Root::Zip[1]::Map`.
    pub(super) path: String,
    /// The stage that requests elements from this one.
    pub(super) parent: Option<usize>,
    /// The dataset op as recorded: what the user wrote, or what TensorFlow made of it.
    pub(super) dataset: Option<String>,
    pub(super) shapes: Option<String>,
    /// The types of the parts of an element, e.g. `float int32`.
    #[serde(default)]
    pub(super) types: Option<String>,
    pub(super) calls: u64,
    /// Time inside the stage, including inputs and waiting.
    pub(super) total: Dur,
    /// Time on the caller's thread, without inputs and functions. For an asynchronous stage this is waiting.
    pub(super) own: Dur,
    /// Time on the stage's own threads, without inputs and functions.
    pub(super) producing: Dur,
    /// Time blocked in the function that it calls.
    pub(super) function: Dur,
    /// Time of the function on other threads while nothing is blocked in it.
    pub(super) background: Dur,
    pub(super) function_calls: u64,
    pub(super) parallelism: Option<u64>,
    pub(super) autotune: Option<bool>,
    pub(super) deterministic: Option<bool>,
    pub(super) buffer_limit: Option<u64>,
    pub(super) buffered: u64,
    pub(super) buffered_seen: u64,
    pub(super) batch_size: Option<u64>,
    pub(super) ops: Vec<FunctionOp>,
}

impl Tally {
    /// Its own name: the last of the path, without an index.
    pub(super) fn name(&self) -> &str {
        let last = self.path.rsplit("::").next().unwrap_or(&self.path);
        last.split('[').next().unwrap_or(last)
    }

    /// How many calls may run at once.
    pub(super) fn ways(&self) -> f64 {
        self.parallelism.unwrap_or(1).max(1) as f64
    }

    pub(super) fn add(&mut self, other: &Tally) {
        self.dataset = self.dataset.take().or_else(|| other.dataset.clone());
        self.shapes = self.shapes.take().or_else(|| other.shapes.clone());
        self.types = self.types.take().or_else(|| other.types.clone());
        self.calls += other.calls;
        self.total += other.total;
        self.own += other.own;
        self.producing += other.producing;
        self.function += other.function;
        self.background += other.background;
        self.function_calls += other.function_calls;
        self.parallelism = self.parallelism.max(other.parallelism);
        self.autotune = self.autotune.or(other.autotune);
        self.deterministic = self.deterministic.or(other.deterministic);
        self.buffer_limit = self.buffer_limit.max(other.buffer_limit);
        self.buffered = self.buffered.saturating_add(other.buffered);
        self.buffered_seen += other.buffered_seen;
        self.batch_size = self.batch_size.max(other.batch_size);
        for op in &other.ops {
            self.add_op(&op.op, op.count, op.time);
        }
    }

    pub(super) fn add_op(&mut self, name: &str, count: u64, time: Dur) {
        match self.ops.iter_mut().find(|op| op.op == name) {
            Some(op) => {
                op.count += count;
                op.time += time;
            }
            None => self.ops.push(FunctionOp { op: name.to_owned(), count, time }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_of_all_versions_are_sorted() {
        for (name, kind) in [
            ("ParallelMapV2", StageKind::Preprocessing),
            ("MapAndBatch", StageKind::Preprocessing),
            ("BatchV2", StageKind::Batching),
            ("ParallelInterleaveV4", StageKind::Reading),
            ("TFRecordV2", StageKind::Reading),
            ("TensorSlice", StageKind::Source),
            ("MemoryCacheImpl", StageKind::Cache),
            ("ShuffleAndRepeat", StageKind::Shuffling),
            ("ForeverRepeat", StageKind::Structure),
            ("Root", StageKind::Structure),
        ] {
            assert_eq!(StageKind::of(name), kind, "{name}");
        }
        assert!(is_asynchronous("Prefetch") && is_asynchronous("ParallelMapV2") && !is_asynchronous("Map"));
    }

    #[test]
    fn a_stage_is_called_by_the_last_of_its_path() {
        let tally = Tally { path: "Root::Zip[1]::FlatMap".into(), ..Tally::default() };
        assert_eq!(tally.name(), "FlatMap");
    }
}
