//! The commands, one file each. Views are the commands that show one table: `stepscope_session::views` lists them, and
//! they share their options, their loading and their output in [`view`].

mod compare;
pub(crate) mod demo;
pub(crate) mod export;
mod gate;
pub(crate) mod info;
mod journal;
pub(crate) mod report;
mod view;

pub(crate) use compare::CompareArgs;
pub(crate) use export::Exported;
pub(crate) use gate::GateArgs;
pub(crate) use journal::JournalArgs;
pub(crate) use view::ViewCommand;
