//! Chrome Trace Event JSON written as text, without any reader code: documents as profilers lay them out,
//! events field by field, strings properly escaped.

use std::fmt::Write;

/// A trace under construction.
#[derive(Clone, Debug, Default)]
pub struct ChromeTrace {
    head: Vec<String>,
    events: Vec<String>,
    tail: Vec<String>,
}

impl ChromeTrace {
    /// No events.
    pub fn new() -> Self {
        Self::default()
    }

    /// A member of the top-level object, before the events.
    pub fn head(mut self, key: &str, json: &str) -> Self {
        self.head.push(format!("{}: {json}", quoted(key)));
        self
    }

    /// A member of the top-level object, after the events.
    pub fn tail(mut self, key: &str, json: &str) -> Self {
        self.tail.push(format!("{}: {json}", quoted(key)));
        self
    }

    /// An event.
    pub fn event(mut self, event: &ChromeEvent) -> Self {
        self.events.push(event.text());
        self
    }

    /// An event as text, valid or not.
    pub fn raw(mut self, event: &str) -> Self {
        self.events.push(event.to_owned());
        self
    }

    /// The whole document as an object, laid out as by Kineto.
    pub fn text(&self) -> String {
        let events = format!("\"traceEvents\": [\n  {}\n  ]", self.events.join(",\n  "));
        let members: Vec<&str> =
            self.head.iter().chain([&events]).chain(&self.tail).map(String::as_str).collect();
        format!("{{\n  {}\n}}\n", members.join(",\n  "))
    }

    /// Only the events, as an array without white space, as laid out by JAX.
    pub fn array(&self) -> String {
        format!("[{}]", self.events.join(","))
    }
}

/// An event under construction. Fields keep the order in which they are added.
#[derive(Clone, Debug)]
pub struct ChromeEvent {
    fields: Vec<String>,
    args: Vec<String>,
}

impl ChromeEvent {
    /// An event of a phase.
    pub fn new(phase: &str, name: &str) -> Self {
        let fields = vec![format!("\"ph\": {}", quoted(phase)), format!("\"name\": {}", quoted(name))];
        ChromeEvent { fields, args: Vec::new() }
    }

    /// A slice.
    pub fn slice(name: &str, category: &str, pid: i64, tid: i64, ts: &str, dur: &str) -> Self {
        Self::new("X", name).text_field("cat", category).at(pid, tid, ts).field("dur", dur)
    }

    /// Process, thread and time in microseconds.
    pub fn at(self, pid: i64, tid: i64, ts: &str) -> Self {
        self.field("pid", &pid.to_string()).field("tid", &tid.to_string()).field("ts", ts)
    }

    /// A field with JSON for a value.
    pub fn field(mut self, key: &str, json: &str) -> Self {
        self.fields.push(format!("{}: {json}", quoted(key)));
        self
    }

    /// A field with text for a value.
    pub fn text_field(self, key: &str, text: &str) -> Self {
        self.field(key, &quoted(text))
    }

    /// An argument with JSON for a value.
    pub fn arg(mut self, key: &str, json: &str) -> Self {
        self.args.push(format!("{}: {json}", quoted(key)));
        self
    }

    /// The event's text.
    pub fn text(&self) -> String {
        let mut fields = self.fields.join(", ");
        if !self.args.is_empty() {
            let _ = write!(fields, ",\n    \"args\": {{\n      {}\n    }}", self.args.join(", "));
        }
        format!("{{\n    {fields}\n  }}")
    }
}

/// A properly escaped JSON string.
pub fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if u32::from(c) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
