//! Arguments: typed key/value pairs of an event, without a heap object per event.
//!
//! An event only stores the *location* of its arguments: a position in an [`ArgSource`]. A reader whose file
//! can be mapped implements the trait over its own bytes, and an argument costs nothing until it is requested.
//! A reader that cannot keep its bytes (compressed text, a database) writes into an [`ArgArena`].
//!
//! The arena stays small in two ways. The *shape* of a record (its keys and types) is interned, so a record is
//! a shape number followed by bare values. Repeated content, such as the launch configuration of a kernel or
//! the dimensions of an op's inputs, is interned as a *shared* record that any number of events point to.

use std::borrow::Cow;
use std::fmt::Debug;
use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::ids::{ArgSourceId, StrId};
use crate::strings::StringTable;

/// A decoded argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A floating-point number; may be NaN or infinite if the file says so.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// Text.
    Str(Cow<'a, str>),
    /// Bytes that are not text, e.g. a nested message.
    Bytes(&'a [u8]),
    /// A list or an object, as JSON text.
    Json(Cow<'a, str>),
    /// Present, without a value.
    Null,
}

impl Value<'_> {
    /// The value as a signed integer, even if recorded as unsigned, boolean or decimal text.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int(v) => Some(*v),
            Value::UInt(v) => i64::try_from(*v).ok(),
            Value::Bool(v) => Some(i64::from(*v)),
            Value::Float(v) if v.fract() == 0.0 && v.abs() < 9e15 => Some(*v as i64),
            Value::Str(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// The value as an unsigned integer. A negative integer is reinterpreted by its bits, because ids are often
    /// recorded that way.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Value::Int(v) => Some(*v as u64),
            Value::UInt(v) => Some(*v),
            Value::Str(text) => text.trim().parse().ok(),
            other => other.as_i64().and_then(|v| u64::try_from(v).ok()),
        }
    }

    /// The value as a finite number.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Int(v) => Some(*v as f64),
            Value::UInt(v) => Some(*v as f64),
            Value::Float(v) => v.is_finite().then_some(*v),
            Value::Str(text) => text.trim().parse().ok().filter(|v: &f64| v.is_finite()),
            _ => None,
        }
    }

    /// The text of a string or of a JSON value.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) | Value::Json(text) => Some(text),
            _ => None,
        }
    }
}

/// A value that owns nothing: used by the arena and the property lists.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Datum {
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A floating-point number.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// Interned text.
    Str(StrId),
    /// Interned JSON text of a list or an object.
    Json(StrId),
    /// Present, without a value.
    Null,
}

impl Datum {
    /// The same value with its text resolved.
    pub fn resolve(self, strings: &StringTable) -> Value<'_> {
        match self {
            Datum::Int(v) => Value::Int(v),
            Datum::UInt(v) => Value::UInt(v),
            Datum::Float(v) => Value::Float(v),
            Datum::Bool(v) => Value::Bool(v),
            Datum::Str(id) => Value::Str(Cow::Borrowed(strings.get(id))),
            Datum::Json(id) => Value::Json(Cow::Borrowed(strings.get(id))),
            Datum::Null => Value::Null,
        }
    }
}

/// Where an argument record is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArgRef {
    /// The source.
    pub source: ArgSourceId,
    /// The position, as defined by the source.
    pub at: u64,
}

