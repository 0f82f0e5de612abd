//! The native report, as documented in NVIDIA's Customization Guide: `NVR\0`, the length of the header, the
//! header, then blocks. A block is a length, its header (number of sources and results, the strings, the size
//! of the payload), and a payload of length-prefixed messages: sources first, then results. Values are in base
//! units.
//!
//! By hand, over the same wire reader as XPlane, for the same reason: damage keeps what came before it.

use std::ops::Range;

use stepscope_trace::{Datum, StrId};

use super::launch::{Attributes, Launch, Profile};
use stepscope_wire::{Payload, walk};

/// First bytes of every report.
pub(super) const MAGIC: &[u8] = b"NVR\0";

/// Field numbers, by message.
mod field {
    pub(super) mod block {
        pub(in super::super) const SOURCES: u32 = 1;
        pub(in super::super) const RESULTS: u32 = 2;
        pub(in super::super) const SESSION: u32 = 3;
        pub(in super::super) const STRINGS: u32 = 4;
        pub(in super::super) const PAYLOAD: u32 = 5;
    }
    pub(super) mod session {
        pub(in super::super) const CREATED: u32 = 2;
        pub(in super::super) const DEVICE: u32 = 6;
        pub(in super::super) const VERSION: u32 = 8;
    }
    pub(super) mod result {
        pub(in super::super) const MANGLED: u32 = 5;
        pub(in super::super) const FUNCTION: u32 = 6;
        pub(in super::super) const DEMANGLED: u32 = 7;
        pub(in super::super) const GRID: u32 = 10;
        pub(in super::super) const BLOCK: u32 = 11;
        pub(in super::super) const METRIC: u32 = 13;
        pub(in super::super) const CONTEXT: u32 = 22;
        pub(in super::super) const STREAM: u32 = 23;
    }
    pub(super) mod value {
        pub(in super::super) const TEXT: u32 = 1;
        pub(in super::super) const FLOAT: u32 = 2;
        pub(in super::super) const DOUBLE: u32 = 3;
        pub(in super::super) const SMALL: u32 = 4;
        pub(in super::super) const LARGE: u32 = 5;
    }
}

/// Reads a report. Damage ends it; everything before is kept.
pub(super) fn read(file: &[u8]) -> Profile {
    let mut report = Report { file, profile: Profile::new(), strings: Vec::new(), dangling: 0 };
    let mut at = MAGIC.len();
    // The header only contains the version of the format.
    match report.message(&mut at) {
        None => report.profile.damaged("header is truncated", at),
        Some(_) => while at < file.len() && report.block(&mut at) {},
    }
    let dangling = report.dangling;
    let kind = stepscope_trace::NoteKind::DanglingReference;
    report.profile.builder.note(kind, "string table", dangling, None);
    report.profile
}

struct Report<'f> {
    file: &'f [u8],
    profile: Profile,
    /// Strings of all blocks so far; messages refer to them by number.
    strings: Vec<StrId>,
    dangling: u64,
}

/// What a block's header says.
#[derive(Default)]
struct Block {
    sources: u64,
    results: u64,
    payload: u64,
}

