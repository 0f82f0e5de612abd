//! The model behind runs of classic TensorFlow: its views, its graph node by node, its variables. `API.md` is the
//! contract.

use std::path::PathBuf;
use std::sync::OnceLock;

use axum::body::Bytes;
use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};
use stepscope_session::Problem;
use stepscope_session::model::{Keep, Model, ModelFiles};
use stepscope_tfprof::{Fixed, FlatRow, Measures, NodeLine, NodeLink, Options, Profile, Shown, View};

use crate::answers::bytes;
use crate::error::{Refusal, problem_json};
use crate::query::Query;
use crate::store::Opened;

/// Rows of one answer; a view with more is cut to the depth at which it fits.
const MOST_ROWS: usize = 20_000;
/// Nodes of one list.
const MOST_NODES: usize = 500;
/// No view is deeper.
const DEEPEST: i64 = 10_000;

/// The model of a session, read when somebody asks for it.
#[derive(Debug, Default)]
pub(crate) struct LazyModel {
    runs: Vec<PathBuf>,
    read: OnceLock<(ModelFiles, Result<Model, Problem>)>,
    fixed: OnceLock<Fixed>,
}

impl LazyModel {
    /// The model that these runs are of; without any there is none.
    pub(crate) fn of(runs: Vec<PathBuf>) -> Self {
        LazyModel { runs, ..LazyModel::default() }
    }

    fn read(&self) -> Result<Option<(&ModelFiles, &Model)>, Refusal> {
        if self.runs.is_empty() {
            return Ok(None);
        }
        let (files, model) = self.read.get_or_init(|| {
            let files = ModelFiles::found_near(&self.runs);
            let model = files.load(Keep { values: false, calls: true });
            (files, model)
        });
        match model {
            Ok(model) => Ok(Some((files, model))),
            Err(problem) => Err(Refusal::Unreadable(Box::new(problem.clone()))),
        }
    }

    /// The profile that is asked for, and the files that it is of.
    fn profile(&self, is_fixed: bool) -> Result<(&ModelFiles, &Profile), Refusal> {
        let (files, model) = self.read()?.ok_or(Refusal::Missing("model"))?;
        let profile = match is_fixed {
            true => &self.fixed.get_or_init(|| model.profile.fixed()).profile,
            false => &model.profile,
        };
        Ok((files, profile))
    }
}

/// What is known of the model.
pub(crate) fn about(opened: &Opened) -> Result<Bytes, Refusal> {
    opened.answer("model", |opened| {
        let Some((files, model)) = opened.tfprof.read()? else {
            return Ok(bytes(&json!({"files": null, "nodes": 0, "steps": [], "has_stacks": false, "damage": []})));
        };
        let profile = &model.profile;
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        Ok(bytes(&json!({
            "files": {
                "graph": path(&files.graph), "op_log": path(&files.op_log), "checkpoint": path(&files.checkpoint),
                "runs": files.runs.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
            },
            "nodes": profile.len(), "steps": profile.steps().collect::<Vec<_>>(), "has_stacks": profile.has_stacks(),
            "damage": model.damage.iter().map(problem_json).collect::<Vec<_>>(),
        })))
    })
}

