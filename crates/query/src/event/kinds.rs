//! Which kinds of events a query wants: conditions on name, category, state and op are decided once per kind.

use rusqlite::Result;
use stepscope_trace::{KindId, ProcessKind, Trace, Track};

use super::plan::by;
use crate::meaning::Meaning;
use crate::running::RunningQuery;

/// A condition on the kind of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) letter: char,
    pub(super) text: String,
}

/// The kinds that are wanted of one host, for its threads and for its devices.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    kinds: [Vec<bool>; 2],
}

impl Wanted {
    /// Checks every kind of a host.
    pub(super) fn of(query: &RunningQuery, number: usize, conditions: &[Condition]) -> Result<Self> {
        let Some((loaded, _)) = query.recording.each_host().nth(number) else { return Ok(Wanted::default()) };
        let trace = &loaded.trace;
        if let [Condition { letter: by::NAME, text }] = conditions {
            let mut wanted = vec![false; trace.kinds().len()];
            for &(_, kind) in query.recording.kinds_named(number, text) {
                wanted[kind.index()] = true;
            }
            return Ok(Wanted { kinds: [wanted.clone(), wanted] });
        }
        let asks =
            conditions.iter().any(|condition| matches!(condition.letter, by::STATE | by::OP | by::ROLE));
        let meaning = if asks { query.meanings()?.get(number).copied() } else { None };
        let all = || (0..trace.kinds().len()).map(KindId::from_index);
        let fits = |kind: KindId, on_device: bool| {
            conditions.iter().all(|condition| condition.holds(trace, meaning, kind, on_device))
        };
        let kinds = [false, true].map(|on_device| all().map(|kind| fits(kind, on_device)).collect());
        Ok(Wanted { kinds })
    }

    /// Those that count on a track.
    pub(super) fn on(&self, trace: &Trace, track: &Track) -> &[bool] {
        let on_device = trace.process(track.process).kind == ProcessKind::Device;
        &self.kinds[usize::from(on_device)]
    }
}

impl Condition {
    fn holds(&self, trace: &Trace, meaning: Option<&Meaning>, kind: KindId, on_device: bool) -> bool {
        match self.letter {
            by::NAME => trace.kind_name(kind) == self.text,
            by::LIKE => like(trace.kind_name(kind), &self.text),
            by::GLOB => glob(trace.kind_name(kind), &self.text),
            by::CATEGORY => trace.str(trace.kind(kind).category) == self.text,
            by::STATE => meaning
                .and_then(|meaning| meaning.state_of(kind, on_device))
                .is_some_and(|state| state.key() == self.text),
            by::ROLE => {
                meaning.and_then(|meaning| meaning.role_of(kind, on_device)) == Some(self.text.as_str())
            }
            by::OP => meaning.and_then(|meaning| meaning.op(kind)) == Some(self.text.as_str()),
            _ => true,
        }
    }
}

/// SQLite's LIKE: `%` and `_`, and the case of ASCII letters does not matter.
fn like(text: &str, pattern: &str) -> bool {
    matches(text, pattern, '%', '_', |a, b| a.eq_ignore_ascii_case(&b))
}

/// SQLite's GLOB. Sets in brackets count as everything: SQLite checks them itself.
fn glob(text: &str, pattern: &str) -> bool {
    pattern.contains('[') || matches(text, pattern, '*', '?', |a, b| a == b)
}

/// Goes back to the last wildcard where the text does not fit, so that it takes at most text × pattern.
fn matches(text: &str, pattern: &str, many: char, one: char, same: fn(char, char) -> bool) -> bool {
    let (text, pattern): (Vec<char>, Vec<char>) = (text.chars().collect(), pattern.chars().collect());
    let (mut at, mut in_pattern, mut back) = (0, 0, None);
    while let Some(&letter) = text.get(at) {
        match pattern.get(in_pattern) {
            Some(&wild) if wild == many => {
                back = Some((in_pattern, at));
                in_pattern += 1;
            }
            Some(&wanted) if wanted == one || same(wanted, letter) => {
                (at, in_pattern) = (at + 1, in_pattern + 1);
            }
            _ => match back {
                Some((wild, from)) => {
                    (at, in_pattern, back) = (from + 1, wild + 1, Some((wild, from + 1)));
                }
                None => return false,
            },
        }
    }
    pattern.get(in_pattern..).unwrap_or_default().iter().all(|&left| left == many)
}

#[cfg(test)]
mod tests {
    use super::{glob, like};

    #[test]
    fn patterns_match_as_sqlite_does() {
        for (text, pattern, fits) in [
            ("aten::Conv2d", "%CONV%", true),
            ("aten::conv2d", "aten::____2d", true),
            ("aten::conv2d", "aten::___2d", false),
            ("abcabd", "%ab_", true),
            ("", "%", true),
            ("", "_", false),
            ("é", "_", true),
            ("a%b", "a%b", true),
        ] {
            assert_eq!(like(text, pattern), fits, "{text} LIKE {pattern}");
        }
        assert!(glob("MatMul", "Mat*") && !glob("MatMul", "mat*") && glob("x", "[a-z]"));
    }
}
