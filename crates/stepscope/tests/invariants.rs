//! Rules that hold for every report, whatever was recorded: on the project's fixtures, and on all recordings of the
//! corpus and of `STEPSCOPE_STRANGERS` if available.
#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use stepscope_analyze::Category;
use stepscope_diagnose::owners::Reason;
use stepscope_diagnose::{Finding, thresholds};
use stepscope_read::Progress;
use stepscope_render::Style;
use stepscope_render::report::{Report, write_html, write_json, write_text};
use stepscope_session::report::report;
use stepscope_session::{Profile, Query, ResolvedSession};
use stepscope_testkit::corpus::{files_below, names_in, repository};
use stepscope_trace::DeviceKind;
use support::{root, run};

/// The largest file that is read: enough for nearly all recordings, in the time of a test.
const LARGEST: u64 = 40 << 20;

/// Advice that needs a device other than the host's processor.
const FOR_DEVICES: [&str; 8] =
    ["pin_memory", "non_blocking", "on the GPU", "xla_gpu", "\"cuda\"", "TF32", "CUDA graph", "NVLink"];

/// All recordings at hand.
fn recordings() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = names_in(&root().join("fixtures"))
        .into_iter()
        .filter(|name| !name.ends_with(".md"))
        .map(|name| root().join("fixtures").join(name))
        .collect();
    let beside = repository().join("../shared/corpus");
    let corpus = std::env::var_os("STEPSCOPE_CORPUS").map_or(beside, PathBuf::from);
    for folder in ["labelled", "labelled-more", "labelled-3"] {
        let runs = names_in(&corpus.join(folder));
        found.extend(runs.into_iter().map(|run| corpus.join(folder).join(run)));
    }
    let strangers = std::env::var_os("STEPSCOPE_STRANGERS").map(PathBuf::from);
    for folder in ["pytorch", "nsys", "strangers"].map(|name| corpus.join(name)).into_iter().chain(strangers)
    {
        found.extend(files_below(&folder));
    }
    let small = |path: &PathBuf| fs::metadata(path).is_ok_and(|file| file.is_dir() || file.len() <= LARGEST);
    found.retain(small);
    found
}

/// The report on a recording; `None` if it is not one.
fn reported(path: &Path) -> Option<Report> {
    let query = Query { paths: vec![path.to_owned()], session: None, host: None, roots: Vec::new() };
    let chosen = ResolvedSession::of(&query, &|_| {}).ok()?;
    let profile = Profile::load(chosen, &Progress::new()).ok()?;
    report(&profile, vec![path.display().to_string()]).ok()
}

/// What is wrong with a report.
fn faults(report: &Report) -> Vec<String> {
    let mut faults = unowned(report);
    faults.extend(gains(report));
    faults.extend(devices(report));
    faults.extend(verdicts(report));
    faults
}

/// A category of a large share has an owner, or a reason why it has none.
fn unowned(report: &Report) -> Vec<String> {
    let step = report.summary.length_ms();
    let hidden = report.findings.iter().any(|finding| finding.cause.hides_habits());
    // Profiled kernels have no step, and a recording that cannot be trusted has no verdict.
    let timed = report.summary.hosts.iter().any(|host| host.events > 0) && report.profiled.is_none();
    if step <= 0.0 || hidden || !timed || report.findings.iter().all(Finding::is_about_trust) {
        return Vec::new();
    }
    let claims = |category: Category| -> f64 {
        let all = report.findings.iter().flat_map(|finding| &finding.claims);
        all.filter(|(owner, _)| *owner == category).map(|(_, ms)| ms).sum()
    };
    let said = |category: Category| {
        let all = report.findings.iter().flat_map(|finding| &finding.unowned);
        all.clone().any(|rest| rest.category == category && rest.reason != Reason::Unknown)
    };
    let left = report.summary.breakdown_ms.iter().filter(|(category, ms)| {
        *ms - claims(*category) >= thresholds::OWNED * step * 1.001 && !said(*category)
    });
    left.map(|(category, ms)| format!("`{}` has {ms:.3} of {step:.3} ms and no owner", category.key()))
        .collect()
}

