//! From results to MessagePack: each number, text and list in its shortest form.

use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use super::PackError;

type Done = Result<(), PackError>;

/// Appends values to the bytes.
pub(super) struct Writer<'a> {
    pub(super) bytes: &'a mut Vec<u8>,
}

/// The first byte of each form of a length: within that byte (with the largest such length), with 8, 16 and 32 bits.
struct Forms {
    fixed: (u8, u8),
    of_8: Option<u8>,
    of_16: u8,
    of_32: u8,
}

const TEXT: Forms = Forms { fixed: (0xa0, 31), of_8: Some(0xd9), of_16: 0xda, of_32: 0xdb };
const LIST: Forms = Forms { fixed: (0x90, 15), of_8: None, of_16: 0xdc, of_32: 0xdd };
const MAP: Forms = Forms { fixed: (0x80, 15), of_8: None, of_16: 0xde, of_32: 0xdf };

impl Forms {
    /// Writes a length, as it begins a value.
    fn begin(&self, length: usize, bytes: &mut Vec<u8>) -> Done {
        let length = u32::try_from(length).map_err(|_| PackError::new("a list or text is too long"))?;
        let [_, _, high, low] = length.to_be_bytes();
        match (length, self.of_8) {
            (..=0xff, _) if low <= self.fixed.1 => bytes.push(self.fixed.0 | low),
            (..=0xff, Some(form)) => bytes.extend_from_slice(&[form, low]),
            (..=0xffff, _) => bytes.extend_from_slice(&[self.of_16, high, low]),
            _ => {
                bytes.push(self.of_32);
                bytes.extend_from_slice(&length.to_be_bytes());
            }
        }
        Ok(())
    }
}

impl Writer<'_> {
    fn length(&mut self, forms: &Forms, length: usize) -> Done {
        forms.begin(length, self.bytes)
    }

    fn text(&mut self, text: &str) -> Done {
        self.length(&TEXT, text.len())?;
        self.bytes.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn unsigned(&mut self, number: u64) {
        match number {
            0..=0x7f => self.bytes.push(number as u8),
            0x80..=0xff => self.bytes.extend_from_slice(&[0xcc, number as u8]),
            0x100..=0xffff => self.marked(0xcd, &(number as u16).to_be_bytes()),
            0x1_0000..=0xffff_ffff => self.marked(0xce, &(number as u32).to_be_bytes()),
            _ => self.marked(0xcf, &number.to_be_bytes()),
        }
    }

    fn signed(&mut self, number: i64) {
        match number {
            0.. => self.unsigned(number as u64),
            -32..0 => self.bytes.push(number as u8),
            -0x80..-32 => self.bytes.extend_from_slice(&[0xd0, number as u8]),
            -0x8000..-0x80 => self.marked(0xd1, &(number as i16).to_be_bytes()),
            -0x8000_0000..-0x8000 => self.marked(0xd2, &(number as i32).to_be_bytes()),
            _ => self.marked(0xd3, &number.to_be_bytes()),
        }
    }

    fn marked(&mut self, mark: u8, bytes: &[u8]) {
        self.bytes.push(mark);
        self.bytes.extend_from_slice(bytes);
    }

    /// A variant with content: a map from its name.
    fn variant(&mut self, name: &str) -> Done {
        self.length(&MAP, 1)?;
        self.text(name)
    }

    /// A list or map; if its length is not known, it is written once it is.
    fn open(&mut self, forms: &'static Forms, length: Option<usize>) -> Result<Items<'_>, PackError> {
        let from = self.bytes.len();
        if let Some(length) = length {
            self.length(forms, length)?;
        }
        let unknown = length.is_none().then_some((forms, from));
        Ok(Items { bytes: self.bytes, written: 0, unknown })
    }
}

/// What is being written of a list, a map, a struct or a variant.
pub(super) struct Items<'a> {
    bytes: &'a mut Vec<u8>,
    written: usize,
    /// If the length is still to be written: its forms, and its place.
    unknown: Option<(&'static Forms, usize)>,
}

impl Items<'_> {
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.written += 1;
        value.serialize(&mut Writer { bytes: self.bytes })
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Done {
        Writer { bytes: self.bytes }.text(name)?;
        value.serialize(&mut Writer { bytes: self.bytes })
    }

    fn close(self, per_entry: usize) -> Done {
        if let Some((forms, from)) = self.unknown {
            let mut length = Vec::new();
            forms.begin(self.written / per_entry, &mut length)?;
            self.bytes.splice(from..from, length);
        }
        Ok(())
    }
}

