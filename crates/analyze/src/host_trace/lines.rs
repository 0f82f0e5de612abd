//! The states of all threads of the host, or of all streams of a device, as one timeline.

use stepscope_trace::{ProcessId, ProcessKind};

use super::HostTrace;
use crate::states::StateLine;
use crate::states::timeline::Timeline;

/// The states of the host's threads, or of one device's streams.
pub(crate) fn merged<'c>(recorded: &'c HostTrace, device: Option<ProcessId>) -> Timeline<'c> {
    let trace = recorded.trace;
    let lines: Vec<&StateLine> = recorded
        .states()
        .lines
        .iter()
        .filter(|(track, _)| {
            let process = trace.process(trace.track(*track).process);
            match device {
                Some(device) => process.id == device,
                None => process.kind != ProcessKind::Device,
            }
        })
        .map(|(_, line)| line)
        .collect();
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
