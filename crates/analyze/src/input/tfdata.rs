//! tf.data: from iterator events to totals per stage.
//!
//! A stage's event covers everything until its element is ready: its inputs, its function, its waiting. Its own
//! part follows from how the events nest on a thread. A function on another thread is found by its run number,
//! and belongs to the stage on whose thread it was started; the inputs that a thread requests show which stage
//! it works for.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use stepscope_trace::{Args, Dur, KindId, ProcessKind, StrId, Time, Track, TrackKind, Value};

use super::stage::Tally;
use crate::context::Context;
use crate::vocabulary::{Keys, Role, iterator_path, op_type};

/// Totals of one host's pipeline events.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct TfData {
    /// Parents before their inputs.
    pub(super) stages: Vec<Tally>,
    /// Batches taken per second, over all hosts.
    pub(super) batches_per_second: Option<f64>,
}

/// The meaning of a kind of event for the pipeline.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Class {
    Other,
    Stage(usize),
    /// A stage's own thread produces an element.
    Produce,
    /// A function; with whether its caller waits for it.
    Function {
        blocks: bool,
    },
    Run,
    Op,
}

/// The run numbers of a function, with their stage.
struct Runs(Vec<(i64, usize, bool)>);

impl Runs {
    fn stage_of(&self, id: i64) -> Option<(usize, bool)> {
        let at = self.0.binary_search_by_key(&id, |run| run.0).ok()?;
        self.0.get(at).map(|run| (run.1, run.2))
    }
}

impl TfData {
    /// Two passes over the host's threads; none if the trace has no pipeline.
    pub(super) fn of(context: &Context) -> TfData {
        let mut found = Finder::new(context);
        if found.stages.is_empty() {
            return TfData::default();
        }
        let mut runs = Vec::new();
        for track in found.tracks() {
            found.walk(track, &mut runs);
        }
        runs.sort_unstable();
        runs.dedup_by_key(|run| run.0);
        let runs = Runs(runs);
        if !runs.0.is_empty() {
            for track in found.tracks() {
                found.walk_runs(track, &runs);
            }
        }
        found.finish()
    }

    /// Adds another host's totals.
    pub(super) fn merge(&mut self, other: TfData) {
        self.batches_per_second = match (self.batches_per_second, other.batches_per_second) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
        for stage in &other.stages {
            let at = place_of(&mut self.stages, &stage.path);
            self.stages[at].add(stage);
        }
    }
}

/// Names of stages whose inputs are distinguished by an index.
const SEVERAL_INPUTS: &[&str] = &["Zip", "Concatenate", "DirectedInterleave", "Choose", "SampleFrom"];

/// A path without the indices that only count repetitions: `Root::ForeverRepeat[3]::Map`.
fn normal_path<'a>(elements: impl Iterator<Item = &'a str>) -> String {
    let mut path = String::new();
    for element in elements {
        let bare = element.split('[').next().unwrap_or(element);
        let keep = SEVERAL_INPUTS.iter().any(|name| bare.starts_with(name));
        if !path.is_empty() {
            path.push_str("::");
        }
        path.push_str(if keep { element } else { bare });
    }
    path
}

/// The path of the stage that requests from this one.
fn parent_path(path: &str) -> Option<&str> {
    let (parent, _) = path.rsplit_once("::")?;
    let last = parent.rfind("::").map_or(0, |at| at + 2);
    Some(parent[last..].find('[').map_or(parent, |at| &parent[..last + at]))
}

/// Further stages are counted with the first; bounds the cost of a broken file.
const MOST_STAGES: usize = 4_096;
/// Deeper stages are placed under their ancestor at this depth; no real pipeline gets there.
const DEEPEST: usize = 100;

/// The index of the stage with this path, added with its ancestors if necessary.
fn place_of(stages: &mut Vec<Tally>, path: &str) -> usize {
    let mut missing = Vec::new();
    let mut parent = None;
    let mut next = Some(path);
    while let Some(path) = next.filter(|_| missing.len() < DEEPEST) {
        if let Some(at) = stages.iter().position(|stage| stage.path == path) {
            parent = Some(at);
            break;
        }
        missing.push(path);
        next = parent_path(path);
    }
    for path in missing.into_iter().rev() {
        if stages.len() >= MOST_STAGES {
            return parent.unwrap_or(0);
        }
        stages.push(Tally { path: path.to_owned(), parent, ..Tally::default() });
        parent = Some(stages.len() - 1);
    }
    parent.unwrap_or(0)
}

struct OpenStage {
    end: Time,
    dur: Dur,
    class: Class,
    /// The stage that it works for, once known.
    stage: Option<usize>,
    /// Time of other pipeline events inside.
    inside: Dur,
}

struct ArgKeys {
    name: Option<StrId>,
    shapes: Option<StrId>,
    types: Option<StrId>,
    id: Option<StrId>,
    parallelism: Option<StrId>,
    autotune: Option<StrId>,
    deterministic: Option<StrId>,
    buffer_limit: Option<StrId>,
    buffer_size: Option<StrId>,
    buffered: Option<StrId>,
    batch_size: Option<StrId>,
}

