//! User-defined ranges around parts of a program, and the time of gaps in each: if nothing else was recorded, only they
//! show what the host does.

use std::collections::BTreeMap;

use stepscope_trace::{Dur, Form, KindId, Span, Time, Trace, Track};

use super::is_range;
use crate::vocabulary::Vocabulary;

/// Maximum number of ranges reported.
const NAMED: usize = 5;

/// The ranges on some threads with the time of `gaps` inside each but not in a nested one, longest first. `gaps` are in
/// time order.
pub(crate) fn holding<'t>(
    trace: &Trace,
    vocabulary: &Vocabulary,
    tracks: impl Iterator<Item = &'t Track>,
    gaps: &[Span],
) -> Vec<(String, Dur)> {
    if gaps.is_empty() {
        return Vec::new();
    }
    let ranges: Vec<bool> = (0..trace.kinds().len())
        .map(|index| is_range(trace, vocabulary, KindId::from_index(index)))
        .collect();
    if !ranges.contains(&true) {
        return Vec::new();
    }
    let mut by_kind: BTreeMap<KindId, Dur> = BTreeMap::new();
    for track in tracks {
        let mut at = 0;
        innermost(trace, track, &ranges, |span, kind| {
            while gaps.get(at).is_some_and(|gap| gap.end <= span.start) {
                at += 1;
            }
            let inside = gaps.iter().skip(at).take_while(|gap| gap.start < span.end);
            let time: Dur = inside.map(|gap| gap.intersect(span).dur()).sum();
            if !time.is_zero() {
                *by_kind.entry(kind).or_default() += time;
            }
        });
    }
    let mut by_family: BTreeMap<String, Vec<(&str, Dur)>> = BTreeMap::new();
    for (kind, time) in by_kind {
        let name = trace.kind_name(kind);
        by_family.entry(family(name)).or_default().push((name, time));
    }
    let mut named: Vec<(String, Dur)> =
        by_family.into_iter().flat_map(|(family, members)| named(family, &members)).collect();
    named.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    named.truncate(NAMED);
    named
}

/// A family's name with the time of its members. One that holds most of it keeps its own name: lines of a program have
/// numbers too, but one of them takes the time.
fn named(family: String, members: &[(&str, Dur)]) -> Vec<(String, Dur)> {
    let all: Dur = members.iter().map(|(_, time)| *time).sum();
    let Some(&(name, most)) = members.iter().max_by_key(|(_, time)| *time) else { return Vec::new() };
    if members.len() == 1 {
        return vec![(name.to_owned(), all)];
    }
    if most.ps() * 2 <= all.ps() {
        return vec![(family, all)];
    }
    vec![(name.to_owned(), most), (family, all - most)]
}

/// Numbers count iterations and layers: `layer_3` and `layer_4` are one family, `layer_*`.
fn family(name: &str) -> String {
    let mut family = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            '0'..='9' if family.ends_with('*') => {}
            '0'..='9' => family.push('*'),
            other => family.push(other),
        }
    }
    family
}

/// Calls `visit` with each piece of a thread and the innermost open range, in time order.
fn innermost(trace: &Trace, track: &Track, ranges: &[bool], mut visit: impl FnMut(Span, KindId)) {
    let mut open: Vec<(Time, KindId)> = Vec::new();
    let mut since = Time::MIN;
    let mut until = |now: Time, open: &mut Vec<(Time, KindId)>| {
        while let Some(&(end, kind)) = open.last() {
            let to = end.min(now);
            if to > since {
                visit(Span::new(since, to), kind);
                since = to;
            }
            if end > now {
                break;
            }
            open.pop();
        }
        since = since.max(now);
    };
    for (index, kind) in track.kinds().iter().enumerate() {
        let is_range = ranges.get(kind.index()).copied().unwrap_or(false);
        if !is_range || trace.kind(*kind).form != Form::Slice {
            continue;
        }
        until(track.start(index), &mut open);
        open.push((track.end(index), *kind));
    }
    until(Time::MAX, &mut open);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_make_no_other_range() {
        assert_eq!(family("ensure_layer_12_weights"), "ensure_layer_*_weights");
        assert_eq!(family("forward"), "forward");
    }

    #[test]
    fn one_that_holds_most_of_its_family_keeps_its_own_name() {
        let ms = Dur::from_us;
        let shown = |members: &[(&str, Dur)]| named("line *".to_owned(), members);
        let (most, rest) = (("line 58".to_owned(), ms(80)), ("line *".to_owned(), ms(20)));
        assert_eq!(shown(&[("line 55", ms(15)), ("line 57", ms(5)), ("line 58", ms(80))]), [most, rest]);
        assert_eq!(shown(&[("line 1", ms(50)), ("line 2", ms(50))]), [("line *".to_owned(), ms(100))]);
        assert_eq!(shown(&[("line 1", ms(9))]), [("line 1".to_owned(), ms(9))]);
    }
}
