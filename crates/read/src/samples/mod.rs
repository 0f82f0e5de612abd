//! Hardware samples written as CSV by `stepscope run` and `stepscope monitor` → counter tracks, aligned by the
//! wall clock.
//!
//! ```text
//! time_unix_s,elapsed_s,machine_cpu_percent,…,gpu0_busy_percent,…,core0_percent
//! 1800000000.123456,0.100,12.5,…
//! ```
//!
//! The header identifies each column. GPU columns become counters of that GPU under nvidia-smi's names, so that
//! everything that understands nvidia-smi logs understands these. A file has no events.

mod columns;

use rustc_hash::FxHashMap;
use stepscope_trace::{
    ArgSourceId, Delivers, Device, DeviceKind, Dur, Format, NoteKind, ProcessKind, Time, Trace, TraceBuilder,
    TrackId, TrackKind,
};

use crate::{Input, Progress, ReadError, Reader, csv};
use columns::{Column, Owner};

/// First columns of every samples file.
const BEGINNING: &str = "time_unix_s,elapsed_s,machine_cpu_percent,";

/// Samples of `stepscope run` and `monitor`.
static FORMAT: Format = Format::new("stepscope-samples", "stepscope-samples", Delivers::RunSamples);

/// Reads stepscope's own samples.
#[derive(Debug)]
pub struct SamplesReader;

impl Reader for SamplesReader {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn recognises(&self, head: &[u8]) -> bool {
        head.starts_with(BEGINNING.as_bytes())
    }

    fn read(&self, input: &Input, progress: &Progress) -> Result<Trace, ReadError> {
        let (bytes, _) = input.inflated();
        progress.expect(bytes.len() as u64);
        let text = csv::decode(&bytes);
        let (trace, samples) = read(&text);
        progress.advance(bytes.len() as u64, samples);
        Ok(trace)
    }
}

fn read(text: &str) -> (Trace, u64) {
    let mut lines = text.lines();
    let columns: Vec<Option<Column>> =
        lines.next().unwrap_or_default().split(',').map(|name| Column::of(name.trim())).collect();
    let mut builder = TraceBuilder::new();
    let tracks = tracks(&columns, &mut builder);
    let (mut origin, mut samples, mut broken) = (None, 0, 0);
    for line in lines {
        let mut cells = line.split(',');
        let seconds = cells.next().and_then(csv::number);
        // A killed run leaves half a line.
        if seconds.is_none() || line.split(',').count() != columns.len() {
            broken += 1;
            continue;
        }
        // Microseconds fit a float; nanoseconds since 1970 would not.
        let wall_ns = ((seconds.unwrap_or(0.0) * 1e6).round() as i64).saturating_mul(1_000);
        let at = Time::from_ns(wall_ns.saturating_sub(*origin.get_or_insert(wall_ns)));
        for ((cell, column), track) in cells.zip(columns.iter().skip(1)).zip(tracks.iter().skip(1)) {
            if let (Some(value), Some(column), Some(track)) = (csv::number(cell), column, track) {
                builder.sample(*track, at, value * column.scale);
                samples += 1;
            }
        }
    }
    builder.note(NoteKind::Damaged, "rows that are not samples", broken, None);
    builder.clock.resolution = Dur::from_us(1);
    builder.clock.wall_ns_at_origin = origin;
    (builder.finish(), samples)
}

/// One track per column; one process for the host's columns, and one per GPU.
fn tracks(columns: &[Option<Column>], builder: &mut TraceBuilder) -> Vec<Option<TrackId>> {
    let mut processes = FxHashMap::default();
    let mut tracks = Vec::with_capacity(columns.len());
    for (number, column) in columns.iter().enumerate() {
        let Some(column) = column else {
            tracks.push(None);
            continue;
        };
        let process = *processes.entry(column.owner).or_insert_with(|| {
            let (name, kind, number) = match column.owner {
                Owner::Machine => ("machine".to_owned(), ProcessKind::Other, 0),
                Owner::Tree => ("processes of the run".to_owned(), ProcessKind::Other, 1),
                Owner::Gpu(gpu) => (format!("GPU {gpu}"), ProcessKind::Device, i64::from(gpu)),
            };
            let name = builder.strings.intern(&name);
            let process = builder.process(name, kind, number);
            if let Owner::Gpu(gpu) = column.owner {
                let device = Device::new(DeviceKind::Gpu, i64::from(gpu));
                builder.device(Device { process: Some(process), ..device });
            }
            process
        });
        let name = builder.strings.intern(&column.name);
        tracks.push(Some(builder.track(
            process,
            name,
            TrackKind::Counter,
            number as i64,
            ArgSourceId::default(),
        )));
    }
    tracks
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "time_unix_s,elapsed_s,machine_cpu_percent,tree_rss_bytes,gpu0_busy_percent,gpu0_memory_used_bytes,core0_percent\n\
        1800000000.100000,0.100,12.5,1000,,,50.0\n\
        1800000000.200000,0.200,25.0,2000,64.0,2097152,100.0\n\
        1800000000.3000";

    #[test]
    fn a_time_far_beyond_the_clock_is_cut_to_it() {
        let (trace, samples) =
            read("time_unix_s,elapsed_s,machine_cpu_percent\n1e300,0.1,12.5\n-1e300,0.2,25.0\n");
        assert_eq!((samples, trace.clock().wall_ns_at_origin), (2, Some(i64::MAX)));
    }

    #[test]
    fn columns_become_counters_by_the_wall_clock() {
        assert!(SamplesReader.recognises(FILE.as_bytes()));
        let (trace, samples) = read(FILE);
        assert_eq!(samples, 8);
        assert_eq!(trace.clock().wall_ns_at_origin, Some(1_800_000_000_100_000_000));
        let find = |name: &str| trace.tracks().iter().find(|track| trace.str(track.name) == name).unwrap();
        assert_eq!(find("cpu of the machine [%]").samples.values, [12.5, 25.0]);
        assert_eq!(
            find("cpu of the machine [%]").samples.times,
            [Time::from_ns(0), Time::from_ns(100_000_000)]
        );
        assert_eq!(find("utilization.gpu [%]").samples.values, [64.0], "an empty cell is no zero");
        assert_eq!(find("memory.used [MiB]").samples.values, [2.0]);
        assert_eq!(find("core 0 [%]").samples.values, [50.0, 100.0]);
        assert_eq!(trace.notes().len(), 1, "the line that broke off is counted");
        assert_eq!((trace.devices().len(), trace.events()), (1, 0));
    }

    #[test]
    fn other_tables_are_not_taken() {
        assert!(!SamplesReader.recognises(b"timestamp, name, utilization.gpu [%]\n"));
        let (trace, samples) = read("time_unix_s,elapsed_s,machine_cpu_percent,\n");
        assert_eq!((trace.events(), samples), (0, 0));
    }
}
