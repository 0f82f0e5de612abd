//! Pickles of plain values, opcode by opcode.

#![allow(clippy::expect_used, reason = "writing to memory does not fail, and what helps a test may fail it")]

use std::collections::HashMap;
use std::io::{self, Write};
use std::rc::Rc;

/// A Python value.
#[derive(Clone, Debug)]
pub enum Py {
    /// `None`.
    None,
    /// A truth value.
    Bool(bool),
    /// A number; addresses may need more than 63 bits.
    Int(i128),
    /// A number with decimals.
    Float(f64),
    /// A text.
    Str(String),
    /// A list.
    List(Vec<Py>),
    /// A dictionary with text keys.
    Dict(Vec<(&'static str, Py)>),
    /// A tuple.
    Tuple(Vec<Py>),
    /// An object that occurs in several places, and its number.
    Shared(u32, Rc<Py>),
}

impl Py {
    /// A text.
    pub fn str(text: &str) -> Py {
        Py::Str(text.to_owned())
    }
}

/// Who pickles.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Writer {
    /// `pickle.dump` of Python with this protocol: lists in batches of 1,000.
    Python(u8),
    /// PyTorch's own, in C++: protocol 2, a list as one piece.
    Cpp,
}

/// Items that Python adds to a list at once.
const BATCH: usize = 1_000;

/// Writes values.
pub struct Pickler<W> {
    out: W,
    writer: Writer,
    texts: HashMap<String, u32>,
    shared: HashMap<u32, u32>,
    next: u32,
}

impl<W> std::fmt::Debug for Pickler<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pickler").field("writer", &self.writer).finish_non_exhaustive()
    }
}

impl Pickler<Vec<u8>> {
    /// A whole pickle.
    pub fn dump(writer: Writer, value: &Py) -> Vec<u8> {
        let mut pickler = Pickler::new(Vec::new(), writer).expect("memory");
        pickler.value(value).expect("memory");
        pickler.finish().expect("memory")
    }
}

impl<W: Write> Pickler<W> {
    /// Starts a pickle.
    pub fn new(mut out: W, writer: Writer) -> io::Result<Self> {
        match writer {
            Writer::Python(protocol @ 4..) => {
                out.write_all(&[0x80, protocol, 0x95])?;
                // The length of a frame is only a hint to buffer.
                out.write_all(&1_u64.to_le_bytes())?;
            }
            Writer::Python(_) | Writer::Cpp => out.write_all(&[0x80, 2])?,
        }
        Ok(Pickler { out, writer, texts: HashMap::new(), shared: HashMap::new(), next: 0 })
    }

