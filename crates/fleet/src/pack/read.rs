//! From MessagePack to results. Each type gets what it asks for or an error, so that the compiler builds one way to read
//! each of them; a field that is not known is passed over.

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};

use super::PackError;

/// What is left of the bytes.
pub(super) struct Reader<'de> {
    pub(super) rest: &'de [u8],
    /// Levels of lists and maps that may still open.
    pub(super) levels: u32,
}

/// The beginning of a value: all of it, or what follows.
#[derive(Clone, Copy, Debug)]
enum Head {
    Nothing,
    Flag(bool),
    Unsigned(u64),
    Signed(i64),
    Number(f64),
    Text(u32),
    Bytes(u32),
    List(u32),
    Map(u32),
    /// A value of a kind that results do not have; this many bytes of it follow.
    Other(u64),
}

impl<'de> Reader<'de> {
    fn bytes(&mut self, length: u64) -> Result<&'de [u8], PackError> {
        let split = usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
        let (taken, rest) =
            split.ok_or_else(|| PackError::new("the content ends in the middle of a value"))?;
        self.rest = rest;
        Ok(taken)
    }

    /// A number of this many bytes.
    fn number(&mut self, bytes: u64) -> Result<u64, PackError> {
        Ok(self.bytes(bytes)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn length(&mut self, bytes: u64) -> Result<u32, PackError> {
        Ok(self.number(bytes)? as u32)
    }

    fn head(&mut self) -> Result<Head, PackError> {
        let mark = self.number(1)? as u8;
        Ok(match mark {
            0..=0x7f => Head::Unsigned(mark.into()),
            0x80..=0x8f => Head::Map(u32::from(mark & 15)),
            0x90..=0x9f => Head::List(u32::from(mark & 15)),
            0xa0..=0xbf => Head::Text(u32::from(mark & 31)),
            0xc0 => Head::Nothing,
            0xc1 => return Err(PackError::new("a mark that MessagePack does not have")),
            0xc2 | 0xc3 => Head::Flag(mark == 0xc3),
            0xc4..=0xc6 => Head::Bytes(self.length(1 << (mark - 0xc4))?),
            0xc7..=0xc9 => Head::Other(u64::from(self.length(1 << (mark - 0xc7))?) + 1),
            0xca => Head::Number(f32::from_bits(self.number(4)? as u32).into()),
            0xcb => Head::Number(f64::from_bits(self.number(8)?)),
            0xcc..=0xcf => Head::Unsigned(self.number(1 << (mark - 0xcc))?),
            0xd0 => Head::Signed((self.number(1)? as i8).into()),
            0xd1 => Head::Signed((self.number(2)? as i16).into()),
            0xd2 => Head::Signed((self.number(4)? as i32).into()),
            0xd3 => Head::Signed(self.number(8)? as i64),
            0xd4..=0xd8 => Head::Other((1 << (mark - 0xd4)) + 1),
            0xd9..=0xdb => Head::Text(self.length(1 << (mark - 0xd9))?),
            0xdc | 0xdd => Head::List(self.length(2 << (mark - 0xdc))?),
            0xde | 0xdf => Head::Map(self.length(2 << (mark - 0xde))?),
            0xe0.. => Head::Signed((mark as i8).into()),
        })
    }

    fn text(&mut self, length: u32) -> Result<&'de str, PackError> {
        std::str::from_utf8(self.bytes(length.into())?).map_err(PackError::new)
    }

    /// The next text.
    fn next_text(&mut self) -> Result<&'de str, PackError> {
        match self.head()? {
            Head::Text(length) => self.text(length),
            other => Err(unexpected(other, "a text")),
        }
    }

    /// Passes over a value and all that it holds.
    fn pass(&mut self) -> Result<(), PackError> {
        let mut open = 1_u64;
        while open > 0 {
            open -= 1;
            match self.head()? {
                Head::Text(length) | Head::Bytes(length) => drop(self.bytes(length.into())?),
                Head::Other(length) => drop(self.bytes(length)?),
                Head::List(length) => open += u64::from(length),
                Head::Map(length) => open += 2 * u64::from(length),
                _ => {}
            }
        }
        Ok(())
    }

    /// A list or a map of this many items, one level further down.
    fn enter(&mut self, items: u32) -> Result<Items<'_, 'de>, PackError> {
        self.levels = self.levels.checked_sub(1).ok_or_else(|| PackError::new("nested too deep"))?;
        Ok(Items { reader: self, left: items })
    }

    fn list(&mut self) -> Result<Items<'_, 'de>, PackError> {
        match self.head()? {
            Head::List(length) => self.enter(length),
            other => Err(unexpected(other, "a list")),
        }
    }

    fn map(&mut self) -> Result<Items<'_, 'de>, PackError> {
        match self.head()? {
            Head::Map(length) => self.enter(length),
            other => Err(unexpected(other, "a map")),
        }
    }
}

