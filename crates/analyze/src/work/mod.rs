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

/// The analyses of this room, for the results of a session ([`crate::session`]): a line each.
macro_rules! analyses {
    ($next:ident $($rooms:ident)* => $($listed:tt)*) => {
        crate::$next::analyses! { $($rooms)* => $($listed)*
            {
                /// All ops.
                ops: crate::work::ops::OpsPartial,
                /// Compiled functions.
                functions: crate::work::functions::FunctionsPartial,
            }
            {
                /// Kernels.
                kernels: crate::work::kernels::KernelsPartial,
            }
            {
                /// Compiled programs, joined with what ran.
                programs: crate::work::programs::ProgramsPartial,
                /// Types of the products of attached programs.
                program_types: crate::work::program_types::ProgramTypes,
                /// Hardware counters of kernels.
                counters: crate::work::counters::CountersPartial,
            }
        }
    };
}
pub(crate) use analyses;