struct Finder<'c, 't> {
    context: &'c Context<'t>,
    keys: ArgKeys,
    classes: Vec<Class>,
    stages: Vec<Tally>,
    /// Times of ops by stage and kind.
    ops: HashMap<(usize, KindId), (u64, Dur), FxBuildHasher>,
    /// When the consumer requested first and last, and how often.
    asked: Option<(Time, Time, u64)>,
}

impl<'c, 't> Finder<'c, 't> {
    fn new(context: &'c Context<'t>) -> Self {
        let trace = context.trace;
        let find = |name: &str| trace.strings().find(name);
        let mut stages = Vec::new();
        let mut known: HashMap<String, usize, FxBuildHasher> = HashMap::default();
        let classes = (0..trace.kinds().len())
            .map(|index| class_of(context, KindId::from_index(index), &mut stages, &mut known))
            .collect();
        Finder {
            context,
            keys: ArgKeys {
                name: find("name"),
                shapes: find("shapes"),
                types: find("types"),
                id: find("id"),
                parallelism: find("parallelism"),
                autotune: find("autotune"),
                deterministic: find("deterministic"),
                buffer_limit: find("buffer_limit"),
                buffer_size: find("buffer_size"),
                buffered: find("buffered_elements"),
                batch_size: find("batch_size"),
            },
            classes,
            stages,
            ops: HashMap::default(),
            asked: None,
        }
    }

    fn tracks(&self) -> impl Iterator<Item = &'t Track> + use<'t> {
        let trace = self.context.trace;
        trace.tracks().iter().filter(|track| {
            matches!(track.kind, TrackKind::Thread | TrackKind::Async)
                && trace.process(track.process).kind != ProcessKind::Device
        })
    }

    /// Stages, and the functions that they start.
    fn walk(&mut self, track: &'t Track, runs: &mut Vec<(i64, usize, bool)>) {
        let mut open: Vec<OpenStage> = Vec::new();
        let classes = &self.classes;
        let is_stage = |kind: KindId| !matches!(classes[kind.index()], Class::Other | Class::Run | Class::Op);
        let of_stages = self.context.trace.kinds_where(is_stage);
        for (index, kind) in track.events_of(&of_stages) {
            let class = self.classes[kind.index()];
            let span = track.span_of(index);
            self.close(&mut open, span.start);
            let mut stage = None;
            match class {
                Class::Stage(at) => {
                    stage = Some(at);
                    self.enter_stage(at, &mut open, track, index);
                }
                Class::Function { blocks } => {
                    stage = open.iter().rev().find_map(|outer| outer.stage);
                    let id = self.keys.id.and_then(|key| self.context.trace.args_at(track, index).get(key));
                    if let (Some(at), Some(id)) = (stage, id.and_then(|id| id.as_i64())) {
                        runs.push((id, at, blocks));
                        self.stages[at].function_calls += 1;
                    }
                }
                _ => {}
            }
            open.push(OpenStage { end: span.end, dur: span.dur(), class, stage, inside: Dur::ZERO });
        }
        self.close(&mut open, Time::MAX);
    }

    fn enter_stage(&mut self, at: usize, open: &mut [OpenStage], track: &Track, index: usize) {
        let args = self.context.trace.args_at(track, index);
        self.read_args(at, args);
        // The thread that requests a stage's input works for that stage.
        if let Some(outer) = open.last_mut().filter(|outer| outer.class == Class::Produce) {
            outer.stage = outer.stage.or(self.stages[at].parent);
        }
        let start = track.start(index);
        if self.stages[at].parent.is_none() {
            let (first, last, count) = self.asked.unwrap_or((start, start, 0));
            self.asked = Some((first.min(start), last.max(start), count + 1));
        }
    }

    fn close(&mut self, open: &mut Vec<OpenStage>, now: Time) {
        while let Some(ended) = open.pop_if(|open| open.end <= now) {
            if let Some(outer) = open.last_mut() {
                outer.inside += ended.dur;
            }
            let own = (ended.dur - ended.inside).at_least_zero();
            let Some(stage) = ended.stage.map(|at| &mut self.stages[at]) else { continue };
            match ended.class {
                Class::Stage(_) => {
                    stage.calls += 1;
                    stage.total += ended.dur;
                    stage.own += own;
                }
                Class::Produce => stage.producing += own,
                Class::Function { blocks: true } => stage.function += own,
                _ => {}
            }
        }
    }

