//! Builders for test inputs, one file a format, each written byte by byte with no reader's code in it; and the
//! ways in which files get damaged.

pub mod chrome;
pub mod damage;
pub mod ncu;
pub mod nsys;
pub mod stage;
pub mod xspace;
