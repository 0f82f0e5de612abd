//! Rising load until the server breaks: the knee, and the highest load that keeps a promise.
//!
//! The load grows by a fixed factor until a measurement is bad, twice in a row where only the latency is; then the
//! gap between the last good and the first bad load is halved a few times.

use std::time::Duration;

use super::{Arrivals, Client, Load, Outcome, Plan};
use crate::bench::Stop;

/// A larger share of failures is never good.
pub const MOST_FAILED: f64 = 0.01;
/// An open loop that gets fewer answers a second than this share of what it asks for is beyond what the server can do.
pub const LEAST_KEPT: f64 = 0.95;
/// From one rate to the next.
const FACTOR: f64 = 1.5;
/// More clients by this factor must bring more throughput by `LEAST_GAIN`; else they only wait for each other.
const MORE_CLIENTS: usize = 2;
const LEAST_GAIN: f64 = 1.05;
/// How often the gap is halved: the answer is then within 10 % of the truth.
const HALVINGS: usize = 3;
/// No server gets so far.
const MOST_STEPS: usize = 40;
const MOST_CLIENTS: usize = 4096;

/// What is promised: a percentile of the latency below a limit.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Promise {
    /// Which percentile, from 0 to 1; 1 is the largest value.
    pub percentile: f64,
    /// No more than this.
    pub limit: Duration,
}

/// Why a measurement is not a good one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Too many requests failed.
    Failures,
    /// Answers do not keep up with the requests.
    Throughput,
    /// More clients bring no more answers.
    NoGain,
    /// A promise was broken.
    Promise,
    /// Too few requests to tell whether the promise was kept.
    Unknown,
    /// The generator could not keep up: says nothing of the server.
    Generator,
    /// The promise was broken while this machine was busy with other things: says nothing of the server either.
    Busy,
}

/// One measurement of a sweep.
#[derive(Clone, Debug)]
pub struct Step {
    /// What was measured.
    pub outcome: Outcome,
    /// Why it is not good; `None` where it is.
    pub broken: Option<Broken>,
}

/// What is swept.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The first load; the others follow from it.
    pub first: Plan,
    /// These loads instead: rates a second, or numbers of clients.
    pub loads: Vec<f64>,
    /// What must hold.
    pub promises: Vec<Promise>,
}

/// Measures with rising load, in the order in which it was done. `told` is called before each measurement.
pub fn sweep(client: &Client, sweep: &Sweep, stop: &Stop, told: &dyn Fn(Load)) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let measure = |load: Load, steps: &mut Vec<Step>| -> Option<Broken> {
        told(load);
        let measured = || client.run(&Plan { load, ..sweep.first }, stop);
        let mut outcome = measured();
        let mut broken = judge(&outcome, &sweep.promises, steps);
        // A hiccup of this machine says nothing of the server; the same again is no hiccup.
        if matches!(broken, Some(Broken::Generator | Broken::Busy)) && !stop.is_wished() {
            outcome = measured();
            broken = judge(&outcome, &sweep.promises, steps);
        }
        steps.push(Step { outcome, broken });
        broken
    };
    if !sweep.loads.is_empty() {
        let mut loads = sweep.loads.iter().map(|amount| with_amount(sweep.first.load, *amount));
        while let Some(load) = loads.next().filter(|_| !stop.is_wished()) {
            measure(load, &mut steps);
        }
        return steps;
    }
    let (mut load, mut good, mut soft) = (sweep.first.load, None, 0);
    let bad = loop {
        let broken = measure(load, &mut steps);
        match broken {
            _ if stop.is_wished() || steps.len() >= MOST_STEPS => return steps,
            None => (good, soft) = (Some(load), 0),
            Some(Broken::Unknown | Broken::Busy) => {}
            // A latency can be bad by chance, on a busy machine above all.
            Some(Broken::Promise | Broken::NoGain) if soft == 0 => soft += 1,
            Some(_) => break load,
        }
        match next(load) {
            Some(more) => load = more,
            None => return steps,
        }
    };
    let (Some(mut good), mut bad) = (good, bad) else { return steps };
    for _ in 0..HALVINGS {
        let Some(middle) = between(good, bad).filter(|_| !stop.is_wished()) else { break };
        match measure(middle, &mut steps) {
            None => good = middle,
            Some(_) => bad = middle,
        }
    }
    steps
}

