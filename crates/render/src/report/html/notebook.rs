//! The report as a fragment for notebooks: verdict, breakdown, step chart, a small timeline, the first findings.
//!
//! A notebook saves it together with its input, so it stays small. It has no script and no style sheet, because viewers
//! of notebooks from elsewhere strip both.

use stepscope_analyze::{Category, Shares};
use stepscope_results::report::Report;
use stepscope_results::words::terms;

use super::chart::{plain, small};
use super::page::{Html, tag};
use crate::format::{duration_ms, percent};
use crate::report::palette::color;
use crate::report::words::promise;
use crate::report::{answer, words};

/// Findings shown.
const FINDINGS: usize = 3;
/// Bars of the step chart.
const BARS: usize = 60;
/// Height of the small timeline in its own units.
const HEIGHT: f64 = 40.0;

/// The small timeline: the breakdown of equal pieces of the recording.
#[derive(Copy, Clone, Debug)]
pub struct Strip<'a> {
    /// The breakdown of each piece, in time order.
    pub shares: &'a [Shares],
    /// Length of the recording in milliseconds.
    pub length_ms: f64,
    /// Address of the timeline; `None` if no page is served.
    pub link: Option<&'a str>,
}

/// The fragment.
pub fn fragment(report: &Report, strip: &Strip<'_>) -> String {
    let mut body = sentence("font-size:1.15em;font-weight:600;margin:0 0 4px", &answer(report));
    if let Some(caution) = answer::caution(report) {
        body.push(&sentence("margin:0 0 4px", &caution));
    }
    body.push(&sentence("opacity:.75;margin:0 0 10px", &words::step_line(report).join(" · ")));
    body.push(&breakdown(report));
    if let Some(host) = report.bound().filter(|host| !host.whole_capture) {
        let chart = small(&super::bars(host), BARS);
        body.push(&headed("Steps", chart));
    }
    body.push(&headed("Timeline", timeline(strip)));
    body.push(&findings(report));
    let style = [("class", "stepscope"), ("style", "max-width:920px;line-height:1.45")];
    tag("div", &style, body).as_str().to_owned()
}

fn sentence(style: &str, text: &str) -> Html {
    tag("p", &[("style", style)], Html::sentence(text))
}

/// A part with its heading; nothing if the part is empty.
fn headed(title: &str, inner: Html) -> Html {
    if inner.is_empty() {
        return inner;
    }
    let title = tag("div", &[("style", "font-weight:600;margin:12px 0 4px")], Html::text(title));
    [title, inner].into_iter().collect()
}

fn breakdown(report: &Report) -> Html {
    let rows = report.by_share();
    let part = |&(category, ms, share): &(Category, f64, f64)| {
        let style = format!(
            "display:inline-block;height:14px;background:{};width:{}%",
            color(category),
            plain(share * 100.0)
        );
        let title = format!("{} {} ({})", category.key(), duration_ms(ms), percent(share));
        tag("span", &[("style", &style), ("title", &title)], Html::new())
    };
    let stack = [("style", "white-space:nowrap;font-size:0;margin:0 0 8px")];
    let stack = tag("div", &stack, rows.iter().map(part).collect());
    let row = |&(category, ms, share): &(Category, f64, f64)| {
        let swatch = format!(
            "display:inline-block;width:10px;height:10px;margin-right:6px;background:{}",
            color(category)
        );
        let name = [tag("span", &[("style", &swatch)], Html::new()), Html::text(category.key())];
        let cell = |style: &str, inner: Html| tag("td", &[("style", style)], inner);
        let cells = [
            cell("text-align:left", name.into_iter().collect()),
            cell("text-align:right", Html::text(&duration_ms(ms))),
            cell("text-align:right", Html::text(&percent(share))),
            cell("text-align:left;opacity:.75", Html::text(terms::category(category))),
        ];
        tag("tr", &[], cells.into_iter().collect())
    };
    if rows.is_empty() {
        return Html::new();
    }
    let table = tag("table", &[("style", "border-collapse:collapse")], rows.iter().map(row).collect());
    headed(&format!("Where the {} goes", report.breakdown_of()), [stack, table].into_iter().collect())
}

