//! Nsight Systems: exports that the tests write themselves, whole, old, strange and damaged.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use stepscope_read::{Bytes, Input, Opened, Progress, ReadError, open, open_input};
use stepscope_testkit::damage::{Rng, flip_bits, overwrite, splice};
use stepscope_testkit::nsys::{Export, global_tid, sample};
use stepscope_trace::{Form, NoteKind, ProcessKind, Time, Trace, Track, TrackKind, Value};

fn write(export: &Export, path: &Path) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(&format!("BEGIN;{}COMMIT;", export.script())).unwrap();
}

fn bytes(export: &Export) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("export.sqlite");
    write(export, &path);
    fs::read(path).unwrap()
}

fn try_read(bytes: Vec<u8>) -> Result<Opened, ReadError> {
    open_input(&Input::from_bytes("export.sqlite", Bytes::held(bytes)), &Progress::new())
}

fn read(export: &Export) -> Trace {
    try_read(bytes(export)).unwrap().trace
}

fn track<'t>(trace: &'t Trace, kind: TrackKind, name: &str) -> &'t Track {
    let found = trace.tracks().iter().find(|track| track.kind == kind && trace.str(track.name) == name);
    found.unwrap_or_else(|| panic!("no track {name}"))
}

fn arg<'t>(trace: &'t Trace, track: &'t Track, index: usize, name: &str) -> Option<Value<'t>> {
    trace.args_at(track, index).named(name)
}

fn notes(trace: &Trace, kind: NoteKind) -> Vec<(&str, u64)> {
    let found = trace.notes().iter().filter(|note| note.kind == kind);
    found.map(|note| (note.detail.as_str(), note.count)).collect()
}

#[test]
fn kernels_have_their_launch_configuration_and_find_their_calls() {
    let trace = read(&sample());
    let streams: Vec<_> = trace.tracks().iter().filter(|track| track.kind == TrackKind::Stream).collect();
    let threads: Vec<_> = trace.tracks().iter().filter(|track| track.kind == TrackKind::Thread).collect();
    assert_eq!((streams.len(), threads.len()), (2, 2));
    let stream = streams[0];
    assert_eq!(trace.process(stream.process).kind, ProcessKind::Device);
    assert_eq!(trace.str(trace.process(stream.process).name), "GPU 0");
    assert_eq!((trace.str(stream.name), stream.number), ("stream 7", 7));
    assert_eq!(trace.str(threads[0].name), "main thread (70)");
    assert_eq!(trace.str(trace.process(threads[0].process).name), "python3");
    assert_eq!(trace.kind_name(stream.kind_of(0)), "gemm<float>(float *)");
    assert_eq!(trace.str(trace.kind(stream.kind_of(0)).category), "kernel");
    assert_eq!(stream.start(0), Time::from_ns(16_000));
    for (name, value) in
        [("registers per thread", 64), ("shared memory", 1_536), ("stream", 7), ("device", 0)]
    {
        assert_eq!(arg(&trace, stream, 0, name).unwrap().as_i64(), Some(value), "{name}");
    }
    assert_eq!(arg(&trace, stream, 0, "grid").unwrap().as_str(), Some("[216, 2, 1]"));
    assert_eq!(arg(&trace, stream, 0, "block").unwrap().as_str(), Some("[256, 1, 1]"));

    // Both processes number their calls from 1: ids must not collide.
    let ids = |tracks: &[&Track]| -> Vec<Vec<i64>> {
        let id = |track: &Track, index| arg(&trace, track, index, "correlation").unwrap().as_i64().unwrap();
        tracks.iter().map(|track| (0..track.len()).map(|index| id(track, index)).collect()).collect()
    };
    assert_eq!(ids(&streams), ids(&threads));
    assert_eq!(ids(&streams)[0], [1, 2, 3]);
    assert!(ids(&streams)[1].iter().all(|id| *id > 3));
    assert_eq!(trace.kind_name(threads[0].kind_of(0)), "cudaLaunchKernel");
    assert_eq!(trace.devices().len(), 2);
}