/// The rows of a view, column by column.
pub(crate) fn view(opened: &Opened, query: &Query) -> Result<Value, Refusal> {
    let view = query.text("view").unwrap_or("scope");
    let view = View::named(view).ok_or_else(|| Refusal::Query("view", short(view)))?;
    let is_fixed = query.text("fix") == Some("1");
    let (files, profile) = opened.tfprof.profile(is_fixed)?;
    let mut options = options(query)?;
    let shown = |options: &Options| {
        let shown = Shown::new(profile, view, options);
        shown
            .map(|shown| (shown.flat(), shown.total()))
            .map_err(|error| Refusal::Query("view", error.to_string()))
    };
    let (mut rows, mut whole) = shown(&options)?;
    let mut cut = None;
    if rows.len() > MOST_ROWS {
        let depth = fitting_depth(&rows);
        options.max_depth = depth;
        (rows, whole) = shown(&options)?;
        rows.truncate(MOST_ROWS);
        cut = Some(depth);
    }
    Ok(json!({
        "view": view.name(), "cut_to_depth": cut, "command": command(view, files, &options, is_fixed),
        "names": rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(),
        "above": rows.iter().map(|row| row.above).collect::<Vec<_>>(),
        "ops": rows.iter().map(|row| row.op.as_str()).collect::<Vec<_>>(),
        "devices": rows.iter().map(|row| row.device.as_str()).collect::<Vec<_>>(),
        "nodes": rows.iter().map(|row| row.nodes).collect::<Vec<_>>(),
        "own": columns(rows.iter().map(|row| &row.own)), "total": columns(rows.iter().map(|row| &row.total)),
        "whole": columns(std::iter::once(&whole)),
    }))
}

/// The options that a request names, on top of everything shown.
fn options(query: &Query) -> Result<Options, Refusal> {
    let mut options =
        Options { max_depth: DEEPEST, step: query.number_or("step", -1)?, ..Options::default() };
    let given =
        [("show", "show_name_regexes"), ("hide", "hide_name_regexes"), ("account", "account_type_regexes")];
    for (key, name) in given {
        if let Some(text) = query.text(key).filter(|text| !text.is_empty()) {
            options.set(name, &[text.to_owned()]).map_err(|error| Refusal::Query(key, error.to_string()))?;
        }
    }
    Ok(options)
}

/// The largest depth down to which not too many rows lie. The root is at depth 1.
fn fitting_depth(rows: &[FlatRow]) -> i64 {
    let mut depths: Vec<usize> = Vec::with_capacity(rows.len());
    let mut count: Vec<usize> = Vec::new();
    for row in rows {
        let depth = row.above.and_then(|above| depths.get(above)).map_or(0, |depth| depth + 1);
        depths.push(depth);
        if count.len() <= depth {
            count.resize(depth + 1, 0);
        }
        count[depth] += 1;
    }
    let mut sum = 0;
    let fits = count.iter().take_while(|count| {
        sum += **count;
        sum <= MOST_ROWS
    });
    fits.count().max(1) as i64 + 1
}

/// The command that prints the same, without columns and order, which the page adds.
fn command(view: View, files: &ModelFiles, options: &Options, is_fixed: bool) -> String {
    let mut words = vec![format!("stepscope tfprof {}", view.name())];
    let mut add = |name: &str, value: &str| words.push(format!("{name} {}", quoted(value)));
    files.options().iter().for_each(|(name, value)| add(name, value));
    add("--max_depth", &options.max_depth.to_string());
    if options.step >= 0 {
        add("--step", &options.step.to_string());
    }
    let lists = [
        ("--show_name_regexes", &options.show_name_regexes),
        ("--hide_name_regexes", &options.hide_name_regexes),
        ("--account_type_regexes", &options.account_type_regexes),
    ];
    let all = Options::default();
    for (name, patterns) in lists {
        let given = patterns.given();
        if !given.is_empty() && given != all.show_name_regexes.given() {
            add(name, &given.join(","));
        }
    }
    if is_fixed {
        words.push("--fix".to_owned());
    }
    words.join(" ")
}

/// A word as a shell takes it.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./,:=@%+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Values by tfprof's names of the columns.
fn columns<'a>(of: impl Iterator<Item = &'a Measures> + Clone) -> Value {
    let column = |value: fn(&Measures) -> i64| of.clone().map(value).collect::<Vec<_>>();
    json!({
        "micros": column(|it| it.exec_micros), "accelerator_micros": column(|it| it.accelerator_micros),
        "cpu_micros": column(|it| it.cpu_micros), "bytes": column(|it| it.requested_bytes),
        "peak_bytes": column(|it| it.peak_bytes), "residual_bytes": column(|it| it.residual_bytes),
        "output_bytes": column(|it| it.output_bytes), "params": column(|it| it.parameters),
        "float_ops": column(|it| it.float_ops), "occurrence": column(|it| it.runs),
    })
}

