//! The format of one file, from its first 64 KiB: a search meets files of any size and must not read them.
//!
//! Knows nothing about sessions and folders; [`super::known`] remembers its answers.

use std::io::{Read as _, SeekFrom};
use std::path::Path;
use std::time::SystemTime;

use super::foreign;
use super::names::head_bytes;
use super::{Lookalike, ProfileFile, TOOL_RESULTS, file_name, host_of};
use crate::files::{self, Beginning, FileData};
use crate::input::{Bytes, Input};
use crate::{READERS, Reader, folder, ncu, nsys, snapshot, tf};

/// The largest block of Zstandard. A file whose first block ends behind the head is read this far and no further.
const ZSTD_BLOCK: usize = (128 << 10) + 64;

/// The profile in a file of this size and age, or what it is instead.
pub(super) fn recognise(path: &Path, data: &FileData) -> Result<ProfileFile, Lookalike> {
    // Such files come in large numbers and sizes, so they are not even opened.
    if folder::is_table(path) {
        return Err(Lookalike::Table);
    }
    if data.bytes == 0 {
        return Err(Lookalike::Empty);
    }
    let (reader, head) = reader_of(path).map_err(|_| Lookalike::Unreadable)?;
    let Some(reader) = reader else { return Err(lookalike(path, &head)) };
    Ok(ProfileFile {
        path: path.to_owned(),
        is_folder: false,
        format: reader.format(),
        bytes: data.bytes,
        host: host_of(path),
        parts: Vec::new(),
        modified: data.modified.unwrap_or(SystemTime::UNIX_EPOCH),
    })
}

/// The reader that recognises a file, and the head by which it did.
pub(super) fn reader_of(path: &Path) -> std::io::Result<(Option<&'static dyn Reader>, Vec<u8>)> {
    let mut file = files::beginning(path, head_bytes(&file_name(path)))?;
    let mut raw = Vec::new();
    file.by_ref().take(Input::HEAD as u64).read_to_end(&mut raw)?;
    let whole = raw.len() < Input::HEAD;
    let mut input = Input::from_bytes(path, Bytes::held(raw));
    let mut head = input.head();
    if head.is_empty() && !whole {
        let mut more = input.raw().to_vec();
        file.by_ref().take((ZSTD_BLOCK - Input::HEAD) as u64).read_to_end(&mut more)?;
        input = Input::from_bytes(path, Bytes::held(more));
        head = input.head();
    }
    let mut reader = READERS.iter().copied().find(|reader| reader.recognises(&head));
    if reader.is_none() && tf::is_event_file(&head) {
        let runs = if whole || input.is_compressed() {
            tf::carries_runs(&head)
        } else {
            has_run_record(&mut *file)?
        };
        reader = runs.then_some(&tf::RunMetadataReader as &dyn Reader);
    }
    Ok((reader, head))
}

/// Whether one of the first records of an event file is a recorded run. Steps from record to record and reads the start
/// of each, [`Input::HEAD`] bytes altogether.
fn has_run_record(file: &mut dyn Beginning) -> std::io::Result<bool> {
    let mut start = [0_u8; tf::RECORD_START];
    let mut at = 0_u64;
    for _ in 0..Input::HEAD / tf::RECORD_START {
        file.seek(SeekFrom::Start(at))?;
        let mut read = 0;
        while let Some(rest) = start.get_mut(read..).filter(|rest| !rest.is_empty()) {
            match file.read(rest)? {
                0 => break,
                more => read += more,
            }
        }
        let Some((next, is_run)) = tf::record_start(start.get(..read).unwrap_or_default()) else { break };
        if is_run {
            return Ok(true);
        }
        let Some(next) = at.checked_add(next) else { break };
        at = next;
    }
    Ok(false)
}

pub(super) fn lookalike(path: &Path, head: &[u8]) -> Lookalike {
    let name = file_name(path);
    if name.contains(".tfevents.") {
        Lookalike::EventFile
    } else if name.ends_with(".nsys-rep") || name.ends_with(".qdrep") || head.starts_with(b"NVIDIA Tegra") {
        Lookalike::NsightSystemsReport
    } else if let Some(kind) = foreign::recognise(&name, head) {
        Lookalike::Foreign(kind)
    } else if head.starts_with(b"SQLite format 3\0") {
        Lookalike::Database
    } else if nsys::is_other_export(head) {
        Lookalike::NsightSystemsExport
    } else if ncu::is_progress(head) {
        Lookalike::NsightComputeProgress
    } else if snapshot::starts_like_a_pickle(head) {
        if snapshot::opcode_that_runs_code(head).is_some() { Lookalike::RunsCode } else { Lookalike::Pickle }
    } else if TOOL_RESULTS.iter().any(|part| name.contains(part)) {
        Lookalike::ToolResult
    } else {
        Lookalike::Other
    }
}
