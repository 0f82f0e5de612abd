//! The keys and words of a snapshot, numbered, so that a dictionary is understood by comparing integers.

/// Declares strings as consecutive numbers.
macro_rules! known {
    ($($name:ident = $text:literal;)+) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "numbers of the constants below")]
        #[repr(u32)]
        enum Place { $($name),+ }
        $(pub(super) const $name: u32 = Place::$name as u32;)+
        /// All of them: the place is the number.
        pub(super) const KNOWN: &[&str] = &[$($text),+];
    };
}

known! {
    ACTION = "action";
    ADDR = "addr";
    DEVICE_FREE = "device_free";
    SIZE = "size";
    TIME_US = "time_us";
    FRAMES = "frames";
    CATEGORY = "category";
    FILENAME = "filename";
    LINE = "line";
    NAME = "name";
    ADDRESS = "address";
    REQUESTED_SIZE = "requested_size";
    STATE = "state";
    BLOCKS = "blocks";
    TOTAL_SIZE = "total_size";
    SEGMENT_POOL_ID = "segment_pool_id";
    DEVICE = "device";
    IS_EXPANDABLE = "is_expandable";
    HISTORY = "history";
    REAL_SIZE = "real_size";
    STAGE = "stage";
    SEGMENTS = "segments";
    DEVICE_TRACES = "device_traces";
    ALLOCATOR_SETTINGS = "allocator_settings";
    EXTERNAL_ANNOTATIONS = "external_annotations";
    EXPANDABLE_SEGMENTS = "expandable_segments";
    PYTORCH_CUDA_ALLOC_CONF = "PYTORCH_CUDA_ALLOC_CONF";
    START = "START";
    ALLOC = "alloc";
    FREE_REQUESTED = "free_requested";
    FREE_COMPLETED = "free_completed";
    FREE = "free";
    SEGMENT_ALLOC = "segment_alloc";
    SEGMENT_FREE = "segment_free";
    SEGMENT_MAP = "segment_map";
    SEGMENT_UNMAP = "segment_unmap";
    OOM = "oom";
    ACTIVE_ALLOCATED = "active_allocated";
    ACTIVE_PENDING_FREE = "active_pending_free";
    ACTIVE_AWAITING_FREE = "active_awaiting_free";
    PARAMETER = "parameter";
    OPTIMIZER_STATE = "optimizer_state";
    INPUT = "input";
    TEMPORARY = "temporary";
    ACTIVATION = "activation";
    GRADIENT = "gradient";
    AUTOGRAD_DETAIL = "autograd_detail";
}
