//! A profile's place on the curves of its run: was the profiled window typical?

use serde_json::{Value, json};
use stepscope_analyze::curves::pace::Why;
use stepscope_analyze::curves::place::{Placed, Typical};
use stepscope_results::report::LoggedRun;
use stepscope_results::words::quoted;

use crate::format::{duration_ms, thousands};
use crate::scalars::{unit, why};

/// The place in one sentence; unknown is said as unknown.
pub(super) fn words(run: &LoggedRun) -> String {
    let name = quoted(&run.name);
    let Some(placed) = &run.placed else {
        return match (run.has_pace, run.has_clock) {
            (false, _) => format!("part of {name}, which logged too little to show where"),
            (true, false) => {
                format!("part of {name}; the profile has no time of day, so its place is unknown")
            }
            (true, true) => format!("beside {name}, which logged nothing at the time of the profile"),
        };
    };
    format!("recorded at {} of {} in {name}; {}", steps(placed), thousands(placed.last_step), typical(placed))
}

fn steps(placed: &Placed) -> String {
    let unit = unit(placed.unit);
    if placed.step - placed.from_step <= 1 {
        format!("{unit} {}", thousands(placed.step))
    } else {
        format!("{unit}s {} to {}", thousands(placed.from_step), thousands(placed.step))
    }
}

fn typical(placed: &Placed) -> String {
    let usual = duration_ms(placed.typical_s * 1e3);
    let Some(there) = placed.there_s else {
        let pause = match placed.pause.filter(|pause| *pause != Why::Unknown) {
            Some(pause) => format!(" ({})", why(pause)),
            None => String::new(),
        };
        return format!(
            "the log shows only a pause there{pause}, so whether its steps were typical is unknown"
        );
    };
    let there = duration_ms(there * 1e3);
    let unit = unit(placed.unit);
    match placed.typical {
        Some(Typical::Yes) => format!("{unit}s there took {there}, typical of the run ({usual})"),
        Some(Typical::Slower) => {
            format!("{unit}s there took {there}, slower than typical of the run ({usual})")
        }
        Some(Typical::Faster) => {
            format!("{unit}s there took {there}, faster than typical of the run ({usual})")
        }
        None => format!("{unit}s there took {there}; too little is logged to say whether that is typical"),
    }
}

/// The place as a member of the document.
pub(super) fn json(run: &LoggedRun) -> Value {
    let typical = |typical: Typical| match typical {
        Typical::Yes => "yes",
        Typical::Slower => "slower",
        Typical::Faster => "faster",
    };
    let placed = run.placed.as_ref();
    json!({
        "name": run.name,
        "summary": words(run),
        "first_step": placed.map(|placed| placed.from_step),
        "last_step": placed.map(|placed| placed.step),
        "of_steps": placed.map(|placed| placed.last_step),
        "unit": placed.map(|placed| unit(placed.unit)),
        "tag": placed.map(|placed| placed.tag.as_str()),
        "step_ms": placed.and_then(|placed| placed.there_s).map(|seconds| seconds * 1e3),
        "typical_ms": placed.map(|placed| placed.typical_s * 1e3),
        "typical": placed.and_then(|placed| placed.typical).map(typical),
        "pause": placed.and_then(|placed| placed.pause).map(why),
    })
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::curves::pace::Unit;

    use super::*;

    fn run(there_s: Option<f64>, typical: Option<Typical>) -> LoggedRun {
        let placed = Placed {
            run: "train".to_owned(),
            tag: "loss".to_owned(),
            unit: Unit::Step,
            from_step: 119,
            step: 120,
            last_step: 5_000,
            there_s,
            typical_s: 0.011,
            typical,
            pause: there_s.is_none().then_some(Why::Evaluation),
        };
        LoggedRun {
            name: "train".to_owned(),
            has_pace: true,
            has_clock: true,
            placed: Some(placed),
            curves: Vec::new(),
        }
    }

    #[test]
    fn a_place_says_whether_the_window_was_typical() {
        let said = words(&run(Some(0.012), Some(Typical::Yes)));
        assert_eq!(
            said,
            "recorded at step 120 of 5,000 in `train`; steps there took 12.0 ms, typical of the run (11.0 ms)"
        );
        assert!(words(&run(Some(0.02), Some(Typical::Slower))).contains("slower than typical"));
        assert_eq!(json(&run(Some(0.02), None))["typical"], Value::Null);
    }

    #[test]
    fn unknown_is_said_as_unknown() {
        assert!(
            words(&run(None, None))
                .ends_with("a pause there (evaluation), so whether its steps were typical is unknown")
        );
        assert!(words(&run(Some(0.02), None)).contains("too little is logged to say"));
        let without =
            |has_clock, has_pace| words(&LoggedRun { has_clock, has_pace, placed: None, ..run(None, None) });
        assert!(without(false, true).contains("no time of day"));
        assert!(without(true, true).contains("logged nothing at the time"));
        assert!(without(true, false).contains("too little"));
    }
}
