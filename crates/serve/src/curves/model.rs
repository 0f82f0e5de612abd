//! The graph that a run logged, level by level: scopes with how much lies below them, how they are connected, and what each costs
//! where that is known. Figures of nodes are tfprof's.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use regex::RegexBuilder;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use stepscope_read::tfevents::{graph_of, run_of};
use stepscope_tfgraph::{Attr, Graph, InputSource, NodeDef};
use stepscope_tfprof::{FlatRow, Measures, Options, Profile, Shown, View};
use stepscope_trace::series::BlobPlace;

use super::{Curves, Run, read};
use crate::error::Refusal;
use crate::query::Query;

/// Bytes of one graph, and of what a step recorded.
const MOST_BYTES: u64 = 256 << 20;
/// Children of one answer.
const MOST_CHILDREN: usize = 400;
/// Connections between children, and with the outside, of one answer.
const MOST_EDGES: usize = 2_000;
const MOST_OUTSIDE: usize = 50;
/// Operation types and hits of one answer.
const MOST_OPS: usize = 20;
const MOST_HITS: usize = 200;
/// Graphs that are kept.
const KEPT: usize = 3;
/// Recorded steps that are added up at most.
const MOST_RUNS: usize = 4;
/// No view is deeper.
const DEEPEST: i64 = 10_000;

/// A scope or a node.
#[derive(Debug, Default)]
struct Row {
    name: String,
    above: Option<usize>,
    depth: usize,
    children: Vec<usize>,
    op: String,
    device: String,
    /// Nodes at and below it.
    nodes: u64,
    /// Values in variables at and below it.
    params: u64,
    total: Measures,
    /// The place of its first node in the file.
    first: usize,
}

/// A graph, ready to be walked.
#[derive(Debug, Default)]
pub(crate) struct ModelGraph {
    rows: Vec<Row>,
    top: Vec<usize>,
    by_name: FxHashMap<String, usize>,
    /// From producer to user.
    edges: Vec<(usize, usize)>,
    nodes: usize,
    cut: bool,
    damage: u64,
    /// Values in all variables.
    params: u64,
    whole: Measures,
    timed: bool,
}

/// The graphs that were asked for last.
#[derive(Debug, Default)]
pub(crate) struct Graphs(Mutex<Vec<(Key, Arc<ModelGraph>)>>);

/// A run, and where its graph lies: a graph that is logged again lies elsewhere.
type Key = (usize, BlobPlace);

impl Graphs {
    fn get(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<ModelGraph, Refusal>,
    ) -> Result<Arc<ModelGraph>, Refusal> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, graph)) = kept.iter().find(|(known, _)| *known == key) {
            return Ok(graph.clone());
        }
        let graph = Arc::new(make()?);
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push((key, graph.clone()));
        Ok(graph)
    }
}

/// The graph that a request names.
fn asked(curves: &Curves, query: &Query) -> Result<Arc<ModelGraph>, Refusal> {
    let tag = query.text("tag").ok_or(Refusal::Missing("tag"))?;
    let id: usize = query.number("run")?;
    let shared = curves.run(id).ok_or(Refusal::Missing("run"))?;
    let run = read(&shared);
    let logged =
        run.reader.so_far().graphs.iter().find(|graph| graph.tag == tag).ok_or(Refusal::Missing("graph"))?;
    curves.graphs.get((id, logged.place), || {
        let bytes = blob(&run, logged.place).ok_or(Refusal::Missing("graph"))?;
        let found = graph_of(logged.form, &bytes);
        let (graph, cut) = found.value;
        if graph.nodes.is_empty() {
            return Err(Refusal::Missing("graph"));
        }
        let mut profile = Profile::default();
        profile.add_graph(&graph);
        let mut timed = false;
        for (step, recorded) in run.reader.so_far().recorded.iter().take(MOST_RUNS).enumerate() {
            let Some(bytes) = blob(&run, recorded.place) else { continue };
            let devices = run_of(&bytes, &mut |device, record| {
                timed = true;
                profile.add_record(step as i64, device, record);
            });
            profile.end_step(step as i64, &devices);
        }
        Ok(ModelGraph { cut, timed, damage: found.damage.count(), ..ModelGraph::of(&graph, &profile)? })
    })
}

fn blob(run: &Run, place: BlobPlace) -> Option<Vec<u8>> {
    run.reader.blob(place, MOST_BYTES).ok().flatten()
}