/// Decodes argument records. Implemented by [`ArgArena`] and by readers over their mapped files.
pub trait ArgSource: Send + Sync + Debug {
    /// Calls `visit` for each argument of the record at `at`, in recorded order. Damage ends the record.
    fn visit<'a>(&'a self, at: u64, strings: &'a StringTable, visit: &mut dyn FnMut(StrId, Value<'a>));

    /// Heap memory in bytes; mapped files do not count.
    fn heap_bytes(&self) -> usize;

    /// Gives back memory that can be had again at any time. Later calls of `visit` are as before, but slower.
    fn rest(&self) {}

    /// Whether the bytes behind it are those that were read. A mapped file can change.
    fn is_intact(&self) -> bool {
        true
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
enum Tag {
    Int,
    UInt,
    Float,
    False,
    True,
    Str,
    Json,
    Null,
    /// A whole shared record, by number.
    Shared,
}

/// A field of a record's shape.
type Field = (StrId, Tag);

/// A compact store of argument records.
#[derive(Debug, Default)]
pub struct ArgArena {
    bytes: Vec<u8>,
    /// All shapes' fields, one after the other.
    fields: Vec<Field>,
    /// For each field the integer of its first record. Ids in a file are close to each other, so the difference
    /// takes fewer bytes than the value.
    bases: Vec<u64>,
    /// Where each shape ends in `fields`.
    shapes: Vec<u32>,
    shape_lookup: HashTable<u32>,
    /// All shared records, one after the other.
    shared_bytes: Vec<u8>,
    /// Where each shared record ends in `shared_bytes`.
    shared: Vec<u64>,
    shared_lookup: HashTable<u32>,
    scratch: Vec<Field>,
}

impl ArgArena {
    /// An empty arena.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores a record and returns its position; `None` for a record without arguments.
    ///
    /// `own` belongs to this event alone (ids, addresses); `shared` is interned, so it should contain what many
    /// events have in common.
    pub fn push(&mut self, own: &[(StrId, Datum)], shared: &[(StrId, Datum)]) -> Option<u64> {
        if own.is_empty() && shared.is_empty() {
            return None;
        }
        let shared = if shared.is_empty() { None } else { Some(self.intern_shared(shared)) };
        let at = self.bytes.len() as u64;
        let mut bytes = std::mem::take(&mut self.bytes);
        self.write(&mut bytes, own, shared);
        self.bytes = bytes;
        Some(at)
    }

    fn write(&mut self, out: &mut Vec<u8>, fields: &[(StrId, Datum)], shared: Option<u32>) {
        let mut shape = std::mem::take(&mut self.scratch);
        shape.clear();
        shape.extend(fields.iter().map(|(key, value)| (*key, tag_of(*value))));
        if shared.is_some() {
            shape.push((StrId::default(), Tag::Shared));
        }
        let number = self.intern_shape(&shape, fields);
        self.scratch = shape;

        write_varint(out, u64::from(number));
        let bases = &self.bases[first_field(&self.shapes, number)..];
        for ((_, value), base) in fields.iter().zip(bases) {
            match *value {
                Datum::Int(v) => write_varint(out, zigzag(v.wrapping_sub(*base as i64))),
                Datum::UInt(v) => write_varint(out, zigzag(v.wrapping_sub(*base) as i64)),
                Datum::Float(v) => out.extend_from_slice(&v.to_le_bytes()),
                Datum::Str(id) | Datum::Json(id) => write_varint(out, u64::from(id.0)),
                Datum::Bool(_) | Datum::Null => {}
            }
        }
        if let Some(number) = shared {
            write_varint(out, u64::from(number));
        }
    }

    /// The number of the shared record with these fields, new or known.
    fn intern_shared(&mut self, fields: &[(StrId, Datum)]) -> u32 {
        let start = self.shared_bytes.len();
        let mut all = std::mem::take(&mut self.shared_bytes);
        self.write(&mut all, fields, None);
        let (known, new) = all.split_at(start);
        let hash = FxBuildHasher.hash_one(new);
        let shared = &self.shared;
        if let Some(&number) = self.shared_lookup.find(hash, |&n| shared_record(known, shared, n) == new) {
            all.truncate(start);
            self.shared_bytes = all;
            return number;
        }
        let number = u32::try_from(self.shared.len()).unwrap_or(u32::MAX);
        self.shared.push(all.len() as u64);
        let shared = &self.shared;
        self.shared_lookup
            .insert_unique(hash, number, |&n| FxBuildHasher.hash_one(shared_record(&all, shared, n)));
        self.shared_bytes = all;
        number
    }

    /// The number of a shape, new or known. If it is new, `record` is the first of its kind.
    fn intern_shape(&mut self, shape: &[Field], record: &[(StrId, Datum)]) -> u32 {
        let hash = FxBuildHasher.hash_one(shape);
        let (fields, shapes) = (&self.fields, &self.shapes);
        if let Some(&number) = self.shape_lookup.find(hash, |&n| shape_of(fields, shapes, n) == shape) {
            return number;
        }
        let number = u32::try_from(self.shapes.len()).unwrap_or(u32::MAX);
        self.fields.extend_from_slice(shape);
        self.bases.extend(record.iter().map(|&(_, value)| match value {
            Datum::Int(v) => v as u64,
            Datum::UInt(v) => v,
            _ => 0,
        }));
        self.bases.resize(self.fields.len(), 0);
        self.shapes.push(u32::try_from(self.fields.len()).unwrap_or(u32::MAX));
        let (fields, shapes) = (&self.fields, &self.shapes);
        self.shape_lookup
            .insert_unique(hash, number, |&n| FxBuildHasher.hash_one(shape_of(fields, shapes, n)));
        number
    }

    /// Frees memory that is only needed while the arena grows.
    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.fields.shrink_to_fit();
        self.bases.shrink_to_fit();
        self.shapes.shrink_to_fit();
        self.shared_bytes.shrink_to_fit();
        self.shared.shrink_to_fit();
        self.shape_lookup = HashTable::new();
        self.shared_lookup = HashTable::new();
        self.scratch = Vec::new();
    }

    fn visit_record<'a>(
        &'a self,
        mut bytes: &'a [u8],
        strings: &'a StringTable,
        visit: &mut dyn FnMut(StrId, Value<'a>),
    ) {
        let Some(number) = read_varint(&mut bytes).and_then(|n| u32::try_from(n).ok()) else { return };
        if number as usize >= self.shapes.len() {
            return;
        }
        let bases = &self.bases[first_field(&self.shapes, number)..];
        for (&(key, tag), &base) in shape_of(&self.fields, &self.shapes, number).iter().zip(bases) {
            let value = match tag {
                Tag::Int => {
                    read_varint(&mut bytes).map(|v| Value::Int((base as i64).wrapping_add(unzigzag(v))))
                }
                Tag::UInt => {
                    read_varint(&mut bytes).map(|v| Value::UInt(base.wrapping_add(unzigzag(v) as u64)))
                }
                Tag::Float => bytes.split_first_chunk::<8>().map(|(head, rest)| {
                    bytes = rest;
                    Value::Float(f64::from_le_bytes(*head))
                }),
                Tag::False => Some(Value::Bool(false)),
                Tag::True => Some(Value::Bool(true)),
                Tag::Str => read_str(&mut bytes, strings).map(Value::Str),
                Tag::Json => read_str(&mut bytes, strings).map(Value::Json),
                Tag::Null => Some(Value::Null),
                Tag::Shared => {
                    let record = read_varint(&mut bytes).and_then(|n| u32::try_from(n).ok());
                    if let Some(number) = record.filter(|&n| (n as usize) < self.shared.len()) {
                        self.visit_record(
                            shared_record(&self.shared_bytes, &self.shared, number),
                            strings,
                            visit,
                        );
                    }
                    continue;
                }
            };
            match value {
                Some(value) => visit(key, value),
                None => return,
            }
        }
    }

    /// Whether nothing is stored.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl ArgSource for ArgArena {
    fn visit<'a>(&'a self, at: u64, strings: &'a StringTable, visit: &mut dyn FnMut(StrId, Value<'a>)) {
        let Some(bytes) = usize::try_from(at).ok().and_then(|at| self.bytes.get(at..)) else { return };
        self.visit_record(bytes, strings, visit);
    }

    fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.fields.capacity() * size_of::<Field>()
            + (self.bases.capacity() + self.shared.capacity()) * 8
            + self.shapes.capacity() * 4
            + self.shared_bytes.capacity()
            + (self.shape_lookup.capacity() + self.shared_lookup.capacity()) * 5
    }
}