#[test]
fn copies_fills_waits_and_whole_graphs_lie_where_they_belong() {
    let mut export = sample();
    let process = global_tid(70, 0).to_string();
    let at = [("start", "5"), ("end", "9"), ("streamId", "7"), ("globalPid", process.as_str())];
    let with = |more: &[(&'static str, &'static str)]| [&at[..], more].concat();
    let copy =
        [("copyKind", "1"), ("srcKind", "1"), ("dstKind", "2"), ("bytes", "4096"), ("correlationId", "9")];
    export.row("CUPTI_ACTIVITY_KIND_MEMCPY", &with(&copy));
    export.row("CUPTI_ACTIVITY_KIND_MEMSET", &with(&[("memKind", "2"), ("bytes", "64")]));
    export.row("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", &with(&[("syncType", "2"), ("eventId", "4294967295")]));
    export.row("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", &with(&[("graphId", "12")]));
    let trace = read(&export);
    let stream = track(&trace, TrackKind::Stream, "stream 7");
    let names: Vec<_> = (0..3).map(|index| trace.kind_name(stream.kind_of(index))).collect();
    assert_eq!(names, ["Memcpy HtoD (Pinned -> Device)", "Memset (Device)", "CUDA graph 12"]);
    assert_eq!(arg(&trace, stream, 0, "bytes").unwrap().as_i64(), Some(4_096));
    let waits = track(&trace, TrackKind::Derived, "stream 7 · waits");
    assert_eq!(trace.kind_name(waits.kind_of(0)), "Stream Sync");
    let warnings = notes(&trace, NoteKind::CollectionWarning);
    assert!(warnings[0].0.contains("--cuda-graph-trace=node"), "{warnings:?}");
}

#[test]
fn a_stream_that_waits_names_the_stream_and_the_record_that_it_waits_for() {
    let mut export = sample();
    let process = global_tid(70, 0).to_string();
    let own = ("globalPid", process.as_str());
    // The same event is recorded twice: before the wait on stream 7, after it on stream 8.
    for (call, stream) in [("21", "7"), ("30", "8")] {
        let record = [("streamId", stream), ("correlationId", call), ("eventId", "5"), own];
        export.row("CUPTI_ACTIVITY_KIND_CUDA_EVENT", &record);
    }
    let wait = [("start", "5"), ("end", "6"), ("streamId", "9"), ("correlationId", "25"), own];
    let what = [("syncType", "0"), ("eventId", "5")];
    export.row("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", &[&wait[..], &what[..]].concat());
    let trace = read(&export);
    let waits = track(&trace, TrackKind::Derived, "stream 9 · waits");
    assert_eq!(trace.kind_name(waits.kind_of(0)), "Stream Wait Event");
    let number = |key| arg(&trace, waits, 0, key).unwrap().as_i64();
    assert_eq!(number("wait_on_stream"), Some(7));
    let offset = number("correlation").unwrap() - 25;
    assert_eq!(number("wait_on_cuda_event_record_corr_id"), Some(21 + offset));
}

#[test]
fn ranges_keep_their_domain_and_ops_their_numbers() {
    let mut export = sample();
    let (main, other) = (global_tid(70, 70).to_string(), global_tid(70, 99).to_string());
    let range =
        |start: &'static str, sort: &'static str| [("start", start), ("end", "90"), ("eventType", sort)];
    let on = ("globalTid", main.as_str());
    export.row("NVTX_EVENTS", &[("eventType", "75"), ("text", "'NCCL'"), ("domainId", "3"), on]);
    let ranges: [&[(&str, &str)]; 4] = [
        &[("text", "'train step'"), ("domainId", "3"), ("jsonText", "'{\"bytes\": 4}'")],
        &[("text", "'aten::mul, op_id = 42, sizes = [[8]]'")],
        &[("textId", "5")],
        &[("text", "'handed over'"), ("endGlobalTid", &other)],
    ];
    for (fields, (start, sort)) in ranges.iter().zip([("1", "59"), ("2", "59"), ("3", "60"), ("4", "60")]) {
        export.row("NVTX_EVENTS", &[&range(start, sort)[..], &[on], fields].concat());
    }
    export.row("NVTX_EVENTS", &[("start", "5"), ("eventType", "34"), ("text", "'mark'"), on]);
    export.row("NVTX_EVENTS", &[("start", "6"), ("eventType", "59"), ("text", "'open'"), on]);
    let trace = read(&export);
    let thread = track(&trace, TrackKind::Thread, "main thread (70)");
    let kinds: Vec<_> = (0..5).map(|index| trace.kind(thread.kind_of(index))).collect();
    let names: Vec<_> = kinds.iter().map(|kind| (trace.str(kind.name), trace.str(kind.category))).collect();
    let note = "user_annotation";
    let want = [
        ("train step", note),
        ("aten::mul", "cpu_op"),
        ("main thread", note),
        ("mark", note),
        ("open", note),
    ];
    assert_eq!(names, want);
    assert_eq!(arg(&trace, thread, 0, "domain").unwrap().as_str(), Some("NCCL"));
    assert_eq!(arg(&trace, thread, 0, "payload"), Some(Value::Json("{\"bytes\": 4}".into())));
    assert_eq!(arg(&trace, thread, 1, "op_id"), Some(Value::Int(42)));
    assert_eq!(kinds[3].form, Form::Instant);
    assert_eq!(notes(&trace, NoteKind::Unpaired), [("NVTX_EVENTS", 1)]);
    let handed = track(&trace, TrackKind::Async, "NVTX ranges");
    assert_eq!(trace.kind_name(handed.kind_of(0)), "handed over");
}

