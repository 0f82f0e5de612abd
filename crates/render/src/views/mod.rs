//! The views, one file each: a function from an analysis' result to a [`crate::Table`]. The frame in
//! [`crate::table`] does the rest.

pub mod input;