/// Position of a shape's first field.
fn first_field(shapes: &[u32], number: u32) -> usize {
    if number == 0 { 0 } else { shapes[number as usize - 1] as usize }
}

fn shape_of<'a>(fields: &'a [Field], shapes: &[u32], number: u32) -> &'a [Field] {
    &fields[first_field(shapes, number)..shapes[number as usize] as usize]
}

fn shared_record<'a>(bytes: &'a [u8], ends: &[u64], number: u32) -> &'a [u8] {
    let start = if number == 0 { 0 } else { ends[number as usize - 1] };
    &bytes[start as usize..ends[number as usize] as usize]
}

fn tag_of(value: Datum) -> Tag {
    match value {
        Datum::Int(_) => Tag::Int,
        Datum::UInt(_) => Tag::UInt,
        Datum::Float(_) => Tag::Float,
        Datum::Bool(false) => Tag::False,
        Datum::Bool(true) => Tag::True,
        Datum::Str(_) => Tag::Str,
        Datum::Json(_) => Tag::Json,
        Datum::Null => Tag::Null,
    }
}

fn zigzag(v: i64) -> u64 {
    ((v << 1) ^ (v >> 63)) as u64
}

fn unzigzag(v: u64) -> i64 {
    ((v >> 1) as i64) ^ -((v & 1) as i64)
}

