//! Programs that XLA compiled, as profiles carry them: what they compute, what it costs, what they keep in memory, and which
//! line of the user's source each instruction comes from.
//!
//! ```text
//! read      bytes of an `HloProto` → a module of computations and instructions
//! cost      operations and bytes per instruction, by XLA's own rules
//! memory    the compiler's buffers, and who is live at the peak
//! graph     the neighbours of an instruction, laid out
//! text      programs as XLA prints them
//! movement  data that moves without being computed
//! scope     the user's scopes, and the phase of a training step
//! ```
//!
//! The crate knows nothing about recordings: how often and how long an instruction ran is joined elsewhere.

mod accesses;
mod category;
mod collective;
mod config;
mod cost;
mod fields;
mod frames;
mod graph;
mod memory;
mod module;
mod movement;
mod read;
mod schema;
mod scope;
mod shape;
mod text;

pub use accesses::main_memory_bytes;
pub use collective::{Collective, collective_kind};
pub use cost::{Cost, Costs, MatrixType, Users};
pub use frames::{Frames, Source};
pub use graph::{Drawing, Neighbourhood, PlacedEdge, PlacedNode};
pub use memory::{Allocation, AllocationKind, Buffer, Buffers, HeapPoint, LiveBuffer, MemoryUse, Occupied};
pub use module::{
    Alias, Computation, ComputationId, ConvolutionDims, DotDims, Instruction, InstructionId, Module,
    WindowDim,
};
pub use movement::{HOST_SPACE, MAIN_SPACE, Movement, VECTOR_SPACE, space_name};
pub use scope::{Phase, Phases, label, primitive, scope};
pub use shape::{ElementType, Layout, Shape};
pub use text::TextOptions;
