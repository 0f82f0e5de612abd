//! What Kineto leaves out of its Perfetto traces. Its JSON has a category per event; here only the event's arguments, as the
//! text of a JSON object without its braces, show what it was.

use stepscope_trace::{Datum, StrId, TraceBuilder};

use crate::chrome::args::members;

/// The argument that holds all others.
const METADATA: &str = "metadata";

/// Puts the members of Kineto's only argument in its place. Returns the category that the event has in Kineto's JSON;
/// `None` if Kineto did not write it.
pub(super) fn unfold(
    builder: &mut TraceBuilder,
    name: &str,
    args: &mut Vec<(StrId, Datum)>,
    from: usize,
) -> Option<&'static str> {
    let place = args.iter().skip(from).position(|(key, _)| builder.strings.get(*key) == METADATA)? + from;
    let &(_, Datum::Str(text)) = args.get(place)? else { return None };
    let text = builder.strings.get(text).trim();
    if !text.starts_with('"') {
        return None;
    }
    let object = format!("{{{text}}}");
    args.remove(place);
    members(builder, object.as_bytes(), args);
    let has = |wanted: &str| args.iter().skip(from).any(|(key, _)| builder.strings.get(*key) == wanted);
    Some(category(name, has))
}

fn category(name: &str, has: impl Fn(&str) -> bool) -> &'static str {
    if has("grid") || has("registers per thread") {
        "kernel"
    } else if has("bytes") && has("stream") {
        if name.starts_with("Memset") { "gpu_memset" } else { "gpu_memcpy" }
    } else if has("cuda_sync_kind") {
        "cuda_sync"
    } else if has("cbid") {
        "cuda_runtime"
    } else if has("Python id") {
        "python_function"
    } else if has("Device Type") || name == "[memory]" {
        "cpu_instant_event"
    } else if name.contains("::") {
        "cpu_op"
    } else {
        "user_annotation"
    }
}
