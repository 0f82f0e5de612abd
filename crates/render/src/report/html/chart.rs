//! Charts of time by category: stacked bars, one per step, as inline SVG, and the breakdown of one step.

use stepscope_analyze::Category;
use stepscope_results::report::RangeRow;
use stepscope_results::words::terms;
use stepscope_trace::statistics::quantile;

use super::page::{Html, tag, text};
use crate::format::{decimal, duration_ms, percent};
use crate::report::palette::color;
use crate::report::words::RANGES;

/// Size of the drawing in its own units.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 230.0;
/// Space for the scale on the left and the numbers below.
const LEFT: f64 = 58.0;
const BELOW: f64 = 20.0;
const ABOVE: f64 = 8.0;
/// With more steps than this, neighbours share a bar, so that every bar stays visible and the file small.
const BARS: usize = 240;
/// A step longer than this many times the median is cut off, because the others would be too small to see.
const CUT: f64 = 4.0;
/// Maximum width of a bar, so that a few steps do not look like many.
const WIDEST: f64 = 48.0;

/// One bar of the step chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Its label, e.g. the step number.
    pub label: String,
    /// Milliseconds by category, stacked from the bottom in this order.
    pub owners: Vec<(Category, f64)>,
}

impl Bar {
    fn length(&self) -> f64 {
        self.owners.iter().map(|(_, ms)| ms).sum()
    }

    fn title(&self) -> String {
        let mut owners: Vec<&(Category, f64)> = self.owners.iter().filter(|(_, ms)| *ms > 0.0).collect();
        owners.sort_by(|a, b| b.1.total_cmp(&a.1));
        let lines: Vec<String> =
            owners.iter().map(|(category, ms)| format!("{} {}", category.key(), duration_ms(*ms))).collect();
        format!("{}: {}\n{}", self.label, duration_ms(self.length()), lines.join("\n"))
    }
}

/// The step chart with its legend; empty if there are no bars.
pub fn steps(bars: &[Bar]) -> Html {
    if bars.is_empty() {
        return Html::new();
    }
    let bars = pooled(bars, BARS);
    [drawing(&bars), legend(&bars)].into_iter().collect()
}

/// The step chart alone, of at most `most` bars; empty if there are no bars.
pub(super) fn small(bars: &[Bar], most: usize) -> Html {
    if bars.is_empty() { Html::new() } else { drawing(&pooled(bars, most)) }
}

/// The drawing can do without the page's style sheet: attributes hold what a notebook needs.
fn drawing(bars: &[Bar]) -> Html {
    let mut lengths: Vec<f64> = bars.iter().map(Bar::length).collect();
    lengths.sort_by(f64::total_cmp);
    let middle = quantile(&lengths, 0.5).unwrap_or(0.0);
    let longest = lengths.last().copied().unwrap_or(0.0);
    let top = if middle > 0.0 { longest.min(middle * CUT) } else { longest }.max(f64::MIN_POSITIVE) * 1.04;
    let scale = Scale { top, width: (WIDTH - LEFT) / bars.len() as f64 };
    let mut drawing = scale.grid();
    for (place, bar) in bars.iter().enumerate() {
        drawing.push(&scale.bar(place, bar));
    }
    let mean = lengths.iter().sum::<f64>() / lengths.len().max(1) as f64;
    drawing.push(&scale.mean(mean));
    drawing.push(&scale.numbers(bars));
    let view = format!("0 0 {WIDTH} {HEIGHT}");
    let attributes = [
        ("class", "chart"),
        ("viewBox", view.as_str()),
        ("role", "img"),
        ("font-size", "12"),
        ("fill", "currentColor"),
        ("aria-label", "Time of each step by category"),
    ];
    tag("svg", &attributes, drawing)
}

/// Converts time to the drawing's units.
struct Scale {
    top: f64,
    width: f64,
}

impl Scale {
    fn y(&self, ms: f64) -> f64 {
        let share = (ms / self.top).clamp(0.0, 1.0);
        ABOVE + (1.0 - share) * (HEIGHT - ABOVE - BELOW)
    }

    fn grid(&self) -> Html {
        let step = round_step(self.top / 4.0);
        let lines = (0..=8).map(|n| f64::from(n) * step).take_while(|ms| *ms <= self.top);
        let line = |ms: f64| {
            let (y, below) = (decimal(self.y(ms), 1), decimal(self.y(ms) + 4.0, 1));
            let (left, right, edge) = (decimal(LEFT, 0), format!("{WIDTH}"), decimal(LEFT - 8.0, 0));
            let grid = [
                ("class", "grid"),
                ("stroke", "#8884"),
                ("x1", &*left),
                ("x2", &*right),
                ("y1", &*y),
                ("y2", &*y),
            ];
            let label = [("x", edge.as_str()), ("y", below.as_str()), ("text-anchor", "end")];
            let named = if ms == 0.0 { "0".to_owned() } else { duration_ms(ms) };
            [tag("line", &grid, Html::new()), tag("text", &label, Html::text(&named))]
                .into_iter()
                .collect::<Html>()
        };
        lines.map(line).collect()
    }

    fn bar(&self, place: usize, bar: &Bar) -> Html {
        let gap = if self.width > 6.0 { 2.0 } else { self.width * 0.15 };
        let width = (self.width - gap).min(WIDEST);
        let x = plain(LEFT + (place as f64 + 0.5) * self.width - width / 2.0);
        let width = plain(width);
        let mut inner = tag("title", &[], Html::text(&bar.title()));
        let mut below = 0.0;
        for (category, ms) in bar.owners.iter().filter(|(_, ms)| *ms > 0.0) {
            let (high, low) = (self.y(below + ms), self.y(below));
            below += ms;
            let (y, height) = (plain(high), plain(low - high));
            let attributes = [
                ("x", &*x),
                ("y", &*y),
                ("width", &*width),
                ("height", &*height),
                ("fill", color(*category)),
            ];
            inner.push(&tag("rect", &attributes, Html::new()));
        }
        tag("g", &[("class", "step")], inner)
    }