/// No gain exceeds the step that it speaks of, nor do all of them together.
fn gains(report: &Report) -> Vec<String> {
    let step = report.summary.length_ms();
    let own =
        report.findings.iter().filter(|finding| finding.gain_ms.is_some_and(|gain| gain > step * 1.001));
    let mut faults: Vec<String> =
        own.map(|finding| format!("{} saves more than the step", finding.id())).collect();
    let all: f64 = report.findings.iter().filter_map(|finding| finding.gain_ms).sum();
    if all > step * 1.001 {
        faults.push(format!("all findings save {all:.3} of {step:.3} ms"));
    }
    let about = report.findings.iter().filter(|finding| {
        finding.gain_ms.zip(finding.about_ms).is_some_and(|(gain, about)| gain > about * 1.001)
    });
    faults.extend(about.map(|finding| format!("{} saves more than it is about", finding.id())));
    faults
}

/// No advice is for a device that is not there.
fn devices(report: &Report) -> Vec<String> {
    let listed = || report.summary.hosts.iter().flat_map(|host| &host.devices);
    let device = listed().any(|device| device.kind != DeviceKind::Cpu);
    let doubted = report.findings.iter().any(|finding| finding.id() == "no-device-trace");
    if device
        || doubted
        || report.summary.hosts.is_empty()
        || report.findings.iter().any(|one| one.has_device)
    {
        return Vec::new();
    }
    let advice = report.findings.iter().flat_map(|finding| finding.words().advice);
    advice.filter(|line| FOR_DEVICES.iter().any(|word| line.contains(word))).collect()
}

/// Text, JSON and HTML name one verdict.
fn verdicts(report: &Report) -> Vec<String> {
    let Some(verdict) = report.findings.iter().find(|finding| finding.explains()) else { return Vec::new() };
    let (mut text, mut json, mut html) = (Vec::new(), Vec::new(), Vec::new());
    write_text(report, Style::PLAIN, &mut text).unwrap();
    write_json(report, &mut json).unwrap();
    write_html(report, &mut html).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let rows = json["findings"].as_array().unwrap();
    let ids: Vec<&str> = report.findings.iter().map(Finding::id).collect();
    let same: Vec<&str> = rows.iter().filter_map(|row| row["id"].as_str()).collect();
    let mut faults = Vec::new();
    if ids != same {
        faults.push(format!("JSON has {same:?} for {ids:?}"));
    }
    let title = verdict.summary();
    let start = title.split(':').next().unwrap_or_default();
    let (text, html) = (String::from_utf8(text).unwrap(), String::from_utf8(html).unwrap());
    if !text.lines().next().unwrap_or_default().starts_with(start) {
        faults.push(format!("the text does not start with {start}"));
    }
    if !html.contains(start) {
        faults.push(format!("the page does not name {start}"));
    }
    faults
}

#[test]
fn rules_for_every_report_hold() {
    let faults: Vec<String> = recordings()
        .par_iter()
        .filter_map(|path| Some((path, reported(path)?)))
        .flat_map_iter(|(path, report)| {
            let name = path.display().to_string();
            faults(&report).into_iter().map(move |fault| format!("{name}: {fault}"))
        })
        .collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn sql_names_the_verdict_of_the_report() {
    for name in ["tf-input-bound", "torch-train", "keras-fit", "jax-train"] {
        let path = root().join("fixtures").join(name);
        let report = reported(&path).unwrap();
        let ids: Vec<&str> = report.findings.iter().map(Finding::id).collect();
        let sql = run(&["sql", path.to_str().unwrap(), "select id from finding order by rank", "--csv"]);
        let listed: Vec<&str> = sql.lines().skip_while(|line| *line != "id").skip(1).collect();
        assert_eq!(listed, ids, "{name}: {sql}");
    }
}
