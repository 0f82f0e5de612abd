//! A comparison as one self-contained page: the verdict, the steps of both sides, what changed, other
//! differences.

use std::io::{self, Write};

use stepscope_diagnose::compare::{CategoryDelta, ComparedRun, Comparison, FindingKey, PartDelta};
use stepscope_results::words::terms;
use stepscope_trace::statistics::quantile;

use super::distribution::{Side, drawing};
use super::headline::headline;
use super::words;
use crate::format::{decimal, duration_ms, from_to_ms, percent, plural, printable, short};
use crate::report::color;
use crate::report::html::chart::{plain, swatch};
use crate::report::html::page::{Html, tag, text};
use crate::report::html::parts::{Value, figures, table};
use crate::report::html::{Section, html_page};

/// Number of ops listed.
const OPS: usize = 200;

/// Writes the page. The runs are the ones that were compared.
pub fn write_html(
    comparison: &Comparison,
    base: &[ComparedRun],
    new: &[ComparedRun],
    out: &mut dyn Write,
) -> io::Result<()> {
    let sections = [
        Section::new("", overview(comparison)),
        Section::new("Step durations", steps(comparison, base, new)),
        Section::new("Mean step breakdown", breakdown(&comparison.breakdown)),
        Section::new("Findings", findings(comparison)),
        Section::new("Comparability", notes(comparison)),
        Section::new("Compiled programs, time per step", programs(comparison)),
        Section::new(format!("Ops, self time {}", words::per_unit(comparison.unit)), ops(comparison)),
        Section::new("Recordings", recordings(base, new)),
    ];
    let name = |runs: &[String]| printable(&runs.join(", "));
    let kicker =
        format!("stepscope compare · {} → {}", name(&comparison.base.runs), name(&comparison.new.runs));
    let title = headline(comparison);
    out.write_all(html_page(&title, &kicker, &sections).as_bytes())
}

fn overview(comparison: &Comparison) -> Html {
    let mut all = Vec::new();
    for (name, measured) in words::figures(comparison) {
        let interval = measured.ratio.as_ref().map(|ratio| {
            let interval = words::interval(ratio);
            let interval = interval.unwrap_or_else(|| "too few steps for an interval".to_owned());
            format!(", {} ({interval})", words::change(ratio.value))
        });
        let times = from_to_ms(measured.base_ms, measured.new_ms);
        all.push((times, format!("{name}{}", interval.unwrap_or_default())));
    }
    if all.is_empty() {
        return Html::new();
    }
    let side = |name: &str, side| format!("{name}: {}", words::amount(side, comparison.unit));
    let amounts = [side("BASE", &comparison.base), side("NEW", &comparison.new)].join(". ");
    let mut body = figures(&all);
    body.push(&tag("p", &[("class", "soft"), ("style", "margin:12px 0 0")], Html::text(&amounts)));
    body
}

fn steps(comparison: &Comparison, base: &[ComparedRun], new: &[ComparedRun]) -> Html {
    let Some(median) = &comparison.median else { return Html::new() };
    let side = |name, class, runs: &[ComparedRun], median_ms| Side {
        name,
        class,
        steps_ms: sorted(runs),
        median_ms,
    };
    drawing(&[side("BASE", "base", base, median.base_ms), side("NEW", "new", new, median.new_ms)])
}

