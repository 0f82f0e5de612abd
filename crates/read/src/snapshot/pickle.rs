//! The stack machine of pickles, without the opcodes that import, call or build objects.
//!
//! A gigabyte of pickle is four million entries with forty calls each, nearly all of them references to earlier values. So
//! values are 16 bytes and never own anything, a dictionary is understood once all its items are there, and what it was is
//! one integer ([`super::shapes`]). No value is evaluated, no tree is built, nothing recurses.

use crate::{Bytes, Progress};

use super::shapes::{Shapes, Value};

/// Lists and dictionaries within each other, at most. Snapshots have five levels.
const DEEPEST: usize = 64;
/// Values, remembered values, dictionaries and lists that any file may have, however small it is.
const FEW: usize = 1 << 20;
/// Beyond that, bytes of the file per value: an entry takes more than a hundred.
const BYTES_PER_VALUE: usize = 8;
/// Bytes between two looks at whether somebody still waits, and after which pages of the file are given back.
const BYTES_PER_LOOK: usize = 8 << 20;
/// Bytes of the head in which the first key of a snapshot must be.
const FIRST_KEY: usize = 64;

/// Why reading ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// At the end of the pickle.
    Whole,
    /// At an opcode that would run code.
    RunsCode { opcode: &'static str, at: usize },
    /// At damage.
    Broken { what: &'static str, at: usize },
}

/// What was read until then.
pub(super) struct Reading {
    pub(super) shapes: Shapes,
    pub(super) ended: Ended,
}

/// Whether the bytes start like a pickle of protocol 2 to 5.
pub(crate) fn starts_like_a_pickle(head: &[u8]) -> bool {
    matches!(head, [0x80, 2..=5, ..])
}

/// Whether the bytes start like a snapshot: a dictionary whose first key is one of a snapshot.
pub(super) fn is_snapshot(head: &[u8]) -> bool {
    const KEYS: [&[u8]; 4] = [b"segments", b"device_traces", b"allocator_settings", b"external_annotations"];
    let Some(start) = head.get(2..).filter(|_| starts_like_a_pickle(head)) else { return false };
    // A frame's length, if there is one, then the dictionary.
    let start = if start.first() == Some(&0x95) { start.get(9..).unwrap_or_default() } else { start };
    let window = start.get(..start.len().min(FIRST_KEY)).unwrap_or_default();
    start.first() == Some(&b'}') && KEYS.iter().any(|key| window.windows(key.len()).any(|part| part == *key))
}

/// The name of an opcode that imports, calls or builds, or asks others for objects.
fn name_of_running(opcode: u8) -> Option<&'static str> {
    Some(match opcode {
        b'c' => "GLOBAL",
        0x93 => "STACK_GLOBAL",
        b'R' => "REDUCE",
        b'b' => "BUILD",
        b'i' => "INST",
        b'o' => "OBJ",
        0x81 => "NEWOBJ",
        0x92 => "NEWOBJ_EX",
        0x82..=0x84 => "EXT",
        b'P' => "PERSID",
        b'Q' => "BINPERSID",
        0x97 => "NEXT_BUFFER",
        0x98 => "READONLY_BUFFER",
        _ => return None,
    })
}

/// The first opcode in the head of any pickle that would run code, with its position.
pub(crate) fn opcode_that_runs_code(head: &[u8]) -> Option<(&'static str, usize)> {
    match read(&Bytes::held(head.to_vec()), &Progress::new()).ended {
        Ended::RunsCode { opcode, at } => Some((opcode, at)),
        _ => None,
    }
}

/// Reads a whole pickle.
pub(super) fn read(bytes: &Bytes, progress: &Progress) -> Reading {
    let most = FEW.max(bytes.len() / BYTES_PER_VALUE);
    let mut machine = Machine {
        file: bytes,
        bytes,
        at: 0,
        most,
        stack: Vec::new(),
        marks: Vec::new(),
        memo: Vec::new(),
        shapes: Shapes::new(most),
    };
    let ended = machine.run(progress).unwrap_or_else(|ended| ended);
    let mut shapes = machine.shapes;
    shapes.root = match ended {
        Ended::Whole => machine.stack.pop(),
        _ => None,
    };
    Reading { shapes, ended }
}

struct Machine<'a> {
    file: &'a Bytes,
    bytes: &'a [u8],
    at: usize,
    most: usize,
    stack: Vec<Value>,
    /// Positions in the stack.
    marks: Vec<usize>,
    memo: Vec<Value>,
    shapes: Shapes,
}

