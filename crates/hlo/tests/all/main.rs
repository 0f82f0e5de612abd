//! Reads programs: written by hand, damaged, and real. One binary, which links once.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what helps a test may fail it")]

mod damage;
mod oracle;
mod profiles;
mod small;
mod truth;
