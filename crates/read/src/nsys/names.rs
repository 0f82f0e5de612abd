//! Names: the export's string table, and labels for enumerations that old exports lack.

use rustc_hash::FxHashMap;
use stepscope_trace::{NoteKind, StrId, TraceBuilder};

use super::database::{Database, Outcome};

/// The strings that rows refer to by number.
#[derive(Default)]
pub(super) struct Names {
    known: FxHashMap<i64, StrId>,
    /// Number of dangling references.
    dangling: u64,
}

impl Names {
    /// Reads all strings.
    pub fn read(database: &Database, builder: &mut TraceBuilder) -> (Self, Outcome) {
        let mut known = FxHashMap::default();
        let outcome = database.rows("StringIds", &["id", "value"], |row| {
            if let (Some(id), Some(text)) = (row.int(0), row.text(1)) {
                known.insert(id, builder.strings.intern(&text));
            }
        });
        (Names { known, dangling: 0 }, outcome)
    }

    /// The string with this number, or a placeholder with the missing number.
    pub fn get(&mut self, id: Option<i64>, builder: &mut TraceBuilder) -> StrId {
        let Some(id) = id else { return StrId::default() };
        if let Some(&name) = self.known.get(&id) {
            return name;
        }
        self.dangling += 1;
        let stand_in = builder.strings.intern(&format!("[string {id}]"));
        self.known.insert(id, stand_in);
        stand_in
    }

    /// Notes how many strings were missing.
    pub fn note(&self, builder: &mut TraceBuilder) {
        builder.note(NoteKind::DanglingReference, "StringIds", self.dangling, None);
    }
}

/// The name of a copy, as in Kineto, so that one vocabulary works for both.
pub(super) fn copy_name(kind: Option<i64>, from: Option<i64>, to: Option<i64>) -> String {
    let direction = match kind.unwrap_or(0) {
        1 | 11 => "HtoD",
        2 | 12 => "DtoH",
        3 => "HtoA",
        4 => "AtoH",
        5 => "AtoA",
        6 => "AtoD",
        7 => "DtoA",
        8 | 13 => "DtoD",
        9 => "HtoH",
        10 => "PtoP",
        _ => "Unknown",
    };
    if matches!(kind, Some(11..=13)) {
        return format!("Memcpy {direction} (Unified)");
    }
    match (from.and_then(memory_kind), to.and_then(memory_kind)) {
        (Some(from), Some(to)) => format!("Memcpy {direction} ({from} -> {to})"),
        _ => format!("Memcpy {direction}"),
    }
}

/// The kind of memory that a copy or fill uses.
pub(super) fn memory_kind(kind: i64) -> Option<&'static str> {
    Some(match kind {
        0 => "Pageable",
        1 => "Pinned",
        2 => "Device",
        3 => "Array",
        4 => "Managed",
        5 => "Device Static",
        6 => "Managed Static",
        _ => return None,
    })
}

/// What a wait waits for. Versions number the kinds differently, so the named objects decide: a stream, an
/// event, both (a stream that waits for an event) or neither; the number only counts if the export has no
/// events.
pub(super) fn sync_name(kind: Option<i64>, stream: bool, event: Option<bool>) -> &'static str {
    match (event, stream, kind.unwrap_or(0)) {
        (Some(true), true, _) | (None, _, 2) => "Stream Wait Event",
        (Some(true), false, _) | (None, _, 1) => "Event Sync",
        (Some(false), true, _) | (None, _, 3) => "Stream Sync",
        (Some(false), false, _) | (None, _, 4) => "Context Sync",
        (None, ..) => "Sync",
    }
}

/// A call's name without the version of its interface: `cudaLaunchKernel_v7000`. `cuCtxCreate_v2` stays,
/// because that is the function's name.
pub(super) fn without_version(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((call, version)) if version.len() >= 4 && version.bytes().all(|b| b.is_ascii_digit()) => call,
        _ => name,
    }
}

/// Kineto's category of a call.
pub(super) fn call_category(name: &str) -> &'static str {
    let driver =
        name.strip_prefix("cu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
    if driver { "cuda_driver" } else { "cuda_runtime" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_what_it_names_whatever_its_number() {
        assert_eq!(sync_name(Some(2), true, Some(false)), "Stream Sync");
        assert_eq!(sync_name(Some(0), true, Some(true)), "Stream Wait Event");
        assert_eq!(sync_name(Some(0), false, Some(true)), "Event Sync");
        assert_eq!(sync_name(None, false, Some(false)), "Context Sync");
        assert_eq!(sync_name(Some(3), true, None), "Stream Sync");
        assert_eq!(sync_name(Some(9), true, None), "Sync");
    }

    #[test]
    fn copies_are_called_what_kineto_calls_them() {
        assert_eq!(copy_name(Some(1), Some(1), Some(2)), "Memcpy HtoD (Pinned -> Device)");
        assert_eq!(copy_name(Some(2), Some(2), Some(0)), "Memcpy DtoH (Device -> Pageable)");
        assert_eq!(copy_name(Some(8), None, None), "Memcpy DtoD");
        assert_eq!(copy_name(Some(11), Some(4), Some(4)), "Memcpy HtoD (Unified)");
        assert_eq!(copy_name(None, Some(99), None), "Memcpy Unknown");
    }

    #[test]
    fn versions_of_interfaces_are_cut_off_and_names_are_not() {
        assert_eq!(without_version("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
        assert_eq!(without_version("cudaLaunchKernelExC_v11060"), "cudaLaunchKernelExC");
        assert_eq!(without_version("cuCtxCreate_v2"), "cuCtxCreate_v2");
        assert_eq!(without_version("_v"), "_v");
        assert_eq!(call_category("cuLaunchKernel"), "cuda_driver");
        assert_eq!(call_category("cudaLaunchKernel"), "cuda_runtime");
    }
}
