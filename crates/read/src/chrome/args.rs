//! Which arguments are unique to an event and which are shared: text → arena.
//!
//! The arena stores a shared record once. This pays off for a kernel's launch configuration and would be
//! wasteful for a correlation id. The reader learns this from the file instead of a list of names: if the
//! values of a key keep changing, they are unique to the event.

use rustc_hash::FxHashMap;
use stepscope_trace::{Datum, StrId, TraceBuilder};

use super::repair::Repairs;
use super::scan::{Piece, Scanner, Within};
use super::text;

/// Number of values remembered for each key.
const SLOTS: usize = 256;
/// Number of keys that are studied; values of further keys count as unique.
const STUDIED_KEYS: usize = 512;
/// Number of values seen before a key is judged.
const TRIAL: u32 = 16;

/// What was learnt about one key.
struct Study {
    seen: u32,
    /// How many of the values were not among the remembered ones.
    fresh: u32,
    remembered: Box<[u16; SLOTS]>,
}

impl Study {
    fn new() -> Self {
        Study { seen: 0, fresh: 0, remembered: Box::new([0; SLOTS]) }
    }

    /// Records a value and returns whether the key's values are unique to the events.
    fn is_own(&mut self, value: Datum) -> bool {
        let hash = hash(value);
        let slot = &mut self.remembered[hash as usize % SLOTS];
        let tag = (hash >> 48) as u16 | 1;
        self.seen += 1;
        if *slot != tag {
            *slot = tag;
            self.fresh += 1;
        }
        if self.seen > 1 << 20 {
            (self.seen, self.fresh) = (self.seen / 2, self.fresh / 2);
        }
        if self.seen < TRIAL {
            matches!(value, Datum::Int(_) | Datum::UInt(_) | Datum::Float(_))
        } else {
            self.fresh.saturating_mul(5) > self.seen
        }
    }
}

fn hash(value: Datum) -> u64 {
    let bits = match value {
        Datum::Int(v) => v as u64,
        Datum::UInt(v) => v,
        Datum::Float(v) => v.to_bits(),
        Datum::Bool(v) => u64::from(v),
        Datum::Str(id) | Datum::Json(id) => u64::from(id.0),
        Datum::Null => 0,
    };
    let mixed = (bits ^ 0x5851_f42d_4c95_7f2d).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

/// Turns arguments into arena records.
#[derive(Default)]
pub(crate) struct ArgWriter {
    studies: FxHashMap<StrId, Study>,
    own: Vec<(StrId, Datum)>,
    shared: Vec<(StrId, Datum)>,
}

impl ArgWriter {
    /// Decodes an event's arguments.
    pub(super) fn decode(
        builder: &mut TraceBuilder,
        text: &[u8],
        args: &[(Piece, Piece)],
        repairs: &mut Repairs,
        out: &mut Vec<(StrId, Datum)>,
    ) {
        for &(key, value) in args {
            let key = text::intern(&mut builder.strings, text, key, repairs);
            out.push((key, text::datum(&mut builder.strings, text, value, repairs)));
        }
    }

    /// Stores an event's arguments.
    pub(crate) fn push(&mut self, builder: &mut TraceBuilder, args: &[(StrId, Datum)]) -> Option<u64> {
        self.own.clear();
        self.shared.clear();
        for &(key, value) in args {
            let room = self.studies.len() < STUDIED_KEYS;
            let study = match self.studies.get_mut(&key) {
                None if room => Some(self.studies.entry(key).or_insert_with(Study::new)),
                known => known,
            };
            let own = study.is_none_or(|study| study.is_own(value));
            if own { self.own.push((key, value)) } else { self.shared.push((key, value)) }
        }
        builder.arena.push(&self.own, &self.shared)
    }
}

/// The members of a JSON object, as arguments; those before the first error.
pub(crate) fn members(builder: &mut TraceBuilder, text: &[u8], out: &mut Vec<(StrId, Datum)>) {
    let (mut scanner, mut found) = (Scanner::new(text, 0), Vec::new());
    if scanner.peek() == Ok(b'{') {
        scanner.at += 1;
        while let Ok(Some(key)) = scanner.member(found.is_empty()) {
            let Ok(value) = scanner.value(Within::Member) else { break };
            found.push((key, value));
        }
    }
    ArgWriter::decode(builder, text, &found, &mut Repairs::default(), out);
}
