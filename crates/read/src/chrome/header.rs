//! Data beside the events: devices, versions, capture options, the profiler's own messages.

use stepscope_trace::{Datum, Device, DeviceKind, NoteKind, Property, StrId, TraceBuilder};

use super::repair::Repairs;
use super::scan::{Piece, Scan, Scanner, Sort, Within};
use super::text;

/// Capture options, as profilers name them.
const CAPTURE: [&[u8]; 9] = [
    b"schemaVersion",
    b"displayTimeUnit",
    b"traceName",
    b"trace_id",
    b"with_stack",
    b"record_shapes",
    b"with_flops",
    b"profile_memory",
    b"with_modules",
];

/// Other keys that only a trace has at its top level.
const OTHERS: [&[u8]; 8] = [
    b"traceEvents",
    b"deviceProperties",
    b"distributedInfo",
    b"baseTimeNanoseconds",
    b"INFO",
    b"WARNING",
    b"ERROR",
    b"metadata",
];

/// Whether a trace may have this key at its top level.
pub(super) fn is_known(key: &[u8]) -> bool {
    CAPTURE.contains(&key) || OTHERS.contains(&key) || is_version(key) || is_host(key)
}

/// Whether hardly any other JSON has this key at its top level.
pub(super) fn is_typical(key: &[u8]) -> bool {
    const TYPICAL: [&[u8]; 4] =
        [b"deviceProperties", b"distributedInfo", b"baseTimeNanoseconds", b"displayTimeUnit"];
    TYPICAL.contains(&key)
}

fn is_version(key: &[u8]) -> bool {
    key.ends_with(b"_version")
}

fn is_host(key: &[u8]) -> bool {
    matches!(key, b"host_name" | b"hostname")
}

/// Header data that can only be used once all events are known.
#[derive(Default)]
pub(super) struct Header {
    /// Offset to add to every time.
    pub(super) base_ns: Option<i64>,
    /// Devices as listed, not yet assigned to processes.
    pub(super) devices: Vec<Device>,
}

impl Header {
    /// Handles one member of the top-level object, other than the events.
    pub(super) fn take(
        &mut self,
        builder: &mut TraceBuilder,
        text: &[u8],
        key: Piece,
        value: Piece,
        repairs: &mut Repairs,
    ) {
        let name = key.of(text);
        match name {
            b"baseTimeNanoseconds" => self.base_ns = text::integer(value.of(text)),
            b"deviceProperties" => {
                // Unreadable list items were already counted by an earlier scan.
                let _ = self.devices(builder, text, value, repairs);
            }
            b"distributedInfo" => {
                let found = flat(builder, text, value, true, repairs);
                builder.environment.distributed.extend(found);
            }
            b"metadata" | b"otherData" => {
                let found = flat(builder, text, value, false, repairs);
                builder.environment.capture.extend(found);
            }
            b"WARNING" => messages(builder, text, value, NoteKind::CollectionWarning, repairs),
            b"ERROR" => messages(builder, text, value, NoteKind::CollectionError, repairs),
            _ if is_host(name) => {
                builder.environment.host = Some(text::intern(&mut builder.strings, text, value, repairs));
            }
            _ if is_version(name) => {
                let property = property(builder, text, key, value, repairs);
                builder.environment.versions.push(property);
            }
            _ if CAPTURE.contains(&name) => {
                let property = property(builder, text, key, value, repairs);
                builder.environment.capture.push(property);
            }
            _ if is_known(name) || value.sort != Sort::Nested => {}
            _ => {
                let name = text::decode(text, key, repairs);
                builder.note(NoteKind::Unknown, &name, 1, None);
            }
        }
    }

    fn devices(
        &mut self,
        builder: &mut TraceBuilder,
        text: &[u8],
        list: Piece,
        repairs: &mut Repairs,
    ) -> Scan<()> {
        let mut scanner = Scanner::new(text, list.start);
        if scanner.peek()? != b'[' {
            return Ok(());
        }
        scanner.at += 1;
        let mut first = true;
        while let Some(item) = scanner.element(first)? {
            first = false;
            let properties = flat(builder, text, item, true, repairs);
            if !properties.is_empty() {
                self.devices.push(device(builder, properties));
            }
        }
        Ok(())
    }
}

