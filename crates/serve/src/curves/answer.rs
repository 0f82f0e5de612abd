//! Answers about curves. `API.md` is the contract.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use rayon::prelude::*;
use serde_json::{Value, json};
use stepscope_analyze::curves::pace::Pace;
use stepscope_analyze::curves::smooth::smoothed;
use stepscope_analyze::curves::thin::{ChartWindow, Over, thin};
use stepscope_render::scalars;
use stepscope_trace::series::{OtherKind, RunLog, Series};

use super::frame::{Line, write};
use super::{Curves, Run, Shared, read};
use crate::error::Refusal;
use crate::query::Query;

/// Points of one answer, about: with more runs, each gets fewer.
const POINTS: usize = 120_000;
const MOST_PIXELS: usize = 4096;
/// A line is never thinned to fewer pixels than this.
const LEAST_PIXELS: usize = 30;

/// Tags that are made of the times of points.
const STEP_TIME: &str = "@step_time";
const RATE: &str = "@steps_per_second";

/// What changed since a version, and how far the first reading is.
pub(crate) fn state(curves: &Curves, query: &Query) -> Result<Value, Refusal> {
    let since: u64 = query.number_or("since", 0)?;
    let (version, listing) = {
        let shelf = curves.shelf();
        (shelf.version, shelf.listing)
    };
    let one = |(id, run): (usize, &Shared)| {
        let run = read(run);
        if run.version <= since {
            return None;
        }
        let log = run.reader.so_far();
        let last_step = log.series.iter().filter_map(|series| series.steps.last()).max();
        Some(json!({"run": id, "last_step": last_step, "last_s": log.last_s}))
    };
    let changed: Vec<Value> = curves.all().iter().enumerate().filter_map(one).collect();
    Ok(json!({
        "version": version, "listing": listing, "changed": changed, "total": curves.total.load(Ordering::Relaxed),
        "done": curves.done.load(Ordering::Relaxed), "ready": curves.shelf().searched.is_some(),
    }))
}

/// All runs and their tags. Runs with the same tags share one list.
pub(crate) fn listing(curves: &Curves) -> Value {
    let (version, listing) = {
        let shelf = curves.shelf();
        (shelf.version, shelf.listing)
    };
    let runs = curves.all();
    let mut tags: BTreeMap<String, usize> = BTreeMap::new();
    for run in &runs {
        for series in &read(run).reader.so_far().series {
            tags.entry(series.tag.clone()).or_default();
        }
    }
    tags.values_mut().enumerate().for_each(|(place, number)| *number = place);
    let mut sets: Vec<Vec<usize>> = Vec::new();
    let mut known: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
    let mut listed = Vec::new();
    for (id, run) in runs.iter().enumerate() {
        let run = read(run);
        let log = run.reader.so_far();
        let mut own: Vec<usize> =
            log.series.iter().filter_map(|series| tags.get(&series.tag).copied()).collect();
        own.sort_unstable();
        let set = *known.entry(own).or_insert_with_key(|own| {
            sets.push(own.clone());
            sets.len() - 1
        });
        listed.push(json!({
            "id": id, "name": log.name, "set": set, "gone": run.gone, "last_s": log.last_s,
            "first_s": log.series.iter().filter_map(|series| series.wall_s.first().copied()).min_by(f64::total_cmp),
            "last_step": log.series.iter().filter_map(|series| series.steps.last().copied()).max(),
            "damage": log.damage.iter().take(5).map(stepscope_results::words::log::damage).collect::<Vec<_>>(),
            "histograms": of_kind(log, OtherKind::Histogram), "images": of_kind(log, OtherKind::Image),
            "graphs": log.graphs.iter().map(|graph| &graph.tag).collect::<Vec<_>>(),
            "trial": log.hparams.as_ref().is_some_and(|it| !it.settings.is_empty()),
            "texts": log.texts.iter().map(|note| json!({"tag": note.tag, "step": note.step, "text": note.text})).collect::<Vec<_>>(),
        }));
    }
    json!({"version": version, "listing": listing, "tags": tags.keys().collect::<Vec<_>>(), "sets": sets, "runs": listed})
}

