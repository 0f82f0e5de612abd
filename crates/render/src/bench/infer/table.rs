//! The rows behind `--json` and `--csv`, and the table of a sweep.

use serde_json::json;

use stepscope_trace::load_test::{Arrivals, Broken, Load};

use super::{Infer, Step, broken, headline, remarks};
use crate::table::{Cell, Column, Format, Table};

/// One row per measurement.
pub fn table(infer: &Infer) -> Table {
    let mut table = Table::new("bench", columns(infer));
    table.headline = Some(headline(infer));
    for step in &infer.steps {
        table.push(row(infer, step));
    }
    members(infer, &mut table);
    table
}

fn columns(infer: &Infer) -> Vec<Column> {
    let open = infer.steps.iter().any(|step| matches!(step.load, Load::Open { .. }));
    let mut columns = vec![
        Column::new("rate", "requests/s", Format::Short),
        Column::new("clients", "clients", Format::Count),
        Column::new("throughput", "answers/s", Format::Short),
        Column::new("examples_per_s", "examples/s", Format::Short).optional(),
        Column::new("p50_ms", "p50", Format::Ms),
        Column::new("p90_ms", "p90", Format::Ms).optional(),
        Column::new("p95_ms", "p95", Format::Ms).optional(),
        Column::new("p99_ms", "p99", Format::Ms),
        Column::new("p999_ms", "p99.9", Format::Ms).optional(),
        Column::new("max_ms", "max", Format::Ms),
        Column::new("failed_fraction", "failed", Format::Percent),
        Column::new("verdict", "", Format::Text).drawn(),
        Column::new("broken", "broken", Format::Text).hidden(),
    ];
    if let Some(other) = columns.get_mut(usize::from(open)) {
        other.hidden = true;
    }
    let more = [
        ("mean_ms", Format::Ms),
        ("service_p50_ms", Format::Ms),
        ("service_p90_ms", Format::Ms),
        ("service_p95_ms", Format::Ms),
        ("service_p99_ms", Format::Ms),
        ("service_p999_ms", Format::Ms),
        ("service_max_ms", Format::Ms),
        ("lateness_p50_ms", Format::Ms),
        ("lateness_p99_ms", Format::Ms),
        ("lateness_max_ms", Format::Ms),
        ("generator_late", Format::Text),
        ("generator_cpus", Format::Short),
        ("arrivals", Format::Text),
        ("seconds", Format::Short),
        ("warmup_requests", Format::Count),
        ("requests", Format::Count),
        ("answered", Format::Count),
        ("errors", Format::Text),
        ("bytes_in", Format::Bytes),
        ("bytes_out", Format::Bytes),
        ("connections", Format::Count),
        ("closed_after_answer", Format::Count),
        ("waited_for_connection", Format::Count),
    ];
    columns.extend(more.map(|(key, format)| Column::new(key, key, format).hidden()));
    columns
}

fn row(infer: &Infer, step: &Step) -> Vec<Cell> {
    let (per_second, arrivals, clients) = match step.load {
        Load::Open { per_second, arrivals: Arrivals::Poisson } => (Some(per_second), Some("poisson"), None),
        Load::Open { per_second, arrivals: Arrivals::Constant } => (Some(per_second), Some("constant"), None),
        Load::Closed { clients } => (None, None, Some(clients as u64)),
    };
    let (it, service, late) = (&step.latency, &step.service, step.lateness.unwrap_or_default());
    let errors = step.failures.iter().map(|it| (it.id.clone(), it.count as f64)).collect();
    vec![
        per_second.into(),
        clients.into(),
        step.throughput.into(),
        infer.batch.map(|batch| step.throughput * batch as f64).into(),
        it.p50.into(),
        it.p90.into(),
        it.p95.into(),
        it.p99.into(),
        it.p999.into(),
        it.max.into(),
        ((step.requests - step.answered) as f64 / step.requests.max(1) as f64).into(),
        step.broken.map_or("good", broken).into(),
        step.broken.map(broken_id).into(),
        it.mean.into(),
        service.p50.into(),
        service.p90.into(),
        service.p95.into(),
        service.p99.into(),
        service.p999.into(),
        service.max.into(),
        late.p50.into(),
        late.p99.into(),
        late.max.into(),
        step.generator_late.into(),
        step.generator_cpus.into(),
        arrivals.into(),
        step.seconds.into(),
        step.warmup.into(),
        step.requests.into(),
        step.answered.into(),
        Cell::Map(errors),
        step.bytes_in.into(),
        step.bytes_out.into(),
        step.connections.into(),
        step.closed.into(),
        step.waited.into(),
    ]
}

fn members(infer: &Infer, table: &mut Table) {
    table.member("bench", "infer");
    table.member("url", infer.url.as_str());
    table.member("protocol", infer.protocol);
    table.member("batch", infer.batch);
    table.member("first_request_ms", infer.first_ms);
    table.member("timeout_ms", infer.timeout_ms);
    table.member("stopped_early", infer.steps.iter().any(|step| step.stopped));
    table.member("promise", infer.promise.as_deref());
    if let Some(swept) = infer.swept {
        table.member("knee_row", swept.knee);
        table.member("highest_row", swept.highest);
    } else if let [step] = &infer.steps[..] {
        let bins = step.histogram.iter();
        let bins = bins.map(|bin| json!({"from_ms": bin.from_ms, "to_ms": bin.to_ms, "count": bin.count}));
        table.member("histogram", bins.collect::<Vec<_>>());
    }
    for remark in remarks(infer) {
        table.note(remark);
    }
}

fn broken_id(broken: Broken) -> &'static str {
    match broken {
        Broken::Failures => "failures",
        Broken::Throughput => "throughput",
        Broken::NoGain => "no-gain",
        Broken::Promise => "promise",
        Broken::Unknown => "unknown",
        Broken::Generator => "generator",
        Broken::Busy => "busy",
    }
}
