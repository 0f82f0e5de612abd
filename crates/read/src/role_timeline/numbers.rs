//! Nested lists of whole numbers as a stream: brackets and numbers, nothing else.

/// A bracket or a number.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Open,
    Close,
    Number(i64),
}

/// The events of a text.
pub(super) struct Numbers<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
    broken: bool,
}

impl<'a> Numbers<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Numbers { text, at: 0, depth: 0, broken: false }
    }

    /// Where the text ends early.
    pub(super) fn broken(&self) -> Option<usize> {
        (self.broken || self.depth > 0).then_some(self.at)
    }

    pub(super) fn next(&mut self) -> Option<Event> {
        let rest = self.text.get(self.at..)?;
        let skipped = rest.iter().position(|byte| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b','))?;
        self.at += skipped;
        let rest = rest.get(skipped..)?;
        match rest.first()? {
            b'[' => {
                self.at += 1;
                self.depth += 1;
                Some(Event::Open)
            }
            b']' if self.depth > 0 => {
                self.at += 1;
                self.depth -= 1;
                Some(Event::Close)
            }
            _ => {
                let digits = |byte: &u8| !matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                let end = rest.iter().position(digits).unwrap_or(rest.len());
                let number = rest.get(..end).and_then(|text| std::str::from_utf8(text).ok()).and_then(whole);
                self.broken |= number.is_none();
                self.at += end;
                number.map(Event::Number)
            }
        }
    }
}

/// A number; one with decimals is rounded.
fn whole(text: &str) -> Option<i64> {
    text.parse()
        .ok()
        .or_else(|| text.parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| number as i64))
}

/// The first events of a head.
fn first(head: &[u8], count: usize) -> Vec<Event> {
    let mut numbers = Numbers::new(head);
    std::iter::from_fn(|| numbers.next()).take(count).collect()
}

/// `[[time, action 1 to 4, bytes, role 0 to 7]`.
pub(super) fn looks_raw(head: &[u8]) -> bool {
    use Event::{Close, Number, Open};
    matches!(first(head, 7)[..], [Open, Open, Number(-1..), Number(1..=4), Number(_), Number(0..=7), Close])
}

/// `[[times],[[0, eight numbers]`, or many times: then the head ends before the second list, but all are microseconds since
/// 1970 in rising order.
pub(super) fn looks_summed(head: &[u8]) -> bool {
    let mut numbers = Numbers::new(head);
    if (numbers.next(), numbers.next()) != (Some(Event::Open), Some(Event::Open)) {
        return false;
    }
    let mut last = i64::MIN;
    let mut count = 0;
    loop {
        match numbers.next() {
            Some(Event::Number(time)) if time >= last => (last, count) = (time, count + 1),
            Some(Event::Close) if count > 0 => break,
            // The last number may be cut off.
            None | Some(Event::Number(_)) => return count >= MANY && last >= RECENT_US,
            _ => return false,
        }
    }
    let row: Vec<Event> = std::iter::from_fn(|| numbers.next()).take(ROW).collect();
    let (Some(Event::Open), Some(Event::Open), Some(Event::Number(0))) =
        (row.first(), row.get(1), row.get(2))
    else {
        return false;
    };
    row.len() == ROW && row.last() == Some(&Event::Close)
}

/// Two brackets, nine numbers and a bracket.
const ROW: usize = 12;
/// Times in a head without the second list.
const MANY: i64 = 1_000;
/// September 2001 in microseconds: smaller numbers are no times.
const RECENT_US: i64 = 1_000_000_000_000_000;
