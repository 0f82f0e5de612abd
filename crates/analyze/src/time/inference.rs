//! Inference: how long a request takes, and where: on the host, in transfer, on the device.
//!
//! A request is a step of a prediction program, a call by which a serving framework runs a model, or an asynchronous
//! operation that a server recorded as one. Without requests the latency is unknown, not 0. One [`InferencePartial`] per host, merged, then finished into an
//! [`Inference`].

use stepscope_trace::{Dur, KindId, Span, StrId, Time, TrackKind};

use crate::breakdown::{Category, Shares};
use crate::context::Context;
use crate::steps::{How, StepKind};
use crate::time::requests;
use stepscope_trace::statistics::{Moments, quantile};

/// The requests of one host.
#[derive(Clone, Debug, Default)]
pub struct InferencePartial {
    name: Option<String>,
    latencies_ms: Vec<f64>,
    slowest: Option<Slowest>,
    shares: Option<Shares>,
    /// Of the host's own requests.
    per_second: Option<f64>,
    /// Time that requests waited in a queue, in milliseconds.
    queued_ms: Vec<f64>,
    batch: BatchTally,
}

#[derive(Clone, Debug, Default)]
struct BatchTally {
    sizes: Vec<f64>,
    padded: f64,
    filled: f64,
    tasks: Vec<f64>,
}

/// The distribution of latencies, in milliseconds.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Latency {
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// The slowest.
    pub max: f64,
    /// The mean.
    pub mean: f64,
}

/// The slowest request.
#[derive(Clone, Debug, PartialEq)]
pub struct Slowest {
    /// Where it was handled.
    pub host: String,
    /// When, on that host's clock.
    pub span: Span,
}

/// Requests whose latency lies between two bounds.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct LatencyBin {
    /// The lower bound, in milliseconds.
    pub from_ms: f64,
    /// The upper bound, in milliseconds.
    pub to_ms: f64,
    /// How many requests.
    pub count: usize,
}

/// Breakdown of a mean request, in milliseconds.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Split {
    /// The model's ops on any device, including collectives.
    pub compute: f64,
    /// Copies to and from devices.
    pub transfer: f64,
    /// Waiting for the request's data.
    pub input: f64,
    /// Everything else on the host: Python, dispatch, tracing, compiling.
    pub host: f64,
}

/// Requests of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Requests {
    /// What represents a request: a function, a marker, a serving call.
    pub name: String,
    /// How many.
    pub count: usize,
    /// How long they take.
    pub latency: Latency,
    /// The same as a histogram. Bins have the same width; the last one reaches up to the slowest request.
    pub histogram: Vec<LatencyBin>,
    /// Where to look.
    pub slowest: Option<Slowest>,
    /// The breakdown; `None` if requests overlap, so that it is unknown.
    pub split: Option<Split>,
    /// Requests per second.
    pub per_second: Option<f64>,
    /// Mean time in the server's queue, in milliseconds; `None` if not recorded.
    pub queue_ms: Option<f64>,
}

/// Batches that a server assembles.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Batches {
    /// Their sizes, including padding.
    pub size: Moments,
    /// The share of padding; `None` if not recorded.
    pub padding: Option<f64>,
    /// Sizes of the requests in a batch.
    pub task: Option<Moments>,
}

/// Inference, if there was any.
#[derive(Clone, Debug, PartialEq)]
pub struct Inference {
    /// Requests; `None` if none were found.
    pub requests: Option<Requests>,
    /// Batches; `None` if no sizes were recorded.
    pub batches: Option<Batches>,
}

/// Calls by which serving frameworks run a model, outermost first.
const SERVING_CALLS: &[&str] = &[
    "BatchingSessionRun",
    "TfrtModelRun",
    "ServingModelRun",
    "BrainSessionRun",
    "OrbaxServing::Run",
    "ProcessBatch",
];

impl InferencePartial {
    /// What one host says.
    pub fn of(context: &Context) -> Self {
        let found =
            from_serving(context).or_else(|| from_asynchronous(context)).or_else(|| from_steps(context));
        let mut partial = found.unwrap_or_default();
        if partial.name.is_some() {
            partial.queued_ms = requests::queued(context);
        }
        partial.batch = batches(context);
        partial
    }

