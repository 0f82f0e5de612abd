//! The meaning of a pipeline's totals: which stage limits it, how fast it could be, what the user wrote.
//!
//! A pipeline is a chain of units that work at the same time: the consumer's thread, the threads behind each
//! asynchronous stage, the parallel calls of a function. Within a unit, times add up; between units, the
//! slowest decides. A stage that only waits for another unit does no work and limits nothing.

use super::stage::{FunctionOp, StageKind, Tally, is_asynchronous, runs_inputs_in_parallel};
use super::tfdata::TfData;

/// One stage of the pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Its name, e.g. `ParallelMapV2`.
    pub name: String,
    /// The names from the root.
    pub path: String,
    /// Distance from the root, which is 0.
    pub depth: usize,
    /// The kind of its work.
    pub kind: StageKind,
    /// The dataset op as recorded: `MapDataset:1` was written by the user, `inject/…` was added by TensorFlow.
    pub dataset: Option<String>,
    /// Who added it.
    pub written: Written,
    /// Number of elements taken from it.
    pub calls: u64,
    /// Number of calls of the user's function.
    pub function_calls: u64,
    /// Time inside it, including inputs and waiting, in milliseconds.
    pub total_ms: f64,
    /// Time in its own work, without functions.
    pub self_ms: f64,
    /// Time in the user's function, over all threads.
    pub function_ms: f64,
    /// Time waiting for its own threads.
    pub wait_ms: f64,
    /// Cost per batch: own work and function, divided by the parallelism.
    pub ms_per_batch: Option<f64>,
    /// Its parallelism, if stated.
    pub parallelism: Option<u64>,
    /// Whether tf.data chooses its parallelism or buffer.
    pub autotune: Option<bool>,
    /// Whether it keeps the order.
    pub deterministic: Option<bool>,
    /// Capacity of its buffer.
    pub buffer_limit: Option<u64>,
    /// Mean number of elements ready when it was asked.
    pub buffered: Option<f64>,
    /// Share of calls that found its buffer empty.
    pub starved: Option<f64>,
    /// Elements per batch.
    pub batch_size: Option<u64>,
    /// The longest ops of its function.
    pub ops: Vec<FunctionOp>,
    /// True if its elements come from Python.
    pub runs_python: bool,
}

/// Who added a stage to the pipeline.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// The user, unchanged.
    ByUser,
    /// The user wrote it without parallel calls, and TensorFlow made it parallel.
    MadeParallel,
    /// TensorFlow fused several of the user's stages.
    Fused,
    /// TensorFlow added it.
    Injected,
    /// The profile does not say.
    Unknown,
}

/// Source of the batch size.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum BatchFrom {
    /// Stated by a batching stage.
    Stage,
    /// All parts of an element have the same first dimension.
    Shapes,
}

/// The stage that limits the pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// Its position in [`Pipeline::stages`].
    pub stage: usize,
    /// Time that its unit needs per batch, in milliseconds.
    pub unit_ms_per_batch: f64,
    /// The part that the stage itself needs.
    pub ms_per_batch: f64,
    /// True if the unit is the consumer's thread: nothing is prepared while the model computes.
    pub on_consumer: bool,
}

/// A tf.data pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// A tree in display order: each stage before its inputs.
    pub stages: Vec<Stage>,
    /// Number of batches taken.
    pub batches: u64,
    /// Batches taken per second.
    pub batches_per_second: Option<f64>,
    /// Batches per second that it could deliver if nothing else slowed it down.
    pub most_batches_per_second: Option<f64>,
    /// The types of the parts of a batch, e.g. `["float", "int32"]`; empty if they were not recorded.
    pub types: Vec<String>,
    /// Examples per batch, and the source of that number.
    pub batch_size: Option<(u64, BatchFrom)>,
    /// The stage that limits it.
    pub bound: Option<Bound>,
    /// The user wrote a prefetch.
    pub has_prefetch_by_user: bool,
    /// The user wrote a map with parallel calls.
    pub has_parallel_map: bool,
    /// There is a cache.
    pub has_cache: bool,
    /// Files are read in an interleaved way.
    pub has_interleave: bool,
    /// Elements come from Python somewhere.
    pub runs_python: bool,
}

impl Pipeline {
    /// Examples taken per second.
    pub fn examples_per_second(&self) -> Option<f64> {
        Some(self.batches_per_second? * self.batch_size?.0 as f64)
    }

