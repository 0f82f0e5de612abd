//! The commands, one file each. Views are the commands that show one table: they share their options, their
//! loading and their output, so a new view is one file with a [`View`] in it and one line in [`VIEWS`].

pub(crate) mod export;
mod health;
pub(crate) mod info;
mod input;
mod view;

pub(crate) use export::Exported;
pub(crate) use view::{View, ViewCommand};

/// Every view, in the order in which the help lists them.
pub(crate) const VIEWS: &[View] = &[input::VIEW, health::VIEW];
