//! From a piece of work to its partial: each file is read, analysed and dropped. A file that cannot be read becomes an
//! entry that says why.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use stepscope_analyze::Context;
use stepscope_analyze::fleet::HostPartial;
use stepscope_read::{Input, Opened, Progress, ReadError, open_input};
use stepscope_trace::NoteKind;

use crate::error::FleetError;
use crate::frame::{Frame, Header, Kind, encoded};
use crate::plan::{Recording, Work, WorkInput};
use crate::set::Set;

/// Reads the work on `threads` threads, or on one per core. As many traces are in memory as there are threads.
pub fn partial(work: &Work, threads: Option<usize>) -> Result<Vec<u8>, FleetError> {
    let inputs: Vec<(&Recording, &WorkInput)> = work
        .pieces
        .iter()
        .flat_map(|piece| piece.inputs.iter().map(|input| (&piece.recording, input)))
        .collect();
    let progress = Progress::new();
    let set = Mutex::new(Set::new());
    // A pool of its own: one that a parent process used does not work after a fork.
    let pool = threads.map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads.max(1)).build());
    let pool = pool.and_then(Result::ok);
    each(&inputs, count(threads), |(recording, input)| {
        let frame = match &pool {
            Some(pool) => pool.install(|| host(recording, input, &progress)),
            None => host(recording, input, &progress),
        }?;
        lock(&set).insert(frame);
        Ok(())
    })?;
    let mut set = set.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    set.settle();
    set.write()
}

/// The partial of work that could not be done at all, such as on a machine that died: each of its inputs says why.
pub fn failed(work: &Work, reason: &str) -> Result<Vec<u8>, FleetError> {
    let mut set = Set::new();
    for (recording, input) in
        work.pieces.iter().flat_map(|piece| piece.inputs.iter().map(|input| (&piece.recording, input)))
    {
        let header = Header { kind: Kind::Failed, reason: reason.to_owned(), ..header_of(recording, input) };
        set.insert(Frame::new(header, &[])?);
    }
    set.settle();
    set.write()
}

/// The number of hosts to read at once.
pub(crate) fn count(threads: Option<usize>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    threads.unwrap_or_else(cores).max(1)
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Runs a task on each element. Plain threads: one that waits inside a rayon pool takes up other work meanwhile, and a
/// trace would be held for each.
pub(crate) fn each<T: Sync>(
    all: &[T],
    threads: usize,
    task: impl Fn(&T) -> Result<(), FleetError> + Sync,
) -> Result<(), FleetError> {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(all.len()) {
            scope.spawn(|| {
                while let Some(element) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = task(element) {
                        next.store(all.len(), Ordering::Relaxed);
                        lock(&failed).get_or_insert(error);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    failed.map_or(Ok(()), Err)
}

/// One host's entry.
pub(crate) fn host(
    recording: &Recording,
    input: &WorkInput,
    progress: &Progress,
) -> Result<Frame, FleetError> {
    let mut header = header_of(recording, input);
    let look = || looked_at(input, progress);
    // One file of ten thousand must not end the run, whatever is in it.
    let looked = catch_unwind(AssertUnwindSafe(look)).unwrap_or_else(|_| {
        Err(format!("{}: stepscope could not analyse it; please report this", input.path))
    });
    match looked {
        Ok((partial, damage)) => {
            header.timeline = partial.timeline();
            header.reason = damage;
            let body = encoded(&partial)?;
            Frame::new(header, &body)
        }
        Err(reason) => {
            header.kind = Kind::Failed;
            header.reason = reason;
            Frame::new(header, &[])
        }
    }
}

/// The header of an entry for an input.
pub(crate) fn header_of(recording: &Recording, input: &WorkInput) -> Header {
    Header {
        id: input.id.clone(),
        recording: Some(recording.clone()),
        host: input.host.clone(),
        path: input.path.clone(),
        bytes: input.bytes,
        ..Header::new(Kind::Host)
    }
}

/// What a file says, and the damage in it.
fn looked_at(input: &WorkInput, progress: &Progress) -> Result<(HostPartial, String), String> {
    let read = || -> Result<Opened, ReadError> {
        let parts = input.parts.iter().map(|part| Input::open(Path::new(part))).collect::<Result<_, _>>()?;
        open_input(&Input::open(Path::new(&input.path))?.with_parts(parts), progress)
    };
    let Opened { trace, .. } = read().map_err(|error| error.to_string())?;
    let damaged = trace.notes().iter().filter(|note| note.kind == NoteKind::Damaged);
    let damage = damaged.max_by_key(|note| note.offset).map(|note| {
        let place = note.offset.map_or(String::new(), |offset| format!(" at byte {offset}"));
        format!("damaged{place}: {}", note.detail)
    });
    let mut partial = HostPartial::of(&Context::new(&trace, input.host.as_str()));
    partial.bound();
    Ok((partial, damage.unwrap_or_default()))
}
