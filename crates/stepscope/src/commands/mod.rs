//! The commands, one file each. Views are the commands that show one table: they share their options, their
//! loading and their output, so a new view is one file with a [`View`] in it and one line in [`VIEWS`].

mod compare;
pub(crate) mod demo;
mod devices;
pub(crate) mod export;
mod functions;
mod gate;
mod health;
mod inference;
pub(crate) mod info;
mod input;
mod journal;
mod kernels;
mod memory;
mod ops;
pub(crate) mod report;
mod scopes;
mod side;
mod steps;
mod view;

pub(crate) use compare::CompareArgs;
pub(crate) use export::Exported;
pub(crate) use gate::GateArgs;
pub(crate) use journal::JournalArgs;
pub(crate) use view::{Grouping, View, ViewCommand};

/// Every view, in the order in which the help lists them.
pub(crate) const VIEWS: &[View] = &[
    steps::VIEW,
    ops::VIEW,
    kernels::VIEW,
    scopes::VIEW,
    functions::VIEW,
    input::VIEW,
    memory::VIEW,
    devices::VIEW,
    inference::VIEW,
    health::VIEW,
];

/// Other ways to group a view's rows, chosen with `--by`.
pub(crate) const GROUPINGS: &[Grouping] = &[Grouping { view: "ops", by: "type", table: ops::by_type }];
