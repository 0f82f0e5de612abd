//! Fuzzing: what is done with each input ([`targets`]), where inputs come from ([`seeds`]) and how they are
//! damaged ([`mutate`]). The same code runs under libFuzzer and, without any tool, on the stable toolchain.

pub mod mutate;
mod pipeline;
mod queries;
pub mod seeds;
pub mod targets;
