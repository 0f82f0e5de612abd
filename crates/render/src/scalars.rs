//! Logged values: a row per run and tag with a line of bars for its course, all points, the way to a value, the pace of
//! runs, and runs compared.

mod compare;
mod pace;
mod study;

use std::io::{self, Write};

use stepscope_analyze::curves::{Curve, RunCurves, TagCurve, reaches};
use stepscope_results::table::{Field, Table, columns};
use stepscope_results::words::log::damage;
use stepscope_text::csv_field as quoted;
use stepscope_trace::series::{OtherKind, OtherTag, RunLog, Series};

use crate::format::{plural, printable, quoted as in_quotes};

pub use compare::{Compared, comparison, comparison_json};
pub use pace::{findings_json, pace_json, sentence, write_text as write_pace};
pub(crate) use pace::{unit, why};
pub use study::{study, study_json, study_table};

/// A tag of a run.
struct Line<'a> {
    run: &'a str,
    tag: &'a TagCurve,
    curve: &'a Curve,
}

fn columns<'a>() -> Vec<Field<Line<'a>>> {
    columns! { line: Line<'a>;
        run: Name "run" => line.run;
        tag: Name "tag" => line.tag.tag.as_str();
        points: Count "points" => line.curve.points;
        first_step: Id "first step" => line.curve.first_step;
        last_step: Id "last step" => line.curve.last_step;
        first: Short "first" => line.curve.first;
        last: Short "last" => line.curve.last;
        min: Short "min" => line.curve.min.map(|(value, _)| value);
        min_step.optional: Id "at step" => line.curve.min.map(|(_, step)| step);
        max: Short "max" => line.curve.max.map(|(value, _)| value);
        max_step.hidden: Id "max step" => line.curve.max.map(|(_, step)| step);
        mean: Short "mean" => line.curve.mean;
        nan.optional: Count "NaN" => line.curve.nan;
        infinite.hidden: Count "infinite" => line.curve.infinite;
        lost.optional: Count "lost" => line.tag.lost;
        replaced.hidden: Count "replaced" => line.tag.replaced;
        steps_per_second: Short "steps/s" => line.curve.steps_per_second;
        steps_per_second_p10.hidden: Short "steps/s p10" => line.curve.pace.map(|(slow, _)| slow);
        steps_per_second_p90.hidden: Short "steps/s p90" => line.curve.pace.map(|(_, fast)| fast);
        first_wall_time.hidden: Short "first wall time" => line.curve.first_wall_s;
        last_wall_time.hidden: Short "last wall time" => line.curve.last_wall_s;
        course.drawn: Text "course" => bars(&line.tag.course);
    }
}

/// A row per run and tag.
pub fn table(runs: &[RunCurves]) -> Table {
    let tags = runs.iter().flat_map(|run| run.curves.iter().map(move |tag| (run, tag)));
    let lines: Vec<Line<'_>> =
        tags.map(|(run, tag)| Line { run: &run.name, tag, curve: &tag.curve }).collect();
    let mut table = Table::of("scalars", &columns(), &lines);
    let points: usize = lines.iter().map(|line| line.curve.points).sum();
    table.headline = Some(format!(
        "{} in {} of {}",
        plural(points as u64, "point", "points"),
        plural(lines.len() as u64, "tag", "tags"),
        plural(runs.len() as u64, "run", "runs")
    ));
    runs.iter().flat_map(notes).for_each(|note| table.note(note));
    table
}

/// The course of values as a line of bars.
fn bars(means: &[Option<f64>]) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let known = || means.iter().flatten().copied();
    let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    let bar = |value: f64| {
        let level = if high > low { (value - low) / (high - low) * 7.0 } else { 0.0 };
        LEVELS.get(level.round() as usize).copied().unwrap_or('█')
    };
    means.iter().map(|value| value.map_or('·', bar)).collect()
}

/// So many tags without numbers are named.
const MOST_OTHERS: usize = 4;

