//! Steps, and where their time goes.

use stepscope_analyze::Category;
use stepscope_analyze::steps::Exclusion;
use stepscope_session::HostProfile;
use stepscope_trace::{Dur, Span};

use super::recorded::owned;
use crate::cell::Cell;
use crate::meaning::Step;
use crate::recording::{Host, Recording, ns, ns_of_length};
use crate::schema::{Table, table};

/// The tables of this file.
pub(crate) fn all() -> [Table; 2] {
    [STEP, BREAKDOWN]
}

table! { STEP: "step", "Steps of the training or inference loop.", steps => (step, window, device, loaded, host),
    number: Int "number of the step" => step.number;
    ts: Int "start, ns since the session's origin" => ns(window.start.ps().saturating_add(host.shift_ps));
    dur: Int "duration, ns" => ns_of_length(window.dur().ps());
    counted: Int "1 if reports count it, 0 if it is excluded" => step.excluded.is_none();
    excluded: Text "why it is excluded: incomplete, startup, interrupted or unrecorded" => step.excluded.map(excluded);
    device: Text "the device that limits the step" => device;
    host: Text "its host" => owned(&loaded.host);
}

table! { BREAKDOWN: "breakdown", "Where the time of each step goes on each device; the categories of a step add up to its duration there.", breakdown => (step, category, time, device, limits, loaded),
    step: Int "number of the step" => step.number;
    category: Text "compute, input, launch, …" => category.key();
    dur: Int "time of the category, ns" => ns_of_length(time.ps());
    device: Text "the device" => device;
    counted: Int "1 if reports count the step" => step.excluded.is_none();
    bottleneck: Int "1 if the device limits the step" => limits;
    host: Text "its host" => owned(&loaded.host);
}

fn excluded(reason: Exclusion) -> &'static str {
    match reason {
        Exclusion::Incomplete => "incomplete",
        Exclusion::Startup => "startup",
        Exclusion::Interrupted => "interrupted",
        Exclusion::Unrecorded => "unrecorded",
        Exclusion::IncompleteCycle => "incomplete_cycle",
        Exclusion::Empty => "empty",
    }
}

/// A step with its window on the device that limits it, which reports show.
type Limited<'w> = (&'w Step, Span, Cell<'static>, &'w HostProfile, &'w Host);

fn steps(recording: &Recording) -> impl Iterator<Item = Limited<'_>> {
    recording.meanings().into_iter().zip(recording.each_host()).flat_map(|(meaning, (loaded, host))| {
        let device = meaning.devices.get(meaning.bottleneck);
        let name = device.map_or(Cell::Null, |device| device_name(loaded, device.process));
        meaning.steps.iter().enumerate().map(move |(place, step)| {
            let window =
                device.and_then(|device| device.steps.get(place)).map_or(step.span, |(window, _)| *window);
            (step, window, name.clone(), loaded, host)
        })
    })
}

/// The time of a category in a step on a device, and whether that device limits the step.
type Owned<'w> = (&'w Step, Category, Dur, Cell<'static>, bool, &'w HostProfile);

fn breakdown(recording: &Recording) -> impl Iterator<Item = Owned<'_>> {
    recording.meanings().into_iter().zip(recording.each_host()).flat_map(|(meaning, (loaded, _))| {
        meaning.devices.iter().enumerate().flat_map(move |(number, device)| {
            let name = device_name(loaded, device.process);
            meaning.steps.iter().zip(&device.steps).flat_map(move |(step, (_, shares))| {
                let (name, limits) = (name.clone(), number == meaning.bottleneck);
                shares
                    .owners()
                    .map(move |(category, time)| (step, category, time, name.clone(), limits, loaded))
            })
        })
    })
}

fn device_name(loaded: &HostProfile, process: Option<stepscope_trace::ProcessId>) -> Cell<'static> {
    process
        .map_or_else(|| "host".into(), |process| owned(loaded.trace.str(loaded.trace.process(process).name)))
}