fn unexpected(found: Head, wanted: &str) -> PackError {
    PackError::new(format_args!("{found:?} where {wanted} is expected"))
}

/// What is left of a list or a map.
struct Items<'a, 'de> {
    reader: &'a mut Reader<'de>,
    left: u32,
}

impl<'de> Items<'_, 'de> {
    /// No item is shorter than a byte.
    fn hint(&self) -> usize {
        self.reader.rest.len().min(self.left as usize)
    }

    fn next<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, PackError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(&mut *self.reader).map(Some)
    }

    fn close(self) -> Result<(), PackError> {
        self.reader.levels += 1;
        if self.left > 0 {
            return Err(PackError::new(format_args!("{} items too many", self.left)));
        }
        Ok(())
    }
}

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = PackError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, PackError> {
        self.next(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.hint())
    }
}

impl<'de> MapAccess<'de> for Items<'_, 'de> {
    type Error = PackError;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, PackError> {
        self.next(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, PackError> {
        seed.deserialize(&mut *self.reader)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.hint())
    }
}

/// A variant: its name alone, or a map from its name to its content.
struct Variant<'a, 'de> {
    reader: &'a mut Reader<'de>,
    with_content: bool,
}

impl<'de> EnumAccess<'de> for Variant<'_, 'de> {
    type Error = PackError;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), PackError> {
        Ok((seed.deserialize(&mut *self.reader)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, 'de> {
    type Error = PackError;

    fn unit_variant(self) -> Result<(), PackError> {
        if self.with_content { self.reader.pass() } else { Ok(()) }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, PackError> {
        seed.deserialize(self.content()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, PackError> {
        self.content()?.deserialize_tuple(length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, PackError> {
        self.content()?.deserialize_struct("", fields, visitor)
    }
}

impl<'a, 'de> Variant<'a, 'de> {
    fn content(self) -> Result<&'a mut Reader<'de>, PackError> {
        if self.with_content { Ok(self.reader) } else { Err(PackError::new("a variant without its content")) }
    }
}

/// Numbers of all widths are read alike; a type refuses what does not fit.
macro_rules! numbers {
    ($($name:ident)*) => {$(
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PackError> {
            match self.head()? {
                Head::Unsigned(number) => visitor.visit_u64(number),
                Head::Signed(number) => visitor.visit_i64(number),
                Head::Number(number) => visitor.visit_f64(number),
                other => Err(unexpected(other, "a number")),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = PackError;

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
        deserialize_f32 deserialize_f64
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, PackError> {
        Err(PackError::new("a value of unknown type"))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PackError> {
        match self.head()? {
            Head::Flag(flag) => visitor.visit_bool(flag),
            other => Err(unexpected(other, "true or false")),
        }
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PackError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PackError> {
        visitor.visit_borrowed_str(self.next_text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PackError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PackError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PackError> {
        match self.head()? {
            Head::Bytes(length) => visitor.visit_borrowed_bytes(self.bytes(length.into())?),
            other => Err(unexpected(other, "bytes")),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PackError> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PackError> {
        match self.rest.split_first() {
            Some((0xc0, rest)) => {
                self.rest = rest;
                visitor.visit_none()
            }
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PackError> {
        match self.head()? {
            Head::Nothing | Head::List(0) => visitor.visit_unit(),
            other => Err(unexpected(other, "nothing")),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, PackError> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, PackError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PackError> {
        let mut items = self.list()?;
        let value = visitor.visit_seq(&mut items)?;
        items.close().map(|()| value)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, PackError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, PackError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PackError> {
        let mut items = self.map()?;
        let value = visitor.visit_map(&mut items)?;
        items.close().map(|()| value)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, PackError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, PackError> {
        let with_content = self.rest.first() == Some(&0x81);
        if with_content {
            self.rest = self.rest.get(1..).unwrap_or_default();
        }
        self.levels = self.levels.checked_sub(1).ok_or_else(|| PackError::new("nested too deep"))?;
        let value = visitor.visit_enum(Variant { reader: &mut *self, with_content })?;
        self.levels += 1;
        Ok(value)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PackError> {
        self.pass()?;
        visitor.visit_unit()
    }
}
