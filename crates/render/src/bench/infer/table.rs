//! The rows behind `--json` and `--csv`, and the table of a sweep.

use serde_json::json;

use stepscope_results::load_test::{Arrivals, Broken, Load};
use stepscope_results::table::{Cell, Field, Table, columns};

use super::{Infer, Step, broken, headline, remarks};

/// A measurement, with the size of its requests.
struct Line<'a> {
    step: &'a Step,
    batch: Option<u64>,
}

impl Line<'_> {
    /// Requests per second, and how they are spread.
    fn open(&self) -> Option<(f64, &'static str)> {
        match self.step.load {
            Load::Open { per_second, arrivals: Arrivals::Poisson } => Some((per_second, "poisson")),
            Load::Open { per_second, arrivals: Arrivals::Constant } => Some((per_second, "constant")),
            Load::Closed { .. } => None,
        }
    }

    fn clients(&self) -> Option<usize> {
        match self.step.load {
            Load::Closed { clients } => Some(clients),
            Load::Open { .. } => None,
        }
    }

    fn failed(&self) -> f64 {
        (self.step.requests - self.step.answered) as f64 / self.step.requests.max(1) as f64
    }
}

/// One row per measurement.
pub fn table(infer: &Infer) -> Table {
    let batch = infer.batch;
    let lines: Vec<Line<'_>> = infer.steps.iter().map(|step| Line { step, batch }).collect();
    let mut table = Table::of("bench", &columns(), &lines);
    let open = lines.iter().any(|line| line.open().is_some());
    table.hide(&[if open { "clients" } else { "rate" }]);
    table.headline = Some(headline(infer));
    members(infer, &mut table);
    table
}

fn columns<'a>() -> Vec<Field<Line<'a>>> {
    let mut columns = columns! { line: Line<'a>;
        rate: Short "requests/s" => line.open().map(|(per_second, _)| per_second);
        clients: Count "clients" => line.clients();
        throughput: Short "answers/s" => line.step.throughput;
        examples_per_s.optional: Short "examples/s" => line.batch.map(|batch| line.step.throughput * batch as f64);
        p50_ms: Ms "p50" => line.step.latency.p50;
        p90_ms.optional: Ms "p90" => line.step.latency.p90;
        p95_ms.optional: Ms "p95" => line.step.latency.p95;
        p99_ms: Ms "p99" => line.step.latency.p99;
        p999_ms.optional: Ms "p99.9" => line.step.latency.p999;
        max_ms: Ms "max" => line.step.latency.max;
        failed_fraction: Percent "failed" => line.failed();
        verdict.drawn: Text "" => line.step.broken.map_or("good", broken);
        broken.hidden: Text "broken" => line.step.broken.map(broken_id);
    };
    let more = columns! { line: Line<'a>;
        mean_ms: Ms "mean_ms" => line.step.latency.mean;
        service_p50_ms: Ms "service_p50_ms" => line.step.service.p50;
        service_p90_ms: Ms "service_p90_ms" => line.step.service.p90;
        service_p95_ms: Ms "service_p95_ms" => line.step.service.p95;
        service_p99_ms: Ms "service_p99_ms" => line.step.service.p99;
        service_p999_ms: Ms "service_p999_ms" => line.step.service.p999;
        service_max_ms: Ms "service_max_ms" => line.step.service.max;
        lateness_p50_ms: Ms "lateness_p50_ms" => line.step.lateness.unwrap_or_default().p50;
        lateness_p99_ms: Ms "lateness_p99_ms" => line.step.lateness.unwrap_or_default().p99;
        lateness_max_ms: Ms "lateness_max_ms" => line.step.lateness.unwrap_or_default().max;
        generator_late: Flag "generator_late" => line.step.generator_late;
        generator_cpus: Short "generator_cpus" => line.step.generator_cpus;
        arrivals: Text "arrivals" => line.open().map(|(_, arrivals)| arrivals);
        seconds: Short "seconds" => line.step.seconds;
        warmup_requests: Count "warmup_requests" => line.step.warmup;
        requests: Count "requests" => line.step.requests;
        answered: Count "answered" => line.step.answered;
        errors: Map "errors" => Cell::named(line.step.failures.iter().map(|it| (it.id.clone(), it.count as f64)));
        bytes_in: Bytes "bytes_in" => line.step.bytes_in;
        bytes_out: Bytes "bytes_out" => line.step.bytes_out;
        connections: Count "connections" => line.step.connections;
        closed_after_answer: Count "closed_after_answer" => line.step.closed;
        waited_for_connection: Count "waited_for_connection" => line.step.waited;
    };
    columns.extend(more.into_iter().map(Field::hidden));
    columns
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
