//! The critical path of one step on the timeline: its pieces as places on tracks.

use serde_json::{Value, json};
use stepscope_analyze::time::critical::{CriticalPath, Link};
use stepscope_results::views::critical_path::kind;
use stepscope_results::words::terms;
use stepscope_trace::Time;

use super::model::Model;

/// Maximum number of pieces in an answer: more cannot be told apart in any window that shows the step.
const MOST: usize = 50_000;

/// The number of a host's step at a moment of the session: on the device that limits it, which may lag behind. `None` if
/// there is no such host, `Some(None)` if it has no step then.
pub fn step_at(model: &Model, host: usize, at: i64) -> Option<Option<i64>> {
    let host = model.hosts().get(host)?;
    let at = Time::from_ps(at) - host.shift;
    Some(host.steps.iter().find(|step| step.window.contains(at)).map(|step| step.number))
}

/// The answer where there is no step.
pub fn no_step(host: usize) -> Value {
    json!({"host": host, "step": null, "unknown": "there is no step in the middle of the view", "pieces": []})
}

/// The path of a host's step, or why it is unknown. `None` if there is no such host.
pub fn answer(model: &Model, host: usize, step: i64) -> Option<Value> {
    let loaded = model.profile.hosts.get(host)?;
    Some(match CriticalPath::numbered(&loaded.context(), step) {
        Ok(path) => {
            let clock = model.host(host);
            let pieces = path.links.iter().take(MOST).map(|link| piece(model, host, link));
            json!({
                "host": host, "step": step, "unknown": null, "inferred": path.inferred,
                "start_ns": clock.ns(path.window.start), "end_ns": clock.ns(path.window.end),
                "categories": path.categories().into_iter().map(|(category, time)| {
                    json!({"category": category.key(), "fraction": time.fraction_of(path.window.dur())})
                }).collect::<Vec<_>>(),
                "pieces": pieces.collect::<Vec<_>>(),
            })
        }
        Err(why) => json!({"host": host, "step": step, "unknown": terms::no_path(why), "pieces": []}),
    })
}

/// A piece without an event of its own has no track.
fn piece(model: &Model, host: usize, link: &Link) -> Value {
    let clock = model.host(host);
    let place = link.event.and_then(|event| {
        let number = model.number_of(host, event.track.index());
        let entry = model.track(number)?;
        let row = entry.layout.row_of(entry.track(model), event.index as usize);
        Some((number, event.index, row))
    });
    json!({
        "kind": kind(link.piece), "category": link.category.key(), "start_ns": clock.ns(link.span.start),
        "end_ns": clock.ns(link.span.end), "track": place.map(|(track, ..)| track),
        "event": place.map(|(_, event, _)| event), "row": place.map(|(.., row)| row),
    })
}
