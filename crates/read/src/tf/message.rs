//! Walks protobuf messages and notes damage. The XPlane reader must be fast for millions of tiny events; this
//! one checks every field against its message, because a wrong wire type or an unknown number reveals a flipped
//! bit.
//!
//! By hand, because a generated decoder refuses a damaged message as a whole, where all that precedes the damage is wanted,
//! and its place.

use std::borrow::Cow;
use std::ops::Range;

use stepscope_wire::{Broken, Cursor, Payload};

/// Number of damaged places listed; a thoroughly broken file has too many.
const LISTED: usize = 50;
/// Maximum nesting of messages.
const DEEPEST: u32 = 64;

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// What is wrong.
    pub what: String,
    /// Byte position; `None` if it is not a single place.
    pub at: Option<u64>,
}

/// All damage of a file: the first places, and the number of further ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damages {
    listed: Vec<Damage>,
    more: u64,
}

impl Damages {
    /// Notes damage at a byte.
    pub fn add(&mut self, at: usize, what: impl FnOnce() -> String) {
        if self.listed.len() < LISTED {
            self.listed.push(Damage { what: what(), at: Some(at as u64) });
        } else {
            self.more += 1;
        }
    }

    /// Notes damage without a single place.
    pub(crate) fn add_somewhere(&mut self, what: impl FnOnce() -> String) {
        if self.listed.len() < LISTED {
            self.listed.push(Damage { what: what(), at: None });
        } else {
            self.more += 1;
        }
    }

    /// The first damage found.
    pub fn first(&self) -> Option<&Damage> {
        self.listed.first()
    }

    /// The listed damage.
    pub fn listed(&self) -> &[Damage] {
        &self.listed
    }

    /// Number of damaged places.
    pub fn count(&self) -> u64 {
        self.listed.len() as u64 + self.more
    }

    /// Whether there is no damage.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }
}

/// The value of a field, as encoded on the wire.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// A varint.
    Varint(u64),
    /// Four or eight bytes.
    Fixed(u64),
    /// A text, a message, or packed numbers.
    Len(Range<usize>),
}

/// A field of a message: its number and its value.
pub(super) struct Field {
    pub number: u32,
    pub value: Value,
}

impl Field {
    /// The number of a varint field, as signed.
    pub fn int(&self) -> Option<i64> {
        match self.value {
            Value::Varint(value) => Some(value as i64),
            _ => None,
        }
    }

    /// Location of the text or message.
    pub fn range(&self) -> Option<Range<usize>> {
        match &self.value {
            Value::Len(range) => Some(range.clone()),
            _ => None,
        }
    }
}

/// A file being walked.
pub(super) struct Walk<'a> {
    pub file: &'a [u8],
    pub damage: Damages,
    depth: u32,
}

impl<'a> Walk<'a> {
    pub fn new(file: &'a [u8], damage: Damages) -> Self {
        Walk { file, damage, depth: 0 }
    }

    /// Calls `visit` for each field of the message in `range`. If it returns `None`, the field does not belong
    /// to the message, which is noted, as is anything that ends the message early.
    #[inline]
    pub fn message(
        &mut self,
        range: Range<usize>,
        name: &'static str,
        mut visit: impl FnMut(&mut Self, Field) -> Option<()>,
    ) {
        if self.depth >= DEEPEST {
            self.damage.add(range.start, || format!("{name}: nested too deeply"));
            return;
        }
        self.depth += 1;
        let mut cursor = Cursor::new(self.file, range);
        loop {
            let (number, at, value, cut) = match cursor.field() {
                Ok(Some(field)) => match field.value {
                    Payload::Varint(v) => (field.number, field.at, Value::Varint(v), false),
                    Payload::Fixed64(v) => (field.number, field.at, Value::Fixed(v), false),
                    Payload::Fixed32(v) => (field.number, field.at, Value::Fixed(u64::from(v)), false),
                    Payload::Len(range) => (field.number, field.at, Value::Len(range), false),
                    Payload::Cut(range) => (field.number, field.at, Value::Len(range), true),
                },
                Ok(None) => break,
                Err(broken) => {
                    self.damage.add(broken.at, || format!("{name}: {}", broken.what));
                    break;
                }
            };
            if cut {
                self.damage.add(at, || format!("{name}: field {number}: {}", Broken::OVERRUN));
            }
            if visit(self, Field { number, value }).is_none() && !cut {
                self.damage.add(at, || format!("{name}: unexpected field {number}"));
            }
            if cut {
                break;
            }
        }
        self.depth -= 1;
    }

    /// The bytes of a field.
    pub fn bytes(&self, range: Range<usize>) -> &'a [u8] {
        self.file.get(range).unwrap_or_default()
    }

    /// The text of a field; invalid UTF-8 is noted and replaced.
    #[inline]
    pub fn text(&mut self, range: Range<usize>, name: &'static str) -> Cow<'a, str> {
        let at = range.start;
        match std::str::from_utf8(self.bytes(range.clone())) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => {
                self.damage.add(at, || format!("{name}: text that is not UTF-8"));
                Cow::Owned(String::from_utf8_lossy(self.bytes(range)).into_owned())
            }
        }
    }

    /// Appends the numbers of a repeated field, packed or not.
    pub(crate) fn ints(&mut self, field: &Field, into: &mut Vec<i64>) -> Option<()> {
        match &field.value {
            Value::Varint(value) => into.push(*value as i64),
            Value::Len(range) => {
                let mut cursor = Cursor::new(self.file, range.clone());
                while !cursor.is_done() {
                    match cursor.varint() {
                        Ok(value) => into.push(value as i64),
                        Err(broken) => {
                            self.damage.add(broken.at, || format!("list of numbers: {}", broken.what));
                            break;
                        }
                    }
                }
            }
            Value::Fixed(_) => return None,
        }
        Some(())
    }

    /// An entry of a map with numeric keys.
    pub fn entry(&mut self, range: Range<usize>, name: &'static str) -> (i64, Option<Field>) {
        let (mut key, mut value) = (0, None);
        self.message(range, name, |_, field| match field.number {
            1 => field.int().map(|number| key = number),
            2 => {
                value = Some(field);
                Some(())
            }
            _ => None,
        });
        (key, value)
    }

    /// An entry of a map with text keys.
    pub(crate) fn text_entry(
        &mut self,
        range: Range<usize>,
        name: &'static str,
    ) -> (Cow<'a, str>, Option<Field>) {
        let (mut key, mut value) = (Cow::Borrowed(""), None);
        self.message(range, name, |walk, field| match field.number {
            1 => field.range().map(|range| key = walk.text(range, name)),
            2 => {
                value = Some(field);
                Some(())
            }
            _ => None,
        });
        (key, value)
    }
}
