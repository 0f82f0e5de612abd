//! XPlane profiles, written byte by byte: plain structs in the format's own terms, and their encoding.
//!
//! Zero numbers and empty texts are omitted, as in protobuf, except if presence itself matters: an event's
//! offset and a stat's value.

/// A protobuf message being written, field by field.
#[derive(Clone, Debug, Default)]
pub struct Message(pub Vec<u8>);

impl Message {
    /// Appends a bare varint.
    pub fn raw_varint(&mut self, mut v: u64) {
        while v >= 0x80 {
            self.0.push(v as u8 | 0x80);
            v >>= 7;
        }
        self.0.push(v as u8);
    }

    /// Appends a varint field.
    pub fn varint(&mut self, number: u32, v: u64) {
        self.raw_varint(u64::from(number) << 3);
        self.raw_varint(v);
    }

    /// Appends a field of eight bytes.
    pub fn fixed64(&mut self, number: u32, v: u64) {
        self.raw_varint(u64::from(number) << 3 | 1);
        self.0.extend_from_slice(&v.to_le_bytes());
    }

    /// Appends a field of four bytes.
    pub fn fixed32(&mut self, number: u32, v: u32) {
        self.raw_varint(u64::from(number) << 3 | 5);
        self.0.extend_from_slice(&v.to_le_bytes());
    }

    /// Appends a length-delimited field.
    pub fn bytes(&mut self, number: u32, bytes: &[u8]) {
        self.raw_varint(u64::from(number) << 3 | 2);
        self.raw_varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn number(&mut self, number: u32, v: i64) {
        if v != 0 {
            self.varint(number, v as u64);
        }
    }

    fn text(&mut self, number: u32, text: &str) {
        if !text.is_empty() {
            self.bytes(number, text.as_bytes());
        }
    }
}

/// A whole profile.
#[derive(Clone, Debug, Default)]
pub struct XSpace {
    /// Its planes.
    pub planes: Vec<XPlane>,
    /// The profiler's errors.
    pub errors: Vec<String>,
    /// The profiler's warnings.
    pub warnings: Vec<String>,
    /// The hosts' names.
    pub hostnames: Vec<String>,
}

/// A source of events.
#[derive(Clone, Debug, Default)]
pub struct XPlane {
    /// Its number.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// Its timelines.
    pub lines: Vec<XLine>,
    /// Kinds of events, by metadata id.
    pub event_metadata: Vec<(i64, XEventMetadata)>,
    /// Names of stats and shared strings, by metadata id.
    pub stat_metadata: Vec<(i64, String)>,
    /// Stats of the whole plane.
    pub stats: Vec<XStat>,
}

/// A timeline.
#[derive(Clone, Debug, Default)]
pub struct XLine {
    /// Its number.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// The display name, if different.
    pub display_name: String,
    /// The display number, if different.
    pub display_id: i64,
    /// Start of its time.
    pub timestamp_ns: i64,
    /// How long it was recorded.
    pub duration_ps: i64,
    /// Its events.
    pub events: Vec<XEvent>,
}

/// Position of an event.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// Picoseconds after the start of the line.
    Offset(i64),
    /// None: it stands for this many occurrences.
    Occurrences(i64),
    /// Not stated in the file.
    Unsaid,
}

/// An event.
#[derive(Clone, Debug)]
pub struct XEvent {
    /// What it is.
    pub metadata_id: i64,
    /// Where it lies.
    pub place: Position,
    /// How long it took.
    pub duration_ps: i64,
    /// Its arguments.
    pub stats: Vec<XStat>,
}

/// A kind of event.
#[derive(Clone, Debug, Default)]
pub struct XEventMetadata {
    /// Its name.
    pub name: String,
    /// The display name, if different.
    pub display_name: String,
    /// A message about it, as bytes.
    pub metadata: Vec<u8>,
    /// Arguments that all its events share.
    pub stats: Vec<XStat>,
}

/// An argument.
#[derive(Clone, Debug, PartialEq)]
pub struct XStat {
    /// Its name, as a metadata id.
    pub metadata_id: i64,
    /// Its value.
    pub value: XValue,
}

