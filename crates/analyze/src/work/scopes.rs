//! Time by name scope, as a tree for a flame graph.
//!
//! Programs name their work in several ways. In order of trust: the paths of ops (`model/dense/MatMul`,
//! `jit(f)/layer/dot_general`), those of kernels before those of host ops, and those of compiled instructions that name
//! none when they run; modules of a network (`nn.Module:
//! Linear_0` frames); the Python stack, if recorded; else ranges that the program or a library annotated (NVTX,
//! `record_function`), with the ops inside them. The first one that a host has is used, and the result says which.
//!
//! One partial result per host ([`ScopesPartial::of`]) → [`ScopesPartial::merge`] → [`ScopesPartial::finish`].

use std::collections::BTreeMap;

use hashbrown::HashMap;
use rayon::prelude::*;
use rustc_hash::FxBuildHasher;
use stepscope_trace::{Dur, Form, KindId, ProcessKind, Time, Track, TrackKind};

use crate::analysis::Analysis;
use crate::context::Context;
use crate::states::runs_python;
use crate::vocabulary::Role;
use crate::window::{Window, Windows};
use crate::work::ops::OpsPartial;
use crate::work::ops::launching_op::OpKeys;
use crate::work::programs::{Phase, ProgramsPartial};

/// The source of the tree.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScopeSource {
    /// Paths of the ops that launched kernels.
    DeviceOps,
    /// Paths of host ops.
    HostOps,
    /// Scopes of the instructions of compiled programs.
    Programs,
    /// Modules of a network on the Python stack.
    Modules,
    /// The Python stack.
    PythonStack,
    /// Annotated ranges, and the ops inside them.
    Ranges,
    /// There are no scopes.
    #[default]
    Nothing,
}

/// The deepest level of the tree; what is below counts to it. Every scope has its whole path, so that without a bound one
/// name of many slashes, or an endless recursion, would fill the memory.
const DEEPEST: usize = 200;

/// A path from the root, with what was recorded at its end.
type Paths = BTreeMap<Vec<String>, (u64, Dur)>;

/// The scopes of one host, or of several merged.
#[derive(Clone, Debug, Default)]
pub struct ScopesPartial {
    window: Window,
    source: ScopeSource,
    paths: Paths,
}

impl ScopesPartial {
    /// The scopes of one host.
    pub fn of(context: &Context) -> Self {
        let windows = Windows::of(context);
        let window = windows.window;
        let sources: [(ScopeSource, &dyn Fn() -> Paths); 6] = [
            (ScopeSource::DeviceOps, &|| device_paths(context, &windows)),
            (ScopeSource::HostOps, &|| host_paths(context)),
            (ScopeSource::Programs, &|| program_paths(context)),
            (ScopeSource::Modules, &|| frames(context, &windows, true)),
            (ScopeSource::PythonStack, &|| frames(context, &windows, false)),
            (ScopeSource::Ranges, &|| ranges(context, &windows)),
        ];
        for (source, paths) in sources {
            let paths = paths();
            if !paths.is_empty() {
                return ScopesPartial { window, source, paths };
            }
        }
        ScopesPartial { window, ..ScopesPartial::default() }
    }

    /// Adds another host. Hosts of one session record alike; the more trusted of two sources stays.
    pub fn merge(&mut self, other: ScopesPartial) {
        self.window = self.window.merge(other.window);
        if other.source < self.source {
            (self.source, self.paths) = (other.source, other.paths);
        } else if other.source == self.source {
            other.paths.into_iter().for_each(|(path, found)| add(&mut self.paths, path, found));
        }
    }

    /// Builds the tree.
    pub fn finish(self) -> Scopes {
        let mut nodes: Vec<ScopeNode> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        // Sorted paths visit the tree depth first: consecutive paths share their beginning.
        for (path, (count, time)) in &self.paths {
            let shared =
                open.iter().zip(path).take_while(|(node, part)| nodes[**node].name == **part).count();
            open.truncate(shared);
            for part in &path[shared..] {
                nodes.push(ScopeNode::new(part, open.last().copied(), open.len()));
                open.push(nodes.len() - 1);
            }
            let ms = time.ms();
            if let Some(&leaf) = open.last() {
                nodes[leaf].count += count;
                nodes[leaf].self_ms += ms;
            }
            open.iter().for_each(|&node| nodes[node].total_ms += ms);
        }
        Scopes { window: self.window, source: self.source, nodes: longest_first(nodes) }
    }
}

