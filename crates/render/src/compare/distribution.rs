//! The steps of both sides as inline SVG: one histogram per side on a common scale, with quartiles and median
//! below.

use stepscope_trace::statistics::quantile;

use crate::format::{duration_ms, percent, plural};
use crate::report::html::chart::{plain, round_step};
use crate::report::html::page::{Html, tag, text};

/// Size of the drawing in its own units.
const WIDTH: f64 = 1000.0;
/// Space for the names of the sides on the left, and for half a number on the right.
const LEFT: f64 = 58.0;
const RIGHT: f64 = 24.0;
/// One side: the median's number, the histogram, the box plot below it.
const LANE: f64 = 112.0;
const NUMBER: f64 = 18.0;
const BARS: f64 = 64.0;
const BOX: f64 = 14.0;
/// Space for the scale.
const BELOW: f64 = 22.0;
/// Number of bars.
const BINS: usize = 80;
/// Steps longer than this many times the longer median are cut off, so that the others stay readable.
const CUT: f64 = 3.0;

/// One side of the drawing.
pub(super) struct Side<'a> {
    /// `BASE` or `NEW`.
    pub(super) name: &'a str,
    /// Its CSS class.
    pub(super) class: &'a str,
    /// The steps in milliseconds, sorted.
    pub(super) steps_ms: Vec<f64>,
    /// The median used in the comparison.
    pub(super) median_ms: f64,
}

