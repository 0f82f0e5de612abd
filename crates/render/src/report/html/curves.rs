//! What a run logged beside its profile, as small charts: the value over steps, and where the profile was recorded.

use stepscope_results::report::LoggedRun;
use stepscope_trace::series::Series;

use super::chart::plain;
use super::page::{Html, tag, text};
use crate::format::{short, thousands};

/// Size of one chart in its own units.
const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 150.0;
const EDGE: f64 = 6.0;
/// Space for step numbers.
const BELOW: f64 = 16.0;

/// A chart per logged value; empty without any.
pub(super) fn curves(run: &LoggedRun) -> Html {
    let profile = run.placed.as_ref().map(|placed| placed.step);
    let charts: Html = run.curves.iter().filter_map(|series| chart(series, profile)).collect();
    if run.curves.is_empty() { Html::new() } else { tag("div", &[("class", "curves")], charts) }
}

fn chart(series: &Series, profile: Option<i64>) -> Option<Html> {
    let scale = Scale::of(series)?;
    let mut drawing = Html::new();
    if let Some(step) = profile.filter(|step| (scale.first..=scale.last).contains(&(*step as f64))) {
        let x = plain(scale.x(step as f64));
        let line =
            [("class", "middle"), ("x1", &*x), ("x2", &*x), ("y1", "0"), ("y2", &*plain(HEIGHT - BELOW))];
        let title = format!("profile recorded at step {}", thousands(step.unsigned_abs()));
        drawing.push(&tag("line", &line, tag("title", &[], Html::text(&title))));
    }
    for piece in scale.pieces(series) {
        let points = piece.join(" ");
        let line = [("class", "curve"), ("points", points.as_str())];
        drawing.push(&tag("polyline", &line, Html::new()));
    }
    let (low, below) = (plain(EDGE), plain(HEIGHT - 3.0));
    let label = |x: &str, anchor: &str, what: f64| {
        tag("text", &[("x", x), ("y", &*below), ("text-anchor", anchor)], Html::text(&short(what)))
    };
    drawing.push(&label(&low, "start", scale.first));
    drawing.push(&label(&plain(WIDTH - EDGE), "end", scale.last));
    let said = format!("{} to {}, last {}", short(scale.low), short(scale.high), short(scale.end));
    let (view, about) = (format!("0 0 {WIDTH} {HEIGHT}"), format!("{} over steps: {said}", series.tag));
    let attributes =
        [("class", "chart"), ("viewBox", view.as_str()), ("role", "img"), ("aria-label", about.as_str())];
    let head = [text("b", "", &series.tag), text("span", "soft", &format!(" {said}"))];
    let head = tag("div", &[], head.into_iter().collect());
    Some(tag(
        "div",
        &[("class", "curve-card")],
        [head, tag("svg", &attributes, drawing)].into_iter().collect(),
    ))
}

/// Converts steps and values to the drawing's units.
struct Scale {
    first: f64,
    last: f64,
    low: f64,
    high: f64,
    /// The last finite value.
    end: f64,
}

impl Scale {
    /// `None` without a finite value.
    fn of(series: &Series) -> Option<Scale> {
        let finite = || series.values.iter().copied().filter(|value| value.is_finite());
        let steps = || series.steps.iter().map(|step| *step as f64);
        Some(Scale {
            first: steps().min_by(f64::total_cmp)?,
            last: steps().max_by(f64::total_cmp)?,
            low: finite().min_by(f64::total_cmp)?,
            high: finite().max_by(f64::total_cmp)?,
            end: finite().next_back()?,
        })
    }

    fn x(&self, step: f64) -> f64 {
        let span = (self.last - self.first).max(f64::MIN_POSITIVE);
        EDGE + (step - self.first) / span * (WIDTH - 2.0 * EDGE)
    }

    fn y(&self, value: f64) -> f64 {
        let inner = HEIGHT - BELOW - 2.0 * EDGE;
        let share = if self.high > self.low { (value - self.low) / (self.high - self.low) } else { 0.5 };
        EDGE + (1.0 - share) * inner
    }

    /// The points of each part of the line; what is not finite interrupts it.
    fn pieces(&self, series: &Series) -> Vec<Vec<String>> {
        let mut pieces = vec![Vec::new()];
        for (step, value) in series.steps.iter().zip(&series.values) {
            if !value.is_finite() {
                pieces.push(Vec::new());
            } else if let Some(piece) = pieces.last_mut() {
                piece.push(format!("{:.1},{:.1}", self.x(*step as f64), self.y(*value)));
            }
        }
        pieces.retain(|piece| !piece.is_empty());
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(values: Vec<f64>) -> LoggedRun {
        let steps: Vec<i64> = (0..values.len() as i64).collect();
        let wall_s = steps.iter().map(|step| *step as f64).collect();
        let series = Series { tag: "loss <b>".to_owned(), steps, wall_s, values, ..Series::default() };
        LoggedRun {
            name: "train".to_owned(),
            has_pace: false,
            has_clock: false,
            placed: None,
            curves: vec![series],
        }
    }

    #[test]
    fn a_value_that_is_not_finite_interrupts_the_line() {
        let drawn = curves(&run(vec![3.0, 2.0, f64::NAN, 1.0, 0.5])).as_str().to_owned();
        assert_eq!(drawn.matches("<polyline").count(), 2);
        assert!(drawn.contains("loss &lt;b&gt;") && drawn.contains("last 0.5"), "{drawn}");
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert_eq!(curves(&run(vec![f64::NAN])).as_str().to_owned().matches("<svg").count(), 0);
        assert!(!curves(&run(vec![1.0])).as_str().to_owned().contains("NaN"));
    }
}
