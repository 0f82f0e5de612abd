//! What a file holds beyond what was read of it, without reading the rest again.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use crate::{ReadError, files};

/// What a file holds beyond what was read of it.
pub(super) enum Grown {
    /// Nothing.
    Not,
    /// These bytes.
    By(Vec<u8>),
    /// It is shorter than what was read: another file.
    Replaced,
}

/// Reads only what is new: a file that grew by one record costs one record.
pub(super) fn grown(path: &Path, read: usize) -> Result<Grown, ReadError> {
    let failed = |error| ReadError::Io { path: path.to_owned(), error };
    let length = files::data(path).map_err(failed)?.bytes;
    let read = read as u64;
    if length <= read {
        return Ok(if length == read { Grown::Not } else { Grown::Replaced });
    }
    let mut file = files::open(path).map_err(failed)?;
    file.seek(SeekFrom::Start(read)).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(length - read).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Grown::By(bytes))
}
