//! Profiles that are folders: Nsight Systems can export every table to a separate file. Such a folder counts as
//! one profile, whether the user gives the folder or any file in it.
//!
//! This is the only place where a name decides, because the name of a file is the name of its table. It also
//! keeps searches fast: data sets beside logs consist of thousands of Parquet and Arrow files, none of which is
//! opened.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::ReadError;
use crate::files;
use crate::input::{Bytes, bytes_of};
use crate::nsys::is_telling;

/// One table of such a folder.
#[derive(Clone, Debug)]
pub struct TableFile {
    /// The table's name.
    pub name: String,
    /// Content of the file.
    pub bytes: Bytes,
}

/// The name of the table in a file, from the file name.
pub(crate) fn table_name(path: &Path) -> Option<&str> {
    path.file_stem()?.to_str().filter(|_| is_table(path))
}

/// Whether the name is that of a table file, from any tool.
pub(crate) fn is_table(path: &Path) -> bool {
    const ENDINGS: [&str; 2] = ["parquet", "arrow"];
    path.extension().is_some_and(|found| ENDINGS.iter().any(|ending| found.eq_ignore_ascii_case(ending)))
}

/// Whether these files of one folder make it a profile.
pub(crate) fn is_export(files: &[PathBuf]) -> bool {
    files.iter().filter_map(|file| table_name(file)).any(is_telling)
}

/// The folder that a path refers to: the folder itself, or the folder of a file in it.
pub(crate) fn meant_by(path: &Path) -> Option<PathBuf> {
    if files::is_folder(path) { export_in(path) } else { meant_by_file(path) }
}

/// The folder of a file, if it is one of the tables of an export.
pub(crate) fn meant_by_file(path: &Path) -> Option<PathBuf> {
    let is_table = table_name(path).is_some() && files::is_file(path);
    export_in(path.parent().filter(|_| is_table)?)
}

fn export_in(folder: &Path) -> Option<PathBuf> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    is_export(&files_of(folder)).then(|| named(folder))
}

/// `.` and `..` cannot serve as the name of the profile.
pub(crate) fn named(folder: &Path) -> PathBuf {
    let real = || fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    if folder.file_name().is_some() { folder.to_owned() } else { real() }
}

fn files_of(folder: &Path) -> Vec<PathBuf> {
    let mut files = files::entries(folder).unwrap_or_default();
    files.sort();
    files
}

/// Total size of all tables in a folder, and the time of the last write.
pub(crate) fn size_and_time(files: &[PathBuf]) -> (u64, SystemTime) {
    let tables = files.iter().filter(|file| table_name(file).is_some());
    let data = tables.filter_map(|file| files::data(file).ok()).filter(|data| data.is_file);
    data.fold((0, SystemTime::UNIX_EPOCH), |(bytes, time), data| {
        (bytes + data.bytes, time.max(data.modified.unwrap_or(SystemTime::UNIX_EPOCH)))
    })
}

/// All tables of a folder.
pub(crate) fn open(folder: &Path) -> Result<Vec<TableFile>, ReadError> {
    let files = files_of(folder).into_iter().filter(|file| files::is_file(file));
    let open = |file: PathBuf| -> Option<Result<TableFile, ReadError>> {
        let name = table_name(&file)?.to_owned();
        Some(bytes_of(&file).map(|bytes| TableFile { name, bytes }))
    };
    files.filter_map(open).collect()
}