/// One scope.
#[derive(Clone, Debug, PartialEq)]
pub struct ScopeNode {
    /// The last part of its path.
    pub name: String,
    /// Index of the enclosing scope; `None` for a root.
    pub parent: Option<usize>,
    /// Number of enclosing scopes.
    pub depth: usize,
    /// Executions recorded exactly here, not below.
    pub count: u64,
    /// Time here and below, in milliseconds.
    pub total_ms: f64,
    /// Time here alone, in milliseconds.
    pub self_ms: f64,
}

impl ScopeNode {
    fn new(name: &str, parent: Option<usize>, depth: usize) -> Self {
        ScopeNode { name: name.to_owned(), parent, depth, count: 0, total_ms: 0.0, self_ms: 0.0 }
    }
}

/// The tree, parents before children, siblings longest first.
#[derive(Clone, Debug)]
pub struct Scopes {
    /// What totals cover.
    pub window: Window,
    /// The source of the tree.
    pub source: ScopeSource,
    /// The scopes in depth-first order.
    pub nodes: Vec<ScopeNode>,
}

impl Scopes {
    /// Total time of the tree, in milliseconds.
    pub fn total_ms(&self) -> f64 {
        self.nodes.iter().filter(|node| node.parent.is_none()).map(|node| node.total_ms).sum()
    }

    /// The whole path of a scope, from the root.
    pub fn path(&self, node: usize) -> String {
        let mut parts = Vec::new();
        let mut at = Some(node);
        while let Some(node) = at.and_then(|at| self.nodes.get(at)) {
            parts.push(node.name.as_str());
            at = node.parent;
        }
        parts.reverse();
        parts.join("/")
    }
}

/// Sorts siblings by time and renumbers parents.
fn longest_first(nodes: Vec<ScopeNode>) -> Vec<ScopeNode> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut roots = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        match node.parent {
            Some(parent) => children[parent].push(index),
            None => roots.push(index),
        }
    }
    let by_time = |all: &mut Vec<usize>| {
        all.sort_by(|&a, &b| {
            nodes[a].total_ms.total_cmp(&nodes[b].total_ms).then_with(|| nodes[b].name.cmp(&nodes[a].name))
        });
    };
    by_time(&mut roots);
    children.iter_mut().for_each(by_time);
    let mut place = vec![0; nodes.len()];
    let mut ordered = Vec::with_capacity(nodes.len());
    // A stack instead of recursion, because Python's stack is as deep as the recorded program.
    let mut next = roots;
    while let Some(index) = next.pop() {
        place[index] = ordered.len();
        let node = &nodes[index];
        ordered.push(ScopeNode { parent: node.parent.map(|parent| place[parent]), ..node.clone() });
        next.append(&mut children[index]);
    }
    ordered
}

/// Splits a path at its slashes, except those in brackets: `jit(f)/transpose(jvp(a/b))/mul`.
fn parts(path: &str) -> Vec<String> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0_i32, 0);
    for (at, byte) in path.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b'/' if depth <= 0 && parts.len() + 1 < DEEPEST => {
                parts.push(path[from..at].to_owned());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(path[from..].to_owned());
    parts.retain(|part| !part.is_empty());
    parts
}

fn add(paths: &mut Paths, path: Vec<String>, (count, time): (u64, Dur)) {
    let entry = paths.entry(path).or_default();
    *entry = (entry.0 + count, entry.1 + time);
}

fn device_paths(context: &Context, windows: &Windows) -> Paths {
    let (trace, vocabulary) = (context.trace, context.vocabulary());
    let keys = OpKeys::of(trace);
    let streams = trace
        .tracks()
        .par_iter()
        .filter(|track| track.kind == TrackKind::Stream)
        .filter(|track| trace.process(track.process).kind == ProcessKind::Device);
    let found: Vec<HashMap<String, (u64, Dur), FxBuildHasher>> = streams
        .map(|track| {
            let mut windows = windows.of_track(trace, track);
            let mut found: HashMap<String, (u64, Dur), FxBuildHasher> = HashMap::default();
            for index in 0..track.len() {
                let work = matches!(vocabulary.role(track.kind_of(index)), Role::Kernel | Role::Collective);
                if !work || !windows.counts(track.start(index)) {
                    continue;
                }
                if let Some(path) = keys.path(trace.args_at(track, index)) {
                    let entry = found.entry(path).or_default();
                    *entry = (entry.0 + 1, entry.1 + track.dur(index));
                }
            }
            found
        })
        .collect();
    let mut paths = Paths::new();
    found.into_iter().flatten().for_each(|(path, found)| add(&mut paths, parts(&path), found));
    paths
}

