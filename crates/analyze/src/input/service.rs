//! Batches from a tf.data service: which workers deliver them, and how long the trainer is inside the calls that ask.

use std::collections::BTreeMap;

use stepscope_trace::{Dur, TrackKind};

use super::Pipeline;
use super::tfdata::TfData;
use crate::context::Context;
use crate::window::Windows;

const ELEMENT: &str = "GetDataServiceElement";
/// Addresses that are kept one by one.
const MOST: usize = 256;

/// What one trainer asks of the service, and what the service's own workers do.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct ServicePartial {
    /// Calls and their time, by the worker's address.
    asked: BTreeMap<String, (u64, Dur)>,
    /// How many workers' tasks the trainer reads from at once.
    tasks: Option<u64>,
    /// Workers of the service that were recorded.
    workers: usize,
    /// Their pipelines.
    pipeline: TfData,
}

impl ServicePartial {
    /// A worker of the service.
    pub(super) fn worker(pipeline: TfData) -> Self {
        ServicePartial { workers: 1, pipeline, ..ServicePartial::default() }
    }

    pub(super) fn of(context: &Context) -> Self {
        let trace = context.trace;
        let named = |wanted: &dyn Fn(&str) -> bool| trace.kinds_where(|kind| wanted(trace.kind_name(kind)));
        let elements = named(&|name| name == ELEMENT);
        let stages = named(&|name| name.starts_with("Iterator::") && name.ends_with("::DataService"));
        let mut found = ServicePartial::default();
        if elements.is_empty() && stages.is_empty() {
            return found;
        }
        let (address, tasks) = (trace.strings().find("address"), trace.strings().find("num_tasks"));
        let windows = Windows::of(context);
        for track in trace.tracks().iter().filter(|track| track.kind == TrackKind::Thread) {
            let mut within = windows.of_host();
            for (index, _) in
                track.events_of(&elements).filter(|(index, _)| within.counts(track.start(*index)))
            {
                let args = trace.args_at(track, index);
                let place = address.and_then(|key| args.get(key));
                let place = place.as_ref().and_then(|place| place.as_str()).unwrap_or_default().to_owned();
                found.add(place, (1, track.dur(index)));
            }
            for (index, _) in track.events_of(&stages) {
                let said = tasks.and_then(|key| trace.args_at(track, index).get(key)?.as_u64());
                found.tasks = found.tasks.max(said);
            }
        }
        found
    }

    fn add(&mut self, address: String, (calls, time): (u64, Dur)) {
        let known = self.asked.len() < MOST || self.asked.contains_key(&address);
        let sum = self.asked.entry(if known { address } else { String::new() }).or_default();
        *sum = (sum.0 + calls, sum.1 + time);
    }

    pub(super) fn merge(&mut self, other: ServicePartial) {
        other.asked.into_iter().for_each(|(address, sums)| self.add(address, sums));
        self.tasks = self.tasks.max(other.tasks);
        self.workers += other.workers;
        self.pipeline.merge(other.pipeline);
    }

    /// The service, seen over this many steps in which batches were awaited for this long; `None` without one.
    pub(super) fn finish(self, steps: usize, waited: Dur) -> Option<Service> {
        if self.asked.is_empty() && self.tasks.is_none() && self.workers == 0 {
            return None;
        }
        let steps = steps.max(1) as f64;
        let all: Dur = self.asked.values().map(|(_, time)| *time).sum();
        let mut addresses: Vec<ServiceWorker> = self
            .asked
            .into_iter()
            .map(|(address, (calls, time))| ServiceWorker { address, calls, ms_per_step: time.ms() / steps })
            .collect();
        addresses
            .sort_by(|a, b| b.ms_per_step.total_cmp(&a.ms_per_step).then_with(|| a.address.cmp(&b.address)));
        Some(Service {
            addresses,
            tasks: self.tasks,
            share: if waited.is_zero() { 0.0 } else { all.fraction_of(waited).min(1.0) },
            recorded: self.workers,
            pipeline: Pipeline::of(self.pipeline),
        })
    }
}

/// A worker of the service, as the trainer sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceWorker {
    /// Its address; empty if that was not recorded.
    pub address: String,
    /// Number of calls.
    pub calls: u64,
    /// Milliseconds per step inside these calls.
    pub ms_per_step: f64,
}

/// A tf.data service that delivers batches.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// The workers that the trainer asks, the one that it waits for longest first.
    pub addresses: Vec<ServiceWorker>,
    /// How many tasks of workers it reads from at once.
    pub tasks: Option<u64>,
    /// The time inside calls to the service as a share of the waiting for input, at most 1.
    pub share: f64,
    /// Workers of the service that were recorded themselves.
    pub recorded: usize,
    /// The pipeline that they run; `None` if none was recorded.
    pub pipeline: Option<Pipeline>,
}
