//! The report as JSON: `stepscope.report.v1` as described in docs/json.md, one row per line.
//!
//! Numbers have full precision and are never NaN or infinite: unknown is `null`. Steps are written as they are
//! read, so that a million of them need no memory.

use std::io::{self, Write};

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use stepscope_analyze::Shares;
use stepscope_analyze::devices::collectives::clock::{Clocks, HostOffset};
use stepscope_analyze::time::summary::StepRow;
use stepscope_diagnose::{Finding, Words};

use stepscope_results::report::{OpRow, Report};
use stepscope_results::words::{step_times, terms};

/// Writes the report.
pub fn write_json(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"{\"schema\": \"stepscope.report.v1\"")?;
    rows(out, " ", "sources", report.sources.iter())?;
    rows(out, " ", "health", report.health.iter())?;
    steps(report, out)?;
    out.write_all(b",\n \"covers\": ")?;
    serde_json::to_writer(
        &mut *out,
        &report.bound().map(|host| stepscope_results::covers::json(&host.covers)),
    )?;
    rows(out, " ", "breakdown", breakdown(report))?;
    if !report.ranges.is_empty() {
        rows(out, " ", "ranges", report.ranges.iter())?;
    }
    rows(out, " ", "devices", devices(report))?;
    rows(out, " ", "ops", report.ops.iter().map(Op::of))?;
    rows(out, " ", "findings", report.findings.iter().map(Found::of))?;
    if let Some(clocks) = &report.clocks {
        rows(out, " ", "clocks", clocks.hosts.iter().map(|known| HostClock::of(clocks, known)))?;
    }
    if let Some(usage) = &report.usage {
        write!(out, ",\n \"utilisation\": {}", serde_json::to_string(usage)?)?;
    }
    if let Some(run) = &report.run {
        write!(out, ",\n \"run\": {}", super::place::json(run))?;
    }
    out.write_all(b"}\n")
}

/// `"key": [`, one row per line, `]`.
fn rows<T: Serialize>(
    out: &mut dyn Write,
    indent: &str,
    key: &str,
    all: impl Iterator<Item = T>,
) -> io::Result<()> {
    write!(out, ",\n{indent}\"{key}\": [")?;
    let mut any = false;
    for row in all {
        out.write_all(if any { b",\n" } else { b"\n" })?;
        write!(out, "{indent} ")?;
        serde_json::to_writer(&mut *out, &row)?;
        any = true;
    }
    if any { write!(out, "\n{indent}]") } else { out.write_all(b"]") }
}

fn member(out: &mut dyn Write, key: &str, value: impl Serialize) -> io::Result<()> {
    write!(out, ", \"{key}\": ")?;
    serde_json::to_writer(&mut *out, &value)?;
    Ok(())
}

fn steps(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let (summary, host) = (&report.summary, report.bound());
    let moments = summary.step_ms;
    write!(out, ",\n \"steps\": {{\"count\": {}", summary.count)?;
    let whole = host.is_none_or(|host| host.whole_capture);
    let origin = host.filter(|host| !host.whole_capture).map_or("none", |host| terms::origin(host.origin));
    member(out, "origin", origin)?;
    let how = host.map_or_else(|| "nothing was recorded".to_owned(), |host| terms::how(&host.how));
    member(out, "how", how)?;
    member(out, "dropped", if whole { 0 } else { summary.dropped })?;
    member(out, "mean_ms", moments.map(|moments| moments.mean))?;
    member(out, "median_ms", moments.map(|moments| moments.median))?;
    member(out, "p90_ms", moments.map(|moments| moments.p90))?;
    member(out, "p99_ms", moments.map(|moments| moments.p99))?;
    member(out, "stddev_ms", moments.and_then(|moments| moments.stddev))?;
    let uneven =
        host.filter(|_| moments.is_some_and(|moments| step_times::median_if_different(&moments).is_some()));
    member(out, "uneven", uneven.and_then(step_times::shape))?;
    let name = host.map_or_else(String::new, |host| terms::step_name(&host.how));
    let counted = host.filter(|_| !whole).into_iter().flat_map(|host| host.counted());
    rows(out, "  ", "per_step", counted.map(|step| Step { step, name: &name }))?;
    out.write_all(b"}")
}

