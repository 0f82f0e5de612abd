//! The parts of Thrift's compact protocol needed for Parquet's headers and footer.
//!
//! By hand, because a few headers are all that is written.

use stepscope_read::parquet::layout::thrift;

/// The type of a field or of a list's elements.
#[derive(Copy, Clone)]
#[repr(u8)]
pub(super) enum Type {
    I32 = thrift::I32,
    I64 = thrift::I64,
    Binary = thrift::BINARY,
    List = thrift::LIST,
    Struct = thrift::STRUCT,
}

/// A struct being written. Fields must come in the order of their ids.
pub(super) struct Struct<'a> {
    out: &'a mut Vec<u8>,
    last: u8,
}

impl<'a> Struct<'a> {
    /// Writes one struct with the fields that `fill` adds.
    pub(super) fn write(out: &'a mut Vec<u8>, fill: impl FnOnce(&mut Struct<'_>)) {
        let mut new = Struct { out, last: 0 };
        fill(&mut new);
        new.out.push(0);
    }

    fn field(&mut self, id: u8, of: Type) {
        // Field ids in Parquet's structs are never more than 15 apart, so the short form is enough.
        self.out.push((id - self.last) << 4 | of as u8);
        self.last = id;
    }

    pub(super) fn i32(&mut self, id: u8, value: i32) {
        self.field(id, Type::I32);
        zigzag(self.out, i64::from(value));
    }

    pub(super) fn i64(&mut self, id: u8, value: i64) {
        self.field(id, Type::I64);
        zigzag(self.out, value);
    }

    pub(super) fn text(&mut self, id: u8, text: &str) {
        self.field(id, Type::Binary);
        binary(self.out, text);
    }

    pub(super) fn nested(&mut self, id: u8, fill: impl FnOnce(&mut Struct<'_>)) {
        self.field(id, Type::Struct);
        Struct::write(self.out, fill);
    }

    /// A list of structs.
    pub(super) fn structs<T>(&mut self, id: u8, items: &[T], mut fill: impl FnMut(&mut Struct<'_>, &T)) {
        self.list(id, Type::Struct, items.len());
        items.iter().for_each(|item| Struct::write(self.out, |new| fill(new, item)));
    }

    pub(super) fn i32s(&mut self, id: u8, items: &[i32]) {
        self.list(id, Type::I32, items.len());
        items.iter().for_each(|&item| zigzag(self.out, i64::from(item)));
    }

    pub(super) fn texts(&mut self, id: u8, items: &[&str]) {
        self.list(id, Type::Binary, items.len());
        items.iter().for_each(|item| binary(self.out, item));
    }

    fn list(&mut self, id: u8, of: Type, len: usize) {
        self.field(id, Type::List);
        if len < 15 {
            self.out.push((len as u8) << 4 | of as u8);
        } else {
            self.out.push(0xf0 | of as u8);
            varint(self.out, len as u64);
        }
    }
}

fn binary(out: &mut Vec<u8>, text: &str) {
    varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn zigzag(out: &mut Vec<u8>, value: i64) {
    varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

pub(super) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_carry_the_distance_to_the_one_before() {
        let mut out = Vec::new();
        Struct::write(&mut out, |new| {
            new.i32(1, -1);
            new.text(4, "ab");
            new.structs(5, &[300_i64], |item, &value| item.i64(2, value));
        });
        assert_eq!(out, [0x15, 1, 0x38, 2, b'a', b'b', 0x19, 0x1c, 0x26, 0xd8, 4, 0, 0]);
    }

    #[test]
    fn long_lists_have_their_length_behind() {
        let mut out = Vec::new();
        Struct::write(&mut out, |new| new.i32s(1, &[0; 20]));
        assert_eq!(out[..3], [0x19, 0xf5, 20]);
    }
}
