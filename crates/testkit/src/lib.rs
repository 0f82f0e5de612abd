//! Builders for test inputs, one file a format, each written byte by byte with no reader's code in it; the ways in
//! which files get damaged; and where real profiles lie.

pub mod chrome;
mod corpus;
pub mod damage;
pub mod ncu;
pub mod nsys;
pub mod xspace;

pub use corpus::corpus;
