//! Output for people and programs, from hand-made reports.

use serde_json::Value;
use stepscope_analyze::Category;
use stepscope_analyze::devices::gpu_samples::{GpuSamples, Sampled};
use stepscope_analyze::vocabulary::Framework;
use stepscope_diagnose::facts::OpCost;
use stepscope_diagnose::rules::{op_dominates, startup_profiled, truncated_trace};
use stepscope_diagnose::{Finding, Severity};
use stepscope_results::report::{HealthRow, Profiled, RangeRow, Report, SourceRow};
use stepscope_trace::Dur;

use super::sample::{input_bound, no_steps, on_device, settled};
use super::{answer, write_html, write_json, write_markdown, write_text};
use crate::Style;

fn json(report: &Report) -> Value {
    let mut out = Vec::new();
    write_json(report, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn text(report: &Report, style: Style) -> String {
    let mut out = Vec::new();
    write_text(report, style, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn markdown(report: &Report) -> String {
    let mut out = Vec::new();
    write_markdown(report, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn sorted<const N: usize>(mut names: [&str; N]) -> Vec<&str> {
    names.sort_unstable();
    names.to_vec()
}

#[test]
fn json_has_the_contract_s_keys_and_no_others() {
    let json = json(&input_bound());
    let top = ["schema", "sources", "health", "steps", "covers", "breakdown", "devices", "ops", "findings"];
    assert_eq!(keys(&json), sorted(top));
    assert_eq!(json["schema"], "stepscope.report.v1");
    assert_eq!(keys(&json["sources"][0]), sorted(["path", "format", "bytes", "host", "events"]));
    assert_eq!(keys(&json["health"][0]), sorted(["id", "severity", "message"]));
    let steps = [
        "count",
        "origin",
        "how",
        "dropped",
        "mean_ms",
        "median_ms",
        "p90_ms",
        "p99_ms",
        "stddev_ms",
        "uneven",
        "per_step",
    ];
    assert_eq!(keys(&json["steps"]), sorted(steps));
    let step = &json["steps"]["per_step"][0];
    assert_eq!(keys(step), sorted(["index", "name", "start_ms", "duration_ms", "breakdown"]));
    assert_eq!(keys(&json["breakdown"][0]), sorted(["category", "ms_per_step", "fraction"]));
    assert_eq!(keys(&json["devices"][0]), sorted(["id", "name", "kind", "busy_fraction", "steps_seen"]));
    assert_eq!(
        keys(&json["ops"][0]),
        sorted(["name", "type", "where", "count", "total_ms", "self_ms", "fraction"])
    );
    let finding = [
        "id",
        "about",
        "severity",
        "subject",
        "fraction",
        "gain_ms_per_step",
        "gain_fraction",
        "confidence",
        "summary",
        "evidence",
        "advice",
    ];
    assert_eq!(keys(&json["findings"][0]), sorted(finding));
}

#[test]
fn json_counts_only_steps_that_count_and_they_add_up() {
    let json = json(&input_bound());
    let steps = &json["steps"];
    assert_eq!((steps["count"].as_u64(), steps["dropped"].as_u64()), (Some(11), Some(1)));
    assert_eq!((&steps["origin"], &steps["how"]), (&"marker".into(), &"marked `train`".into()));
    let rows = steps["per_step"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["index"]), (11, &1.into()), "the first one is start-up");
    for row in rows {
        let sum: f64 = row["breakdown"].as_object().unwrap().values().filter_map(Value::as_f64).sum();
        assert!((sum - row["duration_ms"].as_f64().unwrap()).abs() < 1e-6);
    }
    let shares: f64 =
        json["breakdown"].as_array().unwrap().iter().filter_map(|row| row["fraction"].as_f64()).sum();
    assert!((shares - 1.0).abs() < 1e-9);
}

#[test]
fn without_steps_figures_are_null_and_the_breakdown_is_of_the_capture() {
    let json = json(&no_steps());
    let steps = &json["steps"];
    assert_eq!((&steps["origin"], &steps["count"]), (&"none".into(), &0.into()));
    assert_eq!((&steps["dropped"], &steps["per_step"]), (&0.into(), &Value::Array(Vec::new())));
    assert!(["mean_ms", "median_ms", "p90_ms", "p99_ms", "stddev_ms"].iter().all(|key| steps[key].is_null()));
    assert_eq!(json["breakdown"][0]["category"], "idle");
    assert_eq!(json["findings"][0]["id"], "no-steps");
}

#[test]
fn ranges_of_the_program_stand_below_the_breakdown_in_every_output() {
    let ranges = RangeRow::of(vec![("find_centers".to_owned(), 60.0), ("poll".to_owned(), 0.01)], 100.0);
    assert_eq!(ranges.len(), 1, "short ones are left out: {ranges:?}");
    let report = Report { ranges, ..no_steps() };
    let text = text(&report, Style::PLAIN);
    assert!(text.lines().any(|line| line.contains("find_centers") && line.ends_with("60.0 %")), "{text}");
    assert!(markdown(&report).contains("find_centers` | 60.0 ms | 60.0 % |"), "{}", markdown(&report));
    let mut page = Vec::new();
    write_html(&report, &mut page).unwrap();
    assert!(String::from_utf8(page).unwrap().contains("find_centers"));
    let row = &json(&report)["ranges"][0];
    assert_eq!(
        (&row["name"], &row["ms_per_step"], &row["fraction"]),
        (&"find_centers".into(), &60.0.into(), &0.6.into())
    );
}

#[test]
fn what_is_not_a_number_is_null() {
    let mut report = input_bound();
    report.ops[0].fraction = f64::NAN;
    report.findings[0].gain_ms = Some(f64::INFINITY);
    let json = json(&report);
    assert!(json["ops"][0]["fraction"].is_null());
    assert!(json["findings"][0]["gain_ms_per_step"].is_null());
}

#[test]
fn json_is_the_same_every_time() {
    let once = |report: &Report| {
        let mut out = Vec::new();
        write_json(report, &mut out).unwrap();
        out
    };
    assert_eq!(once(&input_bound()), once(&input_bound()));
}

#[test]
fn an_empty_report_is_a_report_all_the_same() {
    let empty = Report {
        summary: stepscope_analyze::time::summary::Summary::finish(Vec::new()),
        findings: Vec::new(),
        ops: Vec::new(),
        sources: Vec::new(),
        health: Vec::new(),
        ..input_bound()
    };
    assert_eq!(json(&empty)["steps"]["origin"], "none");
    assert!(text(&empty, Style::PLAIN).starts_with("Nothing to report"));
    assert!(markdown(&empty).starts_with("### Nothing to report"));
    assert!(html(&empty).contains("Nothing to report"));
}

#[test]
fn counters_without_trouble_say_how_near_the_peak_they_are() {
    let source = SourceRow { format: crate::format_named("ncu"), ..input_bound().sources.remove(0) };
    let on_caches = |compute, memory, dram| {
        let (kernel, untimed) = ("saxpy".to_owned(), Vec::new());
        let profiled = Profiled { kernel, fraction: 0.9, compute, memory, dram, untimed };
        let (sources, findings) = (vec![source.clone()], Vec::new());
        let health = Vec::new();
        answer(&Report { sources, findings, health, profiled: Some(profiled), ..input_bound() })
    };
    let with = |compute, memory| on_caches(compute, memory, None);
    let near = "The counters show no problem: `saxpy` (90 % of the profiled time) reaches 92 % of the peak of \
                memory.";
    assert_eq!(with(Some(0.2), Some(0.92)), near);
    let far = with(Some(0.2), None);
    assert!(far.contains("reaches 20 % of the peak of compute") && far.contains("ncu --set full"), "{far}");
    assert!(with(None, None).starts_with("The counters of the profiled kernels show no problem"));
    assert!(on_caches(Some(0.2), Some(0.92), Some(0.9)).starts_with("The counters show no problem"));
    let cached = on_caches(Some(0.2), Some(0.92), Some(0.005));
    assert!(cached.contains("caches at 92 %") && cached.contains("device memory at 0.5 %"), "{cached}");
}

#[test]
fn samples_alone_begin_with_what_they_say() {
    let gpu = |id: &str, mean: f64| GpuSamples {
        id: id.to_owned(),
        samples: 60,
        span: Dur::from_us(60_000_000),
        utilisation: Some(Sampled { mean, max: 1.0 }),
        ..GpuSamples::default()
    };
    let source = SourceRow { format: crate::format_named("nvidia-smi"), ..input_bound().sources.remove(0) };
    let report = Report {
        sources: vec![source],
        summary: stepscope_analyze::time::summary::Summary::finish(Vec::new()),
        findings: Vec::new(),
        ops: Vec::new(),
        gpu_samples: vec![gpu("GPU 0", 0.25), gpu("GPU 1", 0.5)],
        ..input_bound()
    };
    for told in [text(&report, Style::PLAIN), markdown(&report), html(&report)] {
        assert!(told.contains("On GPU 1, a kernel was running for 50.0 % of the time. "), "{told}");
        assert!(told.contains("GPU 0, 60 samples over") && told.contains("does not mean that"), "{told}");
    }
}

/// Writes the pages so that a browser can open them: `STEPSCOPE_PAGES=/tmp cargo test -p stepscope-render`.
#[test]
fn pages_for_the_eye() {
    let Ok(folder) = std::env::var("STEPSCOPE_PAGES") else { return };
    for (name, report) in [("input", input_bound()), ("device", on_device()), ("hostile", hostile())] {
        std::fs::write(format!("{folder}/{name}.html"), html(&report)).unwrap();
    }
}

fn html(report: &Report) -> String {
    let mut out = Vec::new();
    write_html(report, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_text_of_a_slow_input() {
    insta::assert_snapshot!(text(&input_bound(), Style::PLAIN));
}

#[test]
fn the_text_of_a_busy_device() {
    insta::assert_snapshot!(text(&on_device(), Style::PLAIN));
}

#[test]
fn the_text_without_steps() {
    insta::assert_snapshot!(text(&no_steps(), Style::PLAIN));
}

#[test]
fn text_fits_one_screen() {
    for report in [input_bound(), no_steps(), on_device()] {
        for width in [None, Some(80), Some(200)] {
            let text = text(&report, Style { color: false, width });
            let most = if width == Some(80) { 45 } else { 40 };
            assert!(text.lines().count() <= most, "{text}");
            // A line of code is not wrapped, so the terminal may wrap it.
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        }
    }
}

#[test]
fn the_recording_s_troubles_are_told_once() {
    let mut report = no_steps();
    let trouble = |id| HealthRow { id, severity: "error", message: format!("about {id}") };
    report.health = ["damaged", "collection-error"].map(trouble).to_vec();
    assert!(text(&report, Style::PLAIN).contains("error: about damaged"));
    let cause = truncated_trace::Truncated::Damage { what: "a tag".into(), offset: None };
    let finding = Finding::new(&truncated_trace::RULE, Severity::Warning, cause, Framework::Jax);
    report.findings.insert(0, finding);
    let text = text(&report, Style::PLAIN);
    assert!(!text.contains("about damaged") && text.contains("about collection-error"), "{text}");
}

#[test]
fn colour_is_written_only_when_asked_for() {
    assert!(!text(&on_device(), Style::PLAIN).contains('\x1b'));
    assert!(text(&on_device(), Style { color: true, width: Some(100) }).contains("\x1b[38;5;32m"));
}

#[test]
fn a_doubtful_recording_still_says_what_it_shows() {
    let mut report = input_bound();
    report.findings.insert(
        1,
        Finding::new(
            &startup_profiled::RULE,
            Severity::Warning,
            startup_profiled::WarmUp { steps: 3, steady: 1, share: 0.8, mostly: None },
            Framework::Keras,
        ),
    );
    let text = text(&report, Style::PLAIN);
    assert!(text.starts_with("Input-bound: the step waits"), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[..4].iter().any(|line| line.starts_with("Warm-up: 3 steps take 80 %")), "{text}");
    let (answer, doubt) = (text.find("critical input-bound"), text.find("warning  Warm-up"));
    assert!(answer.is_some() && answer < doubt, "{text}");
    assert!(text.contains("profile_batch=(10, 20)"), "{text}");
}

#[test]
fn the_markdown_of_a_slow_input() {
    insta::assert_snapshot!(markdown(&input_bound()));
}

/// A report in which every name tries to be markup.
pub(super) fn hostile() -> Report {
    let evil = "</code><script>alert(1)</script>|`x` \"'&@all\x1b[31m";
    let mut report = input_bound();
    report.ops[0].name = evil.to_owned();
    report.ops[0].op_type = evil.to_owned();
    report.session = evil.to_owned();
    report.targets = vec![evil.to_owned()];
    report.sources[0].path = evil.to_owned();
    report.sources[0].host = evil.to_owned();
    report.health[0].message = evil.to_owned();
    report.summary.hosts[0].host = evil.to_owned();
    report.summary.hosts[0].how = stepscope_analyze::steps::How::Marker(evil.to_owned());
    report.summary.hosts[0].devices[0].name = evil.to_owned();
    let op = OpCost {
        origin: None,
        op_type: evil.to_owned(),
        example: Some(evil.to_owned()),
        ms_per_step: 20.0,
        count_per_step: 1.0,
        devices: 1,
        share: 0.6,
        is_kernel: false,
    };
    let finding =
        Finding::new(&op_dominates::RULE, Severity::Critical, op_dominates::OneOp(op), Framework::TensorFlow);
    report.findings.insert(0, settled(finding.about(evil.to_owned()), 0.5, 40.0, Category::Compute));
    report
}

#[test]
fn names_never_become_markup_or_escapes() {
    let text = text(&hostile(), Style::PLAIN);
    assert!(!text.contains('\x1b'));
    let markdown = markdown(&hostile());
    assert!(!markdown.contains('\x1b'));
    for line in markdown.lines().filter(|line| line.contains("<script>")) {
        // Only inside a code span, which shows it literally.
        assert!(line.split('`').step_by(2).all(|outside| !outside.contains("<script>")), "{line}");
    }
    let html = html(&hostile());
    assert_eq!(html.matches("<script").count(), 1, "only our own");
    assert!(!html.contains("alert(1)</script>"));
    assert!(html.contains("&lt;script&gt;"));
}