impl Report<'_> {
    /// The message whose length is at `at`.
    fn message(&self, at: &mut usize) -> Option<Range<usize>> {
        let length = self.file.get(*at..)?.first_chunk::<4>()?;
        let start = *at + 4;
        let end =
            start.checked_add(u32::from_le_bytes(*length) as usize).filter(|&end| end <= self.file.len())?;
        *at = end;
        Some(start..end)
    }

    /// Reads a block; `false` if the file ends inside it.
    fn block(&mut self, at: &mut usize) -> bool {
        let Some(header) = self.message(at) else {
            self.profile.damaged("block is truncated", *at);
            return false;
        };
        let block = self.block_header(header);
        let payload = usize::try_from(block.payload).ok().and_then(|size| at.checked_add(size));
        let end = payload.unwrap_or(self.file.len()).min(self.file.len());
        let mut number = 0;
        while *at < end {
            let Some(message) = self.message(at).filter(|message| message.end <= end) else {
                self.profile.damaged("payload is truncated", *at);
                return false;
            };
            if number >= block.sources && number < block.sources.saturating_add(block.results) {
                self.result(message);
            }
            number += 1;
        }
        true
    }

    fn block_header(&mut self, header: Range<usize>) -> Block {
        let mut block = Block::default();
        let (mut session, mut table) = (None, None);
        let broken = walk(self.file, header, |found| match (found.number, found.value) {
            (field::block::SOURCES, Payload::Varint(count)) => block.sources = count,
            (field::block::RESULTS, Payload::Varint(count)) => block.results = count,
            (field::block::PAYLOAD, Payload::Varint(size)) => block.payload = size,
            (field::block::SESSION, Payload::Len(range)) => session = Some(range),
            (field::block::STRINGS, Payload::Len(range)) => table = Some(range),
            _ => {}
        });
        if let Some(broken) = broken {
            self.profile.damaged(broken.what, broken.at);
        }
        if let Some(table) = table {
            self.add_strings(table);
        }
        if let Some(session) = session {
            self.session(session);
        }
        block
    }

    fn add_strings(&mut self, table: Range<usize>) {
        let Report { file, profile, strings, .. } = self;
        walk(file, table, |found| {
            if let (1, Payload::Len(range)) = (found.number, found.value) {
                strings.push(profile.builder.strings.intern_bytes(&file[range]));
            }
        });
    }

    /// Time, versions and devices. Host names and addresses are not read.
    fn session(&mut self, session: Range<usize>) {
        let (mut devices, mut versions) = (Vec::new(), Vec::new());
        let mut created = None;
        walk(self.file, session, |found| match (found.number, found.value) {
            (field::session::CREATED, Payload::Varint(seconds)) => created = i64::try_from(seconds).ok(),
            (field::session::DEVICE, Payload::Len(range)) => devices.push(range),
            (field::session::VERSION, Payload::Len(range)) => versions.push(range),
            _ => {}
        });
        if let Some(wall) = created.and_then(|seconds| seconds.checked_mul(1_000_000_000)) {
            self.profile.builder.clock.wall_ns_at_origin.get_or_insert(wall);
        }
        for version in versions {
            let (name, value) = self.pair(version);
            if !name.is_empty() && !value.is_empty() {
                let property = self.profile.builder.text_property(&name, &value);
                self.profile.builder.environment.versions.push(property);
            }
        }
        for device in devices {
            self.device(device);
        }
    }

    fn pair(&self, range: Range<usize>) -> (String, String) {
        let (mut name, mut value) = (String::new(), String::new());
        walk(self.file, range, |found| {
            if let Payload::Len(range) = found.value {
                let text = String::from_utf8_lossy(&self.file[range]).into_owned();
                match found.number {
                    1 => name = text,
                    2 => value = text,
                    _ => {}
                }
            }
        });
        (name, value)
    }

    fn device(&mut self, device: Range<usize>) {
        let mut number = 0;
        let (mut name, mut attributes) = (None, Vec::new());
        walk(self.file, device, |found| match (found.number, found.value) {
            (1, Payload::Varint(id)) => number = i64::try_from(id).unwrap_or(0),
            (2, Payload::Len(range)) => name = Some(range),
            (3, Payload::Len(range)) => attributes.push(range),
            _ => {}
        });
        let mut known = Attributes::default();
        for attribute in attributes {
            let (mut key, mut value) = (String::new(), None);
            walk(self.file, attribute, |found| match (found.number, found.value) {
                (1, Payload::Len(range)) => key = String::from_utf8_lossy(&self.file[range]).into_owned(),
                (2, Payload::Len(range)) => value = Some(range),
                _ => {}
            });
            let key = key.strip_prefix("device__attribute_").unwrap_or(&key).to_owned();
            if let Some(value) = value.and_then(|range| self.value(range)) {
                known.insert(key, value);
            }
        }
        if let Some(name) = name {
            let name = Datum::Str(self.profile.builder.strings.intern_bytes(&self.file[name]));
            known.insert("display_name".to_owned(), name);
        }
        self.profile.add_device(number, &known);
    }

    fn value(&mut self, range: Range<usize>) -> Option<Datum> {
        let mut value = None;
        let (file, strings) = (self.file, &mut self.profile.builder.strings);
        walk(file, range, |found| {
            value = match (found.number, found.value) {
                (field::value::TEXT, Payload::Len(range)) => {
                    Some(Datum::Str(strings.intern_bytes(&file[range])))
                }
                (field::value::FLOAT, Payload::Fixed32(bits)) => {
                    Some(Datum::Float(f64::from(f32::from_bits(bits))))
                }
                (field::value::DOUBLE, Payload::Fixed64(bits)) => Some(Datum::Float(f64::from_bits(bits))),
                (field::value::SMALL | field::value::LARGE, Payload::Varint(number)) => {
                    Some(Datum::UInt(number))
                }
                _ => return,
            };
        });
        value
    }

    /// One profiled launch.
    fn result(&mut self, message: Range<usize>) {
        let mut launch = Launch::default();
        let (mut names, mut metrics) = ([None, None, None], Vec::new());
        let file = self.file;
        let broken = walk(file, message, |found| match (found.number, found.value) {
            (field::result::DEMANGLED, Payload::Len(range)) => names[0] = Some(range),
            (field::result::FUNCTION, Payload::Len(range)) => names[1] = Some(range),
            (field::result::MANGLED, Payload::Len(range)) => names[2] = Some(range),
            (field::result::GRID, Payload::Len(range)) => launch.grid = shape(file, range),
            (field::result::BLOCK, Payload::Len(range)) => launch.block = shape(file, range),
            (field::result::CONTEXT, Payload::Varint(id)) => launch.context = i64::try_from(id).ok(),
            (field::result::STREAM, Payload::Varint(id)) => launch.stream = i64::try_from(id).ok(),
            (field::result::METRIC, Payload::Len(range)) => metrics.push(range),
            _ => {}
        });
        if let Some(broken) = broken {
            self.profile.damaged(broken.what, broken.at);
        }
        let name = names.into_iter().flatten().find(|name| !name.is_empty());
        launch.name = name.map(|name| String::from_utf8_lossy(&file[name]).into_owned()).unwrap_or_default();
        launch.metrics = metrics.into_iter().filter_map(|range| self.metric(range)).collect();
        self.profile.add(launch);
    }

    /// Name and value of a metric; `None` if it only has per-instance values.
    fn metric(&mut self, range: Range<usize>) -> Option<(StrId, Datum)> {
        let (mut name, mut value) = (0, None);
        walk(self.file, range, |found| match (found.number, found.value) {
            (1, Payload::Varint(id)) => name = id,
            (2, Payload::Len(range)) => value = Some(range),
            _ => {}
        });
        let value = self.value(value?)?;
        let known = usize::try_from(name).ok().and_then(|name| self.strings.get(name));
        self.dangling += u64::from(known.is_none());
        known.map(|&name| (name, value))
    }
}

/// Three sizes; an omitted size is 0 in protobuf, and 1 here.
fn shape(file: &[u8], range: Range<usize>) -> Option<[i64; 3]> {
    let mut sizes = [0_i64; 3];
    walk(file, range, |found| {
        if let (number @ 1..=3, Payload::Varint(size)) = (found.number, found.value) {
            sizes[number as usize - 1] = i64::try_from(size).unwrap_or(0);
        }
    });
    (sizes != [0; 3]).then(|| sizes.map(|size| size.max(1)))
}
