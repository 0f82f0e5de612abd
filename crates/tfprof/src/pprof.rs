//! The code view as a profile for pprof (profile.proto, compressed): one sample per graph node, its stack from the
//! innermost call outwards.
//!
//! Written by hand: seven messages of numbers, which no generated code makes shorter.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::code::{GRADIENT, Tree, TreeFrame, text};
use crate::options::Column;
use crate::profile::{Node, Profile};
use crate::rows::{Of, Row};

/// Unit and comment of a column that pprof can show.
fn about(column: Column) -> Option<(&'static str, &'static str)> {
    Some(match column {
        Column::Micros => ("microseconds", "Sum of accelerator execution time and cpu execution time."),
        Column::AcceleratorMicros => ("microseconds", "Accelerator execution time."),
        Column::CpuMicros => ("microseconds", "CPU execution time."),
        Column::Bytes => ("bytes", "Sum of operation total memory requests, excluding deallocations."),
        Column::PeakBytes => ("bytes", "Sum of operation peak memory usage."),
        Column::ResidualBytes => ("bytes", "Sum of operation allocated memory after finish."),
        Column::OutputBytes => ("bytes", "Sum of operation output size."),
        Column::Params => ("count", "Model parameters."),
        Column::FloatOps => ("count", "Model float operations (Only available if defined)."),
        _ => return None,
    })
}

/// Is it a column of numbers?
pub(crate) fn can_show(column: Column) -> bool {
    about(column).is_some()
}

fn value_of(node: &Node, step: i64, column: Column) -> i64 {
    let measures = node.measures(step);
    match column {
        Column::AcceleratorMicros => measures.accelerator_micros,
        Column::CpuMicros => measures.cpu_micros,
        Column::Bytes => measures.requested_bytes,
        Column::PeakBytes => measures.peak_bytes,
        Column::ResidualBytes => measures.residual_bytes,
        Column::OutputBytes => measures.output_bytes,
        Column::Params => measures.parameters,
        Column::FloatOps => measures.float_ops,
        _ => measures.exec_micros,
    }
}

/// The file's content.
pub(crate) fn profile(profile: &Profile, step: i64, tree: &Tree, rows: &[Row], column: Column) -> Vec<u8> {
    let mut writer = Writer::new(profile, tree);
    writer.strings.id("");
    writer.walk(rows, step, column);
    let message = writer.message(column);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing into memory does not fail.
    let _ = encoder.write_all(&message.0);
    encoder.finish().unwrap_or_default()
}

/// The table of texts; the empty one comes first.
#[derive(Default)]
struct Strings {
    ids: HashMap<String, u64>,
    all: Vec<String>,
}

impl Strings {
    fn id(&mut self, text: &str) -> u64 {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = self.all.len() as u64;
        self.all.push(text.to_owned());
        self.ids.insert(text.to_owned(), id);
        id
    }
}

struct Sample {
    locations: Vec<u64>,
    value: i64,
    node: u64,
}

struct Function {
    id: u64,
    name: u64,
    file: u64,
    start_line: i64,
}

struct Writer<'a> {
    profile: &'a Profile,
    tree: &'a Tree,
    strings: Strings,
    functions: BTreeMap<(String, String, i64), Function>,
    /// Caller's file, what is called, caller's line: the location's id and its function.
    locations: BTreeMap<(String, String, i64), (u64, u64)>,
    samples: BTreeMap<String, Sample>,
}

impl<'a> Writer<'a> {
    fn new(profile: &'a Profile, tree: &'a Tree) -> Self {
        Writer {
            profile,
            tree,
            strings: Strings::default(),
            functions: BTreeMap::new(),
            locations: BTreeMap::new(),
            samples: BTreeMap::new(),
        }
    }

    /// Goes down the shown rows; what has none below it is the end of a stack.
    fn walk(&mut self, rows: &[Row], step: i64, column: Column) {
        // A row, and the length of the stack above it.
        let mut open: Vec<(usize, usize, Option<usize>)> = vec![(0, 0, None)];
        let mut stack: Vec<u64> = Vec::new();
        while let Some((at, depth, caller)) = open.pop() {
            stack.truncate(depth);
            if let Some(caller) = caller.filter(|&caller| self.tree.frames[caller].frame.is_some()) {
                let location = self.location(at, caller);
                stack.push(location);
            }
            let shown = &rows[at].shown;
            if shown.is_empty() && self.tree.frames[at].frame.is_some() {
                self.sample(rows, at, &stack, step, column);
            }
            let depth = stack.len();
            open.extend(shown.iter().rev().map(|&child| (child, depth, Some(at))));
        }
    }