#[test]
fn what_nccl_writes_into_a_range_becomes_arguments() {
    let mut export = sample();
    let fields = [("0", "18", "'NCCL communicator ID'", "0"), ("1", "22", "'Message size [bytes]'", "8")];
    for (index, sort, name, offset) in fields {
        let schema = [("domainId", "1"), ("schemaId", "16777222"), ("idx", index)];
        let field = [("type", sort), ("name", name), ("offset", offset)];
        export.row("NVTX_PAYLOAD_SCHEMA_ENTRIES", &[&schema[..], &field[..]].concat());
    }
    let head = "01000000000000000600000100000000" /* domain, schema */;
    let lengths = "10000000000000003000000000000000";
    let payload = "07000000000000000000100000000000" /* 7, 1 MiB */;
    let blob = format!("x'{head}{lengths}{payload}'");
    let thread = global_tid(70, 70).to_string();
    let range = [("start", "1"), ("end", "9"), ("eventType", "59"), ("text", "'ncclAllReduce'")];
    let more = [("globalTid", thread.as_str()), ("domainId", "1"), ("binaryData", blob.as_str())];
    export.row("NVTX_EVENTS", &[&range[..], &more[..]].concat());
    let trace = read(&export);
    let thread = track(&trace, TrackKind::Thread, "main thread (70)");
    assert_eq!(arg(&trace, thread, 0, "NCCL communicator ID"), Some(Value::UInt(7)));
    assert_eq!(arg(&trace, thread, 0, "Message size [bytes]"), Some(Value::UInt(1 << 20)));
}

