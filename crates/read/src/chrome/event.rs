//! One trace event: the location of its fields. If the event is broken, also where the next one starts.

use memchr::memchr2_iter;

use super::repair::Repair;
use super::scan::{Piece, Scan, Scanner, Sort, Stop, Within, key_at};

/// The fields of an event as pieces of the text. Reused for every event.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) phase: Piece,
    pub(super) name: Piece,
    pub(super) category: Piece,
    pub(super) ts: Piece,
    pub(super) dur: Piece,
    pub(super) pid: Piece,
    pub(super) tid: Piece,
    pub(super) id: Piece,
    /// `id2.local`: an id that is only valid within its process.
    pub(super) local_id: Piece,
    pub(super) scope: Piece,
    pub(super) bind_id: Piece,
    pub(super) flow_in: bool,
    pub(super) flow_out: bool,
    pub(super) args: Vec<(Piece, Piece)>,
    pub(super) members: usize,
}

impl Fields {
    fn clear(&mut self) {
        let mut args = std::mem::take(&mut self.args);
        args.clear();
        *self = Fields { args, ..Fields::default() };
    }

    /// Reads the event whose `{` is at the scanner.
    pub(super) fn read(&mut self, scanner: &mut Scanner<'_>) -> Scan<()> {
        self.clear();
        scanner.at += 1;
        while let Some(key) = scanner.member(self.members == 0)? {
            self.members += 1;
            let name = key.of(scanner.text);
            if name == b"args" && scanner.peek()? == b'{' {
                self.read_args(scanner)?;
                continue;
            }
            let value = scanner.value(Within::Member)?;
            self.put(scanner.text, key, value);
        }
        Ok(())
    }

    fn read_args(&mut self, scanner: &mut Scanner<'_>) -> Scan<()> {
        scanner.at += 1;
        let mut first = true;
        while let Some(key) = scanner.member(first)? {
            first = false;
            let value = scanner.value(Within::Member)?;
            self.args.push((key, value));
        }
        Ok(())
    }

    /// The event's name. TensorFlow's export shows an op's type, and keeps the name that the profile has, `op:Type`, beside it.
    pub(super) fn whole_name(&self, text: &[u8]) -> Piece {
        if !self.category.is_missing() {
            return self.name;
        }
        let short = self.name.of(text);
        let long = self.args.iter().find(|(key, _)| key.of(text) == b"long_name").map(|&(_, value)| value);
        let ends = |long: &Piece| {
            long.of(text).strip_suffix(short).is_some_and(|op| op.ends_with(b":")) && long.sort == Sort::Text
        };
        long.filter(ends).unwrap_or(self.name)
    }

    fn put(&mut self, text: &[u8], key: Piece, value: Piece) {
        match key.of(text) {
            b"ph" => self.phase = value,
            b"name" => self.name = value,
            b"cat" => self.category = value,
            b"ts" => self.ts = value,
            b"dur" => self.dur = value,
            b"pid" => self.pid = value,
            b"tid" => self.tid = value,
            b"id" => self.id = value,
            b"id2" => self.put_id2(text, value),
            b"scope" => self.scope = value,
            b"bind_id" => self.bind_id = value,
            b"flow_in" => self.flow_in = value.of(text) == b"true",
            b"flow_out" => self.flow_out = value.of(text) == b"true",
            // Drawing hints, thread time, stack frames by number: nothing that is not available elsewhere.
            b"bp" | b"s" | b"cname" | b"tts" | b"tdur" | b"sf" | b"esf" | b"stack" | b"estack"
            | b"use_async" => {}
            _ => self.args.push((key, value)),
        }
    }

    fn put_id2(&mut self, text: &[u8], value: Piece) {
        if value.sort != Sort::Nested {
            self.id = value;
            return;
        }
        let mut inner = Scanner::new(text, value.start + 1);
        if let Ok(Some(key)) = inner.member(true)
            && let Ok(id) = inner.value(Within::Member)
        {
            if key.of(text) == b"local" { self.local_id = id } else { self.id = id }
        }
    }
}

/// Scans the event at the scanner. If quick scanning fails, it is scanned again carefully, up to the start of
/// the next event. `at_end` says whether this is all the text.
pub(super) fn scan_event(scanner: &mut Scanner<'_>, fields: &mut Fields, at_end: bool) -> Scan<()> {
    /// If an event longer than this does not end, it has probably lost a quotation mark or a bracket.
    const SUSPICIOUS: usize = 1 << 20;
    let (start, before) = (scanner.at, scanner.repairs);
    let stop = match fields.read(scanner) {
        Ok(()) => return Ok(()),
        Err(stop) => stop,
    };
    scanner.repairs = before;
    if stop == Stop::More && !at_end && scanner.text.len() - start < SUSPICIOUS {
        return Err(Stop::More);
    }
    // Resuming inside a deeply nested value would find one level after the other.
    let from = if stop == Stop::Deep { scanner.at } else { start + 1 };
    let next = match next_event(scanner.text, from, at_end) {
        Some(next) => next,
        None if stop == Stop::More || !at_end => return Err(Stop::More),
        None => scanner.text.len(),
    };
    let mut careful = Scanner::new(&scanner.text[..next], start);
    careful.careful = true;
    if fields.read(&mut careful).is_ok() {
        scanner.at = careful.at;
        scanner.repairs.add(careful.repairs);
        return Ok(());
    }
    scanner.at = next;
    scanner.repairs.count(Repair::UnreadableEvent);
    Err(Stop::Bad)
}

/// Where the next event starts or the list of events ends, searching from `from`. `at_end` says whether this is
/// all the text.
pub(super) fn next_event(text: &[u8], from: usize, at_end: bool) -> Option<usize> {
    let rest = text.get(from..)?;
    memchr2_iter(b'{', b']', rest)
        .map(|at| from + at)
        .find(|&at| if text[at] == b']' { ends_events(text, at, at_end) } else { begins_event(text, at) })
}

fn begins_event(text: &[u8], at: usize) -> bool {
    const KEYS: [&[u8]; 8] = [b"ph", b"name", b"cat", b"ts", b"dur", b"pid", b"tid", b"args"];
    let behind = at + 1 + spaces(&text[at + 1..]);
    let Some(key) = key_at(text, behind) else { return false };
    KEYS.contains(&key) && matches!(solid_before(text, at), None | Some(b',' | b'[' | b'}'))
}

fn ends_events(text: &[u8], at: usize, at_end: bool) -> bool {
    let behind = at + 1 + spaces(&text[at + 1..]);
    if !matches!(solid_before(text, at), Some(b'}' | b',')) {
        return false;
    }
    match text.get(behind) {
        Some(b',') => {
            let key = key_at(text, behind + 1 + spaces(&text[behind + 1..]));
            key.is_some_and(super::header::is_known)
        }
        Some(b'}') => at_end && text[behind + 1..].iter().all(|&byte| byte <= b' '),
        _ => false,
    }
}

/// The last byte before `at` that is not white space.
fn solid_before(text: &[u8], at: usize) -> Option<u8> {
    text[..at].iter().rev().take(256).copied().find(|&byte| byte > b' ')
}

fn spaces(text: &[u8]) -> usize {
    text.iter().take_while(|&&byte| byte <= b' ').count()
}
