//! Fuzzing: what is done with each input ([`targets`]), where inputs come from ([`seeds`]) and how they get
//! damaged ([`mutate`]). The same bodies run under libFuzzer and, without any tool, on the stable toolchain.

pub mod mutate;
pub mod seeds;
pub mod targets;
