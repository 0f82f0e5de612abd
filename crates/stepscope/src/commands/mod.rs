//! The commands, one file each. Views are the commands that show one table: `stepscope_results::views` lists them, and
//! they share their options, their loading and their output in [`view`]. Commands that start and watch programs need
//! Unix.

#[cfg(unix)]
mod attach;
#[cfg(unix)]
mod bench;
mod capture;
mod compare;
pub(crate) mod demo;
mod explain;
pub(crate) mod export;
mod fleet;
mod gate;
mod hlo;
pub(crate) mod info;
mod journal;
mod mcp;
mod memory;
#[cfg(unix)]
mod monitor;
mod packaging;
pub(crate) mod report;
#[cfg(unix)]
mod run;
mod scalars;
mod serve;
mod sql;
mod tfprof;
mod view;
mod whatif;

#[cfg(unix)]
pub(crate) use attach::AttachArgs;
#[cfg(unix)]
pub(crate) use bench::BenchArgs;
pub(crate) use capture::CaptureArgs;
pub(crate) use compare::CompareArgs;
pub(crate) use explain::ExplainArgs;
pub(crate) use export::Exported;
pub(crate) use fleet::FleetArgs;
pub(crate) use gate::GateArgs;
pub(crate) use hlo::{HloArgs, PeakArgs};
pub(crate) use journal::JournalArgs;
pub(crate) use mcp::McpArgs;
#[cfg(unix)]
pub(crate) use monitor::MonitorArgs;
pub(crate) use packaging::{CompletionsArgs, ManArgs};
#[cfg(unix)]
pub(crate) use run::RunArgs;
pub(crate) use scalars::ScalarsArgs;
pub(crate) use serve::{PlaceArgs, ServeArgs};
pub(crate) use sql::SqlArgs;
pub(crate) use tfprof::{TfprofArgs, with_two_dashes};
pub(crate) use view::ViewCommand;
