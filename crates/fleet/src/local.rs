//! The whole fleet on one machine: as many hosts at once as there are cores, each result kept in the cache as soon as it
//! is there, so that a run that was stopped goes on where it was.
//!
//! Recordings are finished as soon as their last host is there. What is in memory is one trace per thread, and the
//! results of the recordings that are under way.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use stepscope_read::Progress;

use crate::error::FleetError;
use crate::frame::Frame;
use crate::partial::{header_of, host};
use crate::plan::{Piece, Recording, Work, WorkInput};
use crate::set::Set;
use crate::store::Cache;
use crate::workers::{Reader, Workers, lock};

/// How to run, and how far it is.
#[derive(Debug, Default)]
pub struct Local {
    /// How hosts are read.
    pub workers: Workers,
    /// Where results are kept.
    pub cache: Option<Cache>,
    /// Inputs that are done.
    pub done: AtomicU64,
    /// Of these, inputs whose results were in the cache.
    pub reused: AtomicU64,
    /// What readers have read.
    pub progress: Progress,
    /// The first failure to write to the cache: the run goes on without it.
    pub cache_failed: Mutex<Option<FleetError>>,
}

/// Reads all the work.
pub fn run(works: &[Work], local: &Local) -> Result<Set, FleetError> {
    let pieces: Vec<&Piece> = works.iter().flat_map(|work| &work.pieces).collect();
    let inputs: Vec<(&Recording, &WorkInput)> =
        pieces.iter().flat_map(|piece| piece.inputs.iter().map(|input| (&piece.recording, input))).collect();
    let all = Mutex::new(Set::new());
    let open = Mutex::new(Set::new());
    local.workers.each(&inputs, |reader, (recording, input)| {
        let frame = one(recording, input, reader, local)?;
        local.done.fetch_add(1, Ordering::Relaxed);
        let ready = {
            let mut open = lock(&open);
            open.insert(frame);
            open.take_if_complete(&recording.id)
        };
        // Finishing a recording takes a while; others go on meanwhile.
        if let Some(mut ready) = ready {
            ready.settle();
            lock(&all).join(ready);
        }
        Ok(())
    })?;
    let mut all = all.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    all.join(open.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner));
    Ok(all)
}

fn one(
    recording: &Recording,
    input: &WorkInput,
    reader: &mut Reader,
    local: &Local,
) -> Result<Frame, FleetError> {
    let cached = local.cache.as_ref().and_then(|cache| cache.get(header_of(recording, input)));
    if let Some(frame) = cached {
        local.reused.fetch_add(1, Ordering::Relaxed);
        return Ok(frame);
    }
    let frame = host(recording, input, reader, &local.progress)?;
    if let Some(cache) = &local.cache
        && let Err(error) = cache.put(&frame)
    {
        lock(&local.cache_failed).get_or_insert(error);
    }
    Ok(frame)
}
