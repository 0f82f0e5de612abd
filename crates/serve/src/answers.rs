//! Answers of the addresses below `/api/`. `API.md` defines them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use serde_json::{Value, json};
use stepscope_analyze::Category;
use stepscope_diagnose::compare::{ComparedRun, Margins, compare};
use stepscope_render::compare::compare_json;
use stepscope_render::format::duration_ms;
use stepscope_render::info::Description;
use stepscope_render::report::{self, color};
use stepscope_render::table;
use stepscope_render::table::columns_json;
use stepscope_results::views::{DEFAULT_GROUPING, VIEWS, View, path_of_step};
use stepscope_results::words::terms;
use stepscope_results::{Select, Table};
use stepscope_timeline::layout;
use stepscope_timeline::model::Model;
use stepscope_trace::Time;
use tokio::sync::Semaphore;

use crate::error::{Refusal, problem_json};
use crate::store::Opened;

/// How long one answer may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);
/// Maximum number of answers computed at a time; more wait in line.
const AT_ONCE: usize = 32;
static TURNS: Semaphore = Semaphore::const_new(AT_ONCE);

/// Runs heavy work off the server's thread, and turns a panic into an answer. Work that takes too long is given up:
/// its turn goes to the next, and the request gets an error.
pub(crate) async fn heavy<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    within(LIMIT, work).await
}

async fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let place = Arc::new(Mutex::new(None));
    let result = place.clone();
    let work = move || {
        let made = work();
        *locked(&result) = Some(made);
    };
    run(limit, Box::new(work)).await?;
    locked(&place).take().unwrap_or(Err(Refusal::Broken))
}

fn locked<T>(place: &Mutex<T>) -> MutexGuard<'_, T> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs work of whatever kind; one type, so that the runtime's part exists once.
async fn run(limit: Duration, work: Box<dyn FnOnce() + Send>) -> Result<(), Refusal> {
    let done = async {
        let _turn = TURNS.acquire().await;
        tokio::task::spawn_blocking(work).await.map_err(|_| Refusal::Broken)
    };
    tokio::time::timeout(limit, done).await.unwrap_or(Err(Refusal::Overran))
}

/// A value as bytes.
pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// The categories, in stacking order.
pub(crate) fn categories() -> Value {
    let one = |category: &Category| {
        json!({
            "key": category.key(), "title": terms::category_title(*category), "about": terms::category(*category),
            "color": color(*category),
        })
    };
    Category::ALL.iter().map(one).collect()
}

/// The views, in reading order: what the page needs to list and draw them.
pub(crate) fn views() -> Value {
    let one = |view: &View| {
        json!({
            "name": view.name, "title": view.title, "group": view.group.title(), "question": view.question,
            "about": view.about, "record": view.record, "events": view.events, "ways": view.ways(),
        })
    };
    VIEWS.iter().map(one).collect()
}

/// The report, with the additional data that the page shows.
pub(crate) fn report(opened: &Opened) -> Result<Bytes, Refusal> {
    opened.answer("report", |opened| {
        let report = opened.report()?;
        let mut text = Vec::new();
        report::write_json(&report, &mut text).map_err(|_| Refusal::Broken)?;
        let mut answer: Value = serde_json::from_slice(&text).map_err(|_| Refusal::Broken)?;
        let answer_place = (!report.findings.is_empty()).then_some(0);
        let severity = report.findings.first().map_or("info", |finding| finding.severity.key());
        answer["session"] = report.session.as_str().into();
        answer["delivers"] = report.sources.iter().map(|source| source.format.delivers.key()).collect();
        let mut markdown = Vec::new();
        report::write_markdown(&report, &mut markdown).map_err(|_| Refusal::Broken)?;
        answer["markdown"] = String::from_utf8_lossy(&markdown).into();
        answer["verdict"] = json!({
            "headline": report::answer(&report), "severity": severity, "finding": answer_place, "doubts": report::doubts(&report),
        });
        answer["damage"] = opened.problems().iter().map(problem_json).collect();
        answer["step_host"] = report.summary.bound().map(|host| host.host.as_str()).into();
        for (finding, row) in report.findings.iter().zip(rows(&mut answer, "findings")) {
            row["title"] = finding.rule.title().into();
            row["place"] = finding.place.as_ref().map_or(Value::Null, |place| {
                let at = |time: Time| opened.ns(&place.host, time);
                let owned = finding.claims.iter().filter(|(_, ms)| *ms > 0.0).map(|(category, _)| category.key());
                let figure = finding.about_ms.map(|ms| format!("{} {}", duration_ms(ms), finding.per()));
                json!({
                    "host": place.host, "start_ns": at(place.span.start), "end_ns": at(place.span.end),
                    "categories": owned.collect::<Vec<_>>(), "figure": figure,
                })
            });
        }
        for row in rows(&mut answer, "breakdown") {
            let key = row["category"].as_str().unwrap_or("");
            let category = Category::ALL.into_iter().find(|category| category.key() == key);
            row["title"] = category.map(terms::category_title).into();
            row["about"] = category.map(terms::category).into();
        }
        Ok(bytes(&answer))
    })
}