/// A node with its neighbours; without a name, the unused nodes.
pub(crate) fn node(opened: &Opened, query: &Query) -> Result<Value, Refusal> {
    let (_, profile) = opened.tfprof.profile(query.text("fix") == Some("1"))?;
    let step = query.number_or("step", -1)?;
    let Some(name) = query.text("name").filter(|name| !name.is_empty()) else {
        let ends = profile.ends(step);
        let total = ends.len();
        let ends: Vec<Value> = ends.iter().take(MOST_NODES).map(line).collect();
        return Ok(json!({"node": null, "ends": ends, "total": total}));
    };
    let info = profile.describe(name, step).ok_or(Refusal::Missing("node"))?;
    let links = |links: &[NodeLink]| links.iter().take(MOST_NODES).map(link).collect::<Vec<_>>();
    Ok(json!({
        "node": line(&info.node), "types": info.types, "shape": info.shape,
        "inputs": links(&info.inputs), "users": links(&info.users),
        "inputs_total": info.inputs.len(), "users_total": info.users.len(),
    }))
}

/// Nodes by a part of their name, as a regular expression.
pub(crate) fn find(opened: &Opened, query: &Query) -> Result<Value, Refusal> {
    let (_, profile) = opened.tfprof.profile(query.text("fix") == Some("1"))?;
    let pattern = pattern(query.text("q").unwrap_or_default())?;
    let (nodes, total) = profile.find(&pattern, query.number_or("step", -1)?, MOST_NODES);
    Ok(json!({"total": total, "nodes": nodes.iter().map(line).collect::<Vec<_>>()}))
}

/// The variables.
pub(crate) fn variables(opened: &Opened) -> Result<Bytes, Refusal> {
    opened.answer("model/variables", |opened| {
        let (_, profile) = opened.tfprof.profile(false)?;
        let rows: Vec<Value> = profile
            .variable_rows()
            .iter()
            .map(|row| {
                json!({
                    "name": row.name, "shape": row.shape, "type": row.data_type.map(|it| it.name()),
                    "parameters": row.parameters, "bytes": row.bytes, "trainable": row.trainable,
                    "in_graph": row.in_graph,
                })
            })
            .collect();
        Ok(bytes(&json!({ "rows": rows })))
    })
}

fn pattern(text: &str) -> Result<Regex, Refusal> {
    let pattern = RegexBuilder::new(text).case_insensitive(true).size_limit(1 << 20).build();
    pattern.map_err(|_| Refusal::Query("q", short(text)))
}

fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

fn line(line: &NodeLine) -> Value {
    json!({
        "name": line.name, "op": line.op, "device": line.device, "own": columns(std::iter::once(&line.own)),
    })
}

fn link(link: &NodeLink) -> Value {
    json!({"name": link.name, "port": link.port, "shape": link.shape, "node": link.node.as_ref().map(line)})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        assert_eq!(quoted("/tmp/a-b_c.pb,d"), "/tmp/a-b_c.pb,d");
        assert_eq!(quoted("dense.*|x y"), "'dense.*|x y'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn a_view_with_too_many_rows_is_cut_where_it_fits() {
        let row = |above: Option<usize>| FlatRow {
            name: String::new(),
            above,
            own: Measures::default(),
            total: Measures::default(),
            op: String::new(),
            device: String::new(),
            nodes: 1,
        };
        let mut rows = vec![row(None)];
        rows.extend((0..100).map(|_| row(Some(0))));
        rows.extend((0..MOST_ROWS).map(|at| row(Some(1 + at % 100))));
        // The root, which is not listed, the first row and its hundred.
        assert_eq!(fitting_depth(&rows), 3);
    }
}