#[test]
fn what_is_not_work_is_kept_apart_from_work() {
    let mut export = sample();
    let (thread, process) = (global_tid(70, 70).to_string(), global_tid(70, 0).to_string());
    let named =
        |name: &'static str| [("start", "5"), ("end", "9"), ("globalTid", thread.as_str()), ("nameId", name)];
    export.row("OSRT_API", &named("4"));
    export.row("CUBLAS_EVENTS", &named("6"));
    export.row("CUPTI_ACTIVITY_KIND_OVERHEAD", &named("3"));
    export.row("COMPOSITE_EVENTS", &[("id", "1"), ("start", "8"), ("globalTid", &thread)]);
    export.row("SAMPLING_CALLCHAINS", &[("id", "1"), ("symbol", "3"), ("stackDepth", "0")]);
    export.row("SAMPLING_CALLCHAINS", &[("id", "1"), ("symbol", "4"), ("stackDepth", "1")]);
    let fault = [("start", "5"), ("globalPid", process.as_str())];
    export.row("CUDA_UM_CPU_PAGE_FAULT_EVENTS", &fault);
    export.row(
        "CUDA_UM_GPU_PAGE_FAULT_EVENTS",
        &[&fault[..], &[("end", "7"), ("numberOfPageFaults", "31")]].concat(),
    );
    let trace = read(&export);
    let name = |track: &Track| trace.kind_name(track.kind_of(0)).to_owned();
    assert_eq!(name(track(&trace, TrackKind::Derived, "main thread (70) · OS runtime")), "poll");
    assert_eq!(name(track(&trace, TrackKind::Derived, "main thread (70) · CPU samples")), "gemm");
    let calls = track(&trace, TrackKind::Thread, "main thread (70)");
    let categories: Vec<_> = calls.kinds().iter().map(|&kind| trace.str(trace.kind(kind).category)).collect();
    assert!(categories.contains(&"cublas") && categories.contains(&"overhead"), "{categories:?}");
    let faults = trace.tracks().iter().filter(|track| trace.str(track.name) == "Unified memory page faults");
    assert_eq!(faults.map(Track::len).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn metrics_and_memory_become_counters_of_the_device() {
    let mut export = sample();
    let process = global_tid(70, 0).to_string();
    let metric = [("typeId", "0x4d00"), ("metricId", "4")];
    export.row("TARGET_INFO_GPU_METRICS", &[&metric[..], &[("metricName", "'SM Active'")]].concat());
    for (at, value) in [("-37928", "10"), ("20", "90")] {
        export.row("GPU_METRICS", &[&metric[..], &[("timestamp", at), ("value", value)]].concat());
    }
    for (at, operation) in [("10", "0"), ("30", "1"), ("20", "0")] {
        let fields = [("start", at), ("bytes", "100"), ("memKind", "2"), ("memoryOperationType", operation)];
        export.row("CUDA_GPU_MEMORY_USAGE_EVENTS", &[&fields[..], &[("globalPid", &process)]].concat());
    }
    let trace = read(&export);
    let active = track(&trace, TrackKind::Counter, "SM Active");
    assert_eq!(
        (active.samples.times[0], &active.samples.values[..]),
        (Time::from_ns(-37_928), &[10.0, 90.0][..])
    );
    let memory = track(&trace, TrackKind::Counter, "Device memory allocated (bytes)");
    assert_eq!(memory.samples.values, [100.0, 200.0, 100.0]);
    for counter in [active, memory] {
        assert_eq!(trace.str(trace.process(counter.process).name), "GPU 0");
    }
}

#[test]
fn the_session_is_described_and_the_environment_is_not_read() {
    let secret = "'TOKEN=hunter2'";
    let mut export = sample();
    let pairs = |table: &str, export: &mut Export, pairs: &[(&str, &str)]| {
        for (name, value) in pairs {
            export.row(table, &[("name", &format!("'{name}'")), ("value", value)]);
        }
    };
    pairs("META_DATA_EXPORT", &mut export, &[("EXPORT_SCHEMA_VERSION", "'3.24.18'"), ("ZONE", "X'ecf1ea'")]);
    let machine = [
        ("Hostname", "'node7'"),
        ("NvDriverVersion", "CAST(X'35ff30' AS TEXT)"),
        ("DeviceEnvironment", secret),
    ];
    pairs("TARGET_INFO_SYSTEM_ENV", &mut export, &machine);
    let options = [
        ("CAPTURE_EVENT_TYPE", "'Cuda'"),
        ("PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE", "'Node'"),
        ("PROCESS_0:ENVIRONMENT_VARIABLE", secret),
        ("PROCESS_0:ARGUMENT_1", secret),
    ];
    pairs("META_DATA_CAPTURE", &mut export, &options);
    export.row(
        "TARGET_INFO_SESSION_START_TIME",
        &[("utcEpochNs", "1700000000000000000"), ("systemClockNs", "5")],
    );
    export.row("ANALYSIS_DETAILS", &[("startTime", "100"), ("stopTime", "900")]);
    for (severity, text) in [("1", "'fine'"), ("2", "'No CUDA events collected.'"), ("3", "'failed'")] {
        export.row("DIAGNOSTIC_EVENT", &[("severity", severity), ("text", text)]);
    }
    let gpu = [
        ("id", "0"),
        ("name", "'NVIDIA A100'"),
        ("smCount", "108"),
        ("memoryBandwidth", "1555200000000"),
        ("clockRate", "1410000000"),
        ("totalMemory", "42949672960"),
        ("threadsPerWarp", "32"),
        ("maxWarpsPerSm", "64"),
        ("maxBlocksPerSm", "32"),
        ("maxRegistersPerSm", "65536"),
        ("maxShmemPerSm", "167936"),
        ("computeMajor", "8"),
        ("computeMinor", "0"),
        ("uuid", "'13b12fa8'"),
    ];
    export.row("TARGET_INFO_GPU", &gpu);
    let trace = read(&export);
    let environment = trace.environment();
    assert_eq!(trace.str(environment.host.unwrap()), "node7");
    assert_eq!(environment.captured_ns, Some((1_700_000_000_000_000_000, 1_700_000_000_000_000_800)));
    assert_eq!(trace.clock().wall_ns_at_origin, Some(1_700_000_000_000_000_000));
    assert_eq!(notes(&trace, NoteKind::CollectionWarning), [("No CUDA events collected.", 1)]);
    assert_eq!(notes(&trace, NoteKind::CollectionError), [("failed", 1)]);
    assert!(trace.strings().find("CUDA_GRAPH_TRACE_OPTIONS:MODE").is_some());
    assert!(trace.strings().find("5\u{fffd}0").is_some(), "text that is not UTF-8 is read all the same");
    assert!(trace.strings().find("TOKEN=hunter2").is_none());
    assert!(trace.strings().find("13b12fa8").is_none());
    let gpu = &trace.devices()[0];
    assert_eq!((trace.str(gpu.name), gpu.multiprocessors), ("NVIDIA A100", Some(108)));
    assert_eq!((gpu.clock_khz, gpu.memory_bandwidth), (Some(1_410_000), Some(1_555_200_000_000)));
    assert_eq!(gpu.max_threads_per_multiprocessor, Some(2_048));
    assert_eq!(gpu.compute_capability, Some((8, 0)));
    assert_eq!(gpu.process, trace.processes().iter().find(|p| trace.str(p.name) == "GPU 0").map(|p| p.id));
}

#[test]
fn gpus_are_known_from_the_machines_description_too() {
    let mut export = sample();
    let json = r#"'{"Gpus":[{"Id":1,"Name":"Tesla T4","SmCount":40,"MaxWarpsPerSm":32,"ComputeMajor":7,"ComputeMinor":5}]}'"#;
    export.row("TARGET_INFO_SYSTEM_ENV", &[("name", "'GpuInfo'"), ("value", json)]);
    let trace = read(&export);
    let gpus: Vec<_> = trace.devices().iter().map(|gpu| (gpu.number, gpu.multiprocessors)).collect();
    assert_eq!(gpus, [(1, Some(40)), (0, None)]);
    assert_eq!(trace.devices()[0].max_threads_per_multiprocessor, Some(1_024));
}

#[test]
fn an_export_with_few_columns_is_read_as_far_as_it_goes() {
    let mut export = Export::new();
    export.string(1, "gemm");
    export.raw("CREATE TABLE EXPORT_META_DATA (name TEXT, value TEXT);");
    export.raw("INSERT INTO EXPORT_META_DATA VALUES ('EXPORT_SCHEMA_VERSION', '3.1.7');");
    export.raw("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, shortName INTEGER);");
    export.raw("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5, 9, 1);");
    export.raw("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (bytes INTEGER);");
    let trace = read(&export);
    let stream = trace.tracks().iter().find(|track| track.kind == TrackKind::Stream).unwrap();
    assert_eq!(trace.kind_name(stream.kind_of(0)), "gemm");
    assert!(trace.strings().find("3.1.7").is_some());
    assert_eq!(notes(&trace, NoteKind::Unknown).len(), 1, "copies without times are told");
}

#[test]
fn strange_rows_are_kept_and_told() {
    let mut export = sample();
    let process = global_tid(70, 0).to_string();
    for (start, end, name) in
        [("50", "20", "2"), ("-90", "-50", "404"), ("9223372036854775000", "9223372036854775800", "2")]
    {
        let fields = [
            ("start", start),
            ("end", end),
            ("demangledName", name),
            ("streamId", "9"),
            ("globalPid", &process),
        ];
        export.row("CUPTI_ACTIVITY_KIND_KERNEL", &fields);
    }
    export.row("META_DATA_EXPORT", &[("name", "'EXPORT_SCHEMA_VERSION'"), ("value", "'4.1.0'")]);
    let trace = read(&export);
    let stream = track(&trace, TrackKind::Stream, "stream 9");
    assert_eq!(stream.len(), 3);
    assert_eq!(stream.start(0), Time::from_ns(-90));
    assert_eq!(trace.kind_name(stream.kind_of(0)), "[string 404]");
    assert!(stream.dur(1).is_zero());
    assert_eq!(notes(&trace, NoteKind::NegativeDuration), [("CUPTI_ACTIVITY_KIND_KERNEL", 1)]);
    assert_eq!(notes(&trace, NoteKind::TimeOutOfRange), [("CUPTI_ACTIVITY_KIND_KERNEL", 1)]);
    assert_eq!(notes(&trace, NoteKind::DanglingReference), [("StringIds", 1)]);
    assert!(notes(&trace, NoteKind::Unknown)[0].0.contains("4.1.0"));
}

#[test]
fn a_large_export_is_read_in_place_though_locked_and_nothing_is_left_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a file?with #odd%20name.sqlite");
    let mut export = sample();
    export.raw("CREATE TABLE filler (x); INSERT INTO filler VALUES (zeroblob(6000000));");
    write(&export, &path);
    let writer = Connection::open(&path).unwrap();
    writer.execute_batch("PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE;").unwrap();
    let opened = open(&path, &Progress::new()).unwrap();
    assert_eq!((opened.format.name, opened.trace.events()), ("nsys", 12));
    drop(writer);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn an_unfinished_export_and_a_write_ahead_log_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("export.sqlite");
    write(&sample(), &path);
    Connection::open(&path).unwrap().execute_batch("PRAGMA journal_mode=WAL;").unwrap();
    fs::write(folder.path().join("export.sqlite-journal"), b"x").unwrap();
    let trace = open(&path, &Progress::new()).unwrap().trace;
    assert_eq!(trace.events(), 12);
    assert!(notes(&trace, NoteKind::Damaged)[0].0.contains("journal"));
}

#[test]
fn a_file_that_ends_early_gives_what_is_there() {
    let mut export = sample();
    for id in 0..3_000 {
        export.string(1_000 + id, &format!("a string that fills a page or two, number {id}"));
    }
    let whole = bytes(&export);
    let trace = try_read(whole[..whole.len() * 2 / 3].to_vec()).unwrap().trace;
    assert_eq!(trace.events(), 12, "the tables of work come first in the file");
    let damage = notes(&trace, NoteKind::Damaged);
    assert!(
        damage.iter().any(|(detail, count)| detail.contains("is truncated") && *count > 10),
        "{damage:?}"
    );
}

#[test]
fn waits_lie_on_the_device_that_their_process_works_on() {
    let mut export = sample();
    let process = global_tid(71, 0).to_string();
    let fields =
        [("start", "5"), ("end", "9"), ("streamId", "22"), ("deviceId", "0"), ("globalPid", &*process)];
    export.row("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", &fields);
    let trace = read(&export);
    let waits = track(&trace, TrackKind::Derived, "stream 22 · waits");
    assert_eq!(trace.str(trace.process(waits.process).name), "GPU 1");
}

#[test]
fn other_databases_are_refused_by_what_they_are() {
    let mut export = Export::default();
    export.raw("CREATE TABLE runs (id INTEGER); CREATE TABLE metrics (id INTEGER);");
    let foreign = bytes(&export);
    assert!(matches!(try_read(foreign.clone()), Err(ReadError::Foreign { .. })));
    let message = try_read(foreign).unwrap_err().to_string();
    assert!(message.contains("metrics, runs"), "{message}");
    let broken = try_read(b"SQLite format 3\0 and then something else".to_vec());
    assert!(matches!(broken, Err(ReadError::Damaged { .. })));
}

#[test]
fn damage_of_every_sort_gives_an_error_or_a_trace_but_never_a_panic() {
    let mut export = sample();
    export.row("NVTX_EVENTS", &[("eventType", "59"), ("text", "'step'"), ("end", "9")]);
    let whole = bytes(&export);
    let mut readable = 0;
    for length in (0..whole.len()).step_by(509) {
        readable += u32::from(try_read(whole[..length].to_vec()).is_ok());
    }
    let mut rng = Rng::new(6);
    for round in 0..400 {
        let damaged = match round % 3 {
            0 => flip_bits(&whole, &mut rng, 1 + round / 20),
            1 => splice(&whole, &mut rng),
            _ => overwrite(&whole, &mut rng, &[0xff; 64]),
        };
        if let Ok(opened) = try_read(damaged) {
            readable += 1;
            // Whatever was read can be walked.
            for track in opened.trace.tracks() {
                for index in 0..track.len() {
                    opened.trace.args_at(track, index).visit(|_, _| {});
                }
            }
        }
    }
    assert!(readable > 50, "most damage leaves something to read: {readable}");
}
