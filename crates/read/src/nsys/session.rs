//! The session: who recorded it, with which options, when, and the profiler's messages.
//!
//! An export also contains the environment of the profiled process, including keys and tokens. Therefore only
//! items listed by name are read.

use std::collections::BTreeSet;

use stepscope_trace::{NoteKind, Property};

use super::Import;
use super::database::{Database, Outcome, Which};

/// Facts about the machine worth keeping, as named in the export.
const MACHINE_FACTS: [&str; 5] =
    ["Hostname", "NvDriverVersion", "CudaDriverVersion", "OsDescription", "CpuDescription"];

/// The newest schema that this reader was tested with.
const NEWEST: (u32, u32) = (3, 25);

/// Reads everything about the session.
pub(super) fn read(import: &mut Import) {
    read_export(import);
    read_machine(import);
    read_options(import);
    read_clock(import);
    read_complaints(import);
}

/// Properties that are kept; they are compared one by one.
const MOST_PROPERTIES: usize = 500;

fn push(list: &mut Vec<Property>, property: Property) {
    if list.len() < MOST_PROPERTIES && !list.contains(&property) {
        list.push(property);
    }
}

/// The version that exported it. The table had another name before 2023.3.
fn read_export(import: &mut Import) {
    for table in ["META_DATA_EXPORT", "EXPORT_META_DATA"] {
        let which = Which::OneOf("name", &["EXPORT_PRODUCT_VERSION", "EXPORT_SCHEMA_VERSION"]);
        let outcome = import.database.rows_where(table, &["name", "value"], which, |row| {
            let (Some(name), Some(value)) = (row.text(0), row.text(1)) else { return };
            if name == "EXPORT_SCHEMA_VERSION" && is_newer(&value) {
                let detail =
                    format!("export schema {value}, newer than the tested {}.{}", NEWEST.0, NEWEST.1);
                import.builder.note(NoteKind::Unknown, &detail, 1, None);
            }
            let property = import.builder.text_property(&name, &value);
            push(&mut import.builder.environment.versions, property);
        });
        import.settle(table, outcome);
    }
}

fn is_newer(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.trim().parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) > NEWEST
}

const MACHINE: &str = "TARGET_INFO_SYSTEM_ENV";

fn read_machine(import: &mut Import) {
    let which = Which::OneOf("name", &MACHINE_FACTS);
    let outcome = import.database.rows_where(MACHINE, &["name", "value"], which, |row| {
        let (Some(name), Some(value)) = (row.text(0), row.text(1)) else { return };
        if value.is_empty() {
        } else if name == "Hostname" {
            let host = import.builder.strings.intern(&value);
            import.builder.environment.host.get_or_insert(host);
        } else {
            let property = import.builder.text_property(&name, &value);
            push(&mut import.builder.environment.versions, property);
        }
    });
    import.settle(MACHINE, outcome);
}

const OPTIONS: &str = "META_DATA_CAPTURE";

/// Options worth keeping, by prefix.
const KNOWN_OPTIONS: [&str; 10] = [
    "CAPTURE_EVENT_TYPE",
    "COMMAND",
    "RATE_HZ",
    "RUN_DURATION_MS",
    "START_TRIGGER",
    "STOP_TRIGGER",
    "COLLECT_",
    "CUDA_",
    "OS_RUNTIME_OPTIONS:",
    "LINUX_PERF_OPTIONS:",
];

fn read_options(import: &mut Import) {
    let which = Which::Without("name", &["ENVIRONMENT", "ARGUMENT"]);
    let outcome = import.database.rows_where(OPTIONS, &["name", "value"], which, |row| {
        let (Some(name), Some(value)) = (row.text(0), row.text(1)) else { return };
        let bare = without_process(&name);
        let known = KNOWN_OPTIONS.iter().any(|start| bare.starts_with(start));
        // Options that were not set say nothing.
        if known && !matches!(&*value, "" | "false" | "0") {
            let property = import.builder.text_property(bare, &value);
            push(&mut import.builder.environment.capture, property);
        }
    });
    import.settle(OPTIONS, outcome);
}

/// Options of a launched process include its number: `PROCESS_0:COMMAND`.
fn without_process(name: &str) -> &str {
    match name.strip_prefix("PROCESS_").and_then(|rest| rest.split_once(':')) {
        Some((number, option)) if number.bytes().all(|byte| byte.is_ascii_digit()) => option,
        _ => name,
    }
}

const START: &str = "TARGET_INFO_SESSION_START_TIME";