    /// Adds another host.
    pub fn merge(&mut self, other: InferencePartial) {
        self.name = self.name.take().or(other.name);
        self.latencies_ms.extend(other.latencies_ms);
        // The first of equals stays.
        let longer =
            |other: &Slowest| self.slowest.as_ref().is_none_or(|own| own.span.dur() < other.span.dur());
        if other.slowest.as_ref().is_some_and(longer) {
            self.slowest = other.slowest;
        }
        self.shares = match (self.shares, other.shares) {
            (Some(mut a), Some(b)) => {
                a.add_all(&b);
                Some(a)
            }
            (a, b) => a.or(b),
        };
        self.per_second = match (self.per_second, other.per_second) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
        self.queued_ms.extend(other.queued_ms);
        self.batch.sizes.extend(other.batch.sizes);
        self.batch.tasks.extend(other.batch.tasks);
        self.batch.padded += other.batch.padded;
        self.batch.filled += other.batch.filled;
    }

    /// The result.
    pub fn finish(self) -> Inference {
        let BatchTally { sizes, padded, filled, tasks } = self.batch;
        let batches = Moments::of(sizes).map(|size| Batches {
            size,
            padding: (filled > 0.0).then(|| padded / filled),
            task: Moments::of(tasks),
        });
        let count = self.latencies_ms.len();
        let split = self.shares.map(|shares| split(&shares, count));
        let mut latencies = self.latencies_ms;
        latencies.sort_by(f64::total_cmp);
        let requests = self.name.zip(latency(&latencies)).map(|(name, latency)| Requests {
            name,
            count,
            latency,
            histogram: histogram(&latencies),
            slowest: self.slowest,
            split,
            per_second: self.per_second,
            queue_ms: Moments::of(self.queued_ms).map(|queued| queued.mean),
        });
        Inference { requests, batches }
    }
}

/// Fewest and most bins of a histogram.
const BINS: (f64, f64) = (12.0, 48.0);

/// Bins by the Freedman–Diaconis rule, within limits. Far outliers are in the last bin, or one slow request would leave
/// all others in the first. `all` is sorted.
fn histogram(all: &[f64]) -> Vec<LatencyBin> {
    let at = |share| quantile(all, share).unwrap_or_default();
    let (low, longest, middle) = (at(0.0), at(1.0), at(0.75) - at(0.25));
    let high = (at(0.95) + 6.0 * middle.max(longest * 1e-6)).min(longest);
    let width = 2.0 * middle / (all.len().max(1) as f64).cbrt();
    if high <= low {
        return vec![LatencyBin { from_ms: low, to_ms: longest, count: all.len() }];
    }
    let wanted = if width > 0.0 { (high - low) / width } else { BINS.0 };
    let number = wanted.round().clamp(BINS.0, BINS.1) as usize;
    let bound = |bin: usize| low + (high - low) * bin as f64 / number as f64;
    let before = |bin: usize| all.partition_point(|&latency| latency < bound(bin));
    let bins = (0..number).map(|bin| {
        let last = bin + 1 == number;
        let (to_ms, end) = if last { (longest, all.len()) } else { (bound(bin + 1), before(bin + 1)) };
        LatencyBin { from_ms: bound(bin), to_ms, count: end - before(bin) }
    });
    bins.collect()
}

/// `all` is sorted.
fn latency(all: &[f64]) -> Option<Latency> {
    Some(Latency {
        p50: quantile(all, 0.5)?,
        p90: quantile(all, 0.9)?,
        p95: quantile(all, 0.95)?,
        p99: quantile(all, 0.99)?,
        max: *all.last()?,
        mean: all.iter().sum::<f64>() / all.len() as f64,
    })
}

fn split(shares: &Shares, count: usize) -> Split {
    let per = |categories: &[Category]| {
        categories.iter().map(|&category| shares.get(category).ms()).sum::<f64>() / count.max(1) as f64
    };
    let compute = per(&[Category::Compute, Category::Communication]);
    let transfer = per(&[Category::TransferIn, Category::TransferOut, Category::TransferDevice]);
    let input = per(&[Category::Input]);
    Split { compute, transfer, input, host: per(&Category::ALL) - compute - transfer - input }
}

