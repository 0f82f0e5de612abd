//! The tables, by where their rows come from.

pub(crate) mod logged;
pub(crate) mod nsys;
pub(crate) mod perfetto;
pub(crate) mod recorded;
pub(crate) mod results;
pub(crate) mod steps;