/// The wall-clock start of the session and its length, both in nanoseconds.
pub(super) fn clock(database: &Database) -> (Option<i64>, Option<i64>, Outcome) {
    let mut length = None;
    database.rows("ANALYSIS_DETAILS", &["startTime", "stopTime"], |row| {
        length = length.or(row.int(0).zip(row.int(1)).map(|(start, stop)| stop.saturating_sub(start)));
    });
    let mut origin = None;
    let outcome =
        database.rows(START, &["utcEpochNs"], |row| origin = origin.or(row.int(0).filter(|&utc| utc > 0)));
    (origin, length, outcome)
}

/// The wall-clock start of the session, so that several ranks can be aligned. Events count from the start of the capture,
/// although its own start and stop may count from boot.
fn read_clock(import: &mut Import) {
    let (origin, length, outcome) = clock(import.database);
    import.settle(START, outcome);
    import.builder.clock.wall_ns_at_origin = origin;
    import.builder.environment.captured_ns =
        origin.zip(length).map(|(origin, length)| (origin, origin.saturating_add(length)));
}

const COMPLAINTS: &str = "DIAGNOSTIC_EVENT";
/// `severity`.
const WARNING: i64 = 2;
const ERROR: i64 = 3;
/// Number of messages that are listed; notes are compared one by one.
const LISTED: usize = 200;

fn read_complaints(import: &mut Import) {
    let (mut complaints, mut further, mut collected) = (Vec::new(), 0, BTreeSet::new());
    let outcome = import.database.rows(COMPLAINTS, &["severity", "text"], |row| {
        let text = row.text(1).unwrap_or_default();
        let kind = match row.int(0) {
            Some(WARNING) => NoteKind::CollectionWarning,
            Some(ERROR) => NoteKind::CollectionError,
            _ => {
                collected.extend(collected_of(&text).map(str::to_owned));
                return;
            }
        };
        if complaints.len() < LISTED {
            complaints.push((kind, text.trim().to_owned()));
        } else {
            further += 1;
        }
    });
    import.settle(COMPLAINTS, outcome);
    complaints.retain(|(_, text)| !is_about_pictures(text) && !is_of_another(text, &collected));
    complaints.iter().for_each(|(kind, text)| import.builder.note(*kind, text, 1, None));
    import.builder.note(NoteKind::CollectionWarning, "further messages", further, None);
}

/// What a process delivered: `CUDA` in `Number of CUDA events collected: 39250.`
fn collected_of(text: &str) -> Option<&str> {
    text.trim().strip_prefix("Number of ")?.split_once(" events collected").map(|(library, _)| library)
}

/// Whether the message says that one process did not deliver what another one did. Launchers and helpers need
/// not call CUDA.
fn is_of_another(complaint: &str, collected: &BTreeSet<String>) -> bool {
    let none = complaint.strip_prefix("No ").and_then(|rest| rest.split_once(" events collected"));
    let late = complaint.split_once(" profiling might have not been started");
    none.or(late).is_some_and(|(library, _)| collected.contains(library))
}

/// Profilers watch graphics libraries by default, and complain that nothing was drawn.
fn is_about_pictures(complaint: &str) -> bool {
    let none = complaint.trim().strip_prefix("No ").and_then(|rest| rest.split_once(" events collected"));
    none.is_some_and(|(library, _)| ["OpenGL", "Vulkan", "DX11", "DX12"].contains(&library))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(!is_newer("3.4.0") && !is_newer("3.25.9") && !is_newer("") && !is_newer("3"));
        assert!(is_newer("3.26.0") && is_newer("3.100") && is_newer("4.0.0"));
    }

    #[test]
    fn complaints_about_pictures_are_not_ours() {
        assert!(is_about_pictures("No OpenGL events collected. Does the process use OpenGL?"));
        assert!(!is_about_pictures("No CUDA events collected. Does the process use CUDA?"));
    }

    #[test]
    fn what_one_process_lacks_and_another_gave_is_not_missing() {
        let collected: BTreeSet<String> = collected_of("Number of CUDA events collected: \t39250.")
            .map(str::to_owned)
            .into_iter()
            .collect();
        assert!(is_of_another("No CUDA events collected. Does the process use CUDA?", &collected));
        assert!(is_of_another("CUDA profiling might have not been started correctly.", &collected));
        assert!(!is_of_another("No NVTX events collected. Does the process use NVTX?", &collected));
        assert!(!is_of_another("CUDA device 0: Unified Memory cannot be traced.", &collected));
    }

    #[test]
    fn options_of_a_process_lose_its_number() {
        assert_eq!(without_process("PROCESS_12:COLLECT_CUDA_TRACE"), "COLLECT_CUDA_TRACE");
        assert_eq!(without_process("CUDA_GRAPH_TRACE_OPTIONS:MODE"), "CUDA_GRAPH_TRACE_OPTIONS:MODE");
    }
}
