//! Field numbers of XLA's messages, as far as they are read. The rest is skipped: new fields appear every few months.

pub(crate) mod proto {
    pub const MODULE: u32 = 1;
    pub const BUFFER_ASSIGNMENT: u32 = 3;
}

pub(crate) mod module {
    pub const NAME: u32 = 1;
    pub const ENTRY_NAME: u32 = 2;
    pub const COMPUTATIONS: u32 = 3;
    pub const ID: u32 = 5;
    pub const ENTRY_ID: u32 = 6;
    pub const SCHEDULE: u32 = 7;
    pub const ALIASES: u32 = 8;
    pub const DEVICE_ASSIGNMENT: u32 = 15;
    pub const FRAMES: u32 = 17;
    pub const PAYLOADS: u32 = 22;
}

pub(crate) mod computation {
    pub const NAME: u32 = 1;
    pub const INSTRUCTIONS: u32 = 2;
    pub const ID: u32 = 5;
    pub const ROOT_ID: u32 = 6;
    pub const IS_FUSION: u32 = 7;
}

pub(crate) mod instruction {
    pub const NAME: u32 = 1;
    pub const OPCODE: u32 = 2;
    pub const SHAPE: u32 = 3;
    pub const METADATA: u32 = 7;
    pub const LITERAL: u32 = 8;
    pub const PARAMETER_NUMBER: u32 = 9;
    pub const FUSION_KIND: u32 = 11;
    pub const TUPLE_INDEX: u32 = 13;
    pub const DIMENSIONS: u32 = 14;
    pub const WINDOW: u32 = 15;
    pub const CONVOLUTION: u32 = 16;
    pub const SLICE: u32 = 17;
    pub const SLICE_SIZES: u32 = 20;
    pub const PADDING: u32 = 21;
    pub const CHANNEL_ID: u32 = 26;
    pub const TARGET: u32 = 28;
    pub const DOT: u32 = 30;
    pub const FFT_LENGTH: u32 = 32;
    pub const GATHER: u32 = 33;
    pub const GATHER_SIZES: u32 = 34;
    pub const ID: u32 = 35;
    pub const OPERANDS: u32 = 36;
    pub const CALLED: u32 = 38;
    pub const BACKEND_CONFIG: u32 = 43;
    pub const SCATTER: u32 = 48;
    pub const REPLICA_GROUPS: u32 = 49;
    pub const FEATURE_GROUPS: u32 = 50;
    pub const PRECISION: u32 = 51;
    pub const PAIRS: u32 = 52;
    pub const BATCH_GROUPS: u32 = 58;
    pub const DIRECTION: u32 = 63;
    pub const GLOBAL_IDS: u32 = 71;
    pub const DEVICE_LIST: u32 = 87;
    pub const RAGGED_DOT: u32 = 90;
    pub const IOTA_DEVICE_LIST: u32 = 92;
    pub const CONFIG_PAYLOAD: u32 = 99;
}

pub(crate) mod metadata {
    pub const OP_TYPE: u32 = 1;
    pub const OP_NAME: u32 = 2;
    pub const SOURCE_FILE: u32 = 3;
    pub const SOURCE_LINE: u32 = 4;
    pub const FRAME: u32 = 15;
}

pub(crate) mod shape {
    pub const ELEMENT_TYPE: u32 = 2;
    pub const DIMENSIONS: u32 = 3;
    pub const PARTS: u32 = 4;
    pub const LAYOUT: u32 = 5;
}

pub(crate) mod layout {
    pub const MINOR_TO_MAJOR: u32 = 1;
    pub const TILES: u32 = 6;
    pub const ELEMENT_BITS: u32 = 7;
    pub const MEMORY_SPACE: u32 = 8;
}

pub(crate) mod frames {
    pub const FILES: u32 = 1;
    pub const FUNCTIONS: u32 = 2;
    pub const LOCATIONS: u32 = 3;
    pub const FRAMES: u32 = 4;
}

pub(crate) mod buffers {
    pub const LOGICAL: u32 = 1;
    pub const ALLOCATIONS: u32 = 3;
    pub const TRACES: u32 = 4;
}
