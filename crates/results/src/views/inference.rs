//! `stepscope inference`: how long requests take, where the time goes, batch sizes.

use serde_json::json;
use stepscope_analyze::Context;
use stepscope_analyze::time::inference::{Batches, Inference, InferencePartial, Requests};
use stepscope_trace::statistics::Moments;

use super::{Group, View, all_hosts, step_by_step};
use crate::format::{duration_ms, percent, plural, short};
use crate::table::{Field, Table, columns, described};

pub(super) const VIEW: View = View {
    name: "inference",
    title: "Inference",
    group: Group::Time,
    question: "How long do requests take?",
    about: "Show inference: latency percentiles of requests, where the time goes, batch sizes",
    after_help: "Requests are ranges named like `predict`, `generate` or `request`, and asynchronous operations of Chrome \
        traces (`ph` `b`, `n`, `e`) with such a name, from `b` to `e`.\n\nExamples:\n  \
        stepscope inference logs/          p50 to p99 of a prediction script or a server\n  \
        stepscope inference logs/ --json   JSON for scripts",
    record: &[
        "Triton: start it with `--trace-config triton,file=trace.json --trace-config level=TIMESTAMPS --trace-config rate=1`",
        "ONNX Runtime: set `SessionOptions.enable_profiling`, and call `end_profiling()` after the last request",
        "Any server: write one asynchronous operation per request into a Chrome trace, `ph` `b` when it arrives and `e` when it is answered, with one `id`",
        "TensorFlow Serving: capture from its gRPC port while it handles requests",
        "Keras: profile `model.predict`; in your own program, mark each request with `tf.profiler.experimental.Trace('request', step_num=i)`",
    ],
    events: None,
    recording: false,
    sql: Some(("request", "Latencies of inference requests.")),
    columns: || described(columns()),
    members: "
        histogram?: [bin] -- Latencies as a histogram. The last bin reaches up to the slowest request.
        slowest?: request? -- The slowest request, on its host's clock.
        batch_size_mean?: number? -- Mean batch size.
        batch_size_median?: number? -- Median batch size.
        padding_fraction?: number? -- Share of batches that is padding.
        task_size_mean?: number? -- Mean size of a request.
        @bin
        from_ms: number -- Lower bound.
        to_ms: number -- Upper bound.
        count: integer -- Number of requests.
        @request
        host: string -- The host.
        start_ms: number -- When it started.
        duration_ms: number -- How long it took.
    ",
    table: |hosts| {
        let of = |context: &Context<'_>| step_by_step(context, InferencePartial::of);
        table(&all_hosts(hosts, of, InferencePartial::merge).finish())
    },
    groupings: &[],
};

fn columns() -> Vec<Field<Requests>> {
    columns! { requests: Requests;
        name.known: Name "request", "the request" => requests.name.as_str();
        count.known: Count "count", "number of requests" => requests.count;
        p50_ms: Ms "p50", "median" => requests.latency.p50;
        p90_ms: Ms "p90", "90th percentile" => requests.latency.p90;
        p95_ms: Ms "p95", "95th percentile" => requests.latency.p95;
        p99_ms: Ms "p99", "99th percentile" => requests.latency.p99;
        max_ms: Ms "max", "longest" => requests.latency.max;
        mean_ms: Ms "mean", "mean" => requests.latency.mean;
        compute_ms: Ms "compute", "compute of the mean request" => requests.split.map(|split| split.compute);
        transfer_ms: Ms "transfer", "copies of the mean request" => requests.split.map(|split| split.transfer);
        input_ms: Ms "input", "input of the mean request" => requests.split.map(|split| split.input);
        host_ms: Ms "host", "the host's part of the mean request" => requests.split.map(|split| split.host);
        queue_ms.optional: Ms "queue", "mean time in the server's queue" => requests.queue_ms;
        requests_per_second: Short "requests/s", "throughput" => requests.per_second;
    }
}

fn table(inference: &Inference) -> Table {
    let mut table = Table::of("inference", &columns(), &inference.requests);
    match &inference.requests {
        Some(requests) => {
            table.headline = Some(headline(requests));
            let bins = requests.histogram.iter();
            let bins =
                bins.map(|bin| json!({"from_ms": bin.from_ms, "to_ms": bin.to_ms, "count": bin.count}));
            table.member("histogram", bins.collect::<Vec<_>>());
            let slowest = requests.slowest.as_ref().map(|slowest| {
                json!({"host": slowest.host, "start_ms": slowest.span.start.ms(), "duration_ms": slowest.span.dur().ms()})
            });
            table.member("slowest", slowest);
            if requests.split.is_some() {
                table.note("Compute, transfer, input and host add up to the mean request.");
            } else {
                table.note("Requests overlap, so their time cannot be broken down.");
            }
            if requests.count < 100 {
                table.note("With fewer than 100 requests, p99 is close to the slowest request.");
            }
        }
        None => {
            table.headline = Some("No inference requests found: latency is unknown".to_owned());
            table.note(
                "Requests are the steps of a prediction script, or the calls of a serving framework. `stepscope steps` \
                 shows training steps.",
            );
        }
    }
    if let Some(batches) = &inference.batches {
        describe(&mut table, batches);
    }
    table
}

fn headline(requests: &Requests) -> String {
    let latency = &requests.latency;
    format!(
        "{} {} (median), {} at p99",
        plural(requests.count as u64, "request takes", "requests take"),
        duration_ms(latency.p50),
        duration_ms(latency.p99),
    )
}

fn describe(table: &mut Table, batches: &Batches) {
    let Moments { mean, median, min, max, .. } = batches.size;
    table.member("batch_size_mean", mean);
    table.member("batch_size_median", median);
    table.member("padding_fraction", batches.padding);
    table.member("task_size_mean", batches.task.map(|task| task.mean));
    let padding =
        batches.padding.map_or(String::new(), |share| format!(", {} of it padding", percent(share)));
    table.note(format!(
        "Batch size: {} on average ({} to {}){padding}.",
        short(mean),
        short(min),
        short(max)
    ));
}
