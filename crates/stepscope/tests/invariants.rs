//! Rules that hold for every report, whatever was recorded: on the project's fixtures, and on all recordings of the
//! corpus and of `STEPSCOPE_STRANGERS` if available.
#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

#[path = "support/figures.rs"]
mod figures;
mod support;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::Value;
use stepscope_analyze::Category;
use stepscope_analyze::steps::{How, Origin, StepKind};
use stepscope_diagnose::owners::Reason;
use stepscope_diagnose::{Finding, thresholds};
use stepscope_query::{Database, Limits, Value as SqlValue};
use stepscope_read::Progress;
use stepscope_render::Style;
use stepscope_render::report::{answer, brief_json, write_html, write_json, write_markdown, write_text};
use stepscope_results::report::Report;
use stepscope_session::report::report;
use stepscope_session::{Profile, Query, ResolvedSession};
use stepscope_testkit::corpus::{files_below, names_in, repository};
use stepscope_trace::DeviceKind;
use support::{root, run};

/// The largest file that is read: enough for nearly all recordings, in the time of a test.
const LARGEST: u64 = 40 << 20;

/// Steps with less of the busy time are not the loop.
const HALF: f64 = 0.5;

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
    let kinds = ["pytorch", "nsys", "strangers", "xplane-public", "ncu", "memory", "tfprof", "nvidia-smi"];
    for folder in kinds.map(|name| corpus.join(name)).into_iter().chain(strangers) {
        found.extend(files_below(&folder));
    }
    let small = |path: &PathBuf| fs::metadata(path).is_ok_and(|file| file.is_dir() || file.len() <= LARGEST);
    found.retain(small);
    found
}

/// A recording; `None` if it is not one.
fn opened(path: &Path) -> Option<Profile> {
    let query = Query { paths: vec![path.to_owned()], session: None, host: None, roots: Vec::new() };
    let chosen = ResolvedSession::of(&query, &|_| {}).ok()?;
    Profile::load(chosen, &Progress::new()).ok()
}

/// The findings that SQL lists.
fn by_sql(database: &Database) -> Vec<String> {
    let answer = database.query("SELECT id FROM finding ORDER BY rank").unwrap();
    answer.rows.iter().filter_map(|row| row.first()).map(SqlValue::text).collect()
}

/// What is wrong with a report.
fn faults(report: &Report) -> Vec<String> {
    let mut faults = unowned(report);
    faults.extend(gains(report));
    faults.extend(devices(report));
    faults.extend(verdicts(report));
    faults.extend(coverage(report));
    faults.extend(ranges(report));
    faults
}

/// Ranges below the breakdown are without the ranges nested in them: together they fit into the time that nothing else explains.
fn ranges(report: &Report) -> Vec<String> {
    let all: f64 = report.ranges.iter().map(|range| range.ms_per_step).sum();
    let summary = &report.summary;
    let unexplained = [Category::Unknown, Category::Idle].map(|category| summary.fraction(category));
    let left = unexplained.iter().sum::<f64>() * summary.length_ms();
    let too_long = all > left * 1.001;
    too_long
        .then(|| format!("ranges take {all:.3} of {left:.3} ms: {:?}", report.ranges))
        .into_iter()
        .collect()
}

