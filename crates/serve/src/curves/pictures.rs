//! Pictures of a tag: which steps have some, and one of them as the browser shows it. Only what is a PNG, JPEG or GIF by its own
//! first bytes is sent, as that, and only if it is not too large to draw.

use serde_json::{Value, json};
use stepscope_read::tfevents::picture::recognise;

use super::{Curves, Run, read};
use crate::error::Refusal;
use crate::query::Query;
use crate::routes::Reply;

/// Bytes of one picture.
const MOST_BYTES: u64 = 16 << 20;
/// Pixels of one picture: decoded it takes four bytes each.
const MOST_PIXELS: u64 = 40_000_000;

/// The run that a request names.
fn shared(curves: &Curves, query: &Query) -> Result<super::Shared, Refusal> {
    curves.run(query.number("run")?).ok_or(Refusal::Missing("run"))
}

/// The steps with pictures, and how many each has.
pub(crate) fn steps(curves: &Curves, query: &Query) -> Result<Value, Refusal> {
    let tag = query.text("tag").ok_or(Refusal::Missing("tag"))?;
    let shared = shared(curves, query)?;
    let run = read(&shared);
    let kept = run.reader.pictures(tag).ok_or(Refusal::Missing("tag"))?;
    Ok(json!({
        "steps": kept.iter().map(|it| it.step).collect::<Vec<_>>(),
        "wall_s": kept.iter().map(|it| it.wall_s).collect::<Vec<_>>(),
        "samples": kept.iter().map(|it| it.samples.len()).collect::<Vec<_>>(),
    }))
}

/// One picture.
pub(crate) fn picture(curves: &Curves, query: &Query) -> Result<Reply, Refusal> {
    let tag = query.text("tag").ok_or(Refusal::Missing("tag"))?;
    let (place, sample): (usize, usize) = (query.number("at")?, query.number_or("sample", 0)?);
    let shared = shared(curves, query)?;
    let run = read(&shared);
    let bytes = bytes(&run, tag, place, sample).ok_or(Refusal::Missing("picture"))?;
    let encoded = recognise(&bytes).ok_or(Refusal::Missing("picture"))?;
    if u64::from(encoded.width) * u64::from(encoded.height) > MOST_PIXELS {
        return Err(Refusal::Missing("picture"));
    }
    Ok(Reply { kind: encoded.kind, body: bytes.into(), file: None })
}

fn bytes(run: &Run, tag: &str, place: usize, sample: usize) -> Option<Vec<u8>> {
    let picture = run.reader.pictures(tag)?.get(place)?;
    // A file that was replaced since has no picture there.
    run.reader.blob(*picture.samples.get(sample)?, MOST_BYTES).ok().flatten()
}
