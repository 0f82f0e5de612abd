//! `stepscope export`: the trace for other tools.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use clap::ValueEnum;
use stepscope_export::ExportSource;
use stepscope_session::{Cause, HostProfile, Problem, Profile, Query};

use crate::exit::Exit;

use crate::failure::Failure;
use crate::load;
use crate::output::Terminal;
use crate::write_file::save;

/// Export formats.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Exported {
    /// Chrome JSON, for Perfetto and chrome://tracing.
    Chrome,
    /// Perfetto's own format, with flows, counters and categories.
    Perfetto,
    /// One line per event.
    Csv,
    /// One row per event, for pandas, Polars and DuckDB.
    Parquet,
}

pub(crate) fn run(
    wanted: &Query,
    to: Exported,
    output: Option<&Path>,
    terminal: &Terminal,
) -> Result<Exit, Failure> {
    let profile = load::profile(wanted, terminal)?;
    let sources: Vec<ExportSource<'_>> = profile
        .hosts
        .iter()
        .map(|loaded| ExportSource { host: &loaded.host, trace: &loaded.trace })
        .collect();
    match output {
        None if matches!(to, Exported::Parquet | Exported::Perfetto) && io::stdout().is_terminal() => {
            return Err(Problem::new(
                Cause::Usage,
                "this format is binary and cannot be shown on a terminal",
            )
            .then("no output file was given")
            .then("add -o FILE, or redirect the output")
            .into());
        }
        None => write(to, &sources, &mut terminal.stdout_as(true))?,
        Some(path) => {
            refuse_to_overwrite(path, &profile)?;
            save(path, Cause::Usage, "set -o to a file in an existing folder", |out| {
                write(to, &sources, out)
            })?;
        }
    }
    Ok(load::end(profile, terminal))
}

fn write(to: Exported, sources: &[ExportSource<'_>], out: &mut dyn Write) -> io::Result<()> {
    match to {
        Exported::Chrome => stepscope_export::write_chrome(sources, out)?,
        Exported::Perfetto => stepscope_export::write_perfetto(sources, out)?,
        Exported::Csv => stepscope_export::write_csv(sources, out)?,
        Exported::Parquet => stepscope_export::write_parquet(sources, out)?,
    }
    out.flush()
}

/// A large profile is mapped, not copied. Overwriting it would break the reader and destroy the recording.
pub(super) fn refuse_to_overwrite(path: &Path, profile: &Profile) -> Result<(), Problem> {
    let Ok(target) = path.canonicalize() else { return Ok(()) };
    let is_source =
        |loaded: &HostProfile| Path::new(&loaded.path).canonicalize().is_ok_and(|it| it == target);
    if profile.hosts.iter().any(is_source) {
        return Err(Problem::new(Cause::Usage, format!("{} is the profile itself", path.display()))
            .then("writing to it would destroy it")
            .then("set -o to another file"));
    }
    Ok(())
}
