//! Raises the load until the server fails: finds the knee, and the highest load that meets an SLO.
//!
//! The load grows by a fixed factor until a measurement is bad, or bad twice in a row if only the latency is;
//! then the gap between the last good and the first bad load is bisected a few times.

use std::time::Duration;

use super::{Arrivals, Broken, Client, Load, Outcome, Plan};
use crate::bench::Stop;

/// A larger share of failures is never acceptable.
pub(crate) const MOST_FAILED: f64 = 0.01;
/// If an open loop gets fewer answers per second than this share of its requests, the server is overloaded.
pub(crate) const LEAST_KEPT: f64 = 0.95;
/// Factor from one rate to the next.
const FACTOR: f64 = 1.5;
/// More clients by this factor must increase the throughput by `LEAST_GAIN`; otherwise they only wait for each
/// other.
const MORE_CLIENTS: usize = 2;
const LEAST_GAIN: f64 = 1.05;
/// Number of bisections: the answer is then within 10 % of the truth.
const HALVINGS: usize = 3;
/// Maximum number of measurements; no server gets this far.
const MOST_STEPS: usize = 40;
const MOST_CLIENTS: usize = 4096;

/// An SLO: a percentile of the latency below a limit.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Promise {
    /// The percentile, from 0 to 1; 1 is the maximum.
    pub percentile: f64,
    /// The limit.
    pub limit: Duration,
}

/// One measurement of a sweep.
#[derive(Clone, Debug)]
pub struct Step {
    /// The measurement.
    pub outcome: Outcome,
    /// Why it is not good; `None` if it is.
    pub broken: Option<Broken>,
}

/// What is swept.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The first load; the others follow from it.
    pub first: Plan,
    /// Loads to measure instead: rates per second, or numbers of clients.
    pub loads: Vec<f64>,
    /// The SLOs.
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
        // A hiccup of this machine says nothing about the server; if it happens again, it is not a hiccup.
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
            // A latency can be bad by chance, especially on a busy machine.
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

/// The step with the best ratio of throughput to latency (Kleinrock's power): beyond it, latency grows faster
/// than throughput. `None` if no step is good.
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

/// The good step with the highest load.
pub fn highest(steps: &[Step]) -> Option<usize> {
    let good = steps.iter().enumerate().filter(|(_, step)| step.broken.is_none());
    good.max_by(|a, b| amount(a.1.outcome.load).total_cmp(&amount(b.1.outcome.load))).map(|(place, _)| place)
}

/// Requests per second, or clients.
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

/// A late generator increases latency and reduces throughput, never the reverse: a good result is good in spite
/// of it, and a bad one may be its fault.
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
            // With random arrivals, the number that was actually sent.
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
        // Too few to estimate the percentile: all below the limit is good; a single one beyond it may mean
        // either.
        None if most <= promise.limit => None,
        None => Some(Broken::Unknown),
    }
}
