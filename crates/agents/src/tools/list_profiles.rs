//! The tool `list_profiles`: what there is to ask about.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::json;
use stepscope_read::files;
use stepscope_render::format::utc;
use stepscope_results::{Cell, Column, Format, Table};
use stepscope_session::{ResolvedSession, all_sessions_within};

use super::{Tool, cursor_schema};
use crate::answer::{Answer, page_of_table};
use crate::arguments::Arguments;
use crate::failed::Failed;
use crate::server::Desk;

/// Rows of a page.
const TOP: usize = 25;

pub(super) const TOOL: Tool = Tool {
    name: "list_profiles",
    title: "List profiles",
    about: "The profiles below the folders of this server, newest first: path, format, hosts, size, time.",
    arguments: || {
        json!({
            "under": {"type": "string", "description": "Only below this folder"},
            "cursor": cursor_schema(),
        })
    },
    required: &[],
    run,
};

fn run(desk: &Desk<'_>, arguments: Arguments<'_>) -> Result<Answer, Failed> {
    let start = arguments.cursor()?;
    let folders = match arguments.text("under")? {
        Some(under) => vec![desk.roots.resolve(under)?],
        None => desk.roots.all().to_vec(),
    };
    let mut sessions = Vec::new();
    for folder in folders {
        // Several paths would be taken for one recording, so each is searched on its own.
        sessions.extend(all_sessions_within(&[folder], desk.roots.all())?);
        desk.stop.check()?;
    }
    let columns = vec![
        Column::new("path", "path", Format::Text),
        Column::new("session", "session", Format::Text).optional(),
        Column::new("format", "format", Format::Text),
        Column::new("hosts", "hosts", Format::Count),
        Column::new("bytes", "size", Format::Bytes),
        Column::new("modified", "modified", Format::Text),
    ];
    let mut table = Table::new("profiles", columns);
    let places: Vec<PathBuf> = sessions.iter().map(place).collect();
    for (session, place) in sessions.iter().zip(&places) {
        table.push(row(desk, session, place, &places));
    }
    if sessions.is_empty() {
        table.headline = Some("There are no profiles here.".to_owned());
    }
    let rows: Vec<usize> = (0..sessions.len()).collect();
    page_of_table(&[], &table, &rows, start, TOP)
}

/// The path that leads to a session: its only file, or the folder of all its files.
fn place(session: &ResolvedSession) -> PathBuf {
    let mut files = session.files.iter().map(|file| file.path.as_path());
    let Some(first) = files.next() else { return PathBuf::new() };
    let mut folder = first;
    for file in files {
        while !file.starts_with(folder) {
            folder = folder.parent().unwrap_or(Path::new(""));
        }
    }
    folder.to_owned()
}

fn row(desk: &Desk<'_>, session: &ResolvedSession, place: &Path, all: &[PathBuf]) -> [Cell; 6] {
    let shared = all.iter().filter(|other| other.starts_with(place)).count() > 1;
    let mut formats: Vec<&str> = session.files.iter().map(|file| file.format.name).collect();
    formats.dedup();
    let bytes: u64 = session.files.iter().map(|file| file.bytes).sum();
    let modified = session.files.iter().filter_map(|file| files::data(&file.path).ok()?.modified).max();
    let since = modified.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    [
        desk.roots.shown(place).into(),
        shared.then(|| session.session.clone()).into(),
        formats.join(", ").into(),
        session.files.len().into(),
        bytes.into(),
        since.and_then(|since| i64::try_from(since.as_nanos()).ok()).map(utc).into(),
    ]
}
