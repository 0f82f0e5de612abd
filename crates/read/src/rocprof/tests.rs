//! Records of both forms, and damage in them.

use stepscope_testkit::damage::{Rng, flip_bits, overwrite, splice, truncations};
use stepscope_trace::{Trace, TrackKind};

use crate::{Bytes, Input, Progress, ReadError, open_input};

fn open(bytes: Vec<u8>) -> Result<(&'static str, Trace), ReadError> {
    open_input(&Input::from_bytes("x", Bytes::held(bytes)), &Progress::new())
        .map(|opened| (opened.format.name, opened.trace))
}

fn json() -> Vec<u8> {
    stepscope_testkit::json_results::ROCPROF.as_bytes().to_vec()
}

/// Name, start and length in nanoseconds, from the first event on.
fn events(trace: &Trace, kind: TrackKind) -> Vec<(String, i64, i64)> {
    let tracks = trace.tracks().iter().filter(|track| track.kind == kind);
    let mut all: Vec<_> = tracks
        .flat_map(|track| {
            (0..track.len()).map(move |at| {
                let name = trace.kind_name(track.kind_of(at)).to_owned();
                (name, track.start(at).ns(), track.dur(at).ps() / 1_000)
            })
        })
        .collect();
    all.sort_by_key(|(_, start, _)| *start);
    all
}

fn named(expected: &[(&str, i64, i64)]) -> Vec<(String, i64, i64)> {
    expected.iter().map(|&(name, start, length)| (name.to_owned(), start, length)).collect()
}

fn check(trace: &Trace) {
    assert_eq!(
        events(trace, TrackKind::Stream),
        named(&[("Memcpy HtoD", 1_000, 1_000), ("k(float*)", 4_000, 4_000)])
    );
    assert_eq!(
        events(trace, TrackKind::Thread),
        named(&[("train_step", 0, 8_500), ("hipLaunchKernel", 3_000, 500)])
    );
    let device = &trace.devices()[0];
    assert_eq!((trace.str(device.name), device.number), ("AMD Instinct MI300X", 0));
    assert_eq!((device.multiprocessors, device.max_threads_per_multiprocessor), (Some(304), Some(2_048)));
    let queue = trace.tracks().iter().find(|track| trace.str(track.name) == "queue 1").unwrap();
    let mut args = Vec::new();
    trace.args_at(queue, 0).visit(|key, value| {
        let text = value.as_str().map_or_else(|| value.as_i64().unwrap_or(-1).to_string(), str::to_owned);
        args.push(format!("{}={text}", trace.str(key)));
    });
    args.sort();
    let wanted = [
        "block=[256, 1, 1]",
        "correlation=9",
        "grid=[4, 2, 1]",
        "registers per thread=32",
        "shared memory=1024",
    ];
    assert!(wanted.iter().all(|wanted| args.iter().any(|arg| arg == wanted)), "{args:?}");
}

#[test]
fn kernels_copies_calls_and_markers_are_read_with_their_launch() {
    let (format, trace) = open(json()).unwrap();
    assert_eq!(format, "rocprofv3");
    check(&trace);
    assert_eq!(trace.environment().host.map(|host| trace.str(host)), Some("node1"));
}

