//! What the timeline consists of, for the page: its hosts and their clocks, processes, tracks in display order, and steps.

use serde_json::{Value, json};
use stepscope_analyze::devices::collectives::clock::Clocks;
use stepscope_results::words::terms;
use stepscope_session::HostProfile;
use stepscope_trace::{ProcessKind, TrackKind};

use super::model::{Model, ns};

/// The tracks, processes and steps of the timeline.
pub fn describe(model: &Model) -> Value {
    let origin = model.hosts().iter().find(|host| !host.steps.is_empty());
    let steps = model.hosts().iter().enumerate().flat_map(|(number, host)| {
        host.steps.iter().map(move |step| {
            json!({
                "index": step.number, "host": number, "name": host.step_name,
                "start_ns": host.ns(step.window.start), "end_ns": host.ns(step.window.end), "counted": step.counted,
            })
        })
    });
    let processes = model.processes.iter().enumerate().map(|(id, process)| {
        let kind = match process.kind {
            ProcessKind::Host => "host",
            ProcessKind::Device => "device",
            ProcessKind::Other => "other",
        };
        json!({"id": id, "host": process.host, "name": process.name, "kind": kind})
    });
    let hosts: Vec<&str> = model.profile.hosts.iter().map(|loaded| loaded.host.as_str()).collect();
    let shifts: Vec<f64> = model.hosts().iter().map(|host| ns(host.shift)).collect();
    json!({
        "origin_unix_ns": model.origin_unix_ns.map(|ns| ns.to_string()),
        "start_ns": 0, "end_ns": model.end as f64 / 1e3,
        "hosts": hosts, "shifts_ns": shifts, "clock": if model.aligned { "aligned" } else { "recorded" },
        "clocks": model.clocks.as_ref().map(|clocks| host_clocks(model, clocks)),
        "processes": processes.collect::<Vec<_>>(),
        "tracks": model.order.iter().filter_map(|&id| track(model, id)).collect::<Vec<_>>(),
        "steps": steps.collect::<Vec<_>>(),
        "origin": origin.map_or("none", |host| terms::origin(host.origin)),
    })
}

/// How each host's clock stands to the reference's. What is unknown is null, with the reason.
fn host_clocks(model: &Model, clocks: &Clocks) -> Value {
    let one = |(number, loaded): (usize, &HostProfile)| {
        let known = model.moves.get(number).copied().flatten();
        let listed = clocks.hosts.iter().find(|host| host.host == loaded.host);
        let unknown = listed.map_or_else(
            || Some("it has no collectives".to_owned()),
            |host| host.offset.err().map(terms::unaligned),
        );
        json!({
            "reference": loaded.host == clocks.reference,
            "shift_ns": known.map(|known| ns(known.shift)), "uncertainty_ns": known.map(|known| ns(known.spread)),
            "collectives": known.map(|known| known.matched), "unknown": unknown,
        })
    };
    model.profile.hosts.iter().enumerate().map(one).collect()
}

fn track(model: &Model, id: u32) -> Option<Value> {
    let entry = model.track(id)?;
    let (track, host) = (entry.track(model), model.host(entry.host));
    let kind = match track.kind {
        TrackKind::Thread => "thread",
        TrackKind::Stream => "stream",
        TrackKind::Async => "async",
        TrackKind::Counter => "counter",
        TrackKind::Derived => "derived",
    };
    let span = track.span()?;
    let values = track.samples.values.iter().copied().filter(|value| value.is_finite());
    let (low, high) = (values.clone().reduce(f64::min), values.reduce(f64::max));
    Some(json!({
        "id": id, "process": entry.process, "name": model.trace(entry.host).str(track.name), "kind": kind,
        "rows": entry.layout.rows().max(1), "events": track.len(), "start_ns": host.ns(span.start),
        "end_ns": host.ns(span.end), "busy_ns": ns(entry.rows.busy), "min": low, "max": high,
    }))
}
