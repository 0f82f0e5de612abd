//! Columns in Arrow's layout. A frame is immutable once it is built, and shared: it lives as long as one of its readers.

use std::sync::Arc;

/// Columns of equal length.
#[derive(Debug, Default)]
pub struct Frame {
    columns: Vec<Column>,
    rows: usize,
}

impl Frame {
    /// A frame of these columns. Columns of another length than the first are left out.
    pub fn new(columns: Vec<Column>) -> Self {
        let rows = columns.first().map_or(0, Column::len);
        let columns = columns.into_iter().filter(|column| column.len() == rows).collect();
        Frame { columns, rows }
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }
}

/// One column.
#[derive(Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: Values,
    /// Which values are known, one bit each, the lowest first; `None` if all are.
    valid: Option<Vec<u8>>,
    nulls: usize,
}

/// The values of a column; unknown ones hold a zero or an empty text.
#[derive(Debug)]
pub enum Values {
    /// Whole numbers.
    Int(Vec<i64>),
    /// Other numbers.
    Float(Vec<f64>),
    /// Truth values, one bit each, the lowest first.
    Bool {
        /// The bits.
        bits: Vec<u8>,
        /// How many.
        len: usize,
    },
    /// Text.
    Text(Words),
    /// Text from a small set: the position of each value in it.
    Code {
        /// Positions.
        codes: Codes,
        /// The set; each text once.
        words: Arc<Words>,
    },
}

/// Positions in a set, as narrow as the set allows: data-frame libraries narrow wider ones, which takes a copy. None is
/// negative.
#[derive(Debug)]
pub enum Codes {
    /// One byte each.
    I8(Vec<i8>),
    /// Two bytes each.
    I16(Vec<i16>),
    /// Four bytes each.
    I32(Vec<i32>),
}

impl Codes {
    /// `len` times the first position of a set of `words` texts.
    pub fn zeros(len: usize, words: usize) -> Self {
        if i8::try_from(words).is_ok() {
            Codes::I8(vec![0; len])
        } else if i16::try_from(words).is_ok() {
            Codes::I16(vec![0; len])
        } else {
            Codes::I32(vec![0; len])
        }
    }

    /// Number of positions.
    pub fn len(&self) -> usize {
        match self {
            Codes::I8(codes) => codes.len(),
            Codes::I16(codes) => codes.len(),
            Codes::I32(codes) => codes.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `place`th position.
    pub fn get(&self, place: usize) -> Option<usize> {
        let code = match self {
            Codes::I8(codes) => codes.get(place).map(|&code| i32::from(code)),
            Codes::I16(codes) => codes.get(place).map(|&code| i32::from(code)),
            Codes::I32(codes) => codes.get(place).copied(),
        };
        code.and_then(|code| usize::try_from(code).ok())
    }
}

/// Texts, one after the other in one buffer.
#[derive(Debug, Clone)]
pub struct Words {
    ends: Vec<i64>,
    bytes: Vec<u8>,
}

impl Default for Words {
    fn default() -> Self {
        Words { ends: vec![0], bytes: Vec::new() }
    }
}

impl Words {
    /// Adds a text.
    pub fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.ends.push(i64::try_from(self.bytes.len()).unwrap_or(i64::MAX));
    }

    /// Number of texts.
    pub fn len(&self) -> usize {
        self.ends.len().saturating_sub(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text at a position; empty if there is none.
    pub fn get(&self, place: usize) -> &str {
        let end = |place: usize| self.ends.get(place).and_then(|&end| usize::try_from(end).ok());
        let range = end(place).zip(end(place.saturating_add(1))).map(|(from, to)| from..to);
        let bytes = range.and_then(|range| self.bytes.get(range)).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    /// Where each text ends in [`Words::bytes`], after a 0 for where the first begins.
    pub fn ends(&self) -> &[i64] {
        &self.ends
    }

    /// All texts.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl FromIterator<bool> for Values {
    fn from_iter<I: IntoIterator<Item = bool>>(values: I) -> Self {
        let (bits, len) = packed(values);
        Values::Bool { bits, len }
    }
}

impl Column {
    /// A column without unknown values.
    pub fn new(name: impl Into<String>, values: Values) -> Self {
        Column { name: name.into(), values, valid: None, nulls: 0 }
    }

    /// A column some of whose values are unknown: `known` says of each value whether it is known.
    pub(crate) fn with_nulls(
        name: impl Into<String>,
        values: Values,
        known: impl IntoIterator<Item = bool>,
    ) -> Self {
        let mut nulls = 0;
        let (bits, _) = packed(known.into_iter().inspect(|&known| nulls += usize::from(!known)));
        Column { name: name.into(), values, valid: (nulls > 0).then_some(bits), nulls }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        match &self.values {
            Values::Int(values) => values.len(),
            Values::Float(values) => values.len(),
            Values::Bool { len, .. } => *len,
            Values::Text(words) => words.len(),
            Values::Code { codes, .. } => codes.len(),
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the value at a position is known.
    pub fn is_known(&self, place: usize) -> bool {
        self.valid.as_ref().is_none_or(|bits| bit(bits, place))
    }

    /// Number of unknown values.
    pub(crate) fn nulls(&self) -> usize {
        self.nulls
    }

    /// The bits that say which values are known.
    pub(crate) fn validity(&self) -> Option<&[u8]> {
        self.valid.as_deref()
    }
}

/// The bit at a position; `false` beyond the end.
pub(crate) fn bit(bits: &[u8], place: usize) -> bool {
    bits.get(place / 8).is_some_and(|byte| byte >> (place % 8) & 1 == 1)
}

/// Bits, the lowest first, and their number.
fn packed(values: impl IntoIterator<Item = bool>) -> (Vec<u8>, usize) {
    let (mut bits, mut len) = (Vec::new(), 0_usize);
    for value in values {
        if len.is_multiple_of(8) {
            bits.push(0);
        }
        if let Some(last) = bits.last_mut() {
            *last |= u8::from(value) << (len % 8);
        }
        len += 1;
    }
    (bits, len)
}

impl Values {
    /// The value of a truth column at a position.
    pub fn truth(&self, place: usize) -> Option<bool> {
        match self {
            Values::Bool { bits, len } => (place < *len).then(|| bit(bits, place)),
            _ => None,
        }
    }
}