/// The tags of a kind that are no numbers.
fn of_kind(log: &RunLog, kind: OtherKind) -> Vec<&str> {
    let mut tags: Vec<&str> =
        log.others.iter().filter(|other| other.kind == kind).map(|other| other.tag.as_str()).collect();
    tags.sort_unstable();
    tags
}

/// The runs that a request names.
fn asked(curves: &Curves, query: &Query) -> Result<Vec<(usize, Shared)>, Refusal> {
    let ids = query.tracks("runs")?.unwrap_or_default();
    let shared = |id: u32| {
        let id = id as usize;
        curves.run(id).map(|run| (id, run)).ok_or(Refusal::Missing("run"))
    };
    ids.into_iter().map(shared).collect()
}

fn over(query: &Query) -> Result<Over, Refusal> {
    let name = query.text("x").unwrap_or("step");
    Over::named(name).ok_or_else(|| Refusal::Query("x", name.chars().take(80).collect()))
}

fn range_of(query: &Query) -> Result<Option<(f64, f64)>, Refusal> {
    if query.text("from").is_none() && query.text("to").is_none() {
        return Ok(None);
    }
    let (from, to): (f64, f64) = (query.number("from")?, query.number("to")?);
    let sound = from.is_finite() && to.is_finite() && from <= to;
    if sound { Ok(Some((from, to))) } else { Err(Refusal::Query("from", format!("{from} to {to}"))) }
}

/// The points of a tag, logged or made of the times of points.
fn series<'r>(run: &'r Run, tag: &str) -> Option<Cow<'r, Series>> {
    let value: fn(f64) -> f64 = match tag {
        STEP_TIME => |seconds| seconds * 1e3,
        RATE => |seconds| 1.0 / seconds,
        _ => return run.reader.points(tag),
    };
    let looked = run.looked();
    let pace: &Pace = looked.0.pace.as_ref()?;
    Some(Cow::Owned(Series {
        tag: tag.to_owned(),
        steps: pace.pieces.iter().map(|piece| piece.step).collect(),
        wall_s: pace.pieces.iter().map(|piece| piece.until_s).collect(),
        values: pace.pieces.iter().map(|piece| value(piece.seconds)).collect(),
        ..Series::default()
    }))
}

/// The points of a tag in several runs, thinned to what a chart shows, with smoothed values of all of them.
pub(crate) fn points(curves: &Curves, query: &Query) -> Result<Vec<u8>, Refusal> {
    let tag = query.text("tag").ok_or(Refusal::Missing("tag"))?;
    let (over, range, runs) = (over(query)?, range_of(query)?, asked(curves, query)?);
    let weight: f64 = query.number_or("smooth", 0.0)?;
    let weight = if weight.is_finite() { weight.clamp(0.0, 0.999) } else { 0.0 };
    let pixels = query.number_or("pixels", 600_usize)?.clamp(LEAST_PIXELS, MOST_PIXELS);
    let each = (POINTS / 4 / runs.len().max(1)).clamp(LEAST_PIXELS, pixels);
    let window = ChartWindow { over, range, pixels: each };
    let version = curves.shelf().version;
    let lines: Vec<Line> = runs
        .par_iter()
        .filter_map(|(id, run)| {
            let run = read(run);
            Some(line(*id, run.version, &*series(&run, tag)?, window, weight))
        })
        .collect();
    Ok(write(&lines, json!({"tag": tag, "version": version})))
}

fn line(run: usize, version: u64, series: &Series, window: ChartWindow, weight: f64) -> Line {
    let smooth = smoothed(&series.values, weight);
    let kept = thin(series, window);
    let pick = |column: &[f64]| kept.iter().filter_map(|&at| column.get(at).copied()).collect();
    Line {
        run,
        version,
        total: series.values.len(),
        first_s: series.wall_s.first().copied().unwrap_or_default(),
        steps: kept.iter().filter_map(|&at| series.steps.get(at).map(|step| *step as f64)).collect(),
        wall_s: pick(&series.wall_s),
        values: pick(&series.values),
        smoothed: pick(&smooth),
    }
}

