//! Which arguments an event has to itself and which it shares: text → arena.
//!
//! The arena stores a shared record once, which pays for a kernel's launch configuration and would be a waste
//! for a correlation id. Rather than by a list of names, that is learnt from the file: a key whose values keep
//! changing is the event's own.

use rustc_hash::FxHashMap;
use stepscope_trace::{Datum, StrId, TraceBuilder};

use super::repair::Repairs;
use super::scan::Piece;
use super::text;

/// Values remembered for each key.
const SLOTS: usize = 256;
/// Keys beyond this many are not studied; their values are the event's own.
const STUDIED_KEYS: usize = 512;
/// Values seen before a key is judged.
const TRIAL: u32 = 16;

/// What was learnt of one key.
struct Study {
    seen: u32,
    /// How many of them were not among the remembered values.
    fresh: u32,
    remembered: Box<[u16; SLOTS]>,
}

impl Study {
    fn new() -> Self {
        Study { seen: 0, fresh: 0, remembered: Box::new([0; SLOTS]) }
    }

    /// Takes a value into account and says whether the key's values are the events' own.
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

/// Turns arguments into records of the arena.
#[derive(Default)]
pub(super) struct ArgWriter {
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
    pub(super) fn push(&mut self, builder: &mut TraceBuilder, args: &[(StrId, Datum)]) -> Option<u64> {
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