    /// Ends it.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.write_all(b".")?;
        Ok(self.out)
    }

    fn remember(&mut self) -> io::Result<u32> {
        let place = self.next;
        self.next += 1;
        match (self.writer, u8::try_from(place)) {
            (Writer::Python(4..), _) => self.out.write_all(&[0x94])?,
            (_, Ok(place)) => self.out.write_all(&[b'q', place])?,
            (_, Err(_)) => {
                self.out.write_all(b"r")?;
                self.out.write_all(&place.to_le_bytes())?;
            }
        }
        Ok(place)
    }

    fn recall(&mut self, place: u32) -> io::Result<()> {
        match u8::try_from(place) {
            Ok(place) => self.out.write_all(&[b'h', place]),
            Err(_) => {
                self.out.write_all(b"j")?;
                self.out.write_all(&place.to_le_bytes())
            }
        }
    }

    /// Writes one value.
    pub fn value(&mut self, value: &Py) -> io::Result<()> {
        match value {
            Py::None => self.out.write_all(b"N"),
            Py::Bool(is) => self.out.write_all(&[if *is { 0x88 } else { 0x89 }]),
            Py::Int(number) => self.int(*number),
            Py::Float(number) => {
                self.out.write_all(b"G")?;
                self.out.write_all(&number.to_be_bytes())
            }
            Py::Str(text) => self.text(text),
            Py::List(items) => {
                self.begin_list()?;
                self.items(items)
            }
            Py::Dict(items) => self.dict(items),
            Py::Tuple(items) => self.tuple(items),
            Py::Shared(number, value) => match self.shared.get(number) {
                Some(&place) => self.recall(place),
                None => {
                    let place = self.next;
                    self.value(value)?;
                    self.shared.insert(*number, place);
                    Ok(())
                }
            },
        }
    }

    fn int(&mut self, number: i128) -> io::Result<()> {
        match number {
            0..=0xff => self.out.write_all(&[b'K', number as u8]),
            0x100..=0xffff => {
                self.out.write_all(b"M")?;
                self.out.write_all(&(number as u16).to_le_bytes())
            }
            _ if i32::try_from(number).is_ok() => {
                self.out.write_all(b"J")?;
                self.out.write_all(&(number as i32).to_le_bytes())
            }
            _ => {
                let bytes = number.to_le_bytes();
                let sign = if number < 0 { 0xff } else { 0 };
                let mut len = bytes.len();
                while len > 1 && bytes[len - 1] == sign && (bytes[len - 2] ^ sign) < 0x80 {
                    len -= 1;
                }
                self.out.write_all(&[0x8a, len as u8])?;
                self.out.write_all(&bytes[..len])
            }
        }
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        if let Some(&place) = self.texts.get(text) {
            return self.recall(place);
        }
        match (self.writer, u8::try_from(text.len())) {
            (Writer::Python(4..), Ok(len)) => self.out.write_all(&[0x8c, len])?,
            _ => {
                self.out.write_all(b"X")?;
                self.out.write_all(&(text.len() as u32).to_le_bytes())?;
            }
        }
        self.out.write_all(text.as_bytes())?;
        let place = self.remember()?;
        self.texts.insert(text.to_owned(), place);
        Ok(())
    }

    /// Starts a list; [`Pickler::items`] adds to it.
    pub fn begin_list(&mut self) -> io::Result<()> {
        self.out.write_all(b"]")?;
        self.remember().map(drop)
    }

    /// Adds items to the list that was started last, once earlier items of it are complete.
    pub fn items(&mut self, items: &[Py]) -> io::Result<()> {
        let batch = if self.writer == Writer::Cpp { items.len().max(1) } else { BATCH };
        for part in items.chunks(batch) {
            if let ([one], Writer::Python(_)) = (part, self.writer) {
                self.value(one)?;
                self.out.write_all(b"a")?;
                continue;
            }
            self.out.write_all(b"(")?;
            part.iter().try_for_each(|item| self.value(item))?;
            self.out.write_all(b"e")?;
        }
        Ok(())
    }

    fn dict(&mut self, items: &[(&'static str, Py)]) -> io::Result<()> {
        self.begin_dict()?;
        self.out.write_all(b"(")?;
        for (key, value) in items {
            self.text(key)?;
            self.value(value)?;
        }
        self.out.write_all(b"u")
    }

    /// Starts a dictionary; [`Pickler::key`] and [`Pickler::set_item`] surround each of its values.
    pub fn begin_dict(&mut self) -> io::Result<()> {
        self.out.write_all(b"}")?;
        self.remember().map(drop)
    }

    /// A key of a dictionary whose value follows.
    pub fn key(&mut self, key: &str) -> io::Result<()> {
        self.text(key)
    }

    /// Ends a key and its value.
    pub fn set_item(&mut self) -> io::Result<()> {
        self.out.write_all(b"s")
    }

    fn tuple(&mut self, items: &[Py]) -> io::Result<()> {
        if items.len() > 3 {
            self.out.write_all(b"(")?;
        }
        items.iter().try_for_each(|item| self.value(item))?;
        self.out.write_all(&[match items.len() {
            0 => b')',
            few @ 1..=3 => 0x84 + few as u8,
            _ => b't',
        }])?;
        if items.is_empty() { Ok(()) } else { self.remember().map(drop) }
    }
}