/// What all points of a tag in a range say, per run.
pub(crate) fn range(curves: &Curves, query: &Query) -> Result<Value, Refusal> {
    let tag = query.text("tag").ok_or(Refusal::Missing("tag"))?;
    let (over, range, runs) = (over(query)?, range_of(query)?, asked(curves, query)?);
    let (from, to) = range.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
    let rows = runs.iter().filter_map(|(id, run)| {
        let run = read(run);
        let series = series(&run, tag)?;
        Some(in_range(*id, &series, |at| (from..=to).contains(&over.of(&series, at))))
    });
    Ok(json!({"rows": rows.collect::<Vec<_>>()}))
}

fn in_range(id: usize, series: &Series, within: impl Fn(usize) -> bool) -> Value {
    let step = |at: usize| series.steps.get(at).copied();
    let inside: Vec<(usize, f64)> =
        series.values.iter().copied().enumerate().filter(|(at, _)| within(*at)).collect();
    let finite = || inside.iter().copied().filter(|(_, value)| value.is_finite());
    let least = finite().min_by(|a, b| a.1.total_cmp(&b.1));
    let most = finite().max_by(|a, b| a.1.total_cmp(&b.1));
    let (first, last) = (finite().next(), finite().next_back());
    let count = finite().count();
    let mean = (count > 0).then(|| finite().map(|(_, value)| value).sum::<f64>() / count as f64);
    let seconds = first
        .zip(last)
        .and_then(|((first, _), (last, _))| Some(series.wall_s.get(last)? - series.wall_s.get(first)?));
    let value = |point: Option<(usize, f64)>| point.map(|(_, value)| value);
    let at = |point: Option<(usize, f64)>| point.and_then(|(at, _)| step(at));
    json!({
        "run": id, "points": inside.len(), "start": value(first), "end": value(last), "start_step": at(first),
        "end_step": at(last), "min": value(least), "min_step": at(least), "max": value(most), "max_step": at(most),
        "mean": mean, "seconds": seconds,
    })
}

/// All points of a tag as CSV.
pub(crate) fn csv(curves: &Curves, query: &Query) -> Result<Vec<u8>, Refusal> {
    let tag = query.text("tag").ok_or(Refusal::Missing("tag"))?;
    let logs: Vec<RunLog> = asked(curves, query)?
        .iter()
        .filter_map(|(_, run)| {
            let run = read(run);
            let series = series(&run, tag)?.into_owned();
            Some(RunLog { name: run.reader.name().to_owned(), series: vec![series], ..RunLog::default() })
        })
        .collect();
    let mut out = Vec::new();
    scalars::write_points_csv(&logs, &mut out).map_err(|_| Refusal::Broken)?;
    Ok(out)
}

/// What is wrong with runs, and how fast each was.
pub(crate) fn findings(curves: &Curves) -> Value {
    let runs = curves.all();
    let all: Vec<Vec<Value>> = runs
        .par_iter()
        .enumerate()
        .map(|(id, run)| {
            let run = read(run);
            if run.gone {
                return Vec::new();
            }
            let looked = run.looked();
            let (runs, verdicts) = (std::slice::from_ref(&looked.0), std::slice::from_ref(&looked.1));
            let mut found = match scalars::findings_json(runs, verdicts) {
                Value::Array(found) => found,
                _ => Vec::new(),
            };
            found.iter_mut().for_each(|finding| finding["run_id"] = json!(id));
            found
        })
        .collect();
    let pace = |run: &Shared| read(run).looked().0.pace.is_some();
    json!({
        "findings": all.into_iter().flatten().collect::<Vec<_>>(),
        "timed": runs.iter().enumerate().filter(|(_, run)| pace(run)).map(|(id, _)| id).collect::<Vec<_>>(),
    })
}
