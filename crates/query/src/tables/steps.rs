//! Steps, and where their time goes.

use stepscope_analyze::steps::Exclusion;

use super::recorded::owned;
use crate::cell::Cell;
use crate::rows::{Rows, Sheet};
use crate::schema::Holds::{Int, Text};
use crate::schema::{Column, From, Table};
use crate::world::{World, ns, ns_of_length};

pub(crate) const STEP: Table = Table {
    name: "step",
    about: "Steps of the training or inference loop.",
    columns: &[
        Column::new("number", Int, "number of the step"),
        Column::new("ts", Int, "start, ns since the session's origin"),
        Column::new("dur", Int, "duration, ns"),
        Column::new("counted", Int, "1 if reports count it, 0 if it is excluded"),
        Column::new("excluded", Text, "why it is excluded: incomplete, startup, interrupted or unrecorded"),
        Column::new("device", Text, "the device that limits the step"),
        Column::new("host", Text, "its host"),
    ],
    from: From::Rows(steps),
};

pub(crate) const BREAKDOWN: Table = Table {
    name: "breakdown",
    about: "Where the time of each step goes on each device; the categories of a step add up to its duration there.",
    columns: &[
        Column::new("step", Int, "number of the step"),
        Column::new("category", Text, "compute, input, launch, …"),
        Column::new("dur", Int, "time of the category, ns"),
        Column::new("device", Text, "the device"),
        Column::new("counted", Int, "1 if reports count the step"),
        Column::new("bottleneck", Int, "1 if the device limits the step"),
        Column::new("host", Text, "its host"),
    ],
    from: From::Rows(breakdown),
};

fn excluded(reason: Exclusion) -> &'static str {
    match reason {
        Exclusion::Incomplete => "incomplete",
        Exclusion::Startup => "startup",
        Exclusion::Interrupted => "interrupted",
        Exclusion::Unrecorded => "unrecorded",
        Exclusion::IncompleteCycle => "incomplete_cycle",
    }
}

fn steps(world: &World) -> Box<dyn Rows> {
    let mut rows = Vec::new();
    for (looked, (loaded, host)) in world.looked().into_iter().zip(world.each_host()) {
        let device = looked.devices.get(looked.bottleneck);
        let name = device.map_or(Cell::Null, |device| device_name(loaded, device.process));
        for (place, step) in looked.steps.iter().enumerate() {
            // The report shows the windows of the device that limits the step.
            let window =
                device.and_then(|device| device.steps.get(place)).map_or(step.span, |(window, _)| *window);
            rows.push(vec![
                step.number.into(),
                ns(window.start.ps().saturating_add(host.shift_ps)).into(),
                ns_of_length(window.dur().ps()).into(),
                step.excluded.is_none().into(),
                step.excluded.map(excluded).into(),
                name.clone(),
                owned(&loaded.host),
            ]);
        }
    }
    Box::new(Sheet(rows))
}

fn breakdown(world: &World) -> Box<dyn Rows> {
    let mut rows = Vec::new();
    for (looked, (loaded, _)) in world.looked().into_iter().zip(world.each_host()) {
        for (number, device) in looked.devices.iter().enumerate() {
            let name = device_name(loaded, device.process);
            for (step, (_, shares)) in looked.steps.iter().zip(&device.steps) {
                for (category, time) in shares.owners() {
                    rows.push(vec![
                        step.number.into(),
                        category.key().into(),
                        ns_of_length(time.ps()).into(),
                        name.clone(),
                        step.excluded.is_none().into(),
                        (number == looked.bottleneck).into(),
                        owned(&loaded.host),
                    ]);
                }
            }
        }
    }
    Box::new(Sheet(rows))
}

fn device_name(
    loaded: &stepscope_session::HostProfile,
    process: Option<stepscope_trace::ProcessId>,
) -> Cell<'static> {
    process
        .map_or_else(|| "host".into(), |process| owned(loaded.trace.str(loaded.trace.process(process).name)))
}