impl ModelGraph {
    fn of(graph: &Graph, profile: &Profile) -> Result<Self, Refusal> {
        let options = Options { max_depth: DEEPEST, ..Options::default() };
        let shown = Shown::new(profile, View::Scope, &options).map_err(|_| Refusal::Missing("graph"))?;
        let mut made = ModelGraph { nodes: graph.nodes.len(), whole: shown.total(), ..ModelGraph::default() };
        made.rows = shown.flat().into_iter().map(row).collect();
        for place in 0..made.rows.len() {
            let above = made.rows.get(place).and_then(|row| row.above);
            match above {
                Some(above) => {
                    made.rows[place].depth = made.rows[above].depth + 1;
                    made.rows[above].children.push(place);
                }
                None => made.top.push(place),
            }
            made.by_name.insert(made.rows[place].name.clone(), place);
        }
        for (number, node) in graph.nodes.iter().enumerate() {
            let Some(&user) = made.by_name.get(&node.name) else { continue };
            made.rows[user].first = made.rows[user].first.min(number);
            made.rows[user].params = params(node);
            for input in &node.inputs {
                if let Some(&source) = made.by_name.get(InputSource::of(input).name) {
                    made.edges.push((source, user));
                }
            }
        }
        // Rows stand behind the row above them.
        for place in (0..made.rows.len()).rev() {
            let (nodes, params, first) =
                (made.rows[place].nodes, made.rows[place].params, made.rows[place].first);
            made.params = if made.rows[place].above.is_none() {
                made.params.saturating_add(params)
            } else {
                made.params
            };
            if let Some(above) = made.rows[place].above {
                made.rows[above].nodes += nodes;
                made.rows[above].params = made.rows[above].params.saturating_add(params);
                made.rows[above].first = made.rows[above].first.min(first);
            }
        }
        Ok(made)
    }

    /// The child of a scope that a row lies at or below; `None` if it lies elsewhere.
    fn child_of(&self, under: Option<usize>, mut place: usize) -> Option<usize> {
        let depth = under.and_then(|under| self.rows.get(under)).map_or(0, |row| row.depth + 1);
        loop {
            let row = self.rows.get(place)?;
            if row.depth <= depth {
                return (row.depth == depth && row.above == under).then_some(place);
            }
            place = row.above?;
        }
    }

    fn described(&self, place: usize) -> Value {
        let Some(row) = self.rows.get(place) else { return Value::Null };
        let title = match row.above.and_then(|above| self.rows.get(above)) {
            Some(above) => row.name.get(above.name.len() + 1..).unwrap_or(&row.name),
            None => &row.name,
        };
        let known = |value: i64, whole: i64| (whole > 0).then_some(value);
        json!({
            "name": row.name, "title": title, "op": row.op, "device": row.device, "nodes": row.nodes,
            "children": row.children.len(), "params": (self.params > 0).then_some(row.params),
            "micros": known(row.total.exec_micros, i64::from(self.timed)),
            "flops": known(row.total.float_ops, self.whole.float_ops),
        })
    }
}

/// Operations that hold a variable.
const VARIABLES: [&str; 4] = ["VarHandleOp", "VariableV2", "Variable", "AutoReloadVariable"];

/// How many values a variable has; 0 of anything else, and where its shape is not known.
fn params(node: &NodeDef) -> u64 {
    let Some(Attr::Shape(shape)) = node.attr("shape").filter(|_| VARIABLES.contains(&node.op.as_str()))
    else {
        return 0;
    };
    let known = |&size: &i64| u64::try_from(size).ok();
    let sizes: Option<Vec<u64>> = shape.dims.iter().map(known).collect();
    let product = |sizes: Vec<u64>| sizes.into_iter().fold(1_u64, u64::saturating_mul);
    sizes.filter(|_| !shape.unknown_rank).map_or(0, product)
}

fn row(flat: FlatRow) -> Row {
    let nodes = u64::from(!flat.op.is_empty());
    Row {
        name: flat.name,
        above: flat.above,
        op: flat.op,
        device: flat.device,
        nodes,
        total: flat.total,
        first: usize::MAX,
        ..Row::default()
    }
}

