//! Inference: latency of requests, where the time goes, batch sizes.

use serde_json::json;
use stepscope_analyze::time::inference::{Batches, Inference, Requests};
use stepscope_trace::statistics::Moments;

use crate::format::{duration_ms, percent, plural, short};
use crate::{Cell, Column, Format, Table};

/// The table.
pub fn table(inference: &Inference) -> Table {
    let mut table = Table::new(
        "inference",
        vec![
            Column::new("name", "request", Format::Name),
            Column::new("count", "count", Format::Count),
            Column::new("p50_ms", "p50", Format::Ms),
            Column::new("p90_ms", "p90", Format::Ms),
            Column::new("p95_ms", "p95", Format::Ms),
            Column::new("p99_ms", "p99", Format::Ms),
            Column::new("max_ms", "max", Format::Ms),
            Column::new("mean_ms", "mean", Format::Ms),
            Column::new("compute_ms", "compute", Format::Ms),
            Column::new("transfer_ms", "transfer", Format::Ms),
            Column::new("input_ms", "input", Format::Ms),
            Column::new("host_ms", "host", Format::Ms),
            Column::new("requests_per_second", "requests/s", Format::Short),
        ],
    );
    match &inference.requests {
        Some(requests) => {
            table.headline = Some(headline(requests));
            table.push(row(requests));
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

fn row(requests: &Requests) -> Vec<Cell> {
    let (latency, split) = (&requests.latency, requests.split);
    vec![
        requests.name.as_str().into(),
        requests.count.into(),
        latency.p50.into(),
        latency.p90.into(),
        latency.p95.into(),
        latency.p99.into(),
        latency.max.into(),
        latency.mean.into(),
        split.map(|split| split.compute).into(),
        split.map(|split| split.transfer).into(),
        split.map(|split| split.input).into(),
        split.map(|split| split.host).into(),
        requests.per_second.into(),
    ]
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