    fn mean(&self, ms: f64) -> Html {
        let (y, left, right) = (plain(self.y(ms)), plain(LEFT), plain(WIDTH));
        let line = [
            ("class", "middle"),
            ("stroke", "#888"),
            ("x1", &*left),
            ("x2", &*right),
            ("y1", &*y),
            ("y2", &*y),
        ];
        tag("line", &line, tag("title", &[], Html::text(&format!("mean {}", duration_ms(ms)))))
    }

    /// A few step numbers below the bars.
    fn numbers(&self, bars: &[Bar]) -> Html {
        let every = bars.len().div_ceil(12);
        let numbered = bars.iter().enumerate().step_by(every.max(1));
        let number = |(place, bar): (usize, &Bar)| {
            let x = plain(LEFT + (place as f64 + 0.5) * self.width);
            let y = plain(HEIGHT - 5.0);
            let label = bar.label.split_whitespace().last().unwrap_or_default();
            tag("text", &[("x", &*x), ("y", &*y), ("text-anchor", "middle")], Html::text(label))
        };
        numbered.map(number).collect()
    }
}

/// A coordinate without thousands separators.
pub(crate) fn plain(value: f64) -> String {
    format!("{value:.2}")
}

/// The next of 1, 2 or 5 times a power of ten.
pub(crate) fn round_step(at_least: f64) -> f64 {
    let power = 10_f64.powf(at_least.max(f64::MIN_POSITIVE).log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| *step >= at_least)
        .unwrap_or(at_least)
}

/// Reduces to at most `most` bars: neighbours are merged, each bar is the mean of its steps.
fn pooled(bars: &[Bar], most: usize) -> Vec<Bar> {
    let size = bars.len().div_ceil(most.max(1)).max(1);
    if size == 1 {
        return bars.to_vec();
    }
    bars.chunks(size)
        .map(|chunk| {
            let owners = Category::ALL.map(|category| {
                let all = chunk.iter().flat_map(|bar| &bar.owners).filter(|(owner, _)| *owner == category);
                (category, all.map(|(_, ms)| ms).sum::<f64>() / chunk.len() as f64)
            });
            let label = chunk.first().map_or(String::new(), |bar| {
                format!("mean of {} steps, starting at {}", chunk.len(), bar.label)
            });
            Bar { label, owners: owners.to_vec() }
        })
        .collect()
}

fn legend(bars: &[Bar]) -> Html {
    let used = |category: &Category| {
        bars.iter().any(|bar| bar.owners.iter().any(|(owner, ms)| owner == category && *ms > 0.0))
    };
    legend_of(|category| used(&category))
}

/// Names and colours of the categories that are used.
pub(super) fn legend_of(used: impl Fn(Category) -> bool) -> Html {
    let entry = |category: Category| {
        tag("span", &[], [swatch(category), Html::text(category.key())].into_iter().collect())
    };
    let used = Category::ALL.into_iter().filter(|category| used(*category));
    tag("div", &[("class", "legend")], used.map(entry).collect())
}

pub(crate) fn swatch(category: Category) -> Html {
    let style = format!("background:{}", color(category));
    tag("i", &[("class", "swatch"), ("style", &style)], Html::new())
}

/// The breakdown of a step: one stacked bar, and one row per category.
pub fn breakdown(rows: &[(Category, f64, f64)]) -> Html {
    let Some(&(_, _, largest)) = rows.first() else { return Html::new() };
    let part = |&(category, ms, share): &(Category, f64, f64)| {
        let style = format!("background:{};width:{}%", color(category), plain(share * 100.0));
        let title = format!("{} {} ({})", category.key(), duration_ms(ms), percent(share));
        tag("span", &[("style", &style), ("title", &title)], Html::new())
    };
    let stack = tag("div", &[("class", "stack")], rows.iter().map(part).collect());
    let row = |&(category, ms, share): &(Category, f64, f64)| {
        let length = if largest > 0.0 { share / largest * 100.0 } else { 0.0 };
        let style = format!("background:{};width:{}%", color(category), plain(length));
        let track = tag("span", &[("style", &style)], Html::new());
        let name = [swatch(category), Html::text(category.key())].into_iter().collect();
        tag(
            "div",
            &[],
            [
                tag("span", &[("class", "name")], name),
                text("span", "soft about", terms::category(category)),
                tag("span", &[("class", "track")], track),
                text("span", "number", &duration_ms(ms)),
                text("span", "number soft", &percent(share)),
            ]
            .into_iter()
            .collect(),
        )
    };
    let owners = tag("div", &[("class", "owners")], rows.iter().map(row).collect());
    [stack, owners].into_iter().collect()
}

/// The program's ranges below the breakdown; empty if there are none.
pub fn ranges(rows: &[RangeRow]) -> Html {
    if rows.is_empty() {
        return Html::new();
    }
    let row = |range: &RangeRow| {
        let figures = [
            text("span", "name", &range.name),
            text("span", "number", &duration_ms(range.ms_per_step)),
            text("span", "number soft", &percent(range.fraction)),
        ];
        tag("div", &[], figures.into_iter().collect())
    };
    let owners = tag("div", &[("class", "owners")], rows.iter().map(row).collect());
    [text("p", "soft", RANGES), owners].into_iter().collect()
}