fn host_paths(context: &Context) -> Paths {
    let ops = OpsPartial::of(context);
    let mut paths = Paths::new();
    if ops.host_ops().any(|(name, ..)| name.contains('/')) {
        ops.host_ops().for_each(|(name, count, time)| add(&mut paths, parts(name), (count, time)));
    }
    paths
}

/// Instructions of compiled programs by the scopes that their programs state; in a program that trains, below the phase.
fn program_paths(context: &Context) -> Paths {
    let programs = ProgramsPartial::of(context).finish();
    let known = || programs.ops.iter().filter(|op| op.facts.known);
    let mut paths = Paths::new();
    if !known().any(|op| !op.facts.label.is_empty()) {
        return paths;
    }
    let trains = known().any(|op| op.facts.phase == Phase::Backward);
    for op in known() {
        let mut path = if trains { vec![op.facts.phase.name().to_owned()] } else { Vec::new() };
        let name = if op.facts.label.is_empty() { &op.op } else { &op.facts.label };
        path.extend(parts(name));
        add(&mut paths, path, (op.totals.executions, op.totals.own));
    }
    paths
}

/// The Python stack of all threads that have one; only modules, if requested.
fn frames(context: &Context, windows: &Windows, modules: bool) -> Paths {
    let trace = context.trace;
    let wanted: Vec<bool> = (0..trace.kinds().len())
        .map(|index| {
            let kind = KindId::from_index(index);
            let frame = context.vocabulary().role(kind) == Role::PythonFrame;
            frame && (!modules || trace.kind_name(kind).starts_with("nn.Module: "))
        })
        .collect();
    if !wanted.contains(&true) {
        return Paths::new();
    }
    let trees: Vec<Paths> = trace
        .tracks()
        .par_iter()
        .filter(|track| track.kind == TrackKind::Thread && runs_python(trace, context.vocabulary(), track))
        .map(|track| stack_of(context, windows, track, &wanted))
        .collect();
    let mut paths = Paths::new();
    trees.into_iter().flatten().for_each(|(path, found)| add(&mut paths, path, found));
    paths
}

/// Annotated ranges of all host threads with the ops inside them. Ops alone say nothing about the program's parts.
fn ranges(context: &Context, windows: &Windows) -> Paths {
    let (trace, vocabulary) = (context.trace, context.vocabulary());
    let roles = || (0..trace.kinds().len()).map(|index| vocabulary.role(KindId::from_index(index)));
    if !roles().any(|role| matches!(role, Role::Annotation | Role::StepMarker)) {
        return Paths::new();
    }
    let slices = trace.kinds().iter().map(|kind| kind.form == Form::Slice);
    let wanted: Vec<bool> = roles().zip(slices).map(|(role, slice)| slice && is_range(role)).collect();
    let on_host = |track: &&Track| {
        track.kind == TrackKind::Thread && trace.process(track.process).kind != ProcessKind::Device
    };
    let threads = trace.tracks().par_iter().filter(on_host);
    let trees: Vec<Paths> = threads.map(|track| stack_of(context, windows, track, &wanted)).collect();
    let mut paths = Paths::new();
    for (path, found) in trees.into_iter().flatten() {
        add(&mut paths, path.iter().map(|part| without_number(part).to_owned()).collect(), found);
    }
    paths
}

fn is_range(role: Role) -> bool {
    matches!(role, Role::Annotation | Role::StepMarker | Role::Op | Role::InputWait | Role::HostCollective)
}

/// `ProfilerStep#12` and `iteration 12` without their number, so that all of them are one scope; `layer 12` as it is.
fn without_number(name: &str) -> &str {
    const COUNTED: [&str; 5] = ["step", "iter", "iteration", "batch", "epoch"];
    let stem = name.trim_end_matches(|end: char| end.is_ascii_digit());
    if stem.len() == name.len() {
        return name;
    }
    let word = stem.trim_end_matches([' ', '_', '-', ':', '=', '#']);
    let last = word.rsplit(|end: char| !end.is_ascii_alphabetic()).next().unwrap_or(word);
    let counts = COUNTED.iter().any(|counted| last.eq_ignore_ascii_case(counted));
    if !word.is_empty() && (stem.ends_with('#') || counts) { word } else { name }
}

