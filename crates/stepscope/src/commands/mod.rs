//! The commands, one file each. A view is a command that shows one table: `stepscope_session::views` lists the
//! views, and [`view`] holds the options, loading and output that they share.

mod bench;
mod capture;
mod compare;
pub(crate) mod demo;
pub(crate) mod export;
mod gate;
pub(crate) mod info;
mod journal;
mod monitor;
pub(crate) mod report;
mod run;
mod scalars;
mod serve;
mod tfprof;
mod view;

pub(crate) use bench::BenchArgs;
pub(crate) use capture::CaptureArgs;
pub(crate) use compare::CompareArgs;
pub(crate) use export::Exported;
pub(crate) use gate::GateArgs;
pub(crate) use journal::JournalArgs;
pub(crate) use monitor::MonitorArgs;
pub(crate) use run::RunArgs;
pub(crate) use scalars::ScalarsArgs;
pub(crate) use serve::{PlaceArgs, ServeArgs};
pub(crate) use tfprof::{TfprofArgs, with_two_dashes};
pub(crate) use view::ViewCommand;