impl Machine<'_> {
    fn run(&mut self, progress: &Progress) -> Result<Ended, Ended> {
        let mut looked = 0;
        loop {
            let begin = self.at;
            let [opcode] = self.take::<1>()?;
            if opcode == b'.' {
                return if self.stack.len() == 1 {
                    Ok(Ended::Whole)
                } else {
                    Err(self.broken("values are left over at its end", begin))
                };
            }
            self.step(opcode, begin)?;
            if self.at - looked >= BYTES_PER_LOOK {
                progress.advance((self.at - looked) as u64, 0);
                self.file.release(looked..self.at);
                looked = self.at;
                if progress.is_stopped() {
                    return Err(self.broken("reading was stopped", begin));
                }
            }
        }
    }

    fn broken(&self, what: &'static str, at: usize) -> Ended {
        Ended::Broken { what, at }
    }

    #[inline(always)]
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Ended> {
        let taken = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk::<N>);
        match taken {
            Some(bytes) => {
                self.at += N;
                Ok(*bytes)
            }
            None => Err(self.broken("the pickle is truncated", self.bytes.len())),
        }
    }

    /// The opcodes that make up nearly all of a snapshot, then the rest.
    #[inline(always)]
    fn step(&mut self, opcode: u8, begin: usize) -> Result<(), Ended> {
        match opcode {
            b'j' => {
                let place = u32::from_le_bytes(self.take()?) as usize;
                self.recall(place, begin)
            }
            b'h' => {
                let [place] = self.take()?;
                self.recall(usize::from(place), begin)
            }
            b'K' => {
                let [number] = self.take()?;
                self.push(Value::Int(i64::from(number)), begin)
            }
            b'M' => {
                let number = u16::from_le_bytes(self.take()?);
                self.push(Value::Int(i64::from(number)), begin)
            }
            b'J' => {
                let number = i32::from_le_bytes(self.take()?);
                self.push(Value::Int(i64::from(number)), begin)
            }
            0x8a => self.long(begin),
            0x94 => self.memoize(self.memo.len(), begin),
            b'q' => {
                let [place] = self.take()?;
                self.memoize(usize::from(place), begin)
            }
            b'r' => {
                let place = u32::from_le_bytes(self.take()?) as usize;
                self.memoize(place, begin)
            }
            b'(' => self.mark(begin),
            b'u' | b's' => self.set_items(opcode == b's', begin),
            b'e' | b'a' => self.append(opcode == b'a', begin),
            b'}' => {
                let new = self.shapes.new_dict().ok_or(self.broken("it has too many dictionaries", begin))?;
                self.push(new, begin)
            }
            b']' => {
                let new = self.shapes.new_list().ok_or(self.broken("it has too many lists", begin))?;
                self.push(new, begin)
            }
            _ => self.rare(opcode, begin),
        }
    }

    fn rare(&mut self, opcode: u8, begin: usize) -> Result<(), Ended> {
        match opcode {
            0x8c => {
                let [len] = self.take()?;
                self.text(usize::from(len), begin)
            }
            b'X' => {
                let len = u32::from_le_bytes(self.take()?) as usize;
                self.text(len, begin)
            }
            0x8d => {
                let len = u64::from_le_bytes(self.take()?);
                self.text(usize::try_from(len).unwrap_or(usize::MAX), begin)
            }
            b'G' => {
                let number = f64::from_be_bytes(self.take()?);
                self.push(Value::Float(number), begin)
            }
            b'N' => self.push(Value::None, begin),
            0x88 | 0x89 => self.push(Value::Bool(opcode == 0x88), begin),
            b')' | 0x85..=0x87 | b't' => self.tuple(opcode, begin),
            b'0' => self.stack.pop().map(drop).ok_or(self.broken("a value is missing", begin)),
            0x95 => self.take::<8>().map(drop),
            0x80 => match self.take::<1>()? {
                [2..=5] if begin == 0 => Ok(()),
                _ => Err(self.broken("the pickle protocol is not one of 2 to 5", begin)),
            },
            _ => Err(match name_of_running(opcode) {
                Some(opcode) => Ended::RunsCode { opcode, at: begin },
                None => self.broken("a memory snapshot has no such opcode", begin),
            }),
        }
    }

    #[inline(always)]
    fn push(&mut self, value: Value, begin: usize) -> Result<(), Ended> {
        if self.stack.len() >= self.most {
            return Err(self.broken("it puts too many values on its stack", begin));
        }
        self.stack.push(value);
        Ok(())
    }

    #[inline(always)]
    fn recall(&mut self, place: usize, begin: usize) -> Result<(), Ended> {
        match self.memo.get(place) {
            Some(&value) => self.push(value, begin),
            None => Err(self.broken("it refers to a value that it does not have", begin)),
        }
    }

    /// Both writers number what they remember from 0 on, one by one.
    #[inline(always)]
    fn memoize(&mut self, place: usize, begin: usize) -> Result<(), Ended> {
        let value = *self.stack.last().ok_or(self.broken("a value is missing", begin))?;
        if place == self.memo.len() && place < self.most {
            self.memo.push(value);
            return Ok(());
        }
        match self.memo.get_mut(place) {
            Some(old) => *old = value,
            None => return Err(self.broken("it remembers values out of order", begin)),
        }
        Ok(())
    }

    fn mark(&mut self, begin: usize) -> Result<(), Ended> {
        if self.marks.len() >= DEEPEST {
            return Err(self.broken("its values are nested too deeply", begin));
        }
        self.marks.push(self.stack.len());
        Ok(())
    }

    /// Where the values above the last mark begin, or the last `count` ones.
    #[inline(always)]
    fn above(&mut self, count: Option<usize>, begin: usize) -> Result<usize, Ended> {
        let found = match count {
            Some(count) => self.stack.len().checked_sub(count),
            None => self.marks.pop().filter(|&mark| mark <= self.stack.len()),
        };
        // Values below a mark belong to something else.
        let floor = self.marks.last().copied().unwrap_or(0);
        found.filter(|&at| at >= floor).ok_or(self.broken("a value is missing", begin))
    }

    #[inline(always)]
    fn set_items(&mut self, one: bool, begin: usize) -> Result<(), Ended> {
        let at = self.above(one.then_some(2), begin)?;
        let (below, items) = self.stack.split_at(at);
        match below.last() {
            Some(&Value::Dict(dict)) if items.len() % 2 == 0 => self.shapes.set_items(dict, items),
            _ => return Err(self.broken("items without a dictionary", begin)),
        }
        self.stack.truncate(at);
        Ok(())
    }

    #[inline(always)]
    fn append(&mut self, one: bool, begin: usize) -> Result<(), Ended> {
        let at = self.above(one.then_some(1), begin)?;
        let (below, items) = self.stack.split_at(at);
        match below.last() {
            Some(&Value::List(list)) => self.shapes.append(list, items),
            _ => return Err(self.broken("items without a list", begin)),
        }
        self.stack.truncate(at);
        Ok(())
    }

    /// Of tuples, a snapshot only has the pairs of numbers that name pools.
    fn tuple(&mut self, opcode: u8, begin: usize) -> Result<(), Ended> {
        let count = match opcode {
            b')' => Some(0),
            b't' => None,
            _ => Some(usize::from(opcode - 0x84)),
        };
        let at = self.above(count, begin)?;
        let items = self.stack.get(at..).unwrap_or_default();
        let zeros = items.iter().all(|item| matches!(item, Value::Int(0)));
        self.stack.truncate(at);
        self.push(Value::Tuple { zeros }, begin)
    }

    /// Addresses from 2^63 on take nine bytes.
    #[inline(always)]
    fn long(&mut self, begin: usize) -> Result<(), Ended> {
        let [len] = self.take()?;
        let len = usize::from(len);
        let Some(bytes) = self.bytes.get(self.at..self.at + len) else {
            return Err(self.broken("the pickle is truncated", self.bytes.len()));
        };
        self.at += len;
        let number = match bytes {
            [low @ .., 0] if low.len() == 8 => low,
            _ if len <= 8 => bytes,
            _ => return Err(self.broken("a number has more than 64 bits", begin)),
        };
        let negative = len <= 8 && bytes.last().is_some_and(|&last| last >= 0x80);
        let mut wide = [if negative { 0xff } else { 0 }; 8];
        wide.iter_mut().zip(number).for_each(|(to, from)| *to = *from);
        self.push(Value::Int(i64::from_le_bytes(wide)), begin)
    }

    fn text(&mut self, len: usize, begin: usize) -> Result<(), Ended> {
        let end = self.at.checked_add(len).filter(|&end| end <= self.bytes.len());
        let Some(end) = end else { return Err(self.broken("the pickle is truncated", self.bytes.len())) };
        let text = self.bytes.get(self.at..end).unwrap_or_default();
        let value = self.shapes.text(text, self.at);
        self.at = end;
        self.push(value, begin)
    }
}
