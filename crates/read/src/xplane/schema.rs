//! Field numbers of `xplane.proto`, one module per message, and the one-byte tags of the hot path.

pub(super) mod space {
    pub(crate) const PLANES: u32 = 1;
    pub(crate) const ERRORS: u32 = 2;
    pub(crate) const WARNINGS: u32 = 3;
    pub(crate) const HOSTNAMES: u32 = 4;
}

pub(super) mod plane {
    pub const ID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const LINES: u32 = 3;
    pub(crate) const EVENT_METADATA: u32 = 4;
    pub(crate) const STAT_METADATA: u32 = 5;
    pub const STATS: u32 = 6;
}

pub(super) mod line {
    pub const ID: u32 = 1;
    pub const NAME: u32 = 2;
    pub(crate) const TIMESTAMP_NS: u32 = 3;
    pub const EVENTS: u32 = 4;
    pub(crate) const DURATION_PS: u32 = 9;
    pub(crate) const DISPLAY_ID: u32 = 10;
    pub(crate) const DISPLAY_NAME: u32 = 11;
    /// The tag of `EVENTS` with its wire type.
    pub(crate) const EVENTS_TAG: u8 = 0x22;
}

pub(super) mod event {
    pub(crate) const METADATA_ID: u32 = 1;
    pub(crate) const OFFSET_PS: u32 = 2;
    pub(crate) const DURATION_PS: u32 = 3;
    pub const STATS: u32 = 4;
    pub(crate) const NUM_OCCURRENCES: u32 = 5;
}

/// The same fields as one-byte tags with their wire types, for decoding events.
pub(super) mod event_tag {
    pub(crate) const METADATA_ID: u8 = 0x08;
    pub(crate) const OFFSET_PS: u8 = 0x10;
    pub(crate) const DURATION_PS: u8 = 0x18;
    pub const STATS: u8 = 0x22;
    pub(crate) const NUM_OCCURRENCES: u8 = 0x28;
}

pub(super) mod event_metadata {
    pub const NAME: u32 = 2;
    pub const METADATA: u32 = 3;
    pub(crate) const DISPLAY_NAME: u32 = 4;
    pub const STATS: u32 = 5;
}

pub(super) mod stat_metadata {
    pub const NAME: u32 = 2;
}

pub(super) mod stat {
    pub(crate) const METADATA_ID: u32 = 1;
    pub const DOUBLE: u32 = 2;
    pub(crate) const UINT64: u32 = 3;
    pub const INT64: u32 = 4;
    pub(crate) const STR: u32 = 5;
    pub const BYTES: u32 = 6;
    pub(crate) const REF: u32 = 7;
}

/// Entries of protobuf maps.
pub(super) mod entry {
    pub const KEY: u32 = 1;
    pub const VALUE: u32 = 2;
}

/// `ProfileOptions`: the fields worth reporting, with their names.
pub(super) const PROFILE_OPTIONS: &[(u32, &str)] = &[
    (1, "include_dataset_ops"),
    (2, "host_tracer_level"),
    (3, "device_tracer_level"),
    (4, "python_tracer_level"),
    (5, "version"),
    (6, "device_type"),
    (7, "enable_hlo_proto"),
    (8, "start_timestamp_ns"),
    (9, "duration_ms"),
];