/// Steps that were inferred hold most of the busy time, or there are none. What warmed up, was cut off or was not recorded is
/// excluded, and so are requests, between which others are answered. Ranges with names of the user's are their word for the
/// loop: other names, such as a warm-up's, hold the rest.
fn coverage(report: &Report) -> Vec<String> {
    let uncovered = report.summary.hosts.iter().filter(|host| {
        let found = !host.whole_capture && host.origin == Origin::Inferred && host.kind == StepKind::Training;
        let found = found && !matches!(host.how, How::Annotations(_));
        found && host.covers.excluded.is_empty() && host.covers.busy.is_some_and(|busy| busy < HALF)
    });
    uncovered
        .map(|host| {
            format!("steps hold {:?} of the busy time of {} ({:?})", host.covers.busy, host.host, host.how)
        })
        .collect()
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

/// Every output lists the findings in one order, and the verdict is the first of them. The page shows the headline and the JSON.
fn verdicts(report: &Report) -> Vec<String> {
    let ids: Vec<&str> = report.findings.iter().map(Finding::id).collect();
    let Some((verdict, others)) = report.findings.split_first() else { return Vec::new() };
    let mut faults = Vec::new();
    if !verdict.explains() && others.iter().any(Finding::explains) {
        faults.push(format!("a doubt leads {ids:?}"));
    }
    let written = |write: fn(&Report, &mut dyn Write) -> io::Result<()>| {
        let mut bytes = Vec::new();
        write(report, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let listed = |json: &Value| -> Vec<String> {
        let rows = json["findings"].as_array().unwrap();
        rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    };
    let tags = |text: &str, open: &str| -> Vec<String> {
        let after = text.split(open).skip(1).filter_map(|rest| Some(rest.split_once('<')?.0.to_owned()));
        after.filter(|tag| ids.contains(&tag.as_str())).collect()
    };
    let text = written(|report, out| write_text(report, Style::PLAIN, out));
    let json: Value = serde_json::from_str(&written(write_json)).unwrap();
    let outputs = [
        ("JSON", listed(&json)),
        ("the brief form", listed(&brief_json(report))),
        ("HTML", tags(&written(write_html), "<span>")),
        ("Markdown", tags(&written(write_markdown), "<b>")),
    ];
    let other = outputs.into_iter().filter(|(_, listed)| *listed != ids);
    faults.extend(other.map(|(output, listed)| format!("{output} has {listed:?} for {ids:?}")));
    // The text names the verdict alone by its id.
    let below = text.lines().skip_while(|line| *line != "what to do").nth(1).unwrap_or_default();
    if below.split_whitespace().nth(1) != Some(verdict.id()) {
        faults.push(format!("the text has {below} for {}", verdict.id()));
    }
    let summary = verdict.summary();
    let start = summary.split([':', '`']).next().unwrap_or_default();
    if verdict.explains() && !answer(report).starts_with(start) {
        faults.push(format!("the headline does not start with {start}"));
    }
    faults
}

#[test]
fn rules_for_every_report_hold() {
    let checked = |path: &PathBuf| {
        let profile = opened(path)?;
        let name = path.display().to_string();
        let report = report(&profile, vec![name.clone()]).ok()?;
        let mut faults = faults(&report);
        faults.extend(figures::contradictions(&report));
        let database = Database::new(Arc::new(profile), Limits::TERMINAL);
        faults.extend(figures::by_sql(&report, &database));
        let (ids, listed): (Vec<&str>, _) =
            (report.findings.iter().map(Finding::id).collect(), by_sql(&database));
        if ids != listed {
            faults.push(format!("SQL has {listed:?} for {ids:?}"));
        }
        Some(faults.into_iter().map(|fault| format!("{name}: {fault}")).collect::<Vec<_>>())
    };
    // One after the other: a query waits for analyses, which run on the threads of the pool.
    let faults: Vec<String> = recordings().iter().filter_map(checked).flatten().collect();
    let compared = figures::COMPARED.load(Ordering::Relaxed);
    assert!(compared >= 20, "only {compared} figures in sentences were compared");
    println!("{compared} figures compared");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn the_command_lists_the_findings_of_the_report() {
    let path = root().join("fixtures").join("tf-input-bound");
    let sql = run(&["sql", path.to_str().unwrap(), "select id from finding order by rank", "--csv"]);
    let listed: Vec<&str> = sql.lines().skip_while(|line| *line != "id").skip(1).collect();
    let database = Database::new(Arc::new(opened(&path).unwrap()), Limits::TERMINAL);
    assert_eq!(listed, by_sql(&database), "{sql}");
}
