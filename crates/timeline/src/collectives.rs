//! Collectives of several ranks on the timeline: how long each rank waits for the last one, and which that is.

use serde_json::{Value, json};

use super::model::{Model, ns};

/// Maximum number in an answer: more cannot be told apart in any window that shows them.
const MOST: usize = 20_000;

/// All collectives in which several ranks took part, rank by rank.
pub fn answer(model: &Model) -> Value {
    let host_of = |name: &str| model.profile.hosts.iter().position(|host| host.host == name);
    let runs = model.collectives.iter().take(MOST).filter_map(|run| {
        let host = host_of(&run.host)?;
        let number = model.number_of(host, run.event.track.index());
        let entry = model.track(number)?;
        let (track, index) = (entry.track(model), run.event.index as usize);
        let start = model.host(host).ns(track.start(index));
        let (dur, waited) = (ns(track.dur(index)), ns(run.waited));
        let row = entry.layout.row_of(track, index);
        Some(json!({"track": number, "row": row, "start_ns": start, "end_ns": start + dur,
                    "waited_ns": waited, "last": run.last}))
    });
    json!({"runs": runs.collect::<Vec<_>>(), "total": model.collectives.len()})
}