/// Numbers of all widths are written alike.
macro_rules! numbers {
    ($($name:ident($type:ty) by $write:ident)*) => {$(
        fn $name(self, value: $type) -> Done {
            self.$write(value.into());
            Ok(())
        }
    )*};
}

impl<'a> Serializer for &'a mut Writer<'_> {
    type Ok = ();
    type Error = PackError;
    type SerializeSeq = Items<'a>;
    type SerializeTuple = Items<'a>;
    type SerializeTupleStruct = Items<'a>;
    type SerializeTupleVariant = Items<'a>;
    type SerializeMap = Items<'a>;
    type SerializeStruct = Items<'a>;
    type SerializeStructVariant = Items<'a>;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_bool(self, value: bool) -> Done {
        self.bytes.push(if value { 0xc3 } else { 0xc2 });
        Ok(())
    }

    numbers! {
        serialize_i8(i8) by signed
        serialize_i16(i16) by signed
        serialize_i32(i32) by signed
        serialize_i64(i64) by signed
        serialize_u8(u8) by unsigned
        serialize_u16(u16) by unsigned
        serialize_u32(u32) by unsigned
        serialize_u64(u64) by unsigned
    }

    fn serialize_f32(self, value: f32) -> Done {
        self.marked(0xca, &value.to_be_bytes());
        Ok(())
    }

    fn serialize_f64(self, value: f64) -> Done {
        self.marked(0xcb, &value.to_be_bytes());
        Ok(())
    }

    fn serialize_char(self, value: char) -> Done {
        self.text(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Done {
        self.text(value)
    }

    fn serialize_bytes(self, value: &[u8]) -> Done {
        match u32::try_from(value.len()) {
            Ok(length @ ..=0xff) => self.bytes.extend_from_slice(&[0xc4, length as u8]),
            Ok(length @ ..=0xffff) => self.marked(0xc5, &(length as u16).to_be_bytes()),
            Ok(length) => self.marked(0xc6, &length.to_be_bytes()),
            Err(_) => return Err(PackError::new("bytes are too many")),
        }
        self.bytes.extend_from_slice(value);
        Ok(())
    }

    fn serialize_none(self) -> Done {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Done {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Done {
        self.bytes.push(0xc0);
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Done {
        self.length(&LIST, 0)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Done {
        self.text(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Done {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Done {
        self.variant(variant)?;
        value.serialize(self)
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Items<'a>, PackError> {
        self.open(&LIST, length)
    }

    fn serialize_tuple(self, length: usize) -> Result<Items<'a>, PackError> {
        self.open(&LIST, Some(length))
    }

    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<Items<'a>, PackError> {
        self.open(&LIST, Some(length))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Items<'a>, PackError> {
        self.variant(variant)?;
        self.open(&LIST, Some(length))
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Items<'a>, PackError> {
        self.open(&MAP, length)
    }

    fn serialize_struct(self, _: &'static str, length: usize) -> Result<Items<'a>, PackError> {
        self.open(&MAP, Some(length))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Items<'a>, PackError> {
        self.variant(variant)?;
        self.open(&MAP, Some(length))
    }
}

/// Every kind of list, map and struct is written item by item; `$end` says what is left to do after the last.
macro_rules! kinds {
    ($($kind:ident: $($method:ident($($name:ident: $type:ty)?) by $write:ident),+; $end:expr;)*) => {$(
        impl $kind for Items<'_> {
            type Ok = ();
            type Error = PackError;

            $(fn $method<T: Serialize + ?Sized>(&mut self, $($name: $type,)? value: &T) -> Done {
                self.$write($($name,)? value)
            })+

            fn end(self) -> Done {
                $end(self)
            }
        }
    )*};
}

kinds! {
    SerializeSeq: serialize_element() by item; |items: Self| items.close(1);
    SerializeTuple: serialize_element() by item; |_| Ok(());
    SerializeTupleStruct: serialize_field() by item; |_| Ok(());
    SerializeTupleVariant: serialize_field() by item; |_| Ok(());
    SerializeMap: serialize_key() by item, serialize_value() by item; |items: Self| items.close(2);
    SerializeStruct: serialize_field(name: &'static str) by field; |_| Ok(());
    SerializeStructVariant: serialize_field(name: &'static str) by field; |_| Ok(());
}