fn write_varint(out: &mut Vec<u8>, mut v: u64) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut v = 0;
    for (i, &byte) in bytes.iter().enumerate().take(10) {
        v |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            *bytes = &bytes[i + 1..];
            return Some(v);
        }
    }
    None
}

fn read_str<'a>(bytes: &mut &[u8], strings: &'a StringTable) -> Option<Cow<'a, str>> {
    let id = u32::try_from(read_varint(bytes)?).ok()?;
    Some(Cow::Borrowed(strings.get(StrId(id))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strings::StringTableBuilder;
    use proptest::prelude::*;

    fn read_back(arena: &ArgArena, at: u64, strings: &StringTable) -> Vec<(StrId, String)> {
        let mut out = Vec::new();
        arena.visit(at, strings, &mut |key, value| out.push((key, format!("{value:?}"))));
        out
    }

    #[test]
    fn a_shared_record_is_stored_once() {
        let mut strings = StringTableBuilder::new();
        let (grid, regs, id) = (strings.intern("grid"), strings.intern("registers"), strings.intern("id"));
        let dims = Datum::Json(strings.intern("[1,2,3]"));
        let mut arena = ArgArena::new();
        let shared = [(grid, dims), (regs, Datum::Int(32))];
        let first = arena.push(&[(id, Datum::UInt(7))], &shared).unwrap();
        let size = arena.bytes.len();
        let second = arena.push(&[(id, Datum::UInt(8))], &shared).unwrap();
        assert!(arena.bytes.len() - size <= 3, "shape, id and the number of the shared record");
        let strings = strings.finish();
        let a = read_back(&arena, first, &strings);
        let b = read_back(&arena, second, &strings);
        assert_eq!(a[1..], b[1..]);
        assert_eq!((a[0].1.as_str(), b[0].1.as_str()), ("UInt(7)", "UInt(8)"));
        assert_eq!(a.len(), 3);
    }

    #[test]
    fn positions_outside_the_arena_have_no_arguments() {
        let mut arena = ArgArena::new();
        arena.push(&[(StrId(1), Datum::Float(0.5))], &[]);
        let strings = StringTableBuilder::new().finish();
        assert!(read_back(&arena, 1_000, &strings).is_empty());
        assert!(read_back(&arena, u64::MAX, &strings).is_empty());
    }

    fn datum() -> impl Strategy<Value = Datum> {
        prop_oneof![
            any::<i64>().prop_map(Datum::Int),
            any::<u64>().prop_map(Datum::UInt),
            any::<f64>().prop_filter("NaN is not equal to itself", |v| !v.is_nan()).prop_map(Datum::Float),
            any::<bool>().prop_map(Datum::Bool),
            Just(Datum::Null),
        ]
    }

    proptest! {
        #[test]
        fn records_come_back_as_written(
            records in prop::collection::vec(
                (prop::collection::vec((1u32..9, datum()), 0..6), prop::collection::vec((1u32..9, datum()), 0..3)),
                0..40,
            )
        ) {
            let strings = StringTableBuilder::new().finish();
            let mut arena = ArgArena::new();
            let keyed = |fields: &[(u32, Datum)]| -> Vec<_> { fields.iter().map(|&(k, v)| (StrId(k), v)).collect() };
            let at: Vec<_> = records.iter().map(|(own, shared)| arena.push(&keyed(own), &keyed(shared))).collect();
            arena.shrink();
            for ((own, shared), at) in records.iter().zip(at) {
                let want: Vec<_> = keyed(own).into_iter().chain(keyed(shared))
                    .map(|(k, v)| (k, format!("{:?}", v.resolve(&strings)))).collect();
                prop_assert_eq!(at.map_or(Vec::new(), |at| read_back(&arena, at, &strings)), want);
            }
        }
    }
}
