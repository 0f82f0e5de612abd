//! Nsight Systems: real exports. The trace must yield the sums printed by NVIDIA's own `nsys stats`, to the
//! last digit.
//!
//! Runs if the corpus is available.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use stepscope_read::{Progress, open};
use stepscope_testkit::corpus::corpus;
use stepscope_trace::{Dur, NoteKind, ProcessKind, Trace, Track, TrackKind};

fn exports(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|ending| ending == "sqlite"));
    found.sort();
    found
}

fn read(path: &Path) -> Trace {
    let opened = open(path, &Progress::new()).unwrap();
    assert_eq!(opened.format.name, "nsys");
    opened.trace
}

/// A CSV table: rows of fields, quotes taken off.
fn csv(text: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let (mut row, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut field)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            '\r' if !quoted => {}
            other => field.push(other),
        }
    }
    rows
}

/// What was measured under one name.
type Groups = BTreeMap<String, Vec<i64>>;

/// Total, count, mean, median, least, most and standard deviation as NVIDIA prints them.
fn printed(values: &[i64], scale: f64, digits: usize) -> Vec<String> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let count = sorted.len();
    let total: i64 = sorted.iter().sum();
    let mean = total as f64 / count as f64;
    let median = (sorted[(count - 1) / 2] + sorted[count / 2]) as f64 / 2.0;
    let squares: f64 = sorted.iter().map(|&value| (value as f64 - mean).powi(2)).sum();
    let deviation = if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 };
    let text = |value: f64| format!("{:.digits$}", value / scale);
    let whole = |value: i64| if scale == 1.0 { value.to_string() } else { text(value as f64) };
    vec![
        whole(total),
        count.to_string(),
        text(mean),
        text(median),
        whole(sorted[0]),
        whole(sorted[count - 1]),
        text(deviation),
    ]
}

/// Compares the sums with one of NVIDIA's tables. `first` is the column of the total.
fn compare(oracle: &Path, groups: &Groups, first: usize, scale: f64, digits: usize) -> usize {
    let Ok(text) = fs::read_to_string(oracle) else { return 0 };
    let rows = csv(&text);
    let Some(header) = rows.first() else { return 0 };
    let name = header.len() - 1;
    for row in &rows[1..] {
        let values = groups.get(&row[name]);
        let values = values.unwrap_or_else(|| panic!("{}: `{}` is missing", oracle.display(), row[name]));
        let ours = printed(values, scale, digits);
        let theirs = &row[first..first + 7];
        for (index, (our, their)) in ours.iter().zip(theirs).enumerate() {
            // A half may be rounded either way in the last digit of a mean or a deviation.
            let near = |a: &str, b: &str| {
                let (a, b): (f64, f64) = (a.parse().unwrap(), b.parse().unwrap());
                (a - b).abs() <= 1.01 * 10f64.powi(-(digits as i32))
            };
            let exact = index < 2 || index == 4 || index == 5;
            assert!(
                our == their || (!exact && near(our, their)),
                "{}: `{}`: {ours:?} is not {theirs:?}",
                oracle.display(),
                row[name]
            );
        }
    }
    assert_eq!(rows.len() - 1, groups.len(), "{}", oracle.display());
    rows.len() - 1
}

fn each_event(trace: &Trace, kind: TrackKind, mut visit: impl FnMut(&Track, usize, &str)) {
    for track in trace.tracks().iter().filter(|track| track.kind == kind) {
        for index in 0..track.len() {
            let category = trace.str(trace.kind(track.kind_of(index)).category);
            visit(track, index, category);
        }
    }
}

fn nanoseconds(dur: Dur) -> i64 {
    assert_eq!(dur.ps() % 1_000, 0);
    dur.ps() / 1_000
}

fn durations(trace: &Trace, kind: TrackKind, categories: &[&str]) -> Groups {
    let mut groups = Groups::new();
    each_event(trace, kind, |track, index, category| {
        if categories.contains(&category) {
            let name = trace.kind_name(track.kind_of(index)).to_owned();
            groups.entry(name).or_default().push(nanoseconds(track.dur(index)));
        }
    });
    groups
}

/// NVIDIA's name for a copy or a fill.
fn operation(name: &str) -> String {
    let words = [("HtoD", "Host-to-Device"), ("DtoH", "Device-to-Host"), ("DtoD", "Device-to-Device")];
    match words.iter().find(|(short, _)| name.starts_with(&format!("Memcpy {short}"))) {
        Some((_, long)) => format!("[CUDA memcpy {long}]"),
        None if name.starts_with("Memset") => "[CUDA memset]".to_owned(),
        None => name.to_owned(),
    }
}

fn memory(trace: &Trace) -> (Groups, Groups) {
    let (mut times, mut sizes) = (Groups::new(), Groups::new());
    each_event(trace, TrackKind::Stream, |track, index, category| {
        if ["gpu_memcpy", "gpu_memset"].contains(&category) {
            let name = operation(trace.kind_name(track.kind_of(index)));
            let bytes = trace.args_at(track, index).named("bytes").unwrap().as_i64().unwrap();
            times.entry(name.clone()).or_default().push(nanoseconds(track.dur(index)));
            sizes.entry(name).or_default().push(bytes);
        }
    });
    (times, sizes)
}

