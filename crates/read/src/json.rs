//! Plain JSON of machine-written results: members and elements by place, without building values. Damage ends a walk; what
//! came before it is kept.

use crate::chrome::repair::Repairs;
use crate::chrome::scan::{Piece, Scanner, Sort, Stop, Within};
use crate::chrome::text;

/// A value in a text.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Json<'t> {
    text: &'t [u8],
    place: Piece,
}

impl<'t> Json<'t> {
    /// The value at the start of a text. One that is cut off ends where the text ends.
    pub(crate) fn root(text: &'t [u8]) -> Json<'t> {
        let start = text.iter().position(|byte| *byte > b' ').unwrap_or(0);
        Json { text, place: Piece { start, end: text.len(), sort: Sort::Nested } }
    }

    /// Visits the members of an object. Returns where damage ended it.
    pub(crate) fn members(&self, mut visit: impl FnMut(&'t [u8], Json<'t>)) -> Option<usize> {
        let mut scanner = self.inside(b'{')?;
        let mut first = true;
        loop {
            let key = match scanner.member(first) {
                Ok(Some(key)) => key,
                Ok(None) => return None,
                Err(_) => return Some(scanner.at),
            };
            first = false;
            let from = scanner.at;
            match scanner.value(Within::Member) {
                Ok(place) => visit(key.of(self.text), Json { text: self.text, place }),
                Err(stop) => {
                    // What is left of a list or an object still has its first values.
                    if let Some(rest) = self.cut(from, stop) {
                        visit(key.of(self.text), rest);
                    }
                    return Some(scanner.at.max(from));
                }
            }
        }
    }

    /// Visits the elements of a list. Returns where damage ended it.
    pub(crate) fn elements(&self, mut visit: impl FnMut(Json<'t>)) -> Option<usize> {
        let mut scanner = self.inside(b'[')?;
        let mut first = true;
        loop {
            let from = scanner.at;
            match scanner.element(first) {
                Ok(Some(place)) => visit(Json { text: self.text, place }),
                Ok(None) => return None,
                Err(stop) => {
                    if let Some(rest) = self.cut(from, stop) {
                        visit(rest);
                    }
                    return Some(scanner.at.max(from));
                }
            }
            first = false;
        }
    }

    fn cut(&self, from: usize, stop: Stop) -> Option<Json<'t>> {
        let skipped = self.text.get(from..)?.iter().position(|byte| matches!(byte, b'{' | b'['))?;
        let before = self.text.get(from..from + skipped)?;
        let only_space = before.iter().all(|byte| byte.is_ascii_whitespace() || matches!(byte, b',' | b':'));
        let place = Piece { start: from + skipped, end: self.text.len(), sort: Sort::Nested };
        (stop == Stop::More && only_space).then_some(Json { text: self.text, place })
    }

    fn inside(&self, open: u8) -> Option<Scanner<'t>> {
        let is_open = self.place.sort == Sort::Nested && self.text.get(self.place.start) == Some(&open);
        is_open.then(|| Scanner::new(self.text, self.place.start + 1))
    }

    /// A whole number, quoted or not.
    pub(crate) fn int(&self) -> Option<i64> {
        text::integer(self.place.of(self.text))
    }

    /// Text.
    pub(crate) fn string(&self) -> String {
        match self.place.sort {
            Sort::Text | Sort::Escaped => {
                text::decode(self.text, self.place, &mut Repairs::default()).into_owned()
            }
            _ => String::new(),
        }
    }

    /// The whole number of a member, or of a member of a member: `["dispatch_info", "queue_id", "handle"]`.
    pub(crate) fn int_at(&self, path: &[&str]) -> Option<i64> {
        let Some((first, rest)) = path.split_first() else { return self.int() };
        let mut found = None;
        self.members(|key, value| {
            if key == first.as_bytes() && found.is_none() {
                found = value.int_at(rest);
            }
        });
        found
    }
}
