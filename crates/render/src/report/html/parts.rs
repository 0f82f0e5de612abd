//! Building blocks of pages: key figures, sortable tables, findings.

use stepscope_diagnose::Finding;

use super::page::{Html, tag, text};
use crate::format::{decimal, percent, printable, share, thousands};
use crate::report::words::promise;

/// Key figures: a large value with its label below.
pub fn figures(all: &[(String, String)]) -> Html {
    let figure = |(value, label): &(String, String)| {
        let inner = [
            tag("div", &[("class", "value")], Html::sentence(value)),
            tag("div", &[("class", "label")], Html::sentence(label)),
        ];
        tag("div", &[("class", "figure")], inner.into_iter().collect())
    };
    tag("div", &[("class", "figures")], all.iter().map(figure).collect())
}

/// A cell of a sortable table.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A sentence, with code between backticks.
    Sentence(String),
    /// A name, which may be long.
    Name(String),
    /// A whole number.
    Count(u64),
    /// Any number, as it is shown, and for sorting.
    Number(String, f64),
    /// Milliseconds.
    Ms(f64),
    /// A difference in milliseconds, with its sign.
    ChangeMs(f64),
    /// A fraction, shown as a percentage; `None` if unknown.
    Share(Option<f64>),
}

impl Value {
    fn is_number(&self) -> bool {
        !matches!(self, Value::Text(_) | Value::Sentence(_) | Value::Name(_))
    }

    fn cell(&self) -> Html {
        let number = |shown: String, value: f64| {
            tag("td", &[("class", "number"), ("data-value", &value.to_string())], Html::text(&shown))
        };
        match self {
            Value::Text(text) => tag("td", &[], Html::text(&printable(text))),
            Value::Sentence(text) => tag("td", &[], Html::sentence(&printable(text))),
            Value::Name(name) => {
                tag("td", &[("class", "breaks")], tag("code", &[], Html::text(&printable(name))))
            }
            Value::Count(count) => number(thousands(*count), *count as f64),
            Value::Number(shown, value) => number(shown.clone(), *value),
            Value::Ms(ms) => number(decimal(*ms, 3), *ms),
            Value::ChangeMs(ms) => {
                let shown = decimal(*ms, 3);
                let gained = *ms > 0.0 && shown.bytes().any(|digit| matches!(digit, b'1'..=b'9'));
                number(if gained { format!("+{shown}") } else { shown }, *ms)
            }
            Value::Share(Some(share)) => number(percent(*share), *share),
            Value::Share(None) => text("td", "number", crate::format::UNKNOWN),
        }
    }
}

/// A table that sorts on click; empty if there are no rows.
pub fn table(titles: &[&str], rows: &[Vec<Value>]) -> Html {
    let Some(first) = rows.first() else { return Html::new() };
    let head = titles.iter().zip(first).map(|(title, value)| {
        let class = if value.is_number() { "number" } else { "" };
        tag("th", &[("class", class), ("scope", "col")], Html::text(title))
    });
    let body = rows.iter().map(|row| tag("tr", &[], row.iter().map(Value::cell).collect()));
    let inner = [tag("thead", &[], tag("tr", &[], head.collect())), tag("tbody", &[], body.collect())];
    tag("div", &[("class", "scroll")], tag("table", &[], inner.into_iter().collect()))
}

/// A finding with its evidence and advice.
pub fn finding(finding: &Finding) -> Html {
    let words = finding.words();
    let mut tags = text("span", "badge", finding.severity.key());
    tags.push(&tag("span", &[], Html::text(finding.id())));
    if let Some(promise) = promise(finding) {
        tags.push(&tag("span", &[], Html::text(&promise)));
    }
    let sure = format!("{} confidence", share(finding.confidence));
    tags.push(&tag("span", &[], Html::text(&sure)));
    let item = |sentence: &String| tag("li", &[], Html::sentence(sentence));
    let inner = [
        tag("div", &[("class", "tags")], tags),
        tag("h3", &[], Html::sentence(&words.summary)),
        tag("ul", &[], words.evidence.iter().map(item).collect()),
        tag("ol", &[], words.advice.iter().map(item).collect()),
    ];
    let class = format!("finding {}", finding.severity.key());
    tag("div", &[("class", &class)], inner.into_iter().collect())
}