    /// The stage that limits it.
    pub fn bottleneck(&self) -> Option<&Stage> {
        self.stages.get(self.bound.as_ref()?.stage)
    }

    pub(super) fn of(data: TfData) -> Option<Pipeline> {
        let order = preorder(&data.stages);
        let tallies: Vec<Tally> = reordered(&data.stages, &order);
        let root = tallies.first()?;
        // If the profiler missed the root, its first input is as good.
        let batches = tallies.iter().map(|tally| tally.calls).find(|&calls| calls > 0).unwrap_or(root.calls);
        let work = work_per_batch(&tallies);
        let bound = bound(&tallies, &work);
        let stages: Vec<Stage> =
            tallies.iter().zip(&work).map(|(tally, work)| stage(&tallies, tally, *work)).collect();
        Some(Pipeline {
            batches,
            batches_per_second: data.batches_per_second,
            most_batches_per_second: bound.as_ref().map(|bound| 1e3 / bound.unit_ms_per_batch),
            types: types(&tallies),
            batch_size: batch_size(&tallies),
            has_prefetch_by_user: has(&stages, |stage| {
                stage.kind == StageKind::Buffering && stage.written == Written::ByUser
            }),
            has_parallel_map: has(&stages, |stage| {
                stage.name.starts_with("ParallelMap") && stage.written == Written::ByUser
            }),
            has_cache: has(&stages, |stage| stage.kind == StageKind::Cache),
            has_interleave: has(&stages, |stage| stage.name.contains("Interleave")),
            runs_python: has(&stages, |stage| stage.runs_python),
            bound,
            stages,
        })
    }
}

fn has(stages: &[Stage], like: impl Fn(&Stage) -> bool) -> bool {
    stages.iter().any(like)
}

/// Each stage before its inputs, inputs in order of appearance.
fn preorder(stages: &[Tally]) -> Vec<usize> {
    let mut inputs: Vec<Vec<usize>> = vec![Vec::new(); stages.len()];
    let mut next = Vec::new();
    for (at, stage) in stages.iter().enumerate().rev() {
        match stage.parent {
            Some(parent) => inputs[parent].push(at),
            None => next.push(at),
        }
    }
    let mut order = Vec::with_capacity(stages.len());
    while let Some(at) = next.pop() {
        order.push(at);
        next.append(&mut inputs[at]);
    }
    order
}

fn reordered(stages: &[Tally], order: &[usize]) -> Vec<Tally> {
    let mut place = vec![0; stages.len()];
    order.iter().enumerate().for_each(|(new, &old)| place[old] = new);
    order
        .iter()
        .map(|&old| Tally { parent: stages[old].parent.map(|parent| place[parent]), ..stages[old].clone() })
        .collect()
}

const OPS_SHOWN: usize = 5;
const PYTHON_OPS: &[&str] = &["PyFunc", "EagerPyFunc", "PyFuncStateless"];

fn stage(all: &[Tally], tally: &Tally, work: Option<Work>) -> Stage {
    let kind = StageKind::of(tally.name());
    let asynchronous = is_asynchronous(tally.name());
    let (own, wait) = if asynchronous {
        (tally.producing, tally.own)
    } else {
        (tally.own + tally.producing, Default::default())
    };
    let function = tally.function + tally.background;
    let mut ops = tally.ops.clone();
    ops.sort_by(|a, b| b.time.cmp(&a.time).then(a.op.cmp(&b.op)));
    let runs_python =
        kind == StageKind::Generator || ops.iter().any(|op| PYTHON_OPS.contains(&op.op.as_str()));
    ops.truncate(OPS_SHOWN);
    Stage {
        name: tally.name().to_owned(),
        path: tally.path.clone(),
        depth: depth(all, tally),
        kind,
        written: written(tally),
        dataset: tally.dataset.clone(),
        calls: tally.calls,
        function_calls: tally.function_calls,
        total_ms: tally.total.ms(),
        self_ms: own.ms(),
        function_ms: function.ms(),
        wait_ms: wait.ms(),
        ms_per_batch: work.map(|work| work.total_ms()),
        parallelism: tally.parallelism,
        autotune: tally.autotune,
        deterministic: tally.deterministic,
        buffer_limit: tally.buffer_limit,
        buffered: (tally.buffered_seen > 0).then(|| tally.buffered as f64 / tally.buffered_seen as f64),
        // A prefetch reports its content only once it is not empty; before TensorFlow 2.5, which did not write
        // `autotune` either, it never did.
        starved: (kind == StageKind::Buffering && tally.calls > 0 && tally.autotune.is_some())
            .then(|| 1.0 - (tally.buffered_seen as f64 / tally.calls as f64).min(1.0)),
        batch_size: tally.batch_size,
        ops,
        runs_python,
    }
}

