//! Types of ops that stand in an argument of the event instead of its name: ONNX Runtime's nodes. One kind of event is one
//! node, so that its first event shows the type.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use stepscope_trace::{KindId, Trace};

use crate::vocabulary::{Vocabulary, is_node};

/// The types of all kinds that are nodes.
pub(super) fn node_types(trace: &Trace, vocabulary: &Vocabulary) -> HashMap<KindId, String, FxBuildHasher> {
    let mut types = HashMap::default();
    let Some(key) = trace.strings().find("op_name") else { return types };
    let nodes = trace.kinds_where(|kind| {
        is_node(trace.kind_name(kind), trace.str(trace.kind(kind).category))
            && vocabulary.signatures.events(kind) > 0
    });
    for track in trace.tracks() {
        for (index, kind) in track.events_of(&nodes) {
            if types.contains_key(&kind) {
                continue;
            }
            let mut found = None;
            trace.args_at(track, index).visit(|name, value| {
                if name == key {
                    found = value.as_str().map(str::to_owned);
                }
            });
            types.insert(kind, found.unwrap_or_default());
        }
    }
    types.retain(|_, name| !name.is_empty());
    types
}