    fn read_args(&mut self, at: usize, args: Args<'_>) {
        let (keys, stage) = (&self.keys, &mut self.stages[at]);
        args.visit(|key, value| {
            let key = Some(key);
            let number = || value.as_i64().and_then(|number| u64::try_from(number).ok());
            if key == keys.name {
                set_text(&mut stage.dataset, &value);
            } else if key == keys.shapes {
                set_text(&mut stage.shapes, &value);
            } else if key == keys.types {
                set_text(&mut stage.types, &value);
            } else if key == keys.parallelism {
                // Profilers write "unavailable" if the stage was busy.
                stage.parallelism = stage.parallelism.max(number());
            } else if key == keys.autotune {
                stage.autotune = stage.autotune.or(truth(&value));
            } else if key == keys.deterministic {
                stage.deterministic = stage.deterministic.or(truth(&value));
            } else if key == keys.buffer_limit || key == keys.buffer_size {
                stage.buffer_limit = stage.buffer_limit.max(number());
            } else if key == keys.buffered {
                stage.buffered = stage.buffered.saturating_add(number().unwrap_or(0));
                stage.buffered_seen += 1;
            } else if key == keys.batch_size {
                stage.batch_size = stage.batch_size.max(number());
            }
        });
    }

    /// The runs of functions on any thread, and their ops.
    fn walk_runs(&mut self, track: &'t Track, runs: &Runs) {
        let Some(key) = self.keys.id else { return };
        let mut current: Option<(Time, Option<(usize, bool)>)> = None;
        let mut op_end = Time::MIN;
        for (index, kind) in track.kinds().iter().enumerate() {
            let class = self.classes[kind.index()];
            let span = track.span_of(index);
            current = current.filter(|(end, _)| span.start < *end);
            match (class, current) {
                (Class::Run, None) => {
                    let id = self.context.trace.args_at(track, index).get(key).and_then(|id| id.as_i64());
                    let stage = id.and_then(|id| runs.stage_of(id));
                    if let Some((at, false)) = stage {
                        self.stages[at].background += span.dur();
                    }
                    current = Some((span.end, stage));
                }
                (Class::Op, Some((_, Some((at, _))))) if span.start >= op_end => {
                    op_end = span.end;
                    let sum = self.ops.entry((at, *kind)).or_default();
                    sum.0 += 1;
                    sum.1 += span.dur();
                }
                _ => {}
            }
        }
    }

    fn finish(mut self) -> TfData {
        let trace = self.context.trace;
        let mut ops: Vec<_> = self.ops.into_iter().collect();
        ops.sort_unstable_by_key(|(key, _)| *key);
        for ((at, kind), (count, time)) in ops {
            let name = trace.kind_name(kind);
            self.stages[at].add_op(op_type(name).unwrap_or(name), count, time);
        }
        let batches_per_second = self.asked.and_then(|(first, last, count)| {
            let seconds = (last - first).secs();
            (count > 1 && seconds > 0.0).then(|| (count - 1) as f64 / seconds)
        });
        TfData { stages: self.stages, batches_per_second }
    }
}

fn class_of(
    context: &Context,
    kind: KindId,
    stages: &mut Vec<Tally>,
    known: &mut HashMap<String, usize, FxBuildHasher>,
) -> Class {
    let (trace, vocabulary) = (context.trace, context.vocabulary());
    let name = trace.kind_name(kind);
    match vocabulary.role(kind) {
        Role::InputStage => {
            let path = match iterator_path(name) {
                Some(elements) => normal_path(elements),
                None if vocabulary.signatures.keys(kind).has(Keys::InputStage) => name.to_owned(),
                None if name.ends_with("Produce") => return Class::Produce,
                None => return Class::Other,
            };
            Class::Stage(*known.entry(path).or_insert_with_key(|path| place_of(stages, path)))
        }
        Role::InputFunction => Class::Function { blocks: !name.ends_with("Async") },
        Role::ExecutorRun if name == "ExecutorState::Process" => Class::Run,
        Role::Op => Class::Op,
        _ => Class::Other,
    }
}

fn set_text(slot: &mut Option<String>, value: &Value<'_>) {
    if slot.is_none() {
        *slot = value.as_str().map(str::to_owned);
    }
}

fn truth(value: &Value<'_>) -> Option<bool> {
    match value.as_str() {
        Some("true") => Some(true),
        Some("false") => Some(false),
        _ => value.as_i64().map(|number| number != 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_indices_that_tell_inputs_apart_stay() {
        let path = |name| iterator_path(name).map(normal_path).unwrap();
        assert_eq!(path("Iterator::Root::ForeverRepeat[12]::Map"), "Root::ForeverRepeat::Map");
        assert_eq!(path("Iterator::Root::Zip[1]::FlatMap[0]::Range"), "Root::Zip[1]::FlatMap::Range");
        assert_eq!(parent_path("Root::Zip[1]::FlatMap"), Some("Root::Zip"));
        assert_eq!(parent_path("Root::Zip"), Some("Root"));
        assert_eq!(parent_path("Root"), None);
    }

    #[test]
    fn ancestors_that_were_not_recorded_are_there_all_the_same() {
        let mut stages = Vec::new();
        let map = place_of(&mut stages, "Root::Zip[1]::Map");
        let paths: Vec<&str> = stages.iter().map(|stage| stage.path.as_str()).collect();
        assert_eq!(paths, ["Root", "Root::Zip", "Root::Zip[1]::Map"]);
        assert_eq!((map, stages[2].parent, stages[1].parent, stages[0].parent), (2, Some(1), Some(0), None));
        assert_eq!(place_of(&mut stages, "Root::Zip"), 1);
    }
}
