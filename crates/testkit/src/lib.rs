//! Builders for test inputs, one file a format, each written byte by byte with no reader's code in it; the
//! ways in which files get damaged; and real profiles, where they are at hand.

pub mod chrome;
pub mod corpus;
pub mod damage;
pub mod ncu;
pub mod nsys;
pub mod skip;
pub mod stage;
pub mod tfprof;
pub mod xspace;
