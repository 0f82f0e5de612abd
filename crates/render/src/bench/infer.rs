//! A model server under load, as text, tables and a histogram.

mod table;

use std::io::{self, Write};

use stepscope_results::load_test::{Broken, Load};

use super::{Bin, rate, write_histogram, write_rows};
use crate::format::{UNKNOWN, bytes, duration_ms, percent, plural, printable, short, thousands};
use crate::style::Style;

pub use table::table;

/// Figures of one distribution, in milliseconds. `None` if there are too few values to estimate a figure.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Percentiles {
    /// Number of values.
    pub count: u64,
    /// The arithmetic mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90 % are below.
    pub p90: Option<f64>,
    /// 95 % are below.
    pub p95: Option<f64>,
    /// 99 % are below.
    pub p99: Option<f64>,
    /// 99.9 % are below.
    pub p999: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
}

/// Requests that failed in the same way.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Public id: `refused`, `timeout`, `status-503`, …
    pub id: String,
    /// How many.
    pub count: u64,
    /// Message of the server or the system; may be empty.
    pub said: String,
}

/// One measurement.
#[derive(Clone, Debug)]
pub struct Step {
    /// The load.
    pub load: Load,
    /// Duration of the measurement, in seconds.
    pub seconds: f64,
    /// Number of warm-up requests.
    pub warmup: u64,
    /// Number of counted requests.
    pub requests: u64,
    /// Requests with a successful answer.
    pub answered: u64,
    /// Answers per second.
    pub throughput: f64,
    /// Time from due (open loop) or sent (closed loop) to answered.
    pub latency: Percentiles,
    /// Time from sent to answered.
    pub service: Percentiles,
    /// Time from due until the generator handled the request; open loop only.
    pub lateness: Option<Percentiles>,
    /// True if delays in the generator distort the figures.
    pub generator_late: bool,
    /// Requests that found all connections in use.
    pub waited: u64,
    /// The failures.
    pub failures: Vec<Failure>,
    /// Bytes of bodies received.
    pub bytes_in: u64,
    /// Bytes of bodies sent.
    pub bytes_out: u64,
    /// Connections opened.
    pub connections: u64,
    /// Number of answers after which the server closed the connection.
    pub closed: u64,
    /// Average number of processors that the generator used.
    pub generator_cpus: f64,
    /// True if the measurement ended early.
    pub stopped: bool,
    /// Why the load is not sustainable; only in a sweep.
    pub broken: Option<Broken>,
    /// Histogram of the latencies.
    pub histogram: Vec<Bin>,
}

/// Result of a sweep, as indices of its measurements.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// The load with the best ratio of throughput to latency.
    pub knee: Option<usize>,
    /// The highest sustainable load.
    pub highest: Option<usize>,
}

/// Everything that was measured about a server.
#[derive(Clone, Debug)]
pub struct Infer {
    /// The address.
    pub url: String,
    /// `tensorflow-serving`, `kserve-v2` or `http`.
    pub protocol: &'static str,
    /// Examples per request.
    pub batch: Option<u64>,
    /// Duration of the first request, in milliseconds.
    pub first_ms: f64,
    /// Timeout of a request, in milliseconds.
    pub timeout_ms: f64,
    /// Number of requests needed to estimate p99.9.
    pub needed_for_p999: u64,
    /// The measurements, ordered by load in a sweep.
    pub steps: Vec<Step>,
    /// Result of the sweep, if there was one.
    pub swept: Option<Swept>,
    /// The SLO as given: `p99=50ms`.
    pub promise: Option<String>,
}

/// Text for a kind of failure.
pub fn failure(id: &str) -> String {
    match id {
        "refused" => "connection refused".to_owned(),
        "unreachable" => "server not reachable".to_owned(),
        "timeout" => "no answer in time".to_owned(),
        "unfinished" => "not answered when the measurement ended".to_owned(),
        "closed" => "connection closed before the answer was complete".to_owned(),
        "protocol" => "answer is not HTTP".to_owned(),
        "too-large" => "answer larger than 256 MB".to_owned(),
        "body" => "the answer reports an error".to_owned(),
        "backlog" => "never sent: too many requests were already waiting".to_owned(),
        status => status.replacen("status-", "HTTP status ", 1),
    }
}

/// Writes the text.
pub fn write_text(infer: &Infer, style: Style, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", style.bold(&headline(infer)))?;
    writeln!(out, "{}\n", style.dim(&about(infer)))?;
    let ([step], None) = (&infer.steps[..], infer.swept) else {
        let mut rows = table(infer);
        rows.headline = None;
        return write_rows(&rows, style, out);
    };
    write_step(step, style, out)?;
    let remarks = remarks(infer);
    if !remarks.is_empty() {
        writeln!(out)?;
    }
    remarks.iter().try_for_each(|remark| writeln!(out, "{remark}"))
}

