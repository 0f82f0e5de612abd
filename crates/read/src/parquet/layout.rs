//! Numbers that Parquet's specification gives to things, for the reader and the writer.

/// The first and the last bytes of every file.
pub const MAGIC: &[u8] = b"PAR1";

/// Physical types.
pub mod physical {
    /// 32-bit integers.
    pub const INT32: i32 = 1;
    /// 64-bit integers.
    pub const INT64: i32 = 2;
    /// Doubles.
    pub const DOUBLE: i32 = 5;
    /// Text, each with its length in front.
    pub const BYTE_ARRAY: i32 = 6;
}

/// Encodings of pages.
pub mod encoding {
    /// One value after the other.
    pub const PLAIN: i32 = 0;
    /// Runs and bit-packed groups.
    pub const RLE: i32 = 3;
    /// Runs of indices into a dictionary.
    pub const RLE_DICTIONARY: i32 = 8;
}

/// Types of fields in Thrift's compact protocol.
pub mod thrift {
    /// A boolean that is true.
    pub(crate) const TRUE: u8 = 1;
    /// A boolean that is false.
    pub(crate) const FALSE: u8 = 2;
    /// One byte.
    pub(crate) const BYTE: u8 = 3;
    /// 16-bit integers.
    pub const I16: u8 = 4;
    /// 32-bit integers.
    pub const I32: u8 = 5;
    /// 64-bit integers.
    pub const I64: u8 = 6;
    /// Doubles.
    pub const DOUBLE: u8 = 7;
    /// Text and bytes.
    pub const BINARY: u8 = 8;
    /// Lists.
    pub const LIST: u8 = 9;
    /// Sets.
    pub const SET: u8 = 10;
    /// Maps.
    pub const MAP: u8 = 11;
    /// Structs.
    pub const STRUCT: u8 = 12;
}