/// One level: the children of a scope, how they are connected, and what they are connected with.
pub(crate) fn level(curves: &Curves, query: &Query) -> Result<Value, Refusal> {
    let graph = asked(curves, query)?;
    let under = match query.text("under").filter(|name| !name.is_empty()) {
        Some(name) => Some(*graph.by_name.get(name).ok_or(Refusal::Missing("scope"))?),
        None => None,
    };
    let mut children =
        under.and_then(|place| graph.rows.get(place)).map_or(&graph.top, |row| &row.children).clone();
    children.sort_by_key(|&place| graph.rows.get(place).map_or(usize::MAX, |row| row.first));
    let more = children.len().saturating_sub(MOST_CHILDREN);
    children.truncate(MOST_CHILDREN);
    let (edges, inputs, users) = connections(&graph, under, &children);
    Ok(json!({
        "under": under.map(|place| graph.described(place)), "total": graph.nodes, "cut": graph.cut,
        "damage": graph.damage, "timed": graph.timed, "more": more,
        "children": children.iter().map(|&place| graph.described(place)).collect::<Vec<_>>(),
        "edges": edges, "inputs": inputs, "users": users, "ops": ops(&graph, under),
    }))
}

/// Between children by their places in the answer, from outside, and to it; with how many connections each stands for.
fn connections(graph: &ModelGraph, under: Option<usize>, children: &[usize]) -> (Value, Value, Value) {
    let places: FxHashMap<usize, usize> =
        children.iter().enumerate().map(|(at, &child)| (child, at)).collect();
    let mut between: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    let (mut inputs, mut users): (BTreeMap<usize, u64>, BTreeMap<usize, u64>) =
        (BTreeMap::new(), BTreeMap::new());
    for &(source, user) in &graph.edges {
        match (graph.child_of(under, source), graph.child_of(under, user)) {
            (Some(a), Some(b)) if a != b => {
                if let Some((&a, &b)) = places.get(&a).zip(places.get(&b)) {
                    *between.entry((a, b)).or_default() += 1;
                }
            }
            // A node without children is a level of its own.
            (None, Some(_)) => *inputs.entry(source).or_default() += 1,
            (Some(_), None) => *users.entry(user).or_default() += 1,
            (None, None) if under == Some(user) => *inputs.entry(source).or_default() += 1,
            (None, None) if under == Some(source) => *users.entry(user).or_default() += 1,
            _ => {}
        }
    }
    let edges: Vec<Value> =
        between.iter().take(MOST_EDGES).map(|((a, b), count)| json!([a, b, count])).collect();
    let outside = |found: BTreeMap<usize, u64>| {
        let name = |place: usize| graph.rows.get(place).map_or("", |row| row.name.as_str());
        let listed = found
            .iter()
            .take(MOST_OUTSIDE)
            .map(|(&place, count)| json!({"name": name(place), "count": count}));
        json!({"total": found.len(), "nodes": listed.collect::<Vec<_>>()})
    };
    (json!(edges), outside(inputs), outside(users))
}

/// The most frequent operation types at and below a scope.
fn ops(graph: &ModelGraph, under: Option<usize>) -> Value {
    let mut count: FxHashMap<&str, u64> = FxHashMap::default();
    let mut open: Vec<usize> = under.map_or_else(|| graph.top.clone(), |place| vec![place]);
    while let Some(row) = open.pop().and_then(|place| graph.rows.get(place)) {
        if !row.op.is_empty() {
            *count.entry(row.op.as_str()).or_default() += 1;
        }
        open.extend(&row.children);
    }
    let mut all: Vec<(&str, u64)> = count.into_iter().collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    all.truncate(MOST_OPS);
    json!(all.iter().map(|(op, count)| json!({"op": op, "count": count})).collect::<Vec<_>>())
}

/// Nodes and scopes by a part of their name or their operation.
pub(crate) fn find(curves: &Curves, query: &Query) -> Result<Value, Refusal> {
    let text = query.text("q").unwrap_or_default();
    let wrong = || Refusal::Query("q", text.chars().take(80).collect());
    if text.is_empty() || text.len() > 1_000 {
        return Err(wrong());
    }
    let pattern = RegexBuilder::new(text).case_insensitive(true).size_limit(1 << 20).build();
    let plain = || RegexBuilder::new(&regex::escape(text)).case_insensitive(true).build();
    let pattern = pattern.or_else(|_| plain()).map_err(|_| wrong())?;
    let graph = asked(curves, query)?;
    let hits: Vec<usize> = (0..graph.rows.len())
        .filter(|&place| {
            graph.rows.get(place).is_some_and(|row| pattern.is_match(&row.name) || pattern.is_match(&row.op))
        })
        .collect();
    let shown: Vec<Value> = hits.iter().take(MOST_HITS).map(|&place| graph.described(place)).collect();
    Ok(json!({"total": hits.len(), "hits": shown}))
}
