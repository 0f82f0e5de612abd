//! `stepscope bench infer`: a model server under load.

use std::path::Path;
use std::time::Duration;

use clap::{Args, ValueEnum};
use stepscope_capture::bench::infer::sweep::{self, Promise, Step, Sweep};
use stepscope_capture::bench::infer::{
    Arrivals, Client, Failure as Kind, Fault, First, Limits, Load, Outcome, Plan, Protocol, Target,
};
use stepscope_capture::bench::{Distribution, Stop, needed_for};
use stepscope_read::files;
use stepscope_render::bench::{Bin, infer as render};
use stepscope_render::format::plural;
use stepscope_session::{Cause, Problem};

use crate::exit::Exit;

use super::{FormArgs, Watched, problem, quantity, stop_on_interrupt};
use crate::failure::Failure;
use crate::output::Terminal;
use crate::quantity::{duration, some_time};

/// Largest body of a request, in bytes.
const LARGEST_BODY: u64 = 1 << 30;

/// Rows in the histogram.
const ROWS: usize = 16;
/// The first request to a server may fail while it starts up.
const TRIES: usize = 3;
/// Longest wait for the last answers of one measurement in a sweep.
const SWEEP_DRAIN: Duration = Duration::from_secs(2);

/// Measure a model server: latency, throughput, errors, and the load it can take.
///
/// Supports TensorFlow Serving (/v1/models/M:predict), KServe v2 (/v2/models/M/infer, e.g. Triton) and any
/// other server that speaks unencrypted HTTP.
///
/// With --rate, each request is sent at its due time even if earlier ones are still unanswered, and latency
/// counts from the due time: a server stall shows in every request that it delayed. With --concurrency, each of
/// N clients waits for its answer before it sends the next request. Ctrl-C shows the results so far.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope bench infer http://localhost:8501/v1/models/m:predict --body request.json --rate 100\n  \
    stepscope bench infer http://localhost:8000/v2/models/m/infer --body request.json --concurrency 8\n  \
    stepscope bench infer URL --body '{\"instances\": [[1.0, 2.0]]}' --rate 200 --arrivals poisson --duration 60s\n  \
    stepscope bench infer URL --body request.json --sweep --slo p99=50ms      the highest rate that meets the SLO\n  \
    stepscope bench infer URL --body request.json --concurrency 1 --sweep     where more clients stop helping")]
pub(super) struct InferArgs {
    /// Address of the server: http://HOST:PORT/PATH.
    #[arg(value_name = "URL")]
    url: String,
    /// Request body: a file, or the text itself if it starts with { or [.
    #[arg(long, value_name = "FILE|JSON")]
    body: Option<String>,
    /// A header, e.g. 'Authorization: Bearer x'; repeatable.
    #[arg(long, value_name = "NAME:VALUE", value_parser = quantity::header)]
    header: Vec<(String, String)>,
    /// HTTP method [default: POST with a body, GET without].
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,
    /// Requests per second (open loop) [default: 10].
    #[arg(long, value_name = "N", value_parser = quantity::rate, conflicts_with = "concurrency")]
    rate: Option<f64>,
    /// Spread of requests over time: at equal intervals, or at random as from many clients.
    #[arg(long, value_enum, default_value = "constant", value_name = "HOW")]
    arrivals: ArrivalsArg,
    /// Number of clients that each wait for their answer (closed loop).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    concurrency: Option<u16>,
    /// How long to measure; in a sweep, for each load.
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    duration: Option<Duration>,
    /// Send uncounted requests for this long first.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    warmup: Duration,
    /// Give up on a request after this time.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = some_time)]
    timeout: Duration,
    /// Maximum number of open connections.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u16).range(1..=16384))]
    connections: u16,
    /// Raise the load until latency or errors exceed their limits, or measure at these rates or client counts.
    #[arg(long, value_name = "N,N,…", num_args = 0..=1, require_equals = true, value_delimiter = ',', value_parser = quantity::rate)]
    sweep: Option<Vec<f64>>,
    /// SLO to meet: p99=50ms, max=1s; repeatable. With it, a sweep finds the highest load.
    #[arg(long, value_name = "PERCENTILE=TIME", value_delimiter = ',', value_parser = quantity::promise, requires = "sweep")]
    slo: Vec<Promise>,
    #[command(flatten)]
    form: FormArgs,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum ArrivalsArg {
    Constant,
    Poisson,
}

impl InferArgs {
    pub(super) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        let target =
            Target::new(&self.url, self.method.as_deref(), &self.header, self.body()?).map_err(problem)?;
        let connections = usize::from(self.connections.max(self.concurrency.unwrap_or(1)));
        let client = Client::new(&target, Limits { timeout: self.timeout, connections }).map_err(problem)?;
        let first = first(&client).map_err(|fault| no_answer(&self.url, &fault))?;
        let stop = stop_on_interrupt()?;
        let steps = self.measure(&client, &stop);
        if let Some(problem) = nothing_answered(&self.url, &steps) {
            return Err(problem.into());
        }
        let infer = self.figures(&target, &first, &steps);
        self.form.write(
            terminal,
            || render::table(&infer),
            |out| render::write_text(&infer, terminal.out, out),
        )?;
        Ok(Exit::Done)
    }

