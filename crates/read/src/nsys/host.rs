//! The host side: calls of CUDA and its libraries, system libraries, the profiler's own overhead, and sampled
//! thread positions.

use rustc_hash::FxHashMap;
use stepscope_trace::{Datum, Form, KindId, StrId};

use super::database::Which;
use super::names::{call_category, without_version};
use super::places::{Row, Thread};
use super::{Import, OddTimes};

/// Reads everything that happened on threads, except user-defined ranges.
pub(super) fn read(import: &mut Import) {
    read_calls(import);
    for (table, category) in [
        ("CUBLAS_EVENTS", "cublas"),
        ("CUDNN_EVENTS", "cudnn"),
        ("CUPTI_ACTIVITY_KIND_OVERHEAD", "overhead"),
        ("PROFILER_OVERHEAD", "overhead"),
    ] {
        read_named(import, table, category, Row::Thread);
    }
    read_named(import, "OSRT_API", "osrt", Row::SystemCalls);
    read_samples(import);
}

const CALLS: &str = "CUPTI_ACTIVITY_KIND_RUNTIME";

/// Calls of the CUDA runtime and driver, with the device work that they launched.
fn read_calls(import: &mut Import) {
    if !import.has_times(CALLS) {
        return;
    }
    let correlation = import.intern("correlation");
    let failed = import.intern("return value");
    let mut kinds: FxHashMap<Option<i64>, KindId> = FxHashMap::default();
    let mut odd = OddTimes::default();
    let columns = ["start", "end", "globalTid", "correlationId", "nameId", "returnValue"];
    let outcome = import.database.rows(CALLS, &columns, |row| {
        let Some(times) = odd.take(row.int(0), row.int(1)) else { return };
        let thread = Thread::of(row.int(2).unwrap_or(0));
        let kind = *kinds.entry(row.int(4)).or_insert_with_key(|&name| call_kind(import, name));
        let id = row.int(3).filter(|&id| id > 0).map(|id| import.places.correlation(thread.pid, id));
        let own = [
            id.map(|id| (correlation, Datum::Int(id))),
            row.int(5).filter(|&code| code != 0).map(|code| (failed, Datum::Int(code))),
        ];
        let own: Vec<_> = own.into_iter().flatten().collect();
        let args = import.builder.arena.push(&own, &[]);
        let track = import.places.track(Row::Thread(thread), &mut import.builder);
        import.event(track, times, kind, args);
    });
    odd.note(CALLS, &mut import.builder);
    import.settle(CALLS, outcome);
}

fn call_kind(import: &mut Import, name: Option<i64>) -> KindId {
    let recorded = import.names.get(name, &mut import.builder);
    let name = without_version(import.builder.strings.get(recorded)).to_owned();
    let category = import.intern(call_category(&name));
    let name = import.intern(&name);
    import.kind(name, category, Form::Slice)
}

/// A table whose rows have only a thread, a name and times.
fn read_named(import: &mut Import, table: &str, category: &str, place: fn(Thread) -> Row) {
    if !import.has_times(table) {
        return;
    }
    let category = import.intern(category);
    let mut odd = OddTimes::default();
    let outcome = import.database.rows(table, &["start", "end", "globalTid", "nameId"], |row| {
        let Some(times) = odd.take(row.int(0), row.int(1)) else { return };
        let name = import.names.get(row.int(3), &mut import.builder);
        let kind = import.kind(name, category, Form::Slice);
        let thread = Thread::of(row.int(2).unwrap_or(0));
        let track = import.places.track(place(thread), &mut import.builder);
        import.event(track, times, kind, None);
    });
    odd.note(table, &mut import.builder);
    import.settle(table, outcome);
}

const SAMPLES: &str = "COMPOSITE_EVENTS";
const STACKS: &str = "SAMPLING_CALLCHAINS";

/// CPU samples: one instant each, named after the innermost function.
fn read_samples(import: &mut Import) {
    if !import.has_times(SAMPLES) {
        return;
    }
    let mut innermost: FxHashMap<i64, StrId> = FxHashMap::default();
    let which = Which::Number("stackDepth", 0);
    let outcome = import.database.rows_where(STACKS, &["id", "symbol"], which, |row| {
        if let Some(id) = row.int(0) {
            innermost.insert(id, import.names.get(row.int(1), &mut import.builder));
        }
    });
    import.settle(STACKS, outcome);
    let category = import.intern("cpu_sample");
    let unknown = import.intern("sample");
    let mut odd = OddTimes::default();
    let outcome = import.database.rows(SAMPLES, &["start", "globalTid", "id"], |row| {
        let Some(times) = odd.point(row.int(0)) else { return };
        let name = row.int(2).and_then(|id| innermost.get(&id)).copied().unwrap_or(unknown);
        let kind = import.kind(name, category, Form::Instant);
        let thread = Thread::of(row.int(1).unwrap_or(0));
        let track = import.places.track(Row::Samples(thread), &mut import.builder);
        import.event(track, times, kind, None);
    });
    odd.note(SAMPLES, &mut import.builder);
    import.settle(SAMPLES, outcome);
}