fn property(
    builder: &mut TraceBuilder,
    text: &[u8],
    key: Piece,
    value: Piece,
    repairs: &mut Repairs,
) -> Property {
    let key = text::intern(&mut builder.strings, text, key, repairs);
    Property { key, value: text::datum(&mut builder.strings, text, value, repairs) }
}

/// The members of an object; lists and nested objects only if `nested`. Never environment variables.
fn flat(
    builder: &mut TraceBuilder,
    text: &[u8],
    object: Piece,
    nested: bool,
    repairs: &mut Repairs,
) -> Vec<Property> {
    let mut found = Vec::new();
    let mut scanner = Scanner::new(text, object.start);
    if scanner.peek() != Ok(b'{') {
        return found;
    }
    scanner.at += 1;
    let mut first = true;
    while let Ok(Some(key)) = scanner.member(first) {
        first = false;
        let Ok(value) = scanner.value(Within::Member) else { break };
        if !is_environment(key.of(text)) && (nested || value.sort != Sort::Nested) {
            found.push(property(builder, text, key, value, repairs));
        }
    }
    found
}

/// Whether the key looks like a dump of the process environment.
fn is_environment(key: &[u8]) -> bool {
    let key = key.to_ascii_lowercase();
    let parts: Vec<&[u8]> = key.split(|byte| !byte.is_ascii_alphanumeric()).collect();
    let is = |part: &&[u8]| matches!(*part, b"env" | b"envs" | b"environ" | b"environment" | b"envvars");
    parts.iter().any(is)
}

fn messages(builder: &mut TraceBuilder, text: &[u8], list: Piece, kind: NoteKind, repairs: &mut Repairs) {
    if list.sort != Sort::Nested {
        let message = text::decode(text, list, repairs);
        builder.note(kind, &message, 1, None);
        return;
    }
    /// Notes are searched one by one; more than this would not be read.
    const ENOUGH: usize = 1_000;
    let mut scanner = Scanner::new(text, list.start + 1);
    for index in 0..ENOUGH {
        let Ok(Some(message)) = scanner.element(index == 0) else { return };
        let message = text::decode(text, message, repairs);
        builder.note(kind, &message, 1, None);
    }
}

fn device(builder: &TraceBuilder, properties: Vec<Property>) -> Device {
    let get = |name: &str| {
        let named = |property: &&Property| builder.strings.get(property.key) == name;
        properties.iter().find(named).map(|property| property.value)
    };
    let whole = |name: &str| match get(name)? {
        Datum::Int(value) => u64::try_from(value).ok(),
        Datum::UInt(value) => Some(value),
        _ => None,
    };
    // A profiler that does not know a value writes 0.
    let known = |name: &str| whole(name).filter(|&value| value > 0);
    let small = |name: &str| known(name).and_then(|value| u32::try_from(value).ok());
    let number = whole("id").and_then(|id| i64::try_from(id).ok()).unwrap_or(0);
    let capability = small("computeMajor").map(|major| {
        let minor = whole("computeMinor").and_then(|minor| u32::try_from(minor).ok());
        (major, minor.unwrap_or(0))
    });
    let name = match get("name") {
        Some(Datum::Str(name)) => name,
        _ => StrId::default(),
    };
    Device {
        name,
        multiprocessors: small("numSms"),
        memory_bytes: known("totalGlobalMem"),
        compute_capability: capability,
        warp_size: small("warpSize"),
        max_threads_per_multiprocessor: small("maxThreadsPerMultiprocessor"),
        registers_per_multiprocessor: small("regsPerMultiprocessor"),
        shared_memory_per_multiprocessor: known("sharedMemPerMultiprocessor"),
        properties,
        ..Device::new(DeviceKind::Gpu, number)
    }
}