/// All steps of the runs, shortest first.
fn sorted(runs: &[ComparedRun]) -> Vec<f64> {
    let mut all: Vec<f64> = runs.iter().flat_map(|run| run.steps_ms.iter().copied()).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// Both breakdowns as bars on one scale, and one row per category.
fn breakdown(deltas: &[CategoryDelta]) -> Html {
    let total = |ms: fn(&CategoryDelta) -> f64| deltas.iter().map(ms).sum::<f64>();
    let (base, new) = (total(|delta| delta.measured.base_ms), total(|delta| delta.measured.new_ms));
    let longer = base.max(new);
    if longer <= 0.0 {
        return Html::new();
    }
    let stacks = [
        stack("BASE", deltas, |delta| delta.measured.base_ms, longer),
        stack("NEW", deltas, |delta| delta.measured.new_ms, longer),
    ];
    let sizes = deltas.iter().map(|delta| delta.measured.base_ms.max(delta.measured.new_ms));
    let largest = sizes.fold(f64::MIN_POSITIVE, f64::max);
    let rows = deltas.iter().map(|delta| change_row(delta, largest));
    let grid = std::iter::once(change_head()).chain(rows).collect();
    [
        tag("div", &[("class", "sides")], stacks.into_iter().collect()),
        tag("div", &[("class", "changes")], grid),
    ]
    .into_iter()
    .collect()
}

fn stack(name: &str, deltas: &[CategoryDelta], of: fn(&CategoryDelta) -> f64, longer: f64) -> Html {
    let part = |delta: &CategoryDelta| {
        let ms = of(delta);
        let style = format!("background:{};width:{}%", color(delta.category), plain(ms / longer * 100.0));
        let title = format!("{}: {} {}", name, delta.category.key(), duration_ms(ms));
        tag("span", &[("style", &style), ("title", &title)], Html::new())
    };
    let parts = deltas.iter().filter(|delta| of(delta) > 0.0).map(part).collect();
    let total = deltas.iter().map(of).sum::<f64>();
    let inner = [
        text("strong", "", name),
        tag("div", &[("class", "stack")], parts),
        text("span", "number", &duration_ms(total)),
    ];
    tag("div", &[], inner.into_iter().collect())
}

fn change_head() -> Html {
    let titles = [
        ("head", "category"),
        ("head about", ""),
        ("head", "BASE above, NEW below"),
        ("head number", "BASE"),
        ("head number", "NEW"),
        ("head number", "change"),
        ("head proven", "significant"),
    ];
    tag("div", &[], titles.into_iter().map(|(class, title)| text("span", class, title)).collect())
}

fn change_row(delta: &CategoryDelta, largest: f64) -> Html {
    let measured = &delta.measured;
    let track = |ms: f64, class: &str| {
        let style = format!("width:{}%", plain(ms / largest * 100.0));
        let bar = tag("span", &[("class", class), ("style", &style)], Html::new());
        tag("span", &[("class", "track")], if ms > 0.0 { bar } else { Html::new() })
    };
    let pair = [track(measured.base_ms, "base"), track(measured.new_ms, "new")];
    let name = [swatch(delta.category), Html::text(delta.category.key())];
    let inner = [
        tag("span", &[("class", "name")], name.into_iter().collect()),
        text("span", "soft about", terms::category(delta.category)),
        tag("span", &[("class", "pair")], pair.into_iter().collect()),
        text("span", "number", &duration_ms(measured.base_ms)),
        text("span", "number", &duration_ms(measured.new_ms)),
        tag("strong", &[("class", "number")], Html::text(&words::change_ms(measured.delta_ms.value))),
        text("span", "soft proven", if delta.proven() { "yes" } else { "no" }),
    ];
    tag("div", &[], inner.into_iter().collect())
}

fn findings(comparison: &Comparison) -> Html {
    let changes = &comparison.findings;
    let all: [(&str, &str, &[FindingKey]); 3] = [
        ("solved", "solved", &changes.solved),
        ("new", "info", &changes.new),
        ("left", "left", &changes.left),
    ];
    if all.iter().all(|(_, _, findings)| findings.is_empty()) {
        return Html::text("Neither side has findings.");
    }
    let item = |finding: &FindingKey| {
        let mut inner = tag("code", &[], Html::text(&printable(&finding.id)));
        if let Some(subject) = &finding.subject {
            inner.push(&text("span", "soft", &format!(" {}", printable(subject))));
        }
        tag("li", &[], inner)
    };
    let group = |(word, class, findings): &(&str, &str, &[FindingKey])| {
        let count = format!("{} {word}", findings.len());
        let inner = [
            tag("div", &[("class", "tags")], text("span", "badge", &count)),
            tag("ul", &[], findings.iter().map(item).collect()),
        ];
        let class = format!("finding {class}");
        tag("div", &[("class", &class)], inner.into_iter().collect())
    };
    let shown = all.iter().filter(|(_, _, findings)| !findings.is_empty()).map(group);
    tag("div", &[("class", "outcomes")], shown.collect())
}

fn notes(comparison: &Comparison) -> Html {
    let mut notes = words::remarks(comparison);
    if comparison.comparability.differences.is_empty() {
        notes.insert(
            0,
            "No other differences found in the model, the batch size, the devices or the versions."
                .to_owned(),
        );
    }
    if let Some(similarity) = comparison.comparability.similarity {
        notes.push(format!("{} of the ops are the same on both sides.", percent(similarity)));
    }
    let items = notes.iter().map(|note| tag("li", &[], Html::text(&printable(note))));
    tag("ul", &[("class", "notes")], items.collect())
}

/// Parts of the model in compiled programs: more work apart from less speed.
fn programs(comparison: &Comparison) -> Html {
    let changed = || comparison.parts.iter().filter(|part| part.delta_ms() != 0.0);
    if changed().next().is_none() {
        return Html::new();
    }
    let row = |part: &PartDelta| {
        let (base_ms, new_ms) = part.ms();
        vec![
            Value::Name(part.name().to_owned()),
            Value::Text(part.phase().to_owned()),
            Value::Name(part.source().to_owned()),
            Value::Ms(base_ms),
            Value::Ms(new_ms),
            Value::ChangeMs(part.delta_ms()),
            Value::Text(words::part_change(part.change())),
        ]
    };
    let rows: Vec<Vec<Value>> = changed().take(OPS).map(row).collect();
    table(&["part", "phase", "source", "BASE ms", "NEW ms", "change ms", "why"], &rows)
}

fn ops(comparison: &Comparison) -> Html {
    let rows: Vec<Vec<Value>> = comparison
        .ops
        .iter()
        .take(OPS)
        .map(|op| {
            vec![
                Value::Name(op.name.clone()),
                Value::Text(op.op_type.clone()),
                Value::Text(if op.on_device { "device" } else { "host" }.to_owned()),
                Value::Ms(op.base_ms),
                Value::Ms(op.new_ms),
                Value::ChangeMs(op.delta_ms()),
                Value::Text(counts(op.base_count, op.new_count)),
            ]
        })
        .collect();
    let mut body = table(&["op", "type", "where", "BASE ms", "NEW ms", "change ms", "count"], &rows);
    let more = comparison.ops.len().saturating_sub(OPS) as u64;
    if more > 0 {
        let line = format!("… and {} with smaller changes.", plural(more, "more op", "more ops"));
        body.push(&text("p", "soft", &line));
    }
    body
}

/// Count per step: `8`, or `8 → 2` if it changed.
fn counts(base: f64, new: f64) -> String {
    let shown = |count: f64| if count.fract() == 0.0 { decimal(count, 0) } else { short(count) };
    let (base, new) = (shown(base), shown(new));
    // No-break spaces, because the column is narrow.
    if base == new { base } else { format!("{base}\u{a0}→\u{a0}{new}") }
}

fn recordings(base: &[ComparedRun], new: &[ComparedRun]) -> Html {
    let of = |name: &'static str| move |run| (name, run);
    let rows: Vec<Vec<Value>> = base
        .iter()
        .map(of("BASE"))
        .chain(new.iter().map(of("NEW")))
        .map(|(side, run)| {
            let steps = sorted(std::slice::from_ref(run));
            let at = |q| quantile(&steps, q).map_or(Value::Share(None), Value::Ms);
            vec![
                Value::Text(side.to_owned()),
                Value::Name(run.label.clone()),
                Value::Count(steps.len() as u64),
                at(0.5),
                at(0.9),
                at(1.0),
            ]
        })
        .collect();
    table(&["side", "recording", "steps", "median ms", "90th percentile", "longest"], &rows)
}

#[cfg(test)]
mod tests {
    use stepscope_diagnose::compare::{Margins, OpTime, compare};

    use super::*;

    const HOSTILE: &str = "</code><script>alert(\"x\")</script>'&";

    fn run(step_ms: f64) -> ComparedRun {
        ComparedRun {
            label: format!("{HOSTILE}{step_ms}"),
            steps_ms: (0..40).map(|n| step_ms * (1.0 + f64::from(n % 5) / 100.0)).collect(),
            ops: vec![OpTime {
                name: HOSTILE.to_owned(),
                op_type: HOSTILE.to_owned(),
                on_device: true,
                ms_per_step: step_ms,
                count_per_step: 1.0,
            }],
            findings: vec![FindingKey { id: "retracing".to_owned(), subject: Some(HOSTILE.to_owned()) }],
            ..ComparedRun::default()
        }
    }

    fn page(base: &[ComparedRun], new: &[ComparedRun]) -> String {
        let mut out = Vec::new();
        write_html(&compare(base, new, Margins::default()), base, new, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn names_never_become_markup() {
        let page = page(&[run(10.0)], &[run(12.0)]);
        assert_eq!(page.matches("<script").count(), 1, "only the page's own");
        assert!(!page.contains("alert(\"x\")") && page.contains("alert(&quot;x&quot;)"));
    }

    #[test]
    fn both_medians_and_every_length_are_drawn() {
        let page = page(&[run(10.0)], &[run(12.0), run(12.0)]);
        assert!(page.contains("median 10.2 ms") && page.contains("median 12.2 ms"));
        let drawn = |class: &str| page.matches(&format!("<rect class=\"bin {class}\"")).count();
        assert_eq!((drawn("base"), drawn("new")), (5, 5), "five lengths a side");
    }

    #[test]
    fn a_side_without_steps_still_gives_a_page() {
        let page = page(&[run(10.0)], &[ComparedRun { label: "empty".to_owned(), ..ComparedRun::default() }]);
        assert!(page.contains("<h1>Not comparable") && !page.contains("<svg") && !page.contains("NaN<"));
    }
}