/// One column per piece of the recording, stacked by category.
fn timeline(strip: &Strip<'_>) -> Html {
    if strip.shares.iter().all(|shares| shares.total().is_zero()) {
        return Html::new();
    }
    // Neighbours with the same owner share a rectangle, or the drawing would outgrow the notebook.
    let mut drawing = Html::new();
    for category in Category::ALL {
        let mut path = String::new();
        for (place, shares) in strip.shares.iter().enumerate() {
            let below: f64 =
                shares.owners().take_while(|(owner, _)| *owner != category).map(|(_, time)| time.ms()).sum();
            let (own, total) = (shares.get(category).ms(), shares.total().ms());
            if own > 0.0 && total > 0.0 {
                let (top, height) = (below / total * HEIGHT, own / total * HEIGHT);
                path.push_str(&format!("M{place} {top:.1}h1v{height:.1}h-1z"));
            }
        }
        if !path.is_empty() {
            let title = tag("title", &[], Html::text(category.key()));
            drawing.push(&tag("path", &[("fill", color(category)), ("d", &path)], title));
        }
    }
    let view = format!("0 0 {} {HEIGHT}", strip.shares.len());
    let svg = [
        ("viewBox", view.as_str()),
        ("preserveAspectRatio", "none"),
        ("style", "width:100%;height:40px;display:block"),
        ("role", "img"),
        ("aria-label", "Breakdown over the recording"),
    ];
    let svg = tag("svg", &svg, drawing);
    let length = duration_ms(strip.length_ms);
    let Some(link) = strip.link else {
        let how = format!("{length} recorded. `profile.serve()` opens the timeline in the browser.");
        return [svg, sentence("opacity:.75;margin:2px 0 0", &how)].into_iter().collect();
    };
    let shown = tag("a", &[("href", link), ("target", "_blank"), ("rel", "noopener")], svg);
    let text = tag(
        "a",
        &[("href", link), ("target", "_blank"), ("rel", "noopener")],
        Html::text("Open the timeline"),
    );
    let below = [Html::text(&format!("{length} recorded. ")), text].into_iter().collect();
    [shown, tag("p", &[("style", "margin:2px 0 0")], below)].into_iter().collect()
}

fn findings(report: &Report) -> Html {
    let item = |finding: &stepscope_diagnose::Finding| {
        let words = finding.words();
        let promise = promise(finding).map_or(String::new(), |promise| format!(" · {promise}"));
        let label = tag("b", &[], Html::text(&format!("{}{promise}", finding.id())));
        let advice = words.advice.iter().map(|advice| tag("li", &[], Html::sentence(advice)));
        let advice = tag("ul", &[("style", "margin:2px 0 6px")], advice.collect());
        let summary = tag("div", &[], Html::sentence(&words.summary));
        tag("div", &[("style", "margin:0 0 6px")], [label, summary, advice].into_iter().collect())
    };
    headed("What to do", report.findings.iter().take(FINDINGS).map(item).collect())
}

#[cfg(test)]
mod tests {
    use stepscope_trace::Dur;

    use super::super::super::sample::input_bound;
    use super::*;

    fn strip() -> Vec<Shares> {
        let mut shares = Shares::default();
        shares.add(Category::Input, Dur::from_us(30));
        shares.add(Category::Compute, Dur::from_us(10));
        vec![shares; 240]
    }

    #[test]
    fn a_notebook_gets_a_small_fragment_without_scripts() {
        let shares = strip();
        let made = fragment(&input_bound(), &Strip { shares: &shares, length_ms: 9.6, link: None });
        assert!(made.contains("Input-bound") && made.contains("<svg") && made.contains("What to do"));
        assert!(!made.contains("<script") && !made.contains("<style"), "viewers strip both");
        assert!(made.len() < 100_000, "{} bytes", made.len());
        assert!(made.contains("profile.serve()"), "it says how to get the timeline");
    }

    #[test]
    fn the_small_timeline_links_to_the_page_that_is_served() {
        let shares = strip();
        let link = "http://127.0.0.1:6200/#/\"><script>/timeline";
        let made = fragment(&input_bound(), &Strip { shares: &shares, length_ms: 9.6, link: Some(link) });
        assert!(made.contains("href=\"http://127.0.0.1:6200/#/&quot;&gt;"), "and cannot break out");
    }
}
