//! NVTX: ranges and marks set by users and libraries.
//!
//! PyTorch's `emit_nvtx` writes an op's number and shapes into the text of the range (`aten::mul, op_id = 42,
//! sizes = [[8]]`), which would make every op a separate kind. Everything after the name becomes arguments.

use rustc_hash::FxHashMap;
use stepscope_trace::{Datum, Form, StrId};

use super::database::{Fields, Which};
use super::payload::Schemas;
use super::places::{Row, Thread};
use super::{Import, OddTimes, Times};

const RANGES: &str = "NVTX_EVENTS";
/// Values of `eventType`.
const MARK: i64 = 34;
const PUSH_POP: i64 = 59;
const START_END: i64 = 60;
/// The same three, imported from NVTXT text files.
const TEXT_MARK: i64 = 65;
const TEXT_PUSH_POP: i64 = 70;
const TEXT_START_END: i64 = 71;
const DOMAIN: i64 = 75;

const COLUMNS: [&str; 16] = [
    "start",
    "end",
    "eventType",
    "text",
    "textId",
    "domainId",
    "globalTid",
    "endGlobalTid",
    "jsonText",
    "jsonTextId",
    "uint64Value",
    "int64Value",
    "uint32Value",
    "int32Value",
    "doubleValue",
    "binaryData",
];

struct Keys {
    domain: StrId,
    payload: StrId,
    annotation: StrId,
    op: StrId,
    schemas: Schemas,
}

/// Reads all ranges and marks.
pub(super) fn read(import: &mut Import) {
    if !import.has_times(RANGES) {
        return;
    }
    let domains = read_domains(import);
    let keys = Keys {
        domain: import.intern("domain"),
        payload: import.intern("payload"),
        annotation: import.intern("user_annotation"),
        op: import.intern("cpu_op"),
        schemas: Schemas::read(import),
    };
    let mut odd = OddTimes::default();
    let outcome = import.database.rows(RANGES, &COLUMNS, |row| {
        let point = match row.int(2) {
            Some(MARK | TEXT_MARK) => true,
            Some(PUSH_POP | START_END | TEXT_PUSH_POP | TEXT_START_END) => false,
            _ => return,
        };
        let times = if point { odd.point(row.int(0)) } else { odd.take(row.int(0), row.int(1)) };
        if let Some(times) = times {
            let form = if point || row.int(1).is_none() { Form::Instant } else { Form::Slice };
            add(import, row, times, form, &domains, &keys);
        }
    });
    odd.note(RANGES, &mut import.builder);
    import.settle(RANGES, outcome);
}

/// The names of domains, by process and number.
fn read_domains(import: &mut Import) -> FxHashMap<(i64, i64), StrId> {
    let mut domains = FxHashMap::default();
    let columns = ["eventType", "text", "textId", "domainId", "globalTid"];
    import.database.rows_where(RANGES, &columns, Which::Number("eventType", DOMAIN), |row| {
        let name = match row.text(1) {
            Some(text) => import.intern(&text),
            None => import.names.get(row.int(2), &mut import.builder),
        };
        let pid = Thread::of(row.int(4).unwrap_or(0)).pid;
        if let Some(domain) = row.int(3) {
            domains.insert((pid, domain), name);
        }
    });
    domains
}

fn add(
    import: &mut Import,
    row: &Fields,
    times: Times,
    form: Form,
    domains: &FxHashMap<(i64, i64), StrId>,
    keys: &Keys,
) {
    let thread = Thread::of(row.int(6).unwrap_or(0));
    let mut own = Vec::new();
    let (name, category) = match row.text(3) {
        Some(text) => named(import, &text, keys, &mut own),
        None => {
            let name = import.names.get(row.int(4), &mut import.builder);
            let text = import.builder.strings.get(name).to_owned();
            named(import, &text, keys, &mut own)
        }
    };
    if !keys.schemas.is_empty() {
        own.extend(row.bytes(15).into_iter().flat_map(|bytes| keys.schemas.fields(bytes)));
    }
    own.extend(payload(import, row).map(|value| (keys.payload, value)));
    let domain = row.int(5).filter(|&domain| domain != 0);
    let domain = domain.map(|domain| match domains.get(&(thread.pid, domain)) {
        Some(&name) => Datum::Str(name),
        None => Datum::Int(domain),
    });
    let shared: Vec<_> = domain.map(|domain| (keys.domain, domain)).into_iter().collect();
    let args = import.builder.arena.push(&own, &shared);
    let kind = import.kind(name, category, form);
    let ends_elsewhere = row.int(7).is_some_and(|end| Thread::of(end) != thread && end != 0);
    let place = if ends_elsewhere { Row::Ranges { pid: thread.pid } } else { Row::Thread(thread) };
    let track = import.places.track(place, &mut import.builder);
    import.event(track, times, kind, args);
}

/// The name and category of a range; everything after the name goes to `own`.
fn named(import: &mut Import, text: &str, keys: &Keys, own: &mut Vec<(StrId, Datum)>) -> (StrId, StrId) {
    let (name, details) = split_details(text);
    for (key, value) in details {
        let key = import.intern(key);
        let value = match value.parse() {
            Ok(number) => Datum::Int(number),
            Err(_) => Datum::Str(import.intern(value)),
        };
        own.push((key, value));
    }
    let is_op = !own.is_empty() && name.contains("::");
    (import.intern(name), if is_op { keys.op } else { keys.annotation })
}

/// Keys that PyTorch writes after an op's name, in this order.
const DETAILS: [&str; 5] = ["seq", "op_id", "sizes", "input_op_ids", "stashed"];

/// Splits `name, seq = 1, op_id = 2, sizes = [[…]]` into the name and its details.
fn split_details(text: &str) -> (&str, Vec<(&'static str, &str)>) {
    let mut details: Vec<(&'static str, &str)> = Vec::new();
    let mut rest = text;
    for key in DETAILS.into_iter().rev() {
        let mark = format!(", {key} = ");
        if let Some((before, value)) = rest.rsplit_once(mark.as_str()) {
            details.push((key, value));
            rest = before;
        }
    }
    details.reverse();
    (rest, details)
}

/// The payload of a range: a structure as JSON, or one number.
fn payload(import: &mut Import, row: &Fields) -> Option<Datum> {
    if let Some(text) = row.text(8) {
        return Some(Datum::Json(import.builder.strings.intern_value(&text)));
    }
    if let Some(id) = row.int(9) {
        return Some(Datum::Json(import.names.get(Some(id), &mut import.builder)));
    }
    let whole = (10..=13).find_map(|index| row.int(index));
    whole.map(Datum::Int).or_else(|| row.real(14).map(Datum::Float))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_of_an_op_are_cut_off_its_name() {
        let (name, details) = split_details("aten::mul, seq = 7, op_id = 42, sizes = [[8, 4], []]");
        assert_eq!(name, "aten::mul");
        assert_eq!(details, [("seq", "7"), ("op_id", "42"), ("sizes", "[[8, 4], []]")]);
        assert_eq!(split_details("step 7, warm"), ("step 7, warm", vec![]));
    }
}
