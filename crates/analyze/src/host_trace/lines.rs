//! The states of all threads of the host, or of all streams of a device, as one timeline.

use rustc_hash::FxHashMap;
use stepscope_trace::{ProcessId, ProcessKind, Trace};

use super::HostTrace;
use crate::states::timeline::Timeline;
use crate::states::{StateLine, States};

/// Where the lines of each device are among the states, so that many devices do not look through all lines each.
#[derive(Debug)]
pub(super) struct DeviceLines(FxHashMap<ProcessId, Vec<usize>>);

impl DeviceLines {
    pub(super) fn of(trace: &Trace, states: &States) -> Self {
        let mut places: FxHashMap<ProcessId, Vec<usize>> = FxHashMap::default();
        for (place, (track, _)) in states.lines.iter().enumerate() {
            places.entry(trace.process(trace.track(*track).process).id).or_default().push(place);
        }
        DeviceLines(places)
    }
}

/// The states of the host's threads, or of one device's streams.
pub(crate) fn merged<'c>(recorded: &'c HostTrace, device: Option<ProcessId>) -> Timeline<'c> {
    let trace = recorded.trace;
    let all = &recorded.states().lines;
    let lines: Vec<&StateLine> = match device {
        Some(device) => {
            let own = recorded.device_lines().0.get(&device);
            own.into_iter().flatten().map(|&place| &all[place].1).collect()
        }
        None => {
            let on_host = |track| trace.process(trace.track(track).process).kind != ProcessKind::Device;
            all.iter().filter(|(track, _)| on_host(*track)).map(|(_, line)| line).collect()
        }
    };
    Timeline::merge(&lines)
}

/// Devices of one host that are analysed one by one: far more than any machine has, few enough that a file that claims
/// thousands of them does not multiply the work. Those with the most events count.
const MOST_DEVICES: usize = 256;

/// The devices that did anything.
pub(crate) fn working_devices(recorded: &HostTrace) -> Vec<ProcessId> {
    let trace = recorded.trace;
    let mut processes: Vec<ProcessId> = recorded
        .states()
        .lines
        .iter()
        .map(|(track, _)| trace.process(trace.track(*track).process))
        .filter(|process| process.kind == ProcessKind::Device)
        .map(|process| process.id)
        .collect();
    processes.sort_unstable();
    processes.dedup();
    if processes.len() > MOST_DEVICES {
        let mut events = vec![0; trace.processes().len()];
        trace.tracks().iter().for_each(|track| events[track.process.index()] += track.len());
        processes.sort_by_key(|process| std::cmp::Reverse(events[process.index()]));
        processes.truncate(MOST_DEVICES);
        processes.sort_unstable();
    }
    processes
}