    fn names(&self, at: usize) -> (String, String, i64, i64) {
        let TreeFrame { frame, gradient, .. } = &self.tree.frames[at];
        let Some(frame) = frame else { return Default::default() };
        let suffix = if *gradient { GRADIENT } else { "" };
        let function = format!("{}{suffix}", text(self.profile, frame.function));
        let file = text(self.profile, frame.file).to_owned();
        (file, function, i64::from(frame.line), i64::from(frame.function_line))
    }

    fn location(&mut self, callee: usize, caller: usize) -> u64 {
        let (file, _, line, _) = self.names(caller);
        let (callee_file, function, _, start_line) = self.names(callee);
        let key = (file, function.clone(), line);
        if let Some((id, _)) = self.locations.get(&key) {
            return *id;
        }
        let id = self.locations.len() as u64 + 1;
        let function = self.function(callee_file, function, start_line);
        self.locations.insert(key, (id, function));
        id
    }

    fn function(&mut self, file: String, name: String, start_line: i64) -> u64 {
        let key = (file, name, start_line);
        if let Some(function) = self.functions.get(&key) {
            return function.id;
        }
        let id = self.functions.len() as u64 + 1;
        let base = key.0.rsplit('/').next().unwrap_or_default();
        let stem = base.rsplit_once('.').map_or(base, |(stem, _)| stem);
        let name = self.strings.id(&format!("{stem}:{}", key.1));
        let file = self.strings.id(&key.0);
        self.functions.insert(key, Function { id, name, file, start_line });
        id
    }

    /// A sample for each node below a row, shown or not.
    fn sample(&mut self, rows: &[Row], at: usize, stack: &[u64], step: i64, column: Column) {
        let mut leaves = Vec::new();
        let mut open = vec![at];
        while let Some(at) = open.pop() {
            match self.tree.frames[at].children.is_empty() {
                true => leaves.push(at),
                false => open.extend(self.tree.frames[at].children.iter().rev()),
            }
        }
        let locations: Vec<u64> = stack.iter().rev().copied().collect();
        for leaf in leaves {
            let Of::Nodes(members) = &rows[leaf].of else { continue };
            for &index in &members.nodes {
                let node = &self.profile.nodes[index];
                let mut name = node.name.clone();
                while self.samples.contains_key(&name) {
                    name.push('@');
                }
                self.strings.id("graph node:");
                let label = self.strings.id(&node.name);
                let value = value_of(node, step, column);
                self.samples.insert(name, Sample { locations: locations.clone(), value, node: label });
            }
        }
    }

    fn message(mut self, column: Column) -> Message {
        let (unit, comment) = about(column).unwrap_or_default();
        let mut out = Message::default();
        let count = self.strings.id("count");
        let kind = self.strings.id(column.name());
        let unit = self.strings.id(unit);
        let comment = self.strings.id(comment);
        for (kind, unit) in [(count, count), (kind, unit)] {
            out.message(1, |it| {
                it.number(1, kind);
                it.number(2, unit);
            });
        }
        let key = self.strings.id("graph node:");
        for sample in self.samples.values() {
            out.message(2, |it| {
                it.packed(1, &sample.locations);
                it.packed(2, &[1, sample.value as u64]);
                it.message(3, |label| {
                    label.number(1, key);
                    label.number(2, sample.node);
                });
            });
        }
        for ((_, _, line), (id, function)) in &self.locations {
            out.message(4, |it| {
                it.number(1, *id);
                it.message(4, |inner| {
                    inner.number(1, *function);
                    inner.number(2, *line as u64);
                });
            });
        }
        for function in self.functions.values() {
            out.message(5, |it| {
                it.number(1, function.id);
                it.number(2, function.name);
                it.number(4, function.file);
                it.number(5, function.start_line as u64);
            });
        }
        for text in &self.strings.all {
            out.bytes(6, text.as_bytes());
        }
        out.packed(13, &[comment]);
        out
    }
}

/// A protobuf message being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.varint(field << 3);
            self.varint(value);
        }
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn packed(&mut self, field: u64, values: &[u64]) {
        if !values.is_empty() {
            let mut packed = Message::default();
            values.iter().for_each(|value| packed.varint(*value));
            self.bytes(field, &packed.0);
        }
    }

    fn message(&mut self, field: u64, write: impl FnOnce(&mut Message)) {
        let mut inner = Message::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }
}