/// Steps of a prediction program.
fn from_steps(context: &Context) -> Option<InferencePartial> {
    let (steps, breakdown) = (context.steps(), context.breakdown());
    if steps.kind != StepKind::Inference || breakdown.steps.whole_capture {
        return None;
    }
    let name = match &steps.how {
        How::Marker(name)
        | How::FunctionCalls(name)
        | How::Sequence(name)
        | How::Annotations(name)
        | How::ModuleRuns(name)
        | How::Pipelines(name, _) => name,
        _ => "step",
    };
    let mut shares = Shares::default();
    breakdown.counted().for_each(|(_, step)| shares.add_all(&step.shares));
    let latencies_ms: Vec<f64> = breakdown.counted().map(|(_, step)| step.window.dur().ms()).collect();
    let windows = || breakdown.counted().map(|(_, step)| step.window);
    let whole = windows().reduce(Span::hull)?;
    Some(InferencePartial {
        slowest: slowest(context, windows()),
        name: Some(name.to_owned()),
        per_second: rate(latencies_ms.len(), whole.dur()),
        latencies_ms,
        shares: Some(shares),
        queued_ms: Vec::new(),
        batch: BatchTally::default(),
    })
}

/// The longest span; the first of equals.
fn slowest(context: &Context, spans: impl Iterator<Item = Span>) -> Option<Slowest> {
    let span = spans.reduce(|longest, span| if span.dur() > longest.dur() { span } else { longest })?;
    Some(Slowest { host: context.host.clone(), span })
}

fn rate(count: usize, time: Dur) -> Option<f64> {
    (count > 0 && !time.is_zero()).then(|| count as f64 / time.secs())
}

/// Calls of a serving framework. They overlap, so their time cannot be broken down.
fn from_serving(context: &Context) -> Option<InferencePartial> {
    let trace = context.trace;
    let kinds = |name: &str| -> Vec<KindId> {
        (0..trace.kinds().len())
            .map(KindId::from_index)
            .filter(|&kind| trace.kind_name(kind) == name)
            .collect()
    };
    let (name, kinds) =
        SERVING_CALLS.iter().map(|name| (*name, kinds(name))).find(|(_, kinds)| !kinds.is_empty())?;
    let mut spans = Vec::new();
    for track in trace.tracks().iter().filter(|track| track.kind != TrackKind::Derived) {
        let mut inside = Time::MIN;
        for (index, kind) in track.kinds().iter().enumerate() {
            let span = track.span_of(index);
            if kinds.contains(kind) && span.start >= inside && !span.is_empty() {
                inside = span.end;
                spans.push(span);
            }
        }
    }
    overlapping(context, name, spans)
}

/// Requests that a server recorded from arrival to answer.
fn from_asynchronous(context: &Context) -> Option<InferencePartial> {
    let (name, spans) = requests::recorded(context)?;
    overlapping(context, &name, spans)
}

/// Requests that overlap, so that their time has no breakdown.
fn overlapping(context: &Context, name: &str, spans: Vec<Span>) -> Option<InferencePartial> {
    let whole = spans.iter().copied().reduce(Span::hull)?;
    Some(InferencePartial {
        name: Some(name.to_owned()),
        per_second: rate(spans.len(), whole.dur()),
        latencies_ms: spans.iter().map(|span| span.dur().ms()).collect(),
        slowest: slowest(context, spans.into_iter()),
        shares: None,
        queued_ms: Vec::new(),
        batch: BatchTally::default(),
    })
}

