//! Points of a chart as bytes: a JSON header and columns of numbers, which a browser reads without parsing text.

use serde_json::{Value, json};

/// What a frame begins with.
const MAGIC: &[u8; 4] = b"SSC1";

/// The points of one run.
#[derive(Debug, Default)]
pub(crate) struct Line {
    pub(crate) run: usize,
    pub(crate) version: u64,
    /// Points that there are, of which some are in the columns.
    pub(crate) total: usize,
    /// When the first of them was written.
    pub(crate) first_s: f64,
    pub(crate) steps: Vec<f64>,
    pub(crate) wall_s: Vec<f64>,
    pub(crate) values: Vec<f64>,
    pub(crate) smoothed: Vec<f64>,
}

/// All lines of a chart: magic, length of the header, the header padded to eight bytes, then the four columns of all lines
/// one after the other.
pub(crate) fn write(lines: &[Line], members: Value) -> Vec<u8> {
    let mut header = members;
    let described = lines.iter().map(|line| {
        json!({
            "run": line.run, "version": line.version, "count": line.steps.len(), "total": line.total,
            "first_s": line.first_s,
        })
    });
    header["lines"] = described.collect();
    let mut text = header.to_string().into_bytes();
    text.resize(text.len().next_multiple_of(8), b' ');
    let points: usize = lines.iter().map(|line| line.steps.len()).sum();
    let mut out = Vec::with_capacity(8 + text.len() + 32 * points);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(&text);
    let columns: [fn(&Line) -> &[f64]; 4] =
        [|line| &line.steps, |line| &line.wall_s, |line| &line.values, |line| &line.smoothed];
    for column in columns {
        for value in lines.iter().flat_map(column) {
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
    out
}