/// Ranges under the names that NVIDIA gives them: the domain, a colon, the text.
fn ranges(trace: &Trace) -> Groups {
    let mut groups = Groups::new();
    for kind in [TrackKind::Thread, TrackKind::Async] {
        each_event(trace, kind, |track, index, category| {
            if !["user_annotation", "cpu_op"].contains(&category) {
                return;
            }
            let args = trace.args_at(track, index);
            let domain = match args.named("domain") {
                Some(domain) => domain.as_str().unwrap_or_default().to_owned(),
                None => String::new(),
            };
            let mut name = format!("{domain}:{}", trace.kind_name(track.kind_of(index)));
            for key in ["seq", "op_id", "sizes", "input_op_ids", "stashed"] {
                if let Some(value) = args.named(key) {
                    let text = value.as_i64().map(|number| number.to_string());
                    let text = text.or(value.as_str().map(str::to_owned)).unwrap();
                    name += &format!(", {key} = {text}");
                }
            }
            groups.entry(name).or_default().push(nanoseconds(track.dur(index)));
        });
    }
    groups
}

#[test]
fn sums_equal_nvidias_own() {
    let Some(folder) = corpus("nsys") else { return };
    let mut compared = [0; 5];
    for path in exports(&folder) {
        let trace = read(&path);
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let oracle = |report: &str| folder.join("oracle").join(format!("{stem}_{report}.csv"));
        let (times, sizes) = memory(&trace);
        let kernels = durations(&trace, TrackKind::Stream, &["kernel"]);
        let calls = durations(&trace, TrackKind::Thread, &["cuda_runtime", "cuda_driver"]);
        compared[0] += compare(&oracle("cuda_gpu_kern_sum"), &kernels, 1, 1.0, 1);
        compared[1] += compare(&oracle("cuda_api_sum"), &calls, 1, 1.0, 1);
        compared[2] += compare(&oracle("cuda_gpu_mem_time_sum"), &times, 1, 1.0, 1);
        compared[3] += compare(&oracle("cuda_gpu_mem_size_sum"), &sizes, 0, 1e6, 3);
        compared[4] += compare(&oracle("nvtx_sum"), &ranges(&trace), 1, 1.0, 1);
    }
    eprintln!("names compared (kernels, calls, copies' times and sizes, ranges): {compared:?}");
    assert!(compared.iter().all(|&count| count > 0), "{compared:?}");
}

/// Tables whose rows are events, and which rows of them.
const EVENTS: &[(&str, &str)] = &[
    ("CUPTI_ACTIVITY_KIND_KERNEL", ""),
    ("CUPTI_ACTIVITY_KIND_MEMCPY", ""),
    ("CUPTI_ACTIVITY_KIND_MEMSET", ""),
    ("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", ""),
    ("CUPTI_ACTIVITY_KIND_RUNTIME", ""),
    ("CUPTI_ACTIVITY_KIND_OVERHEAD", ""),
    ("PROFILER_OVERHEAD", ""),
    ("OSRT_API", ""),
    ("COMPOSITE_EVENTS", ""),
    ("NVTX_EVENTS", "WHERE eventType IN (34, 59, 60)"),
];

fn database(path: &Path) -> rusqlite::Connection {
    let address = format!("file:{}?immutable=1", path.canonicalize().unwrap().display());
    rusqlite::Connection::open(address).unwrap()
}

fn rows(path: &Path) -> u64 {
    let connection = database(path);
    let count = |(table, condition): &(&str, &str)| {
        let query = format!("SELECT count(*) FROM {table} {condition}");
        connection.query_row(&query, (), |row| row.get::<_, i64>(0)).unwrap_or(0)
    };
    EVENTS.iter().map(count).sum::<i64>() as u64
}

/// The correlation ids of all events of some categories.
fn correlations(trace: &Trace, kind: TrackKind, categories: &[&str]) -> Vec<i64> {
    let mut found = Vec::new();
    each_event(trace, kind, |track, index, category| {
        if categories.contains(&category) {
            let id = trace.args_at(track, index).named("correlation");
            found.push(id.and_then(|id| id.as_i64()).unwrap_or(0));
        }
    });
    found
}

#[test]
fn every_row_becomes_an_event_without_damage() {
    let Some(folder) = corpus("nsys") else { return };
    for path in exports(&folder) {
        let trace = read(&path);
        assert_eq!(trace.events(), rows(&path), "{}", path.display());
        let bad =
            [NoteKind::Damaged, NoteKind::DanglingReference, NoteKind::Unknown, NoteKind::NegativeDuration];
        let notes: Vec<_> = trace.notes().iter().filter(|note| bad.contains(&note.kind)).collect();
        assert!(notes.is_empty(), "{}: {notes:?}", path.display());
        for process in trace.processes().iter().filter(|process| process.kind == ProcessKind::Device) {
            assert!(process.device.is_some(), "{}", path.display());
        }
    }
}

#[test]
fn kernels_find_the_calls_that_launched_them() {
    let Some(folder) = corpus("nsys") else { return };
    for path in exports(&folder) {
        let trace = read(&path);
        let calls: BTreeSet<i64> =
            correlations(&trace, TrackKind::Thread, &["cuda_runtime", "cuda_driver"]).into_iter().collect();
        let kernels = correlations(&trace, TrackKind::Stream, &["kernel"]);
        let launched = kernels.iter().filter(|id| calls.contains(id)).count();
        eprintln!("{}: {launched} of {} kernels", path.display(), kernels.len());
        // Those at the start may have been launched before the capture began: the database itself knows.
        let joined = "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k WHERE EXISTS (SELECT 1 \
                      FROM CUPTI_ACTIVITY_KIND_RUNTIME r WHERE r.correlationId = k.correlationId \
                      AND r.globalTid >> 24 = k.globalPid >> 24)";
        match database(&path).query_row(joined, (), |row| row.get::<_, i64>(0)) {
            Ok(wanted) => assert_eq!(launched as i64, wanted, "{}", path.display()),
            Err(_) => assert_eq!(launched, kernels.len(), "{}", path.display()),
        }
    }
}
