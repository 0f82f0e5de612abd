//! The fields of one message, one after the other: the wire format with slices instead of positions.

use stepscope_wire::{Broken, Cursor, Payload};

/// The content of a field.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Iterates over the fields of a message and ends at the first damage.
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    cursor: Cursor<'a>,
    pub damage: Option<Broken>,
}

/// The fields of the message that `bytes` holds.
pub(crate) fn fields(bytes: &[u8]) -> Fields<'_> {
    Fields { bytes, cursor: Cursor::new(bytes, 0..bytes.len()), damage: None }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u32, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.damage.is_some() {
            return None;
        }
        let field = match self.cursor.field() {
            Ok(field) => field?,
            Err(broken) => {
                self.damage = Some(broken);
                return None;
            }
        };
        let value = match field.value {
            Payload::Varint(value) | Payload::Fixed64(value) => Value::Number(value),
            Payload::Fixed32(value) => Value::Number(u64::from(value)),
            Payload::Len(range) => Value::Bytes(self.bytes.get(range).unwrap_or_default()),
            Payload::Cut(range) => {
                self.damage = Some(Broken { what: Broken::OVERRUN, at: field.at });
                Value::Bytes(self.bytes.get(range).unwrap_or_default())
            }
        };
        Some((field.number, value))
    }
}

impl<'a> Value<'a> {
    /// The number; 0 for anything else.
    pub fn number(self) -> i64 {
        match self {
            Value::Number(value) => value as i64,
            Value::Bytes(_) => 0,
        }
    }

    /// The content of a message or text; nothing for a number.
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Value::Bytes(bytes) => bytes,
            Value::Number(_) => &[],
        }
    }

    /// Text, up to the first byte that is none.
    pub fn text(self) -> &'a str {
        let bytes = self.bytes();
        match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => bytes
                .get(..error.valid_up_to())
                .and_then(|valid| std::str::from_utf8(valid).ok())
                .unwrap_or_default(),
        }
    }

    /// Adds the numbers of a repeated field, packed or one by one.
    pub fn append_to(self, list: &mut Vec<i64>) {
        match self {
            Value::Number(value) => list.push(value as i64),
            Value::Bytes(bytes) => {
                let mut cursor = Cursor::new(bytes, 0..bytes.len());
                while !cursor.is_done() {
                    let Ok(value) = cursor.varint() else { return };
                    list.push(value as i64);
                }
            }
        }
    }
}

/// The numbers of one repeated field.
pub(crate) fn numbers(message: &[u8], number: u32) -> Vec<i64> {
    let mut list = Vec::new();
    fields(message).filter(|(field, _)| *field == number).for_each(|(_, value)| value.append_to(&mut list));
    list
}

/// The last value of one field, as protobuf has it.
pub(crate) fn last(message: &[u8], number: u32) -> Option<Value<'_>> {
    fields(message).filter(|(field, _)| *field == number).last().map(|(_, value)| value)
}
