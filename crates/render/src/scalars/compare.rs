//! Runs beside each other: at equal step, at equal time, and the way to a value.

use serde_json::{Value, json};
use stepscope_analyze::curves::versus::{Goal, Pair, Versus};
use stepscope_results::table::{Column, Format, Table};

use crate::format::{duration_ms, percent, printable, short, thousands};

/// One tag of a run, compared with the same of a base.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The tag.
    pub tag: String,
    /// The run that is compared with.
    pub base: String,
    /// The run.
    pub run: String,
    /// How they differ.
    pub versus: Versus,
}

/// So many comparisons are shown in text.
const SHOWN: usize = 12;

/// The comparisons as a table of sentences.
pub fn comparison(all: &[Compared]) -> Table {
    let columns = ["tag", "base", "run"].map(|key| Column::new(key, key, Format::Name)).to_vec();
    let mut table = Table::new("scalars", columns);
    table.headline = Some("Compared with the first path".to_owned());
    table.top = Some(SHOWN);
    for one in all {
        let cells = [&one.tag, &one.base, &one.run].map(|text| text.as_str().into());
        table.push_prose(cells, prose(one));
    }
    table.note("A value at a step or a time is the mean of the last 5 % of the common range.");
    table
}

fn prose(one: &Compared) -> String {
    let Versus { at_step, at_time, goal } = &one.versus;
    let [tag, run, base] = [&one.tag, &one.run, &one.base].map(|name| printable(name));
    let mut lines = vec![format!("{tag}: {run} compared with {base}")];
    let mut line = |label: String, text: String| lines.push(format!("  {label:<22} {text}"));
    match at_step {
        Some(pair) => line(format!("at step {}", thousands(pair.at as i64)), values(pair)),
        None => line("at equal step".to_owned(), "unknown: no step in common".to_owned()),
    }
    match at_time {
        Some(pair) => line(format!("after {}", duration_ms(pair.at * 1e3)), values(pair)),
        None => line("at equal time".to_owned(), "unknown".to_owned()),
    }
    match goal {
        Some(goal) => line(format!("to reach {}", short(goal.value)), way(goal)),
        None => line("to reach a value".to_owned(), "unknown: they do not go the same way".to_owned()),
    }
    lines.join("\n")
}

/// `0.412 instead of 0.438 (5.9 % lower)`.
fn values(pair: &Pair) -> String {
    let change = pair.new / pair.base - 1.0;
    let by = match change {
        _ if !change.is_finite() || pair.base < 0.0 => String::new(),
        0.0 => " (equal)".to_owned(),
        change if change < 0.0 => format!(" ({} lower)", percent(-change)),
        change => format!(" ({} higher)", percent(change)),
    };
    format!("{} instead of {}{by}", precise(pair.new), precise(pair.base))
}

/// Four significant digits: runs that are compared are often close.
fn precise(value: f64) -> String {
    if (1e-3..1e4).contains(&value.abs()) {
        let places = (3 - value.abs().log10().floor() as i32).clamp(0, 6) as usize;
        format!("{value:.places$}")
    } else {
        format!("{value:.3e}")
    }
}

fn way(goal: &Goal) -> String {
    let one = |reached: Option<(i64, f64)>| match reached {
        Some((step, seconds)) => format!("{} (step {})", duration_ms(seconds * 1e3), thousands(step)),
        None => "never".to_owned(),
    };
    let times = match (goal.base, goal.new) {
        (Some((_, base)), Some((_, new))) if base > 0.0 && new > 0.0 => {
            format!("; {} times as fast", short(base / new))
        }
        _ => String::new(),
    };
    format!("{} instead of {}{times}", one(goal.new), one(goal.base))
}

/// The comparisons as a member of the document.
pub fn comparison_json(all: &[Compared]) -> Value {
    let pair = |pair: &Option<Pair>, key: &str| {
        pair.map(|pair| json!({key: pair.at, "base": pair.base, "run": pair.new}))
    };
    let reached = |reached: Option<(i64, f64)>| {
        reached.map(|(step, seconds)| json!({"step": step, "seconds": seconds}))
    };
    let goal = |goal: &Option<Goal>| {
        goal.map(|goal| json!({"value": goal.value, "base": reached(goal.base), "run": reached(goal.new)}))
    };
    let one = |one: &Compared| {
        json!({
            "tag": one.tag, "base": one.base, "run": one.run,
            "at_step": pair(&one.versus.at_step, "step"), "at_time": pair(&one.versus.at_time, "seconds"),
            "to_value": goal(&one.versus.goal),
        })
    };
    all.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_is_put_into_words_and_unknown_is_said() {
        let versus = Versus {
            at_step: Some(Pair { at: 5000.0, base: 0.438, new: 0.412 }),
            at_time: None,
            goal: Some(Goal { value: 0.44, base: Some((4900, 120.0)), new: Some((4100, 100.0)) }),
        };
        let one = Compared { tag: "loss".into(), base: "a".into(), run: "b".into(), versus };
        let text = prose(&one);
        assert!(text.contains("at step 5,000          0.4120 instead of 0.4380 (5.9 % lower)"), "{text}");
        assert!(text.contains("at equal time          unknown"), "{text}");
        assert!(text.contains("(step 4,900); 1.20 times as fast"), "{text}");
        let json = comparison_json(&[one]);
        assert_eq!(json[0]["at_step"]["run"], 0.412);
        assert_eq!(
            (&json[0]["at_time"], &json[0]["to_value"]["base"]["seconds"]),
            (&Value::Null, &json!(120.0))
        );
    }
}