    fn body(&self) -> Result<Vec<u8>, Failure> {
        let Some(body) = &self.body else { return Ok(Vec::new()) };
        if body.trim_start().starts_with(['{', '[']) {
            return Ok(body.clone().into_bytes());
        }
        files::read_at_most(Path::new(body), LARGEST_BODY).map_err(|error| {
            Problem::new(Cause::Nothing, format!("cannot read {body}"))
                .then(error.to_string())
                .then("give a file name, or the JSON itself in quotes")
                .into()
        })
    }

    fn load(&self) -> Load {
        match self.concurrency {
            Some(clients) => Load::Closed { clients: usize::from(clients) },
            None => {
                let arrivals = match self.arrivals {
                    ArrivalsArg::Constant => Arrivals::Constant,
                    ArrivalsArg::Poisson => Arrivals::Poisson,
                };
                Load::Open { per_second: self.rate.unwrap_or(10.0), arrivals }
            }
        }
    }

    fn measure(&self, client: &Client, stop: &Stop) -> Vec<Step> {
        let swept = self.sweep.is_some();
        let duration = self.duration.unwrap_or(Duration::from_secs(if swept { 5 } else { 10 }));
        let drain = if swept { SWEEP_DRAIN } else { self.timeout };
        let first = Plan { load: self.load(), warmup: self.warmup, duration, drain };
        let watched = Watched::new();
        let told = |load: Load| {
            watched.say(match load {
                Load::Open { per_second, .. } => format!("sending {per_second:.0} requests per second"),
                Load::Closed { clients } => {
                    format!("sending from {}", plural(clients as u64, "client", "clients"))
                }
            });
        };
        let Some(loads) = &self.sweep else {
            told(first.load);
            return vec![Step { outcome: client.run(&first, stop), broken: None }];
        };
        let plan = Sweep { first, loads: loads.clone(), promises: self.slo.clone() };
        let mut steps = sweep::sweep(client, &plan, stop, &told);
        let amount = |step: &Step| sweep::amount(step.outcome.load);
        steps.sort_by(|a, b| amount(a).total_cmp(&amount(b)));
        steps
    }

    fn figures(&self, target: &Target, first: &First, steps: &[Step]) -> render::Infer {
        let protocol = match target.protocol(Some(&first.reply.start)) {
            Protocol::V1 => "tensorflow-serving",
            Protocol::V2 => "kserve-v2",
            Protocol::Plain => "http",
        };
        let promise = |it: &Promise| {
            let which = if it.percentile >= 1.0 {
                "max".to_owned()
            } else {
                format!("p{}", short(it.percentile * 100.0))
            };
            format!("{which}={}", short_time(it.limit))
        };
        let promises: Vec<String> = self.slo.iter().map(promise).collect();
        render::Infer {
            url: target.url.clone(),
            protocol,
            batch: target.batch(),
            first_ms: ms(first.took),
            timeout_ms: ms(self.timeout),
            needed_for_p999: needed_for(0.999),
            steps: steps.iter().map(step).collect(),
            swept: self
                .sweep
                .is_some()
                .then(|| render::Swept { knee: sweep::knee(steps), highest: sweep::highest(steps) }),
            promise: (!promises.is_empty()).then(|| promises.join(", ")),
        }
    }
}

/// Uses as few digits as needed: 99, 99.9.
fn short(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn short_time(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{}ms", short(ms(time)))
    } else {
        format!("{}s", short(time.as_secs_f64()))
    }
}

fn first(client: &Client) -> Result<First, Fault> {
    let mut tried = client.first();
    for _ in 1..TRIES {
        // If nothing listens, or there is no answer for the whole timeout, retrying at once does not help.
        if !matches!(&tried, Err(fault) if !matches!(fault.failure, Kind::Refused | Kind::Timeout)) {
            break;
        }
        tried = client.first();
    }
    tried
}

