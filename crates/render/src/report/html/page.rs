//! One self-contained HTML page: no network, no external fonts or scripts, light and dark, printable.
//!
//! [`Html`] is markup that is safe by construction: text and attributes are escaped on entry, and element names
//! are literals. Content of a trace can never become markup. These parts know nothing about reports, so other
//! pages, such as a comparison, can use them too.

use std::fmt::Write;

use crate::format::printable;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Markup that is safe to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Html(String);

impl Html {
    /// Empty markup.
    pub fn new() -> Self {
        Html::default()
    }

    /// Escaped text.
    pub fn text(text: &str) -> Self {
        let mut html = Html::new();
        html.escape(text);
        html
    }

    /// A sentence with names and code in backticks.
    pub fn sentence(text: &str) -> Self {
        let parts: Vec<&str> = text.split('`').collect();
        if parts.len().is_multiple_of(2) {
            return Html::text(text);
        }
        let mut html = Html::new();
        for (place, part) in parts.into_iter().enumerate() {
            if place % 2 == 1 {
                html.push(&tag("code", &[], Html::text(part)));
            } else {
                html.escape(part);
            }
        }
        html
    }

    /// Appends markup.
    pub fn push(&mut self, more: &Html) {
        self.0.push_str(&more.0);
    }

    /// True if there is no markup.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The markup.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn escape(&mut self, text: &str) {
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                self.0.push('\n');
            }
            self.escape_line(&printable(line));
        }
    }

    fn escape_line(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                c => self.0.push(c),
            }
        }
    }
}

impl FromIterator<Html> for Html {
    fn from_iter<T: IntoIterator<Item = Html>>(parts: T) -> Self {
        let mut html = Html::new();
        parts.into_iter().for_each(|part| html.push(&part));
        html
    }
}

/// An element with attributes and content.
pub fn tag(name: &'static str, attributes: &[(&'static str, &str)], inner: Html) -> Html {
    let mut html = Html(format!("<{name}"));
    for (key, value) in attributes {
        // CheckpointCost to a String cannot fail.
        let _ = write!(html.0, " {key}=\"");
        html.escape(value);
        html.0.push('"');
    }
    html.0.push('>');
    html.push(&inner);
    let _ = write!(html.0, "</{name}>");
    html
}

/// An element with text.
pub fn text(name: &'static str, class: &str, content: &str) -> Html {
    tag(name, &[("class", class)], Html::text(content))
}

/// A part of a page.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its heading.
    pub title: String,
    /// Its content.
    pub body: Html,
}

impl Section {
    /// Creates a section.
    pub fn new(title: impl Into<String>, body: Html) -> Self {
        Section { title: title.into(), body }
    }
}

/// A whole page: a small line at the top, the headline, and the sections below it.
pub fn html_page(title: &str, kicker: &str, sections: &[Section]) -> String {
    let mut body = tag(
        "header",
        &[],
        [text("p", "kicker", kicker), tag("h1", &[], Html::sentence(title))].into_iter().collect(),
    );
    for section in sections.iter().filter(|section| !section.body.is_empty()) {
        let mut inner = Html::new();
        if !section.title.is_empty() {
            inner.push(&text("h2", "", &section.title));
        }
        inner.push(&section.body);
        body.push(&tag("section", &[], inner));
    }
    let made = format!(
        "Made by stepscope {}. This file is self-contained and loads nothing from the network.",
        env!("CARGO_PKG_VERSION")
    );
    body.push(&tag("footer", &[], Html::text(&made)));
    let title = Html::text(&printable(&title.replace('`', "")));
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>{STYLE}</style></head>\n\
         <body><main>{}</main>\n<script>{SCRIPT}</script></body></html>\n",
        title.as_str(),
        body.as_str()
    )
}
