//! From a piece of work to its partial: each file is read, analysed and dropped. A file that cannot be read becomes an
//! entry that says why.

use std::path::Path;
use std::sync::Mutex;

use stepscope_analyze::Context;
use stepscope_analyze::session::HostPartial;
use stepscope_read::{Input, Opened, Progress, ReadError, open_input};
use stepscope_text::duration_ms;
use stepscope_trace::NoteKind;

use crate::error::FleetError;
use crate::frame::{Frame, Header, Kind, encoded};
use crate::plan::{Recording, Work, WorkInput};
use crate::set::Set;
use crate::workers::{Given, Reader, Workers, lock};

/// Reads the work. As many traces are in memory as there are workers.
pub fn partial(work: &Work, workers: &Workers) -> Result<Vec<u8>, FleetError> {
    let inputs: Vec<(&Recording, &WorkInput)> = work
        .pieces
        .iter()
        .flat_map(|piece| piece.inputs.iter().map(|input| (&piece.recording, input)))
        .collect();
    let progress = Progress::new();
    let set = Mutex::new(Set::new());
    workers.each(&inputs, |reader, (recording, input)| {
        lock(&set).insert(host(recording, input, reader, &progress)?);
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
        set.insert(failure(recording, input, reason.to_owned())?);
    }
    set.settle();
    set.write()
}

/// One host's entry. A host that hangs is given up.
pub(crate) fn host(
    recording: &Recording,
    input: &WorkInput,
    reader: &mut Reader,
    progress: &Progress,
) -> Result<Frame, FleetError> {
    if let Some(trouble) = &input.trouble {
        return failure(recording, input, trouble.clone());
    }
    reader.meet(Path::new(&input.path));
    let own = input.clone();
    let looked = reader.watched(progress, move |progress| looked_at(&own, progress));
    let gave_up = duration_ms(reader.patience.as_secs_f64() * 1e3);
    match looked {
        Ok(Ok((partial, damage))) => {
            let header =
                Header { timeline: partial.timeline(), reason: damage, ..header_of(recording, input) };
            Frame::new(header, &encoded(&partial)?)
        }
        Ok(Err(reason)) => failure(recording, input, reason),
        Err(Given::Up) => failure(recording, input, hangs(&input.path, &gave_up)),
        Err(Given::Broken) => {
            let reason = format!("{}: stepscope could not analyse it; please report this", input.path);
            failure(recording, input, reason)
        }
        Err(Given::Stopped) => Err(FleetError::Stopped),
    }
}

/// What is said of a path that could not be read in time.
pub(crate) fn hangs(path: &str, patience: &str) -> String {
    format!("{path}: nothing could be read for {patience}; its storage does not answer")
}

fn failure(recording: &Recording, input: &WorkInput, reason: String) -> Result<Frame, FleetError> {
    Frame::new(Header { kind: Kind::Failed, reason, ..header_of(recording, input) }, &[])
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
