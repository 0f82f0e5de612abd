//! Logged values: a row per run and tag with a line of bars for its course, all points, the way to a value, the pace of
//! runs, and runs compared.

mod compare;
mod pace;

use std::io::{self, Write};

use stepscope_analyze::curves::{RunCurves, TagCurve, reaches};
use stepscope_trace::series::{LogDamage, LogFault, OtherKind, OtherTag, RunLog};

use crate::format::plural;
use crate::table::{Cell, Column, Format, Table};
use stepscope_text::csv_field as quoted;

pub use compare::{Compared, comparison, comparison_json};
pub use pace::{findings_json, pace_json, sentence, write_text as write_pace};
pub(crate) use pace::{unit, why};

/// A row per run and tag.
pub fn table(runs: &[RunCurves]) -> Table {
    let columns = vec![
        Column::new("run", "run", Format::Name),
        Column::new("tag", "tag", Format::Name),
        Column::new("points", "points", Format::Count),
        Column::new("first_step", "first step", Format::Id),
        Column::new("last_step", "last step", Format::Id),
        Column::new("first", "first", Format::Short),
        Column::new("last", "last", Format::Short),
        Column::new("min", "min", Format::Short),
        Column::new("min_step", "at step", Format::Id).optional(),
        Column::new("max", "max", Format::Short),
        Column::new("max_step", "max step", Format::Id).hidden(),
        Column::new("mean", "mean", Format::Short),
        Column::new("nan", "NaN", Format::Count).optional(),
        Column::new("infinite", "infinite", Format::Count).hidden(),
        Column::new("lost", "lost", Format::Count).optional(),
        Column::new("replaced", "replaced", Format::Count).hidden(),
        Column::new("steps_per_second", "steps/s", Format::Short),
        Column::new("steps_per_second_p10", "steps/s p10", Format::Short).hidden(),
        Column::new("steps_per_second_p90", "steps/s p90", Format::Short).hidden(),
        Column::new("first_wall_time", "first wall time", Format::Short).hidden(),
        Column::new("last_wall_time", "last wall time", Format::Short).hidden(),
        Column::new("course", "course", Format::Text).drawn(),
    ];
    let mut table = Table::new("scalars", columns);
    let all = || runs.iter().flat_map(|run| run.curves.iter().map(move |curve| (run, curve)));
    let points: usize = all().map(|(_, it)| it.curve.points).sum();
    let tags = all().count() as u64;
    table.headline = Some(format!(
        "{} in {} of {}",
        plural(points as u64, "point", "points"),
        plural(tags, "tag", "tags"),
        plural(runs.len() as u64, "run", "runs")
    ));
    for (run, curve) in all() {
        table.push(row(&run.name, curve));
    }
    for note in runs.iter().flat_map(notes) {
        table.note(note);
    }
    table
}

fn row(run: &str, of_tag: &TagCurve) -> Vec<Cell> {
    let curve = &of_tag.curve;
    vec![
        run.into(),
        of_tag.tag.as_str().into(),
        curve.points.into(),
        curve.first_step.into(),
        curve.last_step.into(),
        curve.first.into(),
        curve.last.into(),
        curve.min.map(|(value, _)| value).into(),
        curve.min.map(|(_, step)| step).into(),
        curve.max.map(|(value, _)| value).into(),
        curve.max.map(|(_, step)| step).into(),
        curve.mean.into(),
        curve.nan.into(),
        curve.infinite.into(),
        of_tag.lost.into(),
        of_tag.replaced.into(),
        curve.steps_per_second.into(),
        curve.pace.map(|(slow, _)| slow).into(),
        curve.pace.map(|(_, fast)| fast).into(),
        curve.first_wall_s.into(),
        curve.last_wall_s.into(),
        bars(&of_tag.course).into(),
    ]
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
    let name = &run.name;
    let others = (!run.others.is_empty()).then(|| {
        let named = |other: &OtherTag| format!("`{}` ({})", other.tag, kind(other.kind));
        let kinds: Vec<String> = run.others.iter().take(MOST_OTHERS).map(named).collect();
        let more = run.others.len().saturating_sub(MOST_OTHERS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{name}: tags without numbers: {}{more}.", kinds.join(", "))
    });
    run.damage.iter().map(damage).chain(others).collect()
}

/// Where a file is damaged.
pub fn damage(damage: &LogDamage) -> String {
    let (file, at) = (&damage.file, damage.at);
    match damage.what {
        LogFault::Record => {
            format!("{file}: the record at byte {at} does not match its checksum; it is excluded.")
        }
        LogFault::Length => {
            format!(
                "{file}: the length of the record at byte {at} does not match its checksum; the record does, and is kept."
            )
        }
        LogFault::Gap(bytes) => {
            format!("{file}: {} from byte {at} on are not records; skipped.", plural(bytes, "byte", "bytes"))
        }
        LogFault::Cut => {
            format!("{file}: ends within the record at byte {at}: it is still being written, or truncated.")
        }
        LogFault::OverBudget => format!(
            "{file}: reading stopped at byte {at} of the decompressed file, the limit for its size. If you trust the file, \
             raise the limit, for example with `--budget 16GB`."
        ),
        LogFault::Nothing => format!("{file}: not an event file: it contains no records."),
    }
}

/// How long each run took to reach a value of the tags given.
pub fn until(runs: &[RunLog], value: f64) -> Table {
    let columns = vec![
        Column::new("run", "run", Format::Name),
        Column::new("tag", "tag", Format::Name),
        Column::new("step", "step", Format::Id),
        Column::new("seconds", "seconds", Format::Short),
        Column::new("last", "last", Format::Short),
    ];
    let mut table = Table::new("scalars", columns);
    table.headline = Some(format!("When each run reached {value}"));
    for run in runs {
        for series in &run.series {
            let reached = reaches(series, value);
            table.push([
                run.name.as_str().into(),
                series.tag.as_str().into(),
                reached.map(|(step, _)| step).into(),
                reached.map(|(_, seconds)| seconds).into(),
                series.values.last().copied().into(),
            ]);
        }
    }
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
