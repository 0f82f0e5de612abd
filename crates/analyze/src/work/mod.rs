//! The work that steps consist of: ops, kernels, compiled functions, scopes and layers, and what the hardware could do at
//! best. Knows nothing about why a device waits.

pub mod counters;
pub mod flops;
pub mod functions;
pub mod gpu_specs;
pub mod kernels;
pub mod layers;
pub mod ops;
pub mod program_types;
pub mod programs;
pub mod scopes;