/// The result in one line.
pub fn headline(infer: &Infer) -> String {
    match (infer.swept, &infer.steps[..]) {
        (Some(swept), steps) => swept_headline(infer, swept, steps),
        (None, [step, ..]) => step_headline(infer, step),
        (None, []) => "nothing was measured".to_owned(),
    }
}

fn step_headline(infer: &Infer, step: &Step) -> String {
    let latency = &step.latency;
    let figure = |name: &str, ms: Option<f64>| ms.map(|ms| format!("{name} {}", duration_ms(ms)));
    let times = [figure("p50", latency.p50), figure("p99", latency.p99), figure("max", latency.max)];
    let times: Vec<String> = times.into_iter().flatten().collect();
    let failed = step.requests - step.answered;
    let failed = match failed {
        0 => "no errors".to_owned(),
        failed => format!("{} of {} failed", thousands(failed), thousands(step.requests)),
    };
    let late =
        if step.generator_late && !keeps_up(step) { " (this machine could not send faster)" } else { "" };
    format!("{}{late}: {}; {failed}", offered(infer, step), times.join(", "))
}

/// Whether answers come as fast as requests were due.
fn keeps_up(step: &Step) -> bool {
    match step.load {
        Load::Open { per_second, .. } => step.throughput >= 0.95 * per_second,
        Load::Closed { .. } => true,
    }
}

fn offered(infer: &Infer, step: &Step) -> String {
    let examples = infer
        .batch
        .map_or(String::new(), |batch| format!(", {} examples/s", rate(step.throughput * batch as f64)));
    match step.load {
        Load::Open { .. } if keeps_up(step) => {
            format!("{} requests/s{examples}", rate(step.throughput))
        }
        Load::Open { per_second, .. } => {
            format!("{} of {} requests/s answered{examples}", rate(step.throughput), rate(per_second))
        }
        Load::Closed { clients } => {
            format!(
                "{} requests/s{examples} with {}",
                rate(step.throughput),
                plural(clients as u64, "client", "clients")
            )
        }
    }
}

fn load(load: Load) -> String {
    match load {
        Load::Open { per_second, .. } => format!("{} requests/s", rate(per_second)),
        Load::Closed { clients } => plural(clients as u64, "client", "clients"),
    }
}

fn swept_headline(infer: &Infer, swept: Swept, steps: &[Step]) -> String {
    let step = |place: Option<usize>| place.and_then(|place| steps.get(place));
    let knee = match (step(swept.knee), step(swept.highest)) {
        (Some(knee), Some(highest)) if knee.load != highest.load => {
            format!("; the knee is at {}", load(knee.load))
        }
        _ => String::new(),
    };
    let keeps = match &infer.promise {
        Some(promise) => format!("meets {promise} up to"),
        None if steps.iter().any(|step| matches!(step.load, Load::Closed { .. })) => {
            "throughput increases up to".to_owned()
        }
        None => "keeps up with".to_owned(),
    };
    match step(swept.highest) {
        Some(highest) if steps.iter().all(|step| step.broken.is_none()) => {
            format!("{keeps} {} and beyond: no limit reached", load(highest.load))
        }
        Some(highest) => {
            let answers = format!("{} answers/s", rate(highest.throughput));
            let p99 = highest.latency.p99.map_or(String::new(), |ms| format!(", p99 {}", duration_ms(ms)));
            // The steps are ordered by load.
            let next = steps.iter().skip(swept.highest.unwrap_or(0) + 1).find_map(|step| step.broken);
            let ours = match next {
                Some(Broken::Generator | Broken::Busy) => {
                    "; beyond that, this machine is the limit, not the server"
                }
                _ => "",
            };
            format!("{keeps} {} ({answers}{p99}){knee}{ours}", load(highest.load))
        }
        None => match steps.first().map(|step| (step.load, step.broken)) {
            Some((first, Some(why))) => format!("fails already at {}: {}", load(first), broken(why)),
            _ => "nothing was measured".to_owned(),
        },
    }
}

fn broken(broken: Broken) -> &'static str {
    match broken {
        Broken::Failures => "errors",
        Broken::Throughput => "answers fall behind",
        Broken::NoGain => "no throughput gain",
        Broken::Promise => "SLO missed",
        Broken::Unknown => "too few requests",
        Broken::Generator => "this machine could not send faster",
        Broken::Busy => "this machine was too busy",
    }
}

fn about(infer: &Infer) -> String {
    let server = match infer.protocol {
        "tensorflow-serving" => "TensorFlow Serving protocol",
        "kserve-v2" => "KServe v2 protocol",
        _ => "plain HTTP",
    };
    let batch = infer.batch.map(|batch| format!(", {} per request", plural(batch, "example", "examples")));
    let (batch, first) = (batch.unwrap_or_default(), duration_ms(infer.first_ms));
    format!("{}: {server}{batch}; the first request took {first}", printable(&infer.url))
}

/// Column widths for row names and figures. Times of different magnitude share a row, each in its own unit.
const WIDTH: usize = 28;
const CELL: usize = 10;

