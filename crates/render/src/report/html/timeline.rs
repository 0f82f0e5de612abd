//! A small timeline of one typical step as inline SVG: devices and threads below one another, in the colours of the
//! categories, with a caption that says what to look at. Its size is bounded, however many events the step has.

use stepscope_analyze::Category;
use stepscope_analyze::time::typical_step::{PictureSpan, PictureTrack, StepPicture};
use stepscope_results::report::Report;
use stepscope_results::words::{quoted, terms};
use stepscope_trace::{Span, Time};

use super::chart::{legend_of, plain, round_step};
use super::page::{Html, tag};
use crate::format::{duration_ms, middle_cut, percent, plural};
use crate::report::palette::color;

/// Size of the drawing in its own units.
const WIDTH: f64 = 1000.0;
const LEFT: f64 = 150.0;
const AXIS: f64 = 20.0;
const ROW: f64 = 15.0;
const GAP: f64 = 7.0;
/// A span of this width holds its name, of as many characters per unit.
const NAMED: f64 = 42.0;
const CHARACTERS: f64 = 1.0 / 6.2;
/// Characters of a track's name.
const TRACK: usize = 20;
/// Spans with a tooltip: names are most of the bytes.
const TITLED: f64 = 1.5;
/// Longest name in a tooltip.
const LONGEST: usize = 120;
/// Most spans in a drawing, the longest first: together they stay far below a megabyte.
const SPANS: usize = 3_000;

/// The drawing with its caption and legend; empty if there is no picture.
pub(super) fn timeline(report: &Report) -> Html {
    let Some(picture) = &report.picture else { return Html::new() };
    let caption = tag("p", &[], Html::sentence(&caption(report, picture)));
    let used: Vec<Category> = spans(picture).filter_map(|span| span.category).collect();
    [caption, drawing(picture), legend_of(|category| used.contains(&category))].into_iter().collect()
}

fn spans(picture: &StepPicture) -> impl Iterator<Item = &PictureSpan> {
    picture.tracks.iter().flat_map(|track| track.rows.iter().flatten())
}

/// A colour for names on a category's own: light on dark ones, dark on light ones.
fn ink(category: Option<Category>) -> &'static str {
    match category {
        Some(
            Category::Communication
            | Category::TransferOut
            | Category::TransferDevice
            | Category::Input
            | Category::Compile
            | Category::Launch
            | Category::Idle
            | Category::Unknown,
        )
        | None => "#14181d",
        Some(_) => "#ffffff",
    }
}

/// Which step it is, and what to look at.
fn caption(report: &Report, picture: &StepPicture) -> String {
    let (one, _) = report.bound().map_or(("step", "steps"), |host| terms::step_kind(host.kind));
    let host =
        if report.summary.hosts.len() > 1 { format!(" on {}", quoted(&picture.host)) } else { String::new() };
    let which = format!(
        "A typical {one}: {one} {}{host}, {}, the one closest to the median.",
        picture.step,
        duration_ms(picture.dur.ms()),
    );
    let Some(&(category, ms, share)) = report.by_share().first() else { return which };
    let idle = matches!(category, Category::Idle | Category::Unknown | Category::Python);
    let look = if idle {
        "Look at the empty parts of the rows: there, nothing was recorded."
    } else {
        "Look at its colour in the rows below."
    };
    format!(
        "{which} `{}` takes most of a mean {one}: {} ({}). {look}",
        category.key(),
        duration_ms(ms),
        percent(share)
    )
}

/// Times to the drawing's units.
struct Scale {
    span: Span,
}

impl Scale {
    fn x(&self, at: Time) -> f64 {
        let whole = self.span.dur().ps().max(1) as f64;
        let share = (at - self.span.start).ps() as f64 / whole;
        LEFT + share.clamp(0.0, 1.0) * (WIDTH - LEFT)
    }

    /// Lines at round times since the start.
    fn axis(&self, bottom: f64) -> Html {
        let whole = self.span.dur().ms();
        let step = round_step(whole / 6.0);
        let times = (0..12).map(|n| f64::from(n) * step).take_while(|ms| *ms <= whole * 0.94);
        let line = |ms: f64| {
            let x = plain(LEFT + ms / whole.max(f64::MIN_POSITIVE) * (WIDTH - LEFT));
            let (top, bottom) = (plain(AXIS - 4.0), plain(bottom));
            let grid = [("class", "grid"), ("x1", &*x), ("x2", &*x), ("y1", &*top), ("y2", &*bottom)];
            let named = if ms == 0.0 { "0".to_owned() } else { duration_ms(ms) };
            let label = tag("text", &[("x", &*x), ("y", "11")], Html::text(&named));
            [tag("line", &grid, Html::new()), label].into_iter().collect::<Html>()
        };
        times.map(line).collect()
    }
}