struct Step<'a> {
    step: &'a StepRow,
    name: &'a str,
}

impl Serialize for Step<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(5))?;
        map.serialize_entry("index", &self.step.number)?;
        map.serialize_entry("name", self.name)?;
        map.serialize_entry("start_ms", &self.step.span.start.ms())?;
        map.serialize_entry("duration_ms", &self.step.span.dur().ms())?;
        map.serialize_entry("breakdown", &ByCategory(&self.step.shares))?;
        map.end()
    }
}

struct ByCategory<'a>(&'a Shares);

impl Serialize for ByCategory<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.owners().map(|(category, time)| (category.key(), time.ms())))
    }
}

#[derive(Serialize)]
pub(super) struct Owner {
    category: &'static str,
    ms_per_step: f64,
    fraction: f64,
}

pub(super) fn breakdown(report: &Report) -> impl Iterator<Item = Owner> {
    report.by_share().into_iter().map(|(category, ms_per_step, fraction)| Owner {
        category: category.key(),
        ms_per_step,
        fraction,
    })
}

#[derive(Serialize)]
struct Device<'a> {
    id: String,
    name: &'a str,
    kind: &'static str,
    busy_fraction: Option<f64>,
    steps_seen: usize,
}

/// All devices of all hosts. If there are several hosts, an id starts with its host.
fn devices(report: &Report) -> impl Iterator<Item = Device<'_>> {
    let several = report.summary.hosts.len() > 1;
    report.summary.hosts.iter().flat_map(move |host| {
        host.devices.iter().map(move |device| Device {
            id: if several { format!("{}:{}", host.host, device.id) } else { device.id.clone() },
            name: &device.name,
            kind: terms::device_kind(device.kind),
            busy_fraction: device.busy_fraction,
            steps_seen: device.steps_seen,
        })
    })
}

/// One host's clock. What is unknown is `null`.
#[derive(Serialize)]
struct HostClock<'a> {
    host: &'a str,
    reference: &'a str,
    shift_ms: Option<f64>,
    uncertainty_ms: Option<f64>,
    collectives: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<String>,
}

impl<'a> HostClock<'a> {
    fn of(clocks: &'a Clocks, known: &'a HostOffset) -> Self {
        let offset = known.offset.ok();
        HostClock {
            host: &known.host,
            reference: &clocks.reference,
            shift_ms: offset.and_then(|offset| offset.shift).map(|shift| shift.ms()),
            uncertainty_ms: offset.map(|offset| offset.spread.ms()),
            collectives: offset.map(|offset| offset.matched),
            unknown: known.offset.err().map(terms::unaligned),
        }
    }
}

#[derive(Serialize)]
struct Op<'a> {
    name: &'a str,
    r#type: &'a str,
    r#where: &'static str,
    count: u64,
    total_ms: f64,
    self_ms: f64,
    fraction: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
}

impl<'a> Op<'a> {
    fn of(op: &'a OpRow) -> Self {
        Op {
            name: &op.name,
            r#type: &op.op_type,
            r#where: op.place(),
            count: op.count,
            total_ms: op.total_ms,
            self_ms: op.self_ms,
            fraction: op.fraction,
            label: op.label.as_deref(),
            source: op.source.as_deref(),
        }
    }
}

#[derive(Serialize)]
pub(crate) struct Found<'a> {
    id: &'static str,
    about: &'static str,
    severity: &'static str,
    subject: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<&'a str>,
    fraction: Option<f64>,
    gain_ms_per_step: Option<f64>,
    gain_fraction: Option<f64>,
    confidence: f64,
    summary: String,
    evidence: Vec<String>,
    advice: Vec<String>,
}

impl<'a> Found<'a> {
    pub(crate) fn of(finding: &'a Finding) -> Self {
        let Words { summary, evidence, advice } = finding.words();
        Found {
            id: finding.id(),
            about: finding.rule.about.key(),
            severity: finding.severity.key(),
            subject: finding.subject.as_deref(),
            line: finding.line.as_deref(),
            fraction: finding.fraction,
            gain_ms_per_step: finding.gain_ms,
            gain_fraction: finding.gain_fraction(),
            confidence: finding.confidence,
            summary,
            evidence,
            advice,
        }
    }
}