fn cells(texts: [String; 7]) -> String {
    texts.iter().map(|text| format!("{text:>CELL$}")).collect()
}

fn write_step(step: &Step, style: Style, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<WIDTH$}{}",
        "",
        cells(["p50", "p90", "p95", "p99", "p99.9", "max", "mean"].map(str::to_owned))
    )?;
    let open = matches!(step.load, Load::Open { .. });
    let rows = [
        (if open { "latency, from due time" } else { "latency, from send time" }, Some(&step.latency)),
        ("service time, from send time", Some(&step.service).filter(|_| open)),
        ("delay in this generator", step.lateness.as_ref()),
    ];
    for (name, figures) in rows {
        let Some(it) = figures else { continue };
        let values = [it.p50, it.p90, it.p95, it.p99, it.p999, it.max, it.mean];
        writeln!(
            out,
            "{name:<WIDTH$}{}",
            cells(values.map(|ms| ms.map_or(UNKNOWN.to_owned(), duration_ms)))
        )?;
    }
    writeln!(out)?;
    write_histogram(&step.histogram, style, out)?;
    writeln!(out, "\n{}", amounts(step))?;
    for failure in &step.failures {
        writeln!(out, "{}", failed(failure, step.requests))?;
    }
    Ok(())
}

/// Amount of data sent and received, and the number of connections.
fn amounts(step: &Step) -> String {
    let requests = plural(step.requests, "request", "requests");
    let warmup = if step.warmup > 0 {
        format!(" after {}", plural(step.warmup, "warm-up request", "warm-up requests"))
    } else {
        String::new()
    };
    let connections = match step.connections {
        0 => "over existing connections".to_owned(),
        opened => format!("over {}", plural(opened, "new connection", "new connections")),
    };
    format!(
        "{requests} in {} s{warmup}, {connections}; {} sent, {} received; the generator used {} of a processor",
        short(step.seconds),
        bytes(step.bytes_out as f64),
        bytes(step.bytes_in as f64),
        percent(step.generator_cpus),
    )
}

fn failed(failure: &Failure, requests: u64) -> String {
    let share = percent(failure.count as f64 / requests.max(1) as f64);
    let words = self::failure(&failure.id);
    let said: String = printable(&failure.said).chars().take(120).collect();
    let said = if said.is_empty() { said } else { format!(": {said}") };
    format!("failed: {} ({share}) {words}{said}", thousands(failure.count))
}

/// Explains why requests were sent late, and what to do.
fn sent_late(step: &Step) -> String {
    let late = step.lateness.and_then(|late| late.p90).map_or(UNKNOWN.to_owned(), duration_ms);
    let (cause, less) = match keeps_up(step) && step.generator_cpus < 0.5 {
        true => ("This machine is busy with other work", ""),
        false => ("This machine could not send faster", ", or reduce the load"),
    };
    format!(
        "{cause}: at {}, one request in ten was sent at least {late} late, which counts as latency. Use an idle \
         machine{less}.",
        load(step.load)
    )
}

/// Notes on the figures, one sentence each.
fn remarks(infer: &Infer) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut say = |when: bool, what: String| {
        if when {
            remarks.push(what);
        }
    };
    let any = |test: &dyn Fn(&Step) -> bool| infer.steps.iter().any(test);
    say(any(&|step| step.stopped), "Ended early: these are the results so far.".to_owned());
    if let Some(step) = infer.steps.iter().find(|step| step.generator_late) {
        say(true, sent_late(step));
    }
    let timed_out =
        |step: &Step| step.failures.iter().any(|it| matches!(it.id.as_str(), "timeout" | "unfinished"));
    say(
        any(&timed_out),
        format!(
            "Unanswered requests count in the latencies with the time waited (up to {}): the real latency is even \
             higher.",
            duration_ms(infer.timeout_ms)
        ),
    );
    let longest = infer.steps.iter().map(|step| step.latency.count).max().unwrap_or(0);
    say(
        longest > 0 && any(&|step| step.latency.p999.is_none()) && infer.swept.is_none(),
        format!(
            "{} too few for p99.9, which needs {}: use a longer --duration.",
            plural(longest, "answer is", "answers are"),
            thousands(infer.needed_for_p999)
        ),
    );
    let closed = any(&|step| matches!(step.load, Load::Closed { .. }));
    say(
        closed && infer.swept.is_none(),
        "Waiting clients send nothing, so a server stall counts only once per client. --rate N keeps sending and \
         shows the stall."
            .to_owned(),
    );
    let each = |step: &Step| step.closed * 2 > step.requests && step.requests > 0;
    say(
        any(&each),
        "The server closes the connection after each answer, so every request opens a new one. Turn keep-alive on."
            .to_owned(),
    );
    let waited: u64 = infer.steps.iter().map(|step| step.waited).sum();
    say(
        waited > 0 && !closed,
        format!(
            "{} had to wait for a free connection (--connections).",
            plural(waited, "request", "requests")
        ),
    );
    remarks
}