fn drawing(picture: &StepPicture) -> Html {
    let scale = Scale { span: picture.span };
    let least = shortest_drawn(picture);
    let mut body = Html::new();
    let mut y = AXIS;
    for track in &picture.tracks {
        body.push(&rows(&scale, track, y, least));
        y += track.rows.len() as f64 * ROW + GAP;
    }
    let drawn: Html = [scale.axis(y - GAP), body].into_iter().collect();
    let view = format!("0 0 {WIDTH} {}", plain(y));
    let step = format!(
        "Timeline of step {}, {}",
        picture.step,
        plural(picture.tracks.len() as u64, "track", "tracks")
    );
    let drawing = tag(
        "svg",
        &[("class", "chart lanes"), ("viewBox", &view), ("role", "img"), ("aria-label", &step)],
        drawn,
    );
    // On a phone it scrolls sideways, also by keys.
    tag(
        "div",
        &[("class", "across"), ("tabindex", "0"), ("role", "region"), ("aria-label", "Timeline")],
        drawing,
    )
}

/// The duration of the shortest span that is drawn, in picoseconds; 0 where all are.
fn shortest_drawn(picture: &StepPicture) -> i64 {
    let mut lengths: Vec<i64> = spans(picture).map(|span| span.span.dur().ps()).collect();
    if lengths.len() <= SPANS {
        return 0;
    }
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    lengths.get(SPANS).map_or(0, |length| length.saturating_add(1))
}

fn rows(scale: &Scale, track: &PictureTrack, top: f64, least: i64) -> Html {
    let label = if track.name.is_empty() { &track.process } else { &track.name };
    let (edge, middle) = (plain(LEFT - 8.0), plain(top + ROW - 4.0));
    let name = tag("title", &[], Html::text(&format!("{label}, {}", track.process)));
    let shown = Html::text(&middle_cut(label, TRACK));
    let label = [("x", &*edge), ("y", &*middle), ("text-anchor", "end")];
    let mut drawn = tag("text", &label, [name, shown].into_iter().collect());
    for (depth, row) in track.rows.iter().enumerate() {
        let y = top + depth as f64 * ROW;
        let long = row.iter().filter(|span| span.span.dur().ps() >= least);
        long.for_each(|span| drawn.push(&bar(scale, span, y)));
    }
    drawn
}

fn bar(scale: &Scale, span: &PictureSpan, y: f64) -> Html {
    let (left, right) = (scale.x(span.span.start), scale.x(span.span.end));
    let width = (right - left).max(0.5);
    let fill = span.category.map_or("#8b939c", color);
    let (x, top, wide, tall) = (plain(left), plain(y), plain(width), plain(ROW - 2.0));
    let title = if width >= TITLED { tag("title", &[], Html::text(&words(span))) } else { Html::new() };
    let place = [("x", &*x), ("y", &*top), ("width", &*wide), ("height", &*tall), ("fill", fill)];
    let mut drawn = tag("rect", &place, title);
    if width >= NAMED && span.count == 1 {
        let (x, y) = (plain(left + 4.0), plain(y + ROW - 5.0));
        let fits = ((width - 8.0) * CHARACTERS) as usize;
        let name = Html::text(&middle_cut(&span.name, fits.max(1)));
        let fill = format!("fill:{}", ink(span.category));
        drawn.push(&tag("text", &[("class", "on"), ("x", &*x), ("y", &*y), ("style", &fill)], name));
    }
    drawn
}

fn words(span: &PictureSpan) -> String {
    let name = middle_cut(&span.name, LONGEST);
    let time = duration_ms(span.span.dur().ms());
    match span.count {
        1 => format!("{name}: {time}"),
        more => format!("{} in {time}, the longest {name}", plural(more as u64, "event", "events")),
    }
}

#[cfg(test)]
mod tests {
    use stepscope_trace::Dur;

    use super::*;
    use crate::report::sample::input_bound;

    fn picture(spans: i64) -> StepPicture {
        let at = |ns: i64| Time::from_ns(ns);
        let one = |number: i64| PictureSpan {
            span: Span::new(at(number * 10), at(number * 10 + 5)),
            category: Some(Category::Compute),
            name: "a <b> & \"c\"".repeat(40),
            count: 1,
        };
        StepPicture {
            host: "trainer".to_owned(),
            step: 7,
            dur: Dur::from_us(40_000),
            span: Span::new(at(0), at(spans * 10)),
            tracks: vec![PictureTrack {
                process: "python".to_owned(),
                name: "main".to_owned(),
                rows: vec![(0..spans).map(one).collect()],
            }],
        }
    }

    fn drawn(spans: i64) -> String {
        let report = Report { picture: Some(picture(spans)), ..input_bound() };
        timeline(&report).as_str().to_owned()
    }

    #[test]
    fn a_caption_says_which_step_it_is_and_what_to_look_at() {
        let html = drawn(3);
        assert!(html.contains("A typical step: step 7, 40.0 ms, the one closest to the median."), "{html}");
        assert!(html.contains("<code>input</code> takes most of a mean step"), "{html}");
        assert!(html.contains("aria-label=\"Timeline of step 7, 1 track\""), "{html}");
    }

    #[test]
    fn names_cannot_become_markup() {
        let html = drawn(1);
        assert!(html.contains("a &lt;b&gt; &amp; &quot;c&quot;") && !html.contains("<b>"), "{html}");
    }

    #[test]
    fn many_events_stay_a_small_file() {
        let html = drawn(50_000);
        assert!(html.len() < 1 << 20, "{} bytes", html.len());
        assert!(html.matches("<rect").count() <= SPANS);
    }

    #[test]
    fn without_steps_there_is_nothing() {
        assert!(timeline(&input_bound()).is_empty());
    }
}
