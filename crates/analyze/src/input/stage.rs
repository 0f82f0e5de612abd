//! One stage of a tf.data pipeline: what its events add up to, and what sort of work it is.

use stepscope_trace::Dur;

/// What sort of work a stage does.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum StageKind {
    /// Reads files or records.
    Reading,
    /// Takes elements from memory.
    Source,
    /// Runs a function on elements, or filters them.
    Preprocessing,
    /// Puts elements together or takes them apart.
    Batching,
    /// Changes the order.
    Shuffling,
    /// Holds elements ready.
    Buffering,
    /// Asks Python for elements.
    Generator,
    /// Keeps what was computed.
    Cache,
    /// Moves batches to a device.
    Transfer,
    /// Only ties others together: roots, options, repeats, zips.
    Structure,
}

impl StageKind {
    /// One word for it, as programs read it.
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

    /// By the stage's name, e.g. `ParallelMapV2`. The first beginning that fits decides.
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

/// Do this stage's inputs run on threads of its own, so that its caller only waits for what they have ready?
pub(super) fn is_asynchronous(name: &str) -> bool {
    const BEGINNINGS: &[&str] =
        &["Prefetch", "Parallel", "MapAndBatch", "LegacyParallelInterleave", "DataService"];
    BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// Do this stage's parallel calls run its inputs, not only its function?
pub(super) fn runs_inputs_in_parallel(name: &str) -> bool {
    name.starts_with("ParallelInterleave") || name.starts_with("LegacyParallelInterleave")
}

/// An op that a stage's function ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionOp {
    /// Its type, e.g. `DecodeJpeg`.
    pub op: String,
    /// How often it ran.
    pub count: u64,
    /// How long in all.
    pub time: Dur,
}

/// What the events of one stage add up to.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// The names from the root on; an index only where it tells inputs apart: `Root::Zip[1]::Map`.
    pub(super) path: String,
    /// The stage that asks this one for elements.
    pub(super) parent: Option<usize>,
    /// The dataset op, as the recorder names it: what the user wrote, or what TensorFlow made of it.
    pub(super) dataset: Option<String>,
    pub(super) shapes: Option<String>,
    pub(super) calls: u64,
    /// Inside the stage, inputs and waiting too.
    pub(super) total: Dur,
    /// On the caller's thread, without inputs and functions. Of an asynchronous stage this is waiting.
    pub(super) own: Dur,
    /// On the stage's own threads, without inputs and functions.
    pub(super) producing: Dur,
    /// Blocked in the function that it calls.
    pub(super) function: Dur,
    /// The function at work on other threads while nobody is blocked in it.
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
    /// Its own name: the path's last, without an index.
    pub(super) fn name(&self) -> &str {
        let last = self.path.rsplit("::").next().unwrap_or(&self.path);
        last.split('[').next().unwrap_or(last)
    }

    pub(super) fn add(&mut self, other: &Tally) {
        self.dataset = self.dataset.take().or_else(|| other.dataset.clone());
        self.shapes = self.shapes.take().or_else(|| other.shapes.clone());
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
