//! The compiled program that owns the memory that programs reserve on an accelerator.

use std::collections::BTreeMap;

use stepscope_trace::{DeviceKind, Dur, Time, Track};

use super::records::Record;
use crate::context::Context;

/// Tracks of whole programs begin with this name.
const PROGRAMS: &str = "XLA Modules";

/// The name of the program that ran longest on the accelerator of this number while this much was reserved.
///
/// Memory is reserved when a program is loaded, which may be long before it runs: what runs at one moment of that time may
/// be another program that needs less.
pub(super) fn reserving(context: &Context, chip: i64, records: &[Record], peak: usize) -> Option<String> {
    let trace = context.trace;
    let level = records.get(peak)?.reserved;
    let holds = |record: &&Record| record.reserved == level;
    let begin = records.get(..=peak)?.iter().rev().take_while(holds).last()?.time;
    let end = records
        .get(peak..)?
        .iter()
        .find(|record| record.reserved != level)
        .map_or(Time::MAX, |record| record.time);
    let device =
        trace.devices().iter().find(|device| device.number == chip && device.kind != DeviceKind::Cpu)?;
    let is_programs =
        |track: &&Track| Some(track.process) == device.process && trace.str(track.name).starts_with(PROGRAMS);
    let mut ran: BTreeMap<&str, Dur> = BTreeMap::new();
    for track in trace.tracks().iter().filter(is_programs) {
        for index in 0..track.len() {
            let span = track.span_of(index);
            let inside = span.end.min(end) - span.start.max(begin);
            if inside > Dur::ZERO {
                *ran.entry(bare(trace.kind_name(track.kind_of(index)))).or_default() += inside;
            }
        }
    }
    ran.into_iter().max_by_key(|(_, time)| *time).map(|(name, _)| name.to_owned())
}

/// The name without the number behind it: `jit_f(123)`.
fn bare(name: &str) -> &str {
    name.split_once('(').map_or(name, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_program_is_not_part_of_its_name() {
        assert_eq!((bare("jit_f(4467238)"), bare("jit_f")), ("jit_f", "jit_f"));
    }
}
