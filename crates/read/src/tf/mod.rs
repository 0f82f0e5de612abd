//! Files of classic TensorFlow besides profiles: graphs (binary and text), run metadata, op logs, saved tfprof
//! profiles, checkpoints. They become the plain values of `stepscope-tfgraph`.
//!
//! ```text
//! kind         the kind of a file, by content
//! message      protobuf messages: known fields are kept, damage is noted
//! graph, text  GraphDef in its two forms
//! run          RunMetadata, record by record
//! op_log       OpLogProto
//! saved        ProfileProto
//! checkpoint   TensorBundle: the index is an SSTable (`sstable`), the values are in other files
//! events       event files that contain graphs and run metadata
//! trace        RunMetadata as a profile like any other
//! ```
//!
//! Nothing here aborts, and nothing is skipped silently: a message that is truncated or does not match its
//! schema yields what could be read before and after it, and a [`Damage`] with the location.

mod calls;
mod checkpoint;
pub(crate) mod crc32c;
mod events;
mod graph;
mod kind;
mod lanes;
mod message;
mod op_log;
mod run;
mod saved;
mod sstable;
mod text;
mod timeline;
mod trace;

use std::path::Path;

use stepscope_tfgraph::{Graph, NodeRecord, OpLog, SavedProfile};

use crate::{Bytes, Input, ReadError};

pub use checkpoint::{Checkpoint, checkpoint_of, read_checkpoint};
pub(crate) use events::{RECORD_START, carries_runs, is_event_file, record_start};
pub use events::{TaggedRun, TensorFlowEvents, events_of, read_events};
pub use kind::{Kind, kind_of};
pub use message::{Damage, Damages};
pub use timeline::TimelineReader;
pub use trace::RunMetadataReader;
pub(crate) use trace::for_events;

/// A value that was read, and the damage found on the way.
#[derive(Clone, Debug, Default)]
pub struct Found<T> {
    /// What could be read.
    pub value: T,
    /// What could not be read.
    pub damage: Damages,
}

/// Reads a graph, binary or text.
pub fn read_graph(path: &Path) -> Result<Found<Graph>, ReadError> {
    let (bytes, damage) = content(path, &[Kind::Graph, Kind::GraphText])?;
    graph_of(path, &bytes, damage)
}

/// Reads a graph that is not in a separate file; messages refer to it as `path`.
pub fn graph_of(path: &Path, bytes: &[u8], damage: Damages) -> Result<Found<Graph>, ReadError> {
    let found = match kind_of(bytes) {
        Some(Kind::GraphText) => text::graph(bytes, damage),
        _ => graph::graph(bytes, damage),
    };
    unless_nothing(path, found.value.nodes.is_empty(), found)
}

/// Reads a recorded run. Passes each record to `visit` with its device.
pub fn read_run(
    path: &Path,
    visit: &mut dyn FnMut(&str, &NodeRecord<'_>),
) -> Result<Found<RunSummary>, ReadError> {
    let (bytes, damage) = content(path, &[Kind::Run])?;
    run_of(path, &bytes, damage, visit)
}

/// Reads run metadata that is not in a separate file; messages refer to it as `path`.
pub fn run_of(
    path: &Path,
    bytes: &[u8],
    damage: Damages,
    visit: &mut dyn FnMut(&str, &NodeRecord<'_>),
) -> Result<Found<RunSummary>, ReadError> {
    let found = run::run(bytes, damage, visit);
    unless_nothing(path, found.value.records == 0, found)
}

/// Content of run metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunSummary {
    /// Its devices, in file order.
    pub devices: Vec<String>,
    /// Number of node records.
    pub records: u64,
    /// Number of graphs of partitions and functions in it.
    pub graphs: u64,
}

/// Reads an op log.
pub fn read_op_log(path: &Path) -> Result<Found<OpLog>, ReadError> {
    let (bytes, damage) = content(path, &[Kind::OpLog])?;
    op_log_of(path, &bytes, damage)
}

/// Reads an op log that is not in a separate file; messages refer to it as `path`.
pub fn op_log_of(path: &Path, bytes: &[u8], damage: Damages) -> Result<Found<OpLog>, ReadError> {
    let found = op_log::op_log(bytes, damage);
    unless_nothing(path, found.value.entries.is_empty(), found)
}

/// Reads a saved profile.
pub fn read_saved(path: &Path) -> Result<Found<SavedProfile>, ReadError> {
    let (bytes, damage) = content(path, &[Kind::Saved])?;
    saved_of(path, &bytes, damage)
}

/// Reads a saved profile that is not in a separate file; messages refer to it as `path`.
pub fn saved_of(path: &Path, bytes: &[u8], damage: Damages) -> Result<Found<SavedProfile>, ReadError> {
    let found = saved::saved(bytes, damage);
    unless_nothing(path, found.value.nodes.is_empty(), found)
}

/// The inflated bytes of a file, and the damage found on the way.
fn inflated(path: &Path) -> Result<(Bytes, Damages), ReadError> {
    let input = Input::open(path)?;
    if input.size() == 0 {
        return Err(ReadError::Empty { path: path.to_owned() });
    }
    let (bytes, broken) = input.inflated();
    let mut damage = Damages::default();
    if let Some(error) = broken {
        damage.add(bytes.len(), || format!("compression: {error}"));
    }
    Ok((bytes, damage))
}

/// The inflated bytes of a file, which must be one of `wanted`.
fn content(path: &Path, wanted: &[Kind]) -> Result<(Bytes, Damages), ReadError> {
    let (bytes, damage) = inflated(path)?;
    let kind = kind_of(&bytes);
    if kind.is_some_and(|kind| wanted.contains(&kind)) {
        return Ok((bytes, damage));
    }
    let wanted = wanted.first().map_or("", |kind| kind.name());
    Err(ReadError::WrongKind { path: path.to_owned(), wanted, found: kind.map(Kind::name) })
}

/// Damage that leaves nothing is an error.
fn unless_nothing<T>(path: &Path, nothing: bool, found: Found<T>) -> Result<Found<T>, ReadError> {
    match found.damage.first() {
        Some(damage) if nothing => Err(ReadError::Damaged {
            path: path.to_owned(),
            what: damage.what.clone(),
            offset: damage.at.unwrap_or(0),
        }),
        _ => Ok(found),
    }
}