fn rows<'v>(answer: &'v mut Value, key: &str) -> impl Iterator<Item = &'v mut Value> {
    answer.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten()
}

/// The content of the session.
pub(crate) fn information(opened: &Opened) -> Result<Bytes, Refusal> {
    opened.answer("info", |opened| {
        let (info, session, sessions) = opened.info()?;
        let description = Description { session, sessions, info: &info };
        let mut text = Vec::new();
        stepscope_render::info::write_json(&description, &mut text).map_err(|_| Refusal::Broken)?;
        let mut answer: Value = serde_json::from_slice(&text).map_err(|_| Refusal::Broken)?;
        answer["delivers"] = info.hosts.iter().map(|host| host.format.delivers.key()).collect();
        Ok(bytes(&answer))
    })
}

/// One view, by columns or as CSV.
pub(crate) fn view(
    opened: &Opened,
    name: &str,
    by: Option<&str>,
    step: Option<i64>,
    csv: bool,
) -> Result<Bytes, Refusal> {
    let view = View::named(name).ok_or(Refusal::Missing("view"))?;
    let way = by.unwrap_or(DEFAULT_GROUPING);
    let make = view.grouped(way).ok_or(Refusal::Missing("way to group the view"))?;
    // Only the critical path is about one step.
    let step = step.filter(|_| name == "path");
    let chosen = step.map_or_else(String::new, |step| format!("/{step}"));
    let key = format!("{}/{name}/{way}{chosen}", if csv { "csv" } else { "view" });
    opened.answer(&key, |opened| {
        let table: Table = opened.table(|hosts| match step {
            Some(step) => hosts.table(view, |hosts| path_of_step(hosts, step)),
            None => hosts.table(view, make),
        })?;
        if csv {
            let picked = table.pick(&Select::default(), None).map_err(|_| Refusal::Broken)?;
            let mut text = Vec::new();
            table::write_csv(&table, &picked, &mut text).map_err(|_| Refusal::Broken)?;
            return Ok(text);
        }
        Ok(bytes(&columns_json(&table, &view.ways())))
    })
}

/// Two sessions compared.
pub(crate) fn comparison(base: &ComparedRun, new: &ComparedRun) -> Value {
    let compared = compare(std::slice::from_ref(base), std::slice::from_ref(new), Margins::default());
    let mut answer = compare_json(&compared);
    let side = |run: &ComparedRun| json!({"label": run.label, "step_ms": run.steps_ms});
    answer["runs"] = json!({"base": side(base), "new": side(new)});
    answer
}

/// The tracks, processes and steps of the timeline.
pub(crate) fn timeline(opened: &Opened, model: &Model) -> Result<Bytes, Refusal> {
    let name = if model.aligned { "timeline/aligned" } else { "timeline" };
    opened.answer(name, |_| Ok(bytes(&layout::describe(model))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_takes_too_long_is_given_up_and_the_next_one_comes() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        runtime.block_on(async {
            let hangs = move || ended.recv().map_err(|_| Refusal::Broken);
            let refused = within(Duration::from_millis(20), hangs).await.unwrap_err();
            assert!(matches!(refused, Refusal::Overran), "{refused:?}");
            assert_eq!(refused.status(), axum::http::StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(heavy(|| Ok(7)).await.unwrap(), 7);
            let broken = heavy(|| -> Result<(), Refusal> { panic!("meant to") }).await.unwrap_err();
            assert!(matches!(broken, Refusal::Broken));
        });
        drop(end);
    }
}
