//! What figures cover, as text and JSON: which steps, and which time range.

use serde_json::{Value, json};
use stepscope_analyze::Coverage;
use stepscope_analyze::breakdown::selection::Range;
use stepscope_analyze::steps::Numbers;
use stepscope_trace::Span;

use crate::format::{decimal, duration_ms, plural, share, thousands};
use crate::words::terms;

/// The members of [`json()`], in the notation of `docs/schema/source`.
pub const MEMBERS: &str = "
    @covers -- The part of the recording that the figures cover.
    range: 'steps' | 'time' | 'whole' -- What was chosen: counted steps, a time, or the whole recording.
    steps: integer? -- Steps that count; null for one piece of time.
    first_step: integer? -- The lowest step number.
    last_step: integer? -- The highest step number.
    from_ms: number? -- Start of the covered time.
    to_ms: number? -- End of the covered time.
    excluded_steps: integer -- Steps in the range that do not count, such as warm-up.
    busy_share: number? -- The share of the recording's busy time that lies in the counted steps: of the device that limits them, or of the host. Null if there are no steps.
";

/// A larger share of the busy time need not be stated.
const NEARLY_ALL: f64 = 0.9;

/// One line: `steps 1 to 9, 12.3 to 98.1 ms; excluded: 1 start-up`.
pub fn words(covers: &Coverage) -> String {
    let mut text = match (covers.steps, covers.selection.range) {
        (Some(steps), _) => numbers(steps),
        (None, Range::Time(_)) => "no complete step in the time range".to_owned(),
        (None, Range::Piece(_)) => "the time range".to_owned(),
        (None, Range::Whole) => "the whole recording".to_owned(),
        (None, _) => "the whole recording (no steps)".to_owned(),
    };
    if let Some(span) = covers.span {
        text += &format!(", {}", time(span));
    }
    if let Some(busy) = covers.busy.filter(|busy| *busy < NEARLY_ALL) {
        text += &format!(", {} of the busy time", share(busy));
    }
    let steps = covers.excluded.iter();
    let steps =
        steps.map(|&(reason, count)| format!("{} {}", thousands(count as u64), terms::excluded(reason)));
    let between = [
        (covers.between, "between steps that does not recur"),
        (covers.paused, "of pauses that do not recur"),
    ];
    let between = between.iter().filter(|(time, _)| !time.is_zero());
    let between = between.map(|(time, what)| format!("{} {what}", duration_ms(time.ms())));
    let excluded: Vec<String> = steps.chain(between).collect();
    if !excluded.is_empty() {
        text += &format!("; excluded: {}", excluded.join(", "));
    }
    text
}

/// Step numbers: `steps 1 to 9`, with their count if some are missing.
pub fn numbers(steps: Numbers) -> String {
    let Numbers { count, first, last } = steps;
    match count {
        0 => "no steps".to_owned(),
        1 => format!("step {first}"),
        _ if last.checked_sub(first) == Some(count as i64 - 1) => format!("steps {first} to {last}"),
        _ => format!("{} from {first} to {last}", plural(count as u64, "step", "steps")),
    }
}

/// A time range: both ends in one unit, with enough digits to distinguish them.
pub fn time(span: Span) -> String {
    let (unit, scale) = match span.end.ms() {
        ms if ms >= 1e3 => ("s", 1e-3),
        ms if ms >= 1.0 => ("ms", 1.0),
        _ => ("µs", 1e3),
    };
    let length = span.dur().ms() * scale;
    let decimals = if length > 0.0 { (2.0 - length.log10().floor()).clamp(0.0, 6.0) as usize } else { 3 };
    let [from, to] = [span.start, span.end].map(|at| decimal(at.ms() * scale, decimals));
    format!("{from} to {to} {unit}")
}

/// The same as JSON.
pub fn json(covers: &Coverage) -> Value {
    let range = match (covers.steps, covers.selection.range) {
        (Some(_), _) => "steps",
        (None, Range::Time(_) | Range::Piece(_)) => "time",
        (None, _) => "whole",
    };
    let steps = covers.steps.filter(|steps| steps.count > 0);
    let excluded: usize = covers.excluded.iter().map(|(_, count)| count).sum();
    json!({
        "range": range,
        "steps": covers.steps.map(|steps| steps.count),
        "first_step": steps.map(|steps| steps.first),
        "last_step": steps.map(|steps| steps.last),
        "from_ms": covers.span.map(|span| span.start.ms()),
        "to_ms": covers.span.map(|span| span.end.ms()),
        "excluded_steps": excluded,
        "busy_share": covers.busy,
    })
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::Selection;
    use stepscope_analyze::steps::Exclusion;
    use stepscope_trace::{Dur, Time};

    use super::*;

    #[test]
    fn steps_and_time_are_told() {
        let ms = |ms: i64| Time::from_ps(ms * 1_000_000_000);
        let mut covers = Coverage {
            steps: Some(Numbers { count: 9, first: 1, last: 9 }),
            span: Some(Span::new(ms(12), ms(98))),
            excluded: vec![(Exclusion::Startup, 1)],
            ..Coverage::default()
        };
        assert_eq!(words(&covers), "steps 1 to 9, 12.0 to 98.0 ms; excluded: 1 start-up");
        covers.between = Dur::from_us(303_000);
        assert!(
            words(&covers).ends_with("1 start-up, 303 ms between steps that does not recur"),
            "{}",
            words(&covers)
        );
        assert_eq!(json(&covers)["first_step"], 1);
        covers.busy = Some(0.62);
        assert!(
            words(&covers).starts_with("steps 1 to 9, 12.0 to 98.0 ms, 62 % of the busy time;"),
            "{}",
            words(&covers)
        );
        assert_eq!(json(&covers)["busy_share"], 0.62);
        let late = Span::new(ms(155_358), ms(156_327));
        assert_eq!(time(late), "155.358 to 156.327 s");
        covers.steps = Some(Numbers { count: 3, first: 1, last: 9 });
        assert!(words(&covers).starts_with("3 steps from 1 to 9"), "{}", words(&covers));
        covers =
            Coverage { steps: None, selection: Selection { range: Range::Whole, warm_up: false }, ..covers };
        assert!(words(&covers).starts_with("the whole recording, 12.0 to 98.0 ms"), "{}", words(&covers));
        assert_eq!(json(&covers)["range"], "whole");
        assert!(json(&covers)["steps"].is_null());
    }
}