/// The step with the most throughput for its latency (Kleinrock's power): beyond it, latency grows faster than
/// throughput. `None` where no step is good.
pub fn knee(steps: &[Step]) -> Option<usize> {
    let power = |step: &Step| {
        let latency = step.outcome.latency.mean()?.as_secs_f64();
        (latency > 0.0).then(|| step.outcome.throughput() / latency)
    };
    let counts =
        |step: &Step| !matches!(step.broken, Some(Broken::Failures | Broken::Generator | Broken::Busy));
    let powers = steps.iter().enumerate().filter(|(_, step)| counts(step));
    powers
        .filter_map(|(place, step)| Some((place, power(step)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|it| it.0)
}

/// The step with the highest load that is good.
pub fn highest(steps: &[Step]) -> Option<usize> {
    let good = steps.iter().enumerate().filter(|(_, step)| step.broken.is_none());
    good.max_by(|a, b| amount(a.1.outcome.load).total_cmp(&amount(b.1.outcome.load))).map(|(place, _)| place)
}

/// Requests a second, or clients.
pub fn amount(load: Load) -> f64 {
    match load {
        Load::Open { per_second, .. } => per_second,
        Load::Closed { clients } => clients as f64,
    }
}

fn with_amount(load: Load, amount: f64) -> Load {
    match load {
        Load::Open { arrivals, .. } => Load::Open { per_second: amount, arrivals },
        Load::Closed { .. } => Load::Closed { clients: (amount as usize).clamp(1, MOST_CLIENTS) },
    }
}

fn next(load: Load) -> Option<Load> {
    match load {
        Load::Open { per_second, arrivals } => Some(Load::Open { per_second: per_second * FACTOR, arrivals }),
        Load::Closed { clients } => {
            let clients = clients * MORE_CLIENTS;
            (clients <= MOST_CLIENTS).then_some(Load::Closed { clients })
        }
    }
}

fn between(good: Load, bad: Load) -> Option<Load> {
    let (low, high) = (amount(good), amount(bad));
    let middle = match good {
        Load::Open { .. } => (low * high).sqrt(),
        Load::Closed { .. } => f64::midpoint(low, high).floor(),
    };
    (middle > low * 1.01 && middle < high / 1.01).then(|| with_amount(good, middle))
}

/// A late generator makes latencies longer and throughput smaller, never the other way round: what is good is good in
/// spite of it, and what is not may be its own fault.
fn judge(outcome: &Outcome, promises: &[Promise], before: &[Step]) -> Option<Broken> {
    match server_broken(outcome, promises, before) {
        Some(Broken::Throughput) if outcome.generator_late() => Some(Broken::Generator),
        Some(Broken::Promise | Broken::Unknown) if outcome.generator_late() => Some(Broken::Busy),
        other => other,
    }
}

fn server_broken(outcome: &Outcome, promises: &[Promise], before: &[Step]) -> Option<Broken> {
    if outcome.failed() > MOST_FAILED {
        return Some(Broken::Failures);
    }
    match outcome.load {
        Load::Open { per_second, arrivals } => {
            // What chance sent, where chance does.
            let asked = match arrivals {
                Arrivals::Constant => per_second,
                Arrivals::Poisson => outcome.requests as f64 / outcome.window.as_secs_f64().max(1e-9),
            };
            if outcome.throughput() < LEAST_KEPT * asked {
                return Some(Broken::Throughput);
            }
        }
        Load::Closed { clients } if promises.is_empty() => {
            let fewer = before.iter().filter(|step| amount(step.outcome.load) < clients as f64);
            let best = fewer.map(|step| step.outcome.throughput()).fold(0.0, f64::max);
            if outcome.throughput() < best * LEAST_GAIN {
                return Some(Broken::NoGain);
            }
        }
        Load::Closed { .. } => {}
    }
    promises.iter().find_map(|promise| kept(outcome, promise))
}

fn kept(outcome: &Outcome, promise: &Promise) -> Option<Broken> {
    let most = outcome.latency.most().unwrap_or(Duration::MAX);
    let known =
        if promise.percentile >= 1.0 { Some(most) } else { outcome.latency.percentile(promise.percentile) };
    match known {
        Some(latency) if latency <= promise.limit => None,
        Some(_) => Some(Broken::Promise),
        // Too few to know the percentile: all below the limit is good, a single one beyond it may be either.
        None if most <= promise.limit => None,
        None => Some(Broken::Unknown),
    }
}