/// The drawing, and a line about what is cut off; empty if a side has no steps.
pub(super) fn drawing(sides: &[Side<'_>; 2]) -> Html {
    let Some(scale) = Scale::of(sides) else { return Html::new() };
    let height = LANE * 2.0 + BELOW;
    let mut inner = scale.grid(LANE * 2.0);
    for (side, top) in sides.iter().zip([0.0, LANE]) {
        inner.push(&scale.lane(side, top));
    }
    let view = format!("0 0 {WIDTH} {height}");
    let attributes = [
        ("class", "chart"),
        ("viewBox", view.as_str()),
        ("role", "img"),
        ("aria-label", "Step durations of both sides"),
    ];
    let about = "Bars: number of steps with this duration. Box: the middle half of the steps, \
                 whiskers from the 5th to the 95th percentile. Thick line: the median.";
    let mut about = about.to_owned();
    for side in sides {
        let beyond = side.steps_ms.iter().filter(|ms| **ms > scale.high).count() as u64;
        if beyond > 0 {
            let longest = side.steps_ms.last().copied().unwrap_or_default();
            let steps = plural(beyond, "longer step", "longer steps");
            about.push_str(&format!(" {}: {steps} not shown, up to {}.", side.name, duration_ms(longest)));
        }
    }
    [tag("svg", &attributes, inner), text("p", "soft", &about)].into_iter().collect()
}

/// Converts time to the drawing's units.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// From the shortest step to the longest that is not cut off, with a small margin.
    fn of(sides: &[Side<'_>; 2]) -> Option<Self> {
        let [base, new] = sides;
        let low = base.steps_ms.first()?.min(*new.steps_ms.first()?);
        let longest = base.steps_ms.last()?.max(*new.steps_ms.last()?);
        let cut = base.median_ms.max(new.median_ms) * CUT;
        let high = if cut > low { longest.min(cut) } else { longest };
        // Steps of equal length still need some width.
        let air = ((high - low) * 0.03).max(high.abs() * 0.005).max(f64::MIN_POSITIVE);
        let (low, high) = ((low - air).max(0.0), high + air);
        (low.is_finite() && high.is_finite() && high > low).then_some(Scale { low, high })
    }

    fn x(&self, ms: f64) -> f64 {
        let share = ((ms - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        LEFT + share * (WIDTH - LEFT - RIGHT)
    }

    fn grid(&self, bottom: f64) -> Html {
        let step = round_step((self.high - self.low) / 8.0);
        let first = (self.low / step).ceil();
        let marks =
            (0..=16).map(|n| (first + f64::from(n)) * step).take_while(|ms| *ms <= self.high).map(|ms| {
                let (x, low, label) = (plain(self.x(ms)), plain(bottom), plain(bottom + 16.0));
                let line = [("class", "grid"), ("x1", &*x), ("x2", &*x), ("y1", "0"), ("y2", &*low)];
                let at = [("x", &*x), ("y", &*label), ("text-anchor", "middle")];
                let shown = if ms == 0.0 { "0".to_owned() } else { duration_ms(ms) };
                [tag("line", &line, Html::new()), tag("text", &at, Html::text(&shown))]
                    .into_iter()
                    .collect::<Html>()
            });
        marks.collect()
    }

    /// Draws one side, starting at its upper edge.
    fn lane(&self, side: &Side<'_>, top: f64) -> Html {
        let ground = top + NUMBER + BARS;
        let name = [("class", "side"), ("x", "0"), ("y", &*plain(ground))];
        let mut lane = tag("text", &name, Html::text(side.name));
        lane.push(&self.bins(side, ground));
        lane.push(&self.quartiles(side, ground + 5.0));
        lane.push(&self.median(side, top, ground + 5.0 + BOX));
        lane
    }

    fn bins(&self, side: &Side<'_>, ground: f64) -> Html {
        let width = (self.high - self.low) / BINS as f64;
        let mut counts = [0_u64; BINS];
        for ms in side.steps_ms.iter().filter(|ms| **ms <= self.high) {
            let place = ((ms - self.low) / width).floor().max(0.0) as usize;
            if let Some(count) = counts.get_mut(place.min(BINS - 1)) {
                *count += 1;
            }
        }
        let most = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
        let all = side.steps_ms.len().max(1) as f64;
        let class = format!("bin {}", side.class);
        let bar = |(place, count): (usize, &u64)| {
            let from = self.low + place as f64 * width;
            let (left, right) = (self.x(from), self.x(from + width));
            let height = *count as f64 / most * BARS;
            let (x, y, wide, high) =
                (plain(left), plain(ground - height), plain(right - left - 1.0), plain(height));
            let attributes =
                [("class", &*class), ("x", &*x), ("y", &*y), ("width", &*wide), ("height", &*high)];
            let title = format!(
                "{}: {} of {} to {} ({})",
                side.name,
                plural(*count, "step", "steps"),
                duration_ms(from),
                duration_ms(from + width),
                percent(*count as f64 / all)
            );
            tag("rect", &attributes, tag("title", &[], Html::text(&title)))
        };
        counts.iter().enumerate().filter(|(_, count)| **count > 0).map(bar).collect()
    }

    fn quartiles(&self, side: &Side<'_>, top: f64) -> Html {
        let at = |q: f64| self.x(quantile(&side.steps_ms, q).unwrap_or_default());
        let [least, lower, upper, most] = [0.05, 0.25, 0.75, 0.95].map(at);
        let middle = plain(top + BOX / 2.0);
        let whisker = |from: f64, to: f64| {
            let (from, to) = (plain(from), plain(to));
            let line = [("class", "box"), ("x1", &*from), ("x2", &*to), ("y1", &*middle), ("y2", &*middle)];
            tag("line", &line, Html::new())
        };
        let (x, y, width, height) = (plain(lower), plain(top), plain(upper - lower), plain(BOX));
        let attributes =
            [("class", "box"), ("x", &*x), ("y", &*y), ("width", &*width), ("height", &*height), ("rx", "2")];
        [whisker(least, lower), tag("rect", &attributes, Html::new()), whisker(upper, most)]
            .into_iter()
            .collect()
    }

    fn median(&self, side: &Side<'_>, top: f64, bottom: f64) -> Html {
        let at = self.x(side.median_ms);
        let (x, from, to, label) = (plain(at), plain(top + NUMBER), plain(bottom), plain(top + 13.0));
        let line = [("class", "median"), ("x1", &*x), ("x2", &*x), ("y1", &*from), ("y2", &*to)];
        // Near an edge, the number would be cut off.
        let anchor = match at {
            at if at < LEFT + 60.0 => "start",
            at if at > WIDTH - RIGHT - 60.0 => "end",
            _ => "middle",
        };
        let number = [("class", "side"), ("x", &*x), ("y", &*label), ("text-anchor", anchor)];
        let shown = format!("median {}", duration_ms(side.median_ms));
        [tag("line", &line, Html::new()), tag("text", &number, Html::text(&shown))].into_iter().collect()
    }
}