/// The value of an argument.
#[derive(Clone, Debug, PartialEq)]
pub enum XValue {
    /// A floating-point number.
    Double(f64),
    /// An unsigned integer.
    UInt64(u64),
    /// A signed integer.
    Int64(i64),
    /// Text.
    Str(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Text that is the name of a stat's metadata.
    Ref(u64),
    /// No value at all.
    None,
}

impl XSpace {
    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Message::default();
        self.planes.iter().for_each(|plane| out.bytes(1, &plane.encode()));
        for (number, texts) in [(2, &self.errors), (3, &self.warnings), (4, &self.hostnames)] {
            texts.iter().for_each(|text| out.bytes(number, text.as_bytes()));
        }
        out.0
    }

    /// Number of events.
    pub fn events(&self) -> usize {
        self.planes.iter().flat_map(|plane| &plane.lines).map(|line| line.events.len()).sum()
    }
}

impl XPlane {
    /// A plane with a name and nothing else.
    pub fn named(name: &str) -> Self {
        XPlane { name: name.to_owned(), ..XPlane::default() }
    }

    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Message::default();
        out.number(1, self.id);
        out.text(2, &self.name);
        self.lines.iter().for_each(|line| out.bytes(3, &line.encode()));
        for (id, metadata) in &self.event_metadata {
            out.bytes(4, &map_entry(*id, &metadata.encode(*id)));
        }
        for (id, name) in &self.stat_metadata {
            let mut metadata = Message::default();
            metadata.number(1, *id);
            metadata.text(2, name);
            out.bytes(5, &map_entry(*id, &metadata.0));
        }
        self.stats.iter().for_each(|stat| out.bytes(6, &stat.encode()));
        out.0
    }
}

fn map_entry(key: i64, value: &[u8]) -> Vec<u8> {
    let mut entry = Message::default();
    entry.varint(1, key as u64);
    entry.bytes(2, value);
    entry.0
}

impl XLine {
    /// Its bytes, fields in the order of their numbers: the description of the line is on both sides of its
    /// events.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Message::default();
        out.number(1, self.id);
        out.text(2, &self.name);
        out.number(3, self.timestamp_ns);
        self.events.iter().for_each(|event| out.bytes(4, &event.encode()));
        out.number(9, self.duration_ps);
        out.number(10, self.display_id);
        out.text(11, &self.display_name);
        out.0
    }
}

impl XEvent {
    /// An event without arguments.
    pub fn at(offset_ps: i64, duration_ps: i64, metadata_id: i64) -> Self {
        XEvent { metadata_id, place: Position::Offset(offset_ps), duration_ps, stats: Vec::new() }
    }

    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Message::default();
        out.number(1, self.metadata_id);
        if let Position::Offset(ps) = self.place {
            out.varint(2, ps as u64);
        }
        out.number(3, self.duration_ps);
        self.stats.iter().for_each(|stat| out.bytes(4, &stat.encode()));
        if let Position::Occurrences(count) = self.place {
            out.varint(5, count as u64);
        }
        out.0
    }
}

impl XEventMetadata {
    /// Metadata with a name and nothing else.
    pub fn named(name: &str) -> Self {
        XEventMetadata { name: name.to_owned(), ..XEventMetadata::default() }
    }

    fn encode(&self, id: i64) -> Vec<u8> {
        let mut out = Message::default();
        out.number(1, id);
        out.text(2, &self.name);
        if !self.metadata.is_empty() {
            out.bytes(3, &self.metadata);
        }
        out.text(4, &self.display_name);
        self.stats.iter().for_each(|stat| out.bytes(5, &stat.encode()));
        out.0
    }
}

impl XStat {
    /// An argument.
    pub fn new(metadata_id: i64, value: XValue) -> Self {
        XStat { metadata_id, value }
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Message::default();
        out.number(1, self.metadata_id);
        match &self.value {
            XValue::Double(v) => out.fixed64(2, v.to_bits()),
            XValue::UInt64(v) => out.varint(3, *v),
            XValue::Int64(v) => out.varint(4, *v as u64),
            XValue::Str(text) => out.bytes(5, text.as_bytes()),
            XValue::Bytes(bytes) => out.bytes(6, bytes),
            XValue::Ref(id) => out.varint(7, *id),
            XValue::None => {}
        }
        out.0
    }
}
