//! What a finding is about, on the timeline: the stretches of its step that it owns, and a window in which they can be seen.

use serde_json::{Value, json};
use stepscope_analyze::breakdown::Stretch;
use stepscope_analyze::{Category, Context};
use stepscope_results::words::terms;
use stepscope_trace::{Dur, Span, Time, TrackId};

use super::model::Model;

/// Stretches in an answer, the longest.
const MOST: usize = 200;
/// Where a stretch takes less than this share of the step, it is a sliver in a picture of the whole step.
const SLIVER: f64 = 1.0 / 40.0;
/// Of many slivers, this many fill the picture.
const SHOWN: usize = 20;
/// Fewer are shown one by one: the longest of them.
const FEW: usize = 8;
/// An event of the loop's thread with more of the step than this is the mark of the step.
const MARK: f64 = 0.9;

/// The stretches that some categories own of a step, whose start and end are picoseconds of the session; and where to look.
/// `None` if there is no such host.
pub fn answer(model: &Model, host: &str, (from, to): (i64, i64), of: &[Category]) -> Option<Value> {
    let number = model.profile.hosts.iter().position(|loaded| loaded.host == host)?;
    let loaded = model.profile.hosts.get(number)?;
    let shift = model.host(number).shift;
    let window = Span::new(Time::from_ps(from) - shift, Time::from_ps(to) - shift);
    let context = loaded.context();
    let mut stretches = context.breakdown().stretches(&context, window, of);
    let zoom = zoom(&stretches, window);
    let thread = context.steps().track;
    stretches.retain(|stretch| stretch.span.end > zoom.start && stretch.span.start < zoom.end);
    stretches.sort_by_key(|stretch| std::cmp::Reverse(stretch.span.dur()));
    stretches.truncate(MOST);
    stretches.sort_by_key(|stretch| stretch.span.start);
    let clock = model.host(number);
    let pieces = stretches.iter().map(|stretch| {
        let empty = thread.is_some_and(|track| is_empty(&context, track, stretch.span, window));
        json!({
            "start_ns": clock.ns(stretch.span.start), "end_ns": clock.ns(stretch.span.end),
            "category": stretch.category.key(), "title": terms::category_title(stretch.category), "empty": empty,
        })
    });
    Some(json!({
        "host": number, "start_ns": clock.ns(zoom.start), "end_ns": clock.ns(zoom.end),
        "track": thread.map(|track| model.number_of(number, track.index())), "pieces": pieces.collect::<Vec<_>>(),
    }))
}

/// The window to look at: the step, unless what it is about would be slivers in it. Then the longest of a few, or as many
/// as can be told apart around the middle one of many.
fn zoom(stretches: &[Stretch], window: Span) -> Span {
    let part = |time: Dur| time.fraction_of(window.dur());
    let mut lengths: Vec<Dur> = stretches.iter().map(|stretch| stretch.span.dur()).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    let longest = lengths.first().copied().unwrap_or(Dur::ZERO);
    // Half of the time is in stretches of this length or longer: one long gap among thousands of ops is not the picture.
    let half = lengths.iter().copied().sum::<Dur>().ps() / 2;
    let mut held = 0;
    let usual = lengths.iter().find(|length| {
        held += length.ps();
        held >= half
    });
    if stretches.is_empty() || part(usual.copied().unwrap_or(longest)) >= SLIVER {
        return window;
    }
    if stretches.len() <= FEW {
        let found = stretches.iter().find(|stretch| stretch.span.dur() == longest);
        return found.map_or(window, |stretch| around(stretch.span, window));
    }
    let first = (stretches.len() / 2).saturating_sub(SHOWN / 2);
    let shown = &stretches[first..(first + SHOWN).min(stretches.len())];
    match (shown.first(), shown.last()) {
        (Some(first), Some(last)) => Span::new(first.span.start, last.span.end),
        _ => window,
    }
}

/// A stretch with as much again on both sides, inside the step.
fn around(span: Span, window: Span) -> Span {
    let margin = span.dur();
    let start = Time::from_ps(span.start.ps().saturating_sub(margin.ps())).max(window.start);
    let end = Time::from_ps(span.end.ps().saturating_add(margin.ps())).min(window.end);
    Span::new(start, end)
}

/// Whether a thread shows nothing for most of a stretch, apart from the mark of the step.
fn is_empty(context: &Context, track: TrackId, span: Span, window: Span) -> bool {
    let track = context.trace.track(track);
    let mark = window.dur().ps() as f64 * MARK;
    let mut covered = 0_i64;
    let mut until = span.start;
    for index in track.first_from(window.start)..track.len() {
        let event = track.span_of(index);
        if event.start >= span.end {
            break;
        }
        if event.end <= until || event.dur().ps() as f64 >= mark {
            continue;
        }
        let inside = Span::new(event.start.max(until), event.end.min(span.end));
        covered += inside.dur().ps();
        until = inside.end;
    }
    (covered as f64) < 0.5 * span.dur().ps() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: i64, end: i64) -> Span {
        Span::new(Time::from_ps(start), Time::from_ps(end))
    }

    fn stretches(all: impl Iterator<Item = (i64, i64)>) -> Vec<Stretch> {
        all.map(|(start, end)| Stretch { span: span(start, end), category: Category::Python }).collect()
    }

    #[test]
    fn a_step_is_shown_whole_while_its_cause_can_be_seen() {
        let long = stretches([(100, 900)].into_iter());
        assert_eq!(zoom(&long, span(0, 1000)), span(0, 1000));
        assert_eq!(zoom(&[], span(0, 1000)), span(0, 1000));
    }

    #[test]
    fn slivers_are_enlarged_until_they_can_be_told_apart() {
        let few = stretches([(100, 101), (500, 504)].into_iter());
        assert_eq!(zoom(&few, span(0, 1000)), span(496, 508));
        let many = stretches((0..500).map(|at| (2 * at, 2 * at + 1)));
        let shown = zoom(&many, span(0, 1000));
        assert_eq!(shown, span(480, 519), "twenty of them, in the middle of the step");
        let beside_a_gap = stretches((0..400).map(|at| (2 * at, 2 * at + 1)).chain([(900, 1000)]));
        assert!(
            zoom(&beside_a_gap, span(0, 1000)).dur() < Dur::from_ps(100),
            "one gap is not what it is about"
        );
    }
}
