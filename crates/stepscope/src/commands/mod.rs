//! The commands, one file each. Views are the commands that show one table: they share their options, their
//! loading and their output, so a new view is one file with a [`View`] in it and one line in [`VIEWS`].

pub(crate) mod export;
mod health;
pub(crate) mod info;
mod input;
mod memory;
mod ops;
mod steps;
mod view;

pub(crate) use export::Exported;
pub(crate) use view::{Grouping, View, ViewCommand};

/// Every view, in the order in which the help lists them.
pub(crate) const VIEWS: &[View] = &[steps::VIEW, ops::VIEW, input::VIEW, memory::VIEW, health::VIEW];

/// Other ways to group a view's rows, chosen with `--by`.
pub(crate) const GROUPINGS: &[Grouping] = &[Grouping { view: "ops", by: "type", table: ops::by_type }];
