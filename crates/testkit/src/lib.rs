//! Builders for test inputs, one file per format, each written byte by byte without any reader code; ways to
//! damage files; and real profiles, if available.

pub mod chrome;
pub mod corpus;
pub mod damage;
pub mod hlo;
pub mod host;
pub mod hostile;
pub mod json_results;
pub mod memory;
pub mod ncu;
pub mod nsys;
pub mod perfetto;
pub mod pprof;
pub mod skip;
pub mod snapshot;
pub mod stage;
pub mod tfevents;
pub mod tfprof;
pub mod xspace;
