//! The content of a profile, as text and as JSON (`stepscope.info.v1`).

mod text;

use std::io::{self, Write};

use serde::Serialize;
use stepscope_analyze::recording::info::{HostInfo, Info};

pub use text::write_text;

/// Everything that `info` shows.
#[derive(Copy, Clone, Debug)]
pub struct Description<'a> {
    /// The session's name.
    pub session: &'a str,
    /// All sessions found, newest first.
    pub sessions: &'a [String],
    /// The content.
    pub info: &'a Info,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    session: &'a str,
    sessions: &'a [String],
    sources: Vec<SourceRow<'a>>,
    events: u64,
    span_ms: Option<f64>,
    hosts: &'a [HostInfo],
}

/// The same row as in the report.
#[derive(Serialize)]
struct SourceRow<'a> {
    path: &'a str,
    format: &'a str,
    bytes: u64,
    host: &'a str,
    events: u64,
}

/// Writes the description as JSON.
pub fn write_json(description: &Description<'_>, out: &mut dyn Write) -> io::Result<()> {
    let hosts = &description.info.hosts;
    let document = Document {
        schema: "stepscope.info.v1",
        session: description.session,
        sessions: description.sessions,
        sources: hosts
            .iter()
            .map(|host| SourceRow {
                path: &host.path,
                format: host.format.name,
                bytes: host.bytes,
                host: &host.host,
                events: host.events,
            })
            .collect(),
        events: hosts.iter().map(|host| host.events).sum(),
        span_ms: longest(hosts),
        hosts,
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    out.write_all(b"\n")
}

/// The longest time span of any host; the hosts' clocks are not compared.
fn longest(hosts: &[HostInfo]) -> Option<f64> {
    hosts.iter().filter_map(|host| host.span_ms).reduce(f64::max)
}