fn kind(kind: OtherKind) -> &'static str {
    match kind {
        OtherKind::Histogram => "histogram",
        OtherKind::Text => "text",
        OtherKind::Image => "image",
        OtherKind::Audio => "audio",
        OtherKind::Hparams => "hyperparameters",
        OtherKind::Graph => "graph",
        OtherKind::RunMetadata => "run metadata",
        OtherKind::Tensor => "tensor",
    }
}

/// Notes on a run, besides its rows.
fn notes(run: &RunCurves) -> Vec<String> {
    let name = printable(&run.name);
    // Hyperparameters have a table of their own.
    let named: Vec<&OtherTag> = run.others.iter().filter(|other| other.kind != OtherKind::Hparams).collect();
    let others = (!named.is_empty()).then(|| {
        let one = |other: &OtherTag| format!("{} ({})", in_quotes(&other.tag), kind(other.kind));
        let kinds: Vec<String> = named.iter().take(MOST_OTHERS).map(|other| one(other)).collect();
        let more = named.len().saturating_sub(MOST_OTHERS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{name}: tags without numbers: {}{more}.", kinds.join(", "))
    });
    run.damage.iter().map(damage).chain(others).collect()
}

/// Tags without numbers, as a member of the document.
pub fn others_json(runs: &[RunCurves]) -> serde_json::Value {
    let all = runs.iter().flat_map(|run| run.others.iter().map(move |other| (run, other)));
    let one = |(run, other): (&RunCurves, &OtherTag)| serde_json::json!({"run": run.name, "tag": other.tag, "kind": kind(other.kind), "count": other.count});
    all.map(one).collect()
}

/// How long each run took to reach a value of the tags given.
pub fn until(runs: &[RunLog], value: f64) -> Table {
    type Reached<'a> = (&'a RunLog, &'a Series, Option<(i64, f64)>);
    let fields = columns! { it: Reached<'_>;
        run: Name "run" => it.0.name.as_str();
        tag: Name "tag" => it.1.tag.as_str();
        step: Id "step" => it.2.map(|(step, _)| step);
        seconds: Short "seconds" => it.2.map(|(_, seconds)| seconds);
        last: Short "last" => it.1.values.last().copied();
    };
    let series = runs.iter().flat_map(|run| run.series.iter().map(move |series| (run, series)));
    let reached: Vec<Reached<'_>> =
        series.map(|(run, series)| (run, series, reaches(series, value))).collect();
    let mut table = Table::of("scalars", &fields, &reached);
    table.headline = Some(format!("When each run reached {value}"));
    table
}

/// Writes all points as CSV. What is not a number is written as `NaN`, `inf` or `-inf`.
pub fn write_points_csv(runs: &[RunLog], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "run,tag,step,wall_time,value")?;
    for run in runs {
        for series in &run.series {
            let name = format!("{},{}", quoted(&run.name), quoted(&series.tag));
            for ((step, wall), value) in series.steps.iter().zip(&series.wall_s).zip(&series.values) {
                writeln!(out, "{name},{step},{wall},{value}")?;
            }
        }
    }
    Ok(())
}

/// Writes all points as JSON (schema `stepscope.scalars.v1`); a value that is not finite is `null`.
pub fn write_points_json(runs: &[RunLog], out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{{\"schema\": \"stepscope.scalars.v1\", \"rows\": [")?;
    let mut first = true;
    for run in runs {
        for series in &run.series {
            let name = format!(
                "\"run\": {}, \"tag\": {}",
                serde_json::json!(run.name),
                serde_json::json!(series.tag)
            );
            for ((step, wall), value) in series.steps.iter().zip(&series.wall_s).zip(&series.values) {
                let value = serde_json::json!(value);
                let comma = if first { "" } else { "," };
                write!(
                    out,
                    "{comma}\n  {{{name}, \"step\": {step}, \"wall_time\": {wall}, \"value\": {value}}}"
                )?;
                first = false;
            }
        }
    }
    writeln!(out, "\n]}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_is_drawn_with_gaps_where_nothing_is_finite() {
        assert_eq!(bars(&[Some(0.0), Some(7.0)]), "▁█");
        assert_eq!(bars(&[Some(1.0), None, Some(1.0)]), "▁·▁");
        assert_eq!(bars(&[]), "");
    }
}