/// Batch sizes, read from kinds of events whose first event contains them.
fn batches(context: &Context) -> BatchTally {
    let trace = context.trace;
    let key = |name: &str| trace.strings().find(name);
    let (size, padding, task) =
        (key("batch_size_after_padding"), key("padding_amount"), key("batching_input_task_size"));
    let wanted: Vec<StrId> = [size, padding, task].into_iter().flatten().collect();
    let mut tally = BatchTally::default();
    if wanted.is_empty() {
        return tally;
    }
    let mut carries: Vec<Option<bool>> = vec![None; trace.kinds().len()];
    for track in trace.tracks() {
        for (index, kind) in track.kinds().iter().enumerate() {
            let args = trace.args_at(track, index);
            let carries = carries[kind.index()].get_or_insert_with(|| {
                let mut found = false;
                args.visit(|key, _| found |= wanted.contains(&key));
                found
            });
            if !*carries {
                continue;
            }
            let (mut own_size, mut own_padding) = (None, None);
            args.visit(|key, value| {
                if Some(key) == size {
                    own_size = value.as_u64();
                } else if Some(key) == padding {
                    own_padding = value.as_u64();
                } else if Some(key) == task {
                    tally.tasks.extend(value.as_f64());
                }
            });
            if let Some(size) = own_size {
                tally.sizes.push(size as f64);
                if let Some(padding) = own_padding {
                    tally.padded += padding as f64;
                    tally.filled += size as f64;
                }
            }
        }
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::{Datum, Kind, ProcessKind, TraceBuilder};

    fn run(calls: &[(&str, i64, i64)], batch: Option<(u64, u64)>) -> Inference {
        let mut builder = TraceBuilder::new();
        let name = builder.strings.intern("server");
        let process = builder.process(name, ProcessKind::Host, 1);
        let track = builder.track(process, name, TrackKind::Thread, 1, TraceBuilder::ARENA);
        let keys = ["batch_size_after_padding", "padding_amount"].map(|key| builder.strings.intern(key));
        for &(name, start, len) in calls {
            let name = builder.strings.intern(name);
            let kind = builder.kind(Kind::slice(name));
            let args =
                batch.map(|(size, padding)| [(keys[0], Datum::UInt(size)), (keys[1], Datum::UInt(padding))]);
            let args = builder.arena.push(args.as_ref().map_or(&[][..], |args| &args[..]), &[]);
            builder.event(track, Time::from_ns(start * 1_000_000), Dur::from_us(len * 1_000), kind, args);
        }
        let trace = builder.finish();
        InferencePartial::of(&Context::new(&trace, "host")).finish()
    }

    #[test]
    fn serving_calls_are_requests_with_percentiles() {
        let calls: Vec<_> = (0..100).map(|n| ("BatchingSessionRun", n * 200, n + 1)).collect();
        let found = run(&calls, Some((32, 8)));
        let requests = found.requests.unwrap();
        assert_eq!((requests.count, requests.name.as_str()), (100, "BatchingSessionRun"));
        assert!((requests.latency.p50 - 50.5).abs() < 1e-9 && (requests.latency.p99 - 99.01).abs() < 1e-9);
        assert_eq!((requests.latency.max, requests.split), (100.0, None));
        assert_eq!(requests.histogram.iter().map(|bin| bin.count).sum::<usize>(), 100);
        assert_eq!(requests.histogram.last().map(|bin| bin.to_ms), Some(100.0));
        let slowest = requests.slowest.unwrap();
        assert_eq!(
            (slowest.host.as_str(), slowest.span.start.ms(), slowest.span.dur().ms()),
            ("host", 19_800.0, 100.0)
        );
        let batches = found.batches.unwrap();
        assert_eq!((batches.size.mean, batches.padding), (32.0, Some(0.25)));
    }

    #[test]
    fn one_slow_request_leaves_the_others_apart() {
        let mut all: Vec<f64> = (0..200).map(|n| 10.0 + f64::from(n) * 0.01).chain([5_000.0]).collect();
        all.sort_by(f64::total_cmp);
        let bins = histogram(&all);
        assert!(bins.len() > 5 && bins.iter().filter(|bin| bin.count > 0).count() > 5, "{bins:?}");
        assert_eq!(
            (bins.iter().map(|bin| bin.count).sum::<usize>(), bins.last().map(|bin| bin.to_ms)),
            (201, Some(5_000.0))
        );
        assert_eq!(histogram(&[7.0, 7.0]), [LatencyBin { from_ms: 7.0, to_ms: 7.0, count: 2 }]);
    }

    #[test]
    fn without_requests_there_is_no_latency() {
        assert_eq!(run(&[("train_step", 0, 5)], None), Inference { requests: None, batches: None });
    }
}