fn depth(all: &[Tally], tally: &Tally) -> usize {
    std::iter::successors(tally.parent, |&at| all[at].parent).take(all.len()).count()
}

fn written(tally: &Tally) -> Written {
    // The root repeats the name of its only input.
    let Some(dataset) = tally.dataset.as_ref().filter(|_| tally.parent.is_some()) else {
        return Written::Unknown;
    };
    let name = tally.name();
    if dataset.starts_with("fused(") {
        Written::Fused
    } else if dataset.starts_with("inject/") {
        Written::Injected
    } else if dataset.starts_with("MapDataset") && name.starts_with("ParallelMap") {
        Written::MadeParallel
    } else {
        Written::ByUser
    }
}

/// Work of a stage per batch, in milliseconds.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
struct Work {
    /// On the calling thread.
    serial: f64,
    /// In parallel, as elapsed time.
    parallel: f64,
    /// Its consumer's waiting for what runs in parallel.
    waited: f64,
}

impl Work {
    fn total_ms(self) -> f64 {
        self.serial + self.parallel
    }
}

/// A pipeline works ahead: while one batch was taken, elements of three more may have been prepared. Therefore
/// a stage's work is divided by the batches that its own elements make, not by those that were taken.
fn work_per_batch(tallies: &[Tally]) -> Vec<Option<Work>> {
    // Elements of each stage per batch.
    let mut elements = vec![1.0; tallies.len()];
    let mut all = Vec::with_capacity(tallies.len());
    for (at, tally) in tallies.iter().enumerate() {
        if let Some((above, parent)) = tally.parent.map(|parent| (elements[parent], &tallies[parent])) {
            elements[at] = above * inputs_per_element(parent, tally);
        }
        let own_batch =
            if tally.name() == "MapAndBatch" { tally.batch_size.unwrap_or(1).max(1) as f64 } else { 1.0 };
        let made = if is_asynchronous(tally.name()) && tally.function_calls > 0 {
            tally.function_calls as f64 / (elements[at] * own_batch)
        } else {
            tally.calls as f64 / elements[at]
        };
        all.push((made > 0.0 && made.is_finite()).then(|| work(tally, made)));
    }
    all
}

/// Number of `input` elements per element of `stage`.
fn inputs_per_element(stage: &Tally, input: &Tally) -> f64 {
    // Below `flat_map` and `interleave`, a file name yields thousands of records.
    const UNEVEN: &[&str] = &[
        "Filter",
        "ParallelFilter",
        "Unbatch",
        "Window",
        "GroupBy",
        "Rebatch",
        "FlatMap",
        "Interleave",
        "ParallelInterleave",
        "LegacyParallelInterleave",
        "DirectedInterleave",
        "Concatenate",
    ];
    if let Some(size) = stage.batch_size {
        size.max(1) as f64
    } else if UNEVEN.iter().any(|name| stage.name().starts_with(name)) && stage.calls > 0 && input.calls > 0 {
        input.calls as f64 / stage.calls as f64
    } else {
        1.0
    }
}

fn work(tally: &Tally, batches: f64) -> Work {
    let ways = tally.ways();
    let (parallel, blocked) = (tally.background.ms() / ways, tally.function.ms());
    let producing = tally.producing.ms();
    let (serial, parallel) = if is_asynchronous(tally.name()) {
        // Waiting for its own threads is not work; a function that blocks does so on one of them.
        (producing, parallel + blocked / ways)
    } else {
        (tally.own.ms() + producing + blocked, parallel)
    };
    let runs_ahead = is_asynchronous(tally.name()) && !(tally.background + tally.function).is_zero();
    let waited = if runs_ahead { tally.own.ms() } else { 0.0 };
    Work { serial: serial / batches, parallel: parallel / batches, waited: waited / batches }
}