/// The same records as a database, in which times and places are tables of their own, or columns of each record.
fn database(by_number: bool) -> Vec<u8> {
    let file = tempfile::NamedTempFile::new().unwrap();
    let connection = rusqlite::Connection::open(file.path()).unwrap();
    let place = if by_number {
        "track_id, start_id, end_id"
    } else {
        "pid, tid, agent_id, queue_id, stream_id, start, \"end\""
    };
    let put = |pid: i64, tid: i64, agent: i64, queue: i64, start: i64, end: i64| {
        if by_number {
            format!("{}, {start}, {end}", agent * 10 + queue + 1)
        } else {
            format!("{pid}, {tid}, {agent}, {queue}, 4, {start}, {end}")
        }
    };
    let script = format!(
        "CREATE TABLE rocpd_string_ab (id, string); CREATE TABLE rocpd_timestamp_ab (id, value);
         CREATE TABLE rocpd_info_process_ab (id, pid, command); CREATE TABLE rocpd_info_thread_ab (id, tid, name);
         CREATE TABLE rocpd_track_ab (id, pid, tid, agent_id, queue_id, stream_id);
         CREATE TABLE rocpd_info_agent_ab (id, type, type_index, product_name, name, extdata);
         CREATE TABLE rocpd_info_kernel_symbol_ab (id, display_name, kernel_name, arch_vgpr_count);
         CREATE TABLE rocpd_event_ab (id, correlation_id, stack_id, category_id);
         CREATE TABLE rocpd_kernel_dispatch_ab ({place}, event_id, kernel_id, grid_size_x, grid_size_y, grid_size_z,
           workgroup_size_x, workgroup_size_y, workgroup_size_z, group_segment_size);
         CREATE TABLE rocpd_memory_copy_ab ({place}, event_id, name_id, size, src_agent_id, dst_agent_id);
         CREATE TABLE rocpd_region_ab ({place}, event_id, name_id, extdata);
         INSERT INTO rocpd_string_ab VALUES (1, 'HIP_RUNTIME_API'), (2, 'hipLaunchKernel'), (3, 'MEMORY_COPY_HOST_TO_DEVICE'),
           (4, 'MARKER_CORE_RANGE_API'), (5, 'roctxRangePush');
         INSERT INTO rocpd_info_process_ab VALUES (1, 7, '/usr/bin/python3 train.py');
         INSERT INTO rocpd_info_thread_ab VALUES (1, 7, 'main');
         INSERT INTO rocpd_track_ab VALUES (1, 1, 1, 0, 0, NULL), (22, 1, 1, 2, 1, 4), (21, 1, 1, 2, 0, 4);
         INSERT INTO rocpd_info_agent_ab VALUES (1, 'CPU', 0, '', 'CPU', '{{}}'), (2, 'GPU', 0, 'AMD Instinct MI300X', 'gfx942',
           '{{\"cu_count\": 304, \"wave_front_size\": 64, \"max_waves_per_cu\": 32}}');
         INSERT INTO rocpd_info_kernel_symbol_ab VALUES (3, 'k(float*)', '_Z1k.kd', 32);
         INSERT INTO rocpd_event_ab VALUES (1, 0, 9, 1), (2, 0, 8, 1), (3, 0, 5, 4);
         INSERT INTO rocpd_kernel_dispatch_ab VALUES ({}, 1, 3, 1000, 2, 1, 256, 1, 1, 1024);
         INSERT INTO rocpd_memory_copy_ab VALUES ({}, 2, 3, 4096, 1, 2);
         INSERT INTO rocpd_region_ab VALUES ({}, 1, 2, '{{}}');
         INSERT INTO rocpd_region_ab VALUES ({}, 3, 5, '{{\"message\":\"train_step\"}}');",
        put(1, 1, 2, 1, 5_000, 9_000),
        put(1, 1, 2, 0, 2_000, 3_000),
        put(1, 1, 0, 0, 4_000, 4_500),
        put(1, 1, 0, 0, 1_000, 9_500),
    );
    connection.execute_batch(&script).unwrap();
    for time in [1_000, 2_000, 3_000, 4_000, 4_500, 5_000, 9_000, 9_500] {
        connection.execute("INSERT INTO rocpd_timestamp_ab VALUES (?1, ?1)", [time]).unwrap();
    }
    drop(connection);
    std::fs::read(file.path()).unwrap()
}

#[test]
fn databases_of_both_versions_hold_the_same() {
    for by_number in [true, false] {
        let (format, trace) = open(database(by_number)).unwrap();
        assert_eq!(format, "rocpd");
        check(&trace);
    }
}

#[test]
fn damaged_results_end_quietly_and_keep_what_came_before() {
    let mut rng = Rng::new(5);
    let whole = json();
    truncations(&whole).step_by(7).for_each(|part| drop(open(part.to_vec())));
    for whole in [whole.clone(), database(true)] {
        for _ in 0..300 {
            drop(open(flip_bits(&whole, &mut rng, 3)));
            drop(open(splice(&whole, &mut rng)));
            drop(open(overwrite(&whole, &mut rng, b"99999999999999999999")));
        }
    }
    let cut = whole.len() - 150;
    let (_, trace) = open(whole[..cut].to_vec()).unwrap();
    assert!(trace.events() >= 3 && !trace.notes().is_empty(), "{:?}", trace.notes());
}

#[test]
fn other_json_is_not_recognised() {
    use crate::Reader as _;
    for text in [&b"{}"[..], b"{\"rocprof\": 1}", b"[]", b"{\"traceEvents\": []}"] {
        assert!(!super::RocprofReader.recognises(text));
    }
}