/// A frame and the one around it: the stack as seen from here.
struct StackFrame {
    parent: Option<usize>,
    kind: KindId,
    count: u64,
    time: Dur,
}

fn stack_of(context: &Context, windows: &Windows, track: &Track, wanted: &[bool]) -> Paths {
    struct OpenFrame {
        end: Time,
        dur: Dur,
        inside: Dur,
        place: usize,
        counts: bool,
    }
    let trace = context.trace;
    let mut places: Vec<StackFrame> = Vec::new();
    let mut known: HashMap<(Option<usize>, KindId), usize, FxBuildHasher> = HashMap::default();
    let mut open: Vec<OpenFrame> = Vec::new();
    let mut windows = windows.of_track(trace, track);
    let close = |open: &mut Vec<OpenFrame>, places: &mut Vec<StackFrame>, now: Time| {
        while let Some(ended) = open.pop_if(|open| open.end <= now) {
            if ended.counts {
                let place = &mut places[ended.place];
                place.count += 1;
                place.time += (ended.dur - ended.inside).at_least_zero();
            }
        }
    };
    for index in (0..track.len()).filter(|&index| wanted[track.kind_of(index).index()]) {
        let (kind, start, dur, end) =
            (track.kind_of(index), track.start(index), track.dur(index), track.end(index));
        close(&mut open, &mut places, start);
        if open.len() >= DEEPEST {
            continue;
        }
        let parent = open.last_mut().map(|outer| {
            outer.inside += end.min(outer.end) - start;
            outer.place
        });
        let place = *known.entry((parent, kind)).or_insert_with(|| {
            places.push(StackFrame { parent, kind, count: 0, time: Dur::ZERO });
            places.len() - 1
        });
        open.push(OpenFrame { end, dur, inside: Dur::ZERO, place, counts: windows.counts(start) });
    }
    close(&mut open, &mut places, Time::MAX);
    let mut paths = Paths::new();
    for place in places.iter().filter(|place| place.count > 0) {
        let mut path = Vec::new();
        let mut at = Some(place);
        while let Some(place) = at {
            path.push(trace.kind_name(place.kind).trim_start_matches('$').to_owned());
            at = place.parent.map(|parent| &places[parent]);
        }
        path.reverse();
        add(&mut paths, path, (place.count, place.time));
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::{Arg, Sketch};

    fn tree(sketch: Sketch) -> (ScopeSource, Vec<(usize, String, f64, f64)>) {
        let found = ScopesPartial::of(&Context::new(&sketch.finish(), "host")).finish();
        let nodes = found.nodes.iter();
        (found.source, nodes.map(|n| (n.depth, n.name.clone(), n.total_ms, n.self_ms)).collect())
    }

    #[test]
    fn slashes_in_brackets_do_not_cut() {
        assert_eq!(parts("jit(f)/transpose(jvp(a/b))//mul"), ["jit(f)", "transpose(jvp(a/b))", "mul"]);
    }

    #[test]
    fn what_is_below_the_deepest_level_counts_to_it() {
        assert_eq!(parts(&"a/".repeat(10_000)).len(), DEEPEST);
        let mut sketch = Sketch::new();
        let python = sketch.thread("python");
        for depth in 0..2_000 {
            sketch.event(python, "$solve.py:1 recurse", depth, 10_000 - 2 * depth, &[]);
        }
        let (source, nodes) = tree(sketch);
        assert_eq!((source, nodes.len()), (ScopeSource::PythonStack, DEEPEST));
        assert_eq!((nodes[0].2, nodes[DEEPEST - 1].3), (10.0, 10.0 - 0.002 * (DEEPEST - 1) as f64));
    }

    #[test]
    fn paths_of_ops_become_a_tree_longest_first() {
        let mut sketch = Sketch::new();
        let python = sketch.thread("python");
        sketch.steps(python, 2, 1_000);
        let worker = sketch.thread("tf_Compute/1");
        for step in 0..2 {
            sketch.event(worker, "model/a/Relu:Relu", step * 1_000, 100, &[]);
            sketch.event(worker, "model/b/MatMul:MatMul", step * 1_000 + 200, 300, &[]);
        }
        let (source, nodes) = tree(sketch);
        assert_eq!(source, ScopeSource::HostOps);
        let want = [
            (0, "model", 0.8, 0.0),
            (1, "b", 0.6, 0.0),
            (2, "MatMul", 0.6, 0.6),
            (1, "a", 0.2, 0.0),
            (2, "Relu", 0.2, 0.2),
        ];
        let want: Vec<_> = want.into_iter().map(|(d, n, t, s)| (d, n.to_owned(), t, s)).collect();
        assert_eq!(nodes, want);
    }

    #[test]
    fn kernels_take_their_place_from_the_frameworks_path() {
        let mut sketch = Sketch::new();
        let python = sketch.thread("python");
        sketch.steps(python, 2, 1_000);
        let stream = sketch.stream();
        for step in 0..2 {
            let args = [("tf_op", Arg::Text("XlaModule:")), ("name", Arg::Text("jit(f)/layer/dot_general"))];
            sketch.event(stream, "gemm", step * 1_000 + 10, 50, &args);
        }
        let (source, nodes) = tree(sketch);
        assert_eq!(source, ScopeSource::DeviceOps);
        assert_eq!(nodes.last(), Some(&(2, "dot_general".to_owned(), 0.1, 0.1)));
    }

    #[test]
    fn modules_come_before_the_rest_of_the_stack() {
        let mut sketch = Sketch::new();
        let python = sketch.thread("thread 1 (python)");
        for step in 0..3 {
            let at = step * 1_000;
            let frame = "python_function";
            sketch.event_of(python, "user_annotation", &format!("ProfilerStep#{step}"), at, 1_000, &[]);
            sketch.event_of(python, frame, "train.py(3): main", at + 10, 900, &[]);
            sketch.event_of(python, frame, "nn.Module: Net_0", at + 20, 600, &[]);
            sketch.event_of(python, frame, "torch/nn/linear.py(1): forward", at + 30, 500, &[]);
            sketch.event_of(python, frame, "nn.Module: Linear_0", at + 40, 400, &[]);
        }
        let (source, nodes) = tree(sketch);
        assert_eq!(source, ScopeSource::Modules);
        let names: Vec<&str> = nodes.iter().map(|(_, name, ..)| name.as_str()).collect();
        assert_eq!(names, ["nn.Module: Net_0", "nn.Module: Linear_0"]);
        assert!((nodes[0].3 - 0.6).abs() < 1e-9, "what the inner module takes is not its own");
    }

    #[test]
    fn annotated_ranges_are_scopes_where_there_is_no_stack() {
        let mut sketch = Sketch::new();
        let python = sketch.thread("thread 1 (python)");
        for step in 0..3 {
            let at = step * 1_000;
            let range = "user_annotation";
            sketch.event_of(python, range, &format!("ProfilerStep#{step}"), at, 1_000, &[]);
            sketch.event_of(python, range, "forward", at + 100, 500, &[]);
            sketch.event_of(python, "cpu_op", "aten::linear", at + 150, 400, &[]);
            sketch.event_of(python, "cpu_op", "aten::mm", at + 200, 300, &[]);
            sketch.event_of(python, range, "backward", at + 700, 200, &[]);
        }
        let (source, nodes) = tree(sketch);
        assert_eq!(source, ScopeSource::Ranges);
        let named: Vec<(usize, &str)> =
            nodes.iter().map(|(depth, name, ..)| (*depth, name.as_str())).collect();
        let want =
            [(0, "ProfilerStep"), (1, "forward"), (2, "aten::linear"), (3, "aten::mm"), (1, "backward")];
        assert_eq!(named, want);
        assert!((nodes[0].2 - 3.0).abs() < 1e-9 && (nodes[1].3 - 0.3).abs() < 1e-9, "{nodes:?}");
    }

    #[test]
    fn ops_alone_are_no_scopes() {
        let mut sketch = Sketch::new();
        let python = sketch.thread("thread 1 (python)");
        sketch.event_of(python, "cpu_op", "aten::mm", 0, 300, &[]);
        assert_eq!(tree(sketch), (ScopeSource::Nothing, Vec::new()));
    }

    #[test]
    fn only_numbers_that_count_repetitions_are_dropped() {
        let names = ["ProfilerStep#12", "iteration 3", "Epoch_4", "layer 5", "conv2", "7", "warmup"];
        let want = ["ProfilerStep", "iteration", "Epoch", "layer 5", "conv2", "7", "warmup"];
        assert_eq!(names.map(without_number), want);
    }
}