/// Threads that work sequentially.
#[derive(Default)]
struct Unit {
    ms: f64,
    /// Number of them in parallel.
    ways: f64,
    /// The stage that needs most of it, and how much.
    most: Option<(usize, f64)>,
}

impl Unit {
    fn elapsed(&self) -> f64 {
        self.ms / self.ways
    }

    fn add(&mut self, stage: usize, ms: f64) {
        self.ms += ms;
        if self.most.is_none_or(|(_, most)| ms > most) {
            self.most = Some((stage, ms));
        }
    }
}

fn bound(tallies: &[Tally], work: &[Option<Work>]) -> Option<Bound> {
    let mut units = vec![Unit { ways: 1.0, ..Unit::default() }];
    let mut unit_of = vec![0; tallies.len()];
    // The unit behind each asynchronous stage, shared by its inputs.
    let mut behind: Vec<Option<usize>> = vec![None; tallies.len()];
    for (at, (tally, work)) in tallies.iter().zip(work).enumerate() {
        let work = work.unwrap_or_default();
        unit_of[at] = match tally.parent {
            Some(parent) => behind[parent].unwrap_or(unit_of[parent]),
            None => 0,
        };
        if !is_asynchronous(tally.name()) {
            units[unit_of[at]].add(at, work.total_ms());
            continue;
        }
        let mut own = Unit { ways: 1.0, ..Unit::default() };
        own.add(at, work.parallel);
        units.push(own);
        let in_parallel = runs_inputs_in_parallel(tally.name());
        let ways = if in_parallel { tally.ways() } else { 1.0 };
        let mut inputs = Unit { ways, ..Unit::default() };
        inputs.add(at, work.serial);
        units.push(inputs);
        behind[at] = Some(units.len() - 1);
    }
    charge_waiting(tallies, work, &behind, &mut units);
    let (number, slowest) =
        units.iter().enumerate().max_by(|(_, a), (_, b)| a.elapsed().total_cmp(&b.elapsed()))?;
    let (stage, ms) = slowest.most.filter(|(_, ms)| *ms > 0.0)?;
    Some(Bound {
        stage,
        unit_ms_per_batch: slowest.elapsed(),
        ms_per_batch: ms / slowest.ways,
        on_consumer: number == 0,
    })
}

/// Calls that are asked to run in parallel share the processors that there are. If a stage's consumer waits longer than
/// the stage's inputs take, and longer than the stage itself waits for others, the rest of the waiting is what its calls
/// take in fact.
fn charge_waiting(tallies: &[Tally], work: &[Option<Work>], behind: &[Option<usize>], units: &mut [Unit]) {
    let waited = |at: usize| work[at].map_or(0.0, |work| work.waited);
    // The longest waiting further up the pipeline; inputs come after the stages that ask them.
    let mut above = vec![0.0f64; tallies.len()];
    for (at, tally) in tallies.iter().enumerate().rev() {
        if let Some(parent) = tally.parent {
            above[parent] = above[parent].max(above[at]).max(waited(at));
        }
    }
    for (at, inputs) in behind.iter().enumerate() {
        let Some(inputs) = *inputs else { continue };
        let rest = waited(at) - units[inputs].elapsed().max(above[at]);
        // The unit of a stage's own calls stands before that of its inputs.
        let own = &mut units[inputs - 1];
        if rest > own.ms {
            (own.ms, own.most) = (rest, Some((at, rest)));
        }
    }
}

/// The types of what the outermost stage that states them delivers.
fn types(tallies: &[Tally]) -> Vec<String> {
    let types = tallies.iter().find_map(|tally| tally.types.as_deref()).unwrap_or_default();
    types.split_whitespace().map(str::to_owned).collect()
}

/// The outermost batching stage decides; otherwise the first dimension that all parts of an element share.
fn batch_size(tallies: &[Tally]) -> Option<(u64, BatchFrom)> {
    if let Some(size) = tallies.iter().find_map(|tally| tally.batch_size) {
        return Some((size, BatchFrom::Stage));
    }
    let shapes = tallies.iter().find_map(|tally| tally.shapes.as_deref())?;
    let mut sizes = shapes.split_whitespace().map(|shape| {
        let first = shape.strip_prefix('[')?.split([',', ']']).next()?;
        first.parse::<u64>().ok()
    });
    let first = sizes.next()??;
    sizes.all(|size| size == Some(first)).then_some((first, BatchFrom::Shapes))
}

#[cfg(test)]
mod tests;