fn no_answer(url: &str, fault: &Fault) -> Failure {
    let words = render::failure(&id(fault.failure));
    let said = if fault.said.is_empty() { words } else { format!("{words}: {}", fault.said) };
    let what = match fault.failure {
        Kind::Refused | Kind::Unreachable => "start the server, or check the host and port",
        Kind::Timeout => "check that the server is running, or raise --timeout",
        Kind::Status(404) => "check the path and the model name",
        Kind::Status(405) => "check --method and the path",
        Kind::Status(400) | Kind::Body => "check --body: the server rejects it",
        Kind::Status(401 | 403) => "pass the server's credentials with --header",
        _ => "check the URL, and the server's log",
    };
    Problem::new(Cause::Nothing, format!("no successful answer from {url}")).then(said).then(what).into()
}

/// Returns an error if no request succeeded: there is no figure to show.
fn nothing_answered(url: &str, steps: &[Step]) -> Option<Problem> {
    let outcomes = || steps.iter().map(|step| &step.outcome);
    if outcomes().any(|outcome| outcome.answered > 0) {
        return None;
    }
    let requests: u64 = outcomes().map(|outcome| outcome.requests).sum();
    let kinds: Vec<String> = outcomes()
        .flat_map(|outcome| &outcome.failures)
        .map(|(kind, failures)| format!("{} × {}", failures.count, render::failure(&id(*kind))))
        .collect();
    let found = match (requests, outcomes().any(|outcome| outcome.stopped)) {
        (0, true) => "the measurement ended during the warm-up".to_owned(),
        (0, false) => "the duration was too short for a request".to_owned(),
        _ => format!("of {requests} requests: {}", kinds.join(", ")),
    };
    Some(
        Problem::new(Cause::Nothing, format!("no request to {url} succeeded"))
            .then(found)
            .then("check the server's log, or try a lower --rate or a longer --duration or --timeout"),
    )
}

fn step(step: &Step) -> render::Step {
    let outcome: &Outcome = &step.outcome;
    let all = outcome.elapsed.as_secs_f64().max(outcome.window.as_secs_f64());
    render::Step {
        load: outcome.load,
        seconds: outcome.window.as_secs_f64(),
        warmup: outcome.warmup,
        requests: outcome.requests,
        answered: outcome.answered,
        throughput: outcome.throughput(),
        latency: percentiles(&outcome.latency),
        service: percentiles(&outcome.service),
        lateness: matches!(outcome.load, Load::Open { .. }).then(|| percentiles(&outcome.lateness)),
        generator_late: outcome.generator_late(),
        waited: outcome.waited,
        failures: outcome
            .failures
            .iter()
            .map(|(kind, it)| render::Failure { id: id(*kind), count: it.count, said: it.said.clone() })
            .collect(),
        bytes_in: outcome.bytes_in,
        bytes_out: outcome.bytes_out,
        connections: outcome.connections,
        closed: outcome.closed,
        generator_cpus: outcome.cpu.as_secs_f64() / all.max(f64::MIN_POSITIVE),
        stopped: outcome.stopped,
        broken: step.broken,
        histogram: outcome
            .latency
            .histogram(ROWS)
            .iter()
            .map(|bin| Bin { from_ms: ms(bin.from), to_ms: ms(bin.to), count: bin.count })
            .collect(),
    }
}

fn percentiles(values: &Distribution) -> render::Percentiles {
    let at = |q: f64| values.percentile(q).map(ms);
    render::Percentiles {
        count: values.count(),
        mean: values.mean().map(ms),
        p50: at(0.5),
        p90: at(0.9),
        p95: at(0.95),
        p99: at(0.99),
        p999: at(0.999),
        max: values.most().map(ms),
    }
}

/// The public name of a kind of failure.
fn id(failure: Kind) -> String {
    match failure {
        Kind::Refused => "refused".to_owned(),
        Kind::Unreachable => "unreachable".to_owned(),
        Kind::Timeout => "timeout".to_owned(),
        Kind::Unfinished => "unfinished".to_owned(),
        Kind::Closed => "closed".to_owned(),
        Kind::Protocol => "protocol".to_owned(),
        Kind::TooLarge => "too-large".to_owned(),
        Kind::Status(code) => format!("status-{code}"),
        Kind::Body => "body".to_owned(),
        Kind::Backlog => "backlog".to_owned(),
    }
}

pub(super) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
