//! nvidia-smi logs in every style, written by the tests; and real ones if the corpus is available.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use stepscope_read::{Bytes, Input, Opened, Progress, ReadError, open, open_input};
use stepscope_testkit::corpus::corpus;
use stepscope_testkit::damage::{Rng, flip_bits, splice};
use stepscope_trace::{NoteKind, Time, Trace, Track, TrackKind};

fn try_read(bytes: &[u8]) -> Result<Opened, ReadError> {
    open_input(&Input::from_bytes("log.csv", Bytes::held(bytes.to_vec())), &Progress::new())
}

fn read(text: &str) -> Trace {
    let opened = try_read(text.as_bytes()).unwrap();
    assert_eq!(opened.format.name, "nvidia-smi");
    opened.trace
}

fn metric<'t>(trace: &'t Trace, gpu: i64, name: &str) -> &'t Track {
    let here = |track: &&Track| trace.process(track.process).number == gpu && trace.str(track.name) == name;
    trace.tracks().iter().find(here).unwrap_or_else(|| panic!("GPU {gpu} has no {name}"))
}

fn values<'t>(trace: &'t Trace, gpu: i64, name: &str) -> &'t [f64] {
    &metric(trace, gpu, name).samples.values
}

const TWO_GPUS: &str = "timestamp, index, name, utilization.gpu [%], memory.used [MiB], power.draw [W], clocks_throttle_reasons.active, pstate\n\
2026/04/25 16:06:06.780, 0, Tesla T4, 45 %, 2048 MiB, 70.10 W, 0x0000000000000004, P0\n\
2026/04/25 16:06:06.790, 1, Tesla T4, 0 %, 3 MiB, [N/A], 0x0000000000000000, P8\n\
timestamp, index, name, utilization.gpu [%], memory.used [MiB], power.draw [W], clocks_throttle_reasons.active, pstate\n\
2026/04/25 16:06:07.780, 0, Tesla T4, 55 %, 2049 MiB, 71.00 W, 0x0000000000000000, P0\n";

#[test]
fn several_gpus_with_a_repeated_header_become_counters_of_their_own() {
    let trace = read(TWO_GPUS);
    assert!(trace.tracks().iter().all(|track| track.kind == TrackKind::Counter));
    assert_eq!(values(&trace, 0, "utilization.gpu [%]"), [45.0, 55.0]);
    assert_eq!(
        metric(&trace, 0, "utilization.gpu [%]").samples.times,
        [Time::ZERO, Time::from_ns(1_000_000_000)]
    );
    assert_eq!(values(&trace, 1, "memory.used [MiB]"), [3.0]);
    assert_eq!(values(&trace, 0, "clocks_throttle_reasons.active"), [4.0, 0.0]);
    assert_eq!(values(&trace, 1, "pstate"), [8.0]);
    let power = trace.tracks().iter().filter(|track| trace.str(track.name) == "power.draw [W]");
    assert_eq!(power.count(), 1, "what is not available is no sample");
    let models: Vec<_> = trace.devices().iter().map(|gpu| (gpu.number, trace.str(gpu.name))).collect();
    assert_eq!(models, [(0, "Tesla T4"), (1, "Tesla T4")]);
    assert_eq!(trace.clock().wall_ns_at_origin, Some(1_777_133_166_780_000_000));
}

#[test]
fn powershells_utf16_is_read_the_same() {
    let units: Vec<u8> = TWO_GPUS.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for bytes in [units.clone(), [&[0xff, 0xfe][..], &units].concat()] {
        let trace = try_read(&bytes).unwrap().trace;
        assert_eq!(values(&trace, 0, "power.draw [W]"), [70.1, 71.0]);
    }
}

#[test]
fn units_may_be_missing_or_stand_in_cells_without_any_header() {
    let bare = read("timestamp,power.draw\n2025-09-08T17:26:50+08:00,74.01\n2025-09-08T17:26:51+08:00,75\n");
    assert_eq!(values(&bare, 0, "power.draw [W]"), [74.01, 75.0]);
    let cells = read("2026/04/25 16:06:06.780, 9 %, 0 %, 2 MiB, 20146 MiB, 27, 11.64 W\n");
    assert_eq!(values(&cells, 0, "utilization.gpu [%]"), [9.0]);
    assert_eq!(values(&cells, 0, "memory.total [MiB]"), [20146.0]);
    assert_eq!(values(&cells, 0, "temperature.gpu [C]"), [27.0]);
    let power = read("2026/04/25 16:06:06.780, 11.64 W\n2026/04/25 16:06:07.780, 12 W\n");
    assert_eq!(values(&power, 0, "power.draw [W]"), [11.64, 12.0]);
}

#[test]
fn rows_of_one_time_without_an_index_are_several_gpus() {
    let time = "2026/04/25 16:06:06.780";
    let trace = read(&format!("timestamp, utilization.gpu [%]\n{time}, 10 %\n{time}, 20 %\n{time}, 30 %\n"));
    assert_eq!(values(&trace, 2, "utilization.gpu [%]"), [30.0]);
}

#[test]
fn without_names_and_units_columns_are_called_by_their_places() {
    let trace = read("2026/04/25 16:06:06.780, 9, 2048\n2026/04/25 16:06:07.780, 10, 2049\n");
    assert_eq!(values(&trace, 0, "column 2"), [9.0, 10.0]);
    assert_eq!(values(&trace, 0, "column 3"), [2048.0, 2049.0]);
    let notes: Vec<_> = trace.notes().iter().map(|note| (note.kind, note.count)).collect();
    assert_eq!(notes, [(NoteKind::Unnamed, 2)], "what they are is not known");
}

#[test]
fn what_a_spreadsheet_saved_is_read_the_same() {
    let saved = TWO_GPUS.replace(", ", ";").replace("70.10 W", "70,10 W");
    let (trace, other) = (read(&saved), read(TWO_GPUS));
    for name in ["utilization.gpu [%]", "power.draw [W]"] {
        assert_eq!(values(&trace, 0, name), values(&other, 0, name), "{name}");
    }
}

#[test]
fn half_a_line_at_the_end_is_no_damage() {
    let whole = "timestamp, utilization.gpu [%], power.draw [W]\n2026/04/25 16:06:06.780, 10 %, 70 W\n";
    for half in ["2026/04/25 16:06:07.780, 1", "2026/04/2"] {
        let trace = read(&format!("{whole}{half}"));
        assert_eq!(values(&trace, 0, "utilization.gpu [%]"), [10.0], "{half}");
        assert!(trace.notes().is_empty(), "{half}");
    }
    let trace = read(&format!("{whole}2026/04/25 16:06:07.780, 20 %, 71 W"));
    assert_eq!(values(&trace, 0, "utilization.gpu [%]"), [10.0, 20.0], "a whole line without an end");
}

#[test]
fn rows_that_are_no_samples_are_counted() {
    let trace = read(&format!("{TWO_GPUS}Unable to determine the device handle for GPU\n"));
    let damaged: Vec<_> = trace.notes().iter().filter(|note| note.kind == NoteKind::Damaged).collect();
    assert_eq!(damaged[0].count, 1);
    let header_only = try_read(b"timestamp, name, utilization.gpu [%]\n");
    assert!(matches!(header_only, Err(ReadError::Damaged { .. })));
    assert!(matches!(try_read(b"time,name,loss\n1,2,3\n"), Err(ReadError::NotRecognised { .. })));
}

#[test]
fn the_table_of_dmon_is_read_with_and_without_times() {
    let trace = read(
        "# gpu    pwr  gtemp  mtemp     sm    mem     fb\n# Idx      W      C      C      %      %     MB\n    0     74     33      -     10      1   2048\n    1     73     34      -     20      2     16\n    0     75     33      -     30      3   2048\n",
    );
    assert_eq!(values(&trace, 0, "utilization.gpu [%]"), [10.0, 30.0]);
    assert_eq!(metric(&trace, 0, "power.draw [W]").samples.times[1], Time::from_ns(1_000_000_000));
    assert_eq!(values(&trace, 1, "memory.used [MiB]"), [16.0]);
    let timed = read(
        "#Date       Time        gpu     sm\n#YYYYMMDD   HH:MM:SS    Idx      %\n 20260425   16:06:06      0     10\n 20260425   16:06:11      0     12\n",
    );
    assert_eq!(metric(&timed, 0, "utilization.gpu [%]").samples.times[1], Time::from_ns(5_000_000_000));
}

#[test]
fn processes_of_pmon_are_added_up_a_gpu_and_tick() {
    let trace = read(
        "$ nvidia-smi pmon\n\
         # gpu        pid  type    sm   mem   enc   dec   command\n\
         # Idx          #   C/G     %     %     %     %   name\n\
             0       1001     C    40    10     -     -   python\n\
             0       1002     C    15     5     -     -   python\n\
             1          -     -     -     -     -     -   -\n\
             0       1001     C    50    20     -     -   python\n\
             1          -     -     -     -     -     -   -\n",
    );
    assert_eq!(values(&trace, 0, "utilization.gpu [%]"), [55.0, 50.0]);
    assert_eq!(values(&trace, 0, "utilization.memory [%]"), [15.0, 20.0]);
    assert_eq!(values(&trace, 1, "utilization.gpu [%]"), [0.0, 0.0]);
    assert_eq!(
        metric(&trace, 0, "utilization.gpu [%]").samples.times.last(),
        Some(&Time::from_ns(1_000_000_000))
    );
}

#[test]
fn logs_without_times_count_rounds_and_leave_out_what_a_terminal_shows() {
    let trace = read(
        "user@box:~$ nvidia-smi --query-gpu=index,driver_version,utilization.gpu --format=csv -l 1\n\
         index, driver_version, utilization.gpu [%]\n\
         0, 535.1, 10 %\n\
         1, 535.1, 20 %\n\
         0, 535.1, 30 %\n\
         1, 535.1, 40 %\n\
         ^C\n",
    );
    assert_eq!(values(&trace, 0, "utilization.gpu [%]"), [10.0, 30.0]);
    let second = metric(&trace, 1, "utilization.gpu [%]");
    assert_eq!(second.samples.times, [Time::ZERO, Time::from_ns(1_000_000_000)]);
    assert_eq!(trace.devices().len(), 2);
}

#[test]
fn pages_for_people_are_read_with_their_times() {
    let page = |time: &str, busy: &str| {
        format!(
            "{time}\n\
+-----------------------------------------------------------------------------------------+\n\
| NVIDIA-SMI 555.10                 Driver Version: 555.10         CUDA Version: 12.5     |\n\
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n\
|=========================================+========================+======================|\n\
|   0  NVIDIA A40                     Off |   00000000:00:04.0 Off |                    0 |\n\
| 30%   49C    P0             210W /  300W |    1500MiB /  46068MiB |     {busy}%      Default |\n\
|                                         |                        |                  N/A |\n\
|   3  Tesla T4                       On  |   00000000:AF:00.0 Off |                    0 |\n\
| N/A   40C    P8             N/A /   70W |       0MiB /  15360MiB |      0%      Default |\n\
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |\n\
|    0   N/A  N/A      1234      C   python                                      1490MiB |\n"
        )
    };
    let trace = read(&(page("Thu Oct  1 03:25:17 2026", "45") + &page("Thu Oct  1 03:25:22 2026", "55")));
    assert_eq!(values(&trace, 0, "utilization.gpu [%]"), [45.0, 55.0]);
    assert_eq!(values(&trace, 0, "power.draw [W]"), [210.0, 210.0]);
    assert_eq!(values(&trace, 0, "memory.used [MiB]"), [1_500.0, 1_500.0]);
    assert_eq!(values(&trace, 3, "temperature.gpu [C]"), [40.0, 40.0]);
    assert_eq!(values(&trace, 3, "memory.total [MiB]"), [15_360.0, 15_360.0]);
    let times = &metric(&trace, 0, "utilization.gpu [%]").samples.times;
    assert_eq!(*times, [Time::ZERO, Time::from_ns(5_000_000_000)]);
    let names: Vec<&str> = trace.devices().iter().map(|device| trace.str(device.name)).collect();
    assert_eq!(names, ["NVIDIA A40", "Tesla T4"]);
    let log = "index, utilization.gpu [%]\n0, 7 %\n0, 8 %\n0, 9 %\n";
    let both = read(&(page("Thu Oct  1 03:25:17 2026", "45") + log));
    assert_eq!(values(&both, 0, "utilization.gpu [%]"), [7.0, 8.0, 9.0], "the log says more than the page");
}

#[test]
fn dumps_are_read_by_their_headings() {
    let dump = |time: &str, busy: u32| {
        format!(
            "==============NVSMI LOG==============\n\n\
Timestamp                                 : {time}\n\
Attached GPUs                             : 1\n\
GPU 00000000:01:00.0\n    Product Name                          : NVIDIA L4\n    \
Performance State                     : P0\n    FB Memory Usage\n        \
Total                             : 23034 MiB\n        Used                              : 1200 MiB\n    \
BAR1 Memory Usage\n        Used                              : 7 MiB\n    Utilization\n        \
Gpu                               : {busy} %\n        Memory                            : 12 %\n    \
GPU Power Readings\n        Average Power Draw                : 61.50 W\n        \
Instantaneous Power Draw          : 99.00 W\n    Max Clocks\n        \
SM                                : 2040 MHz\n"
        )
    };
    let trace = read(&(dump("Tue Mar  5 10:11:12 2024", 35) + &dump("Tue Mar  5 10:11:14 2024", 45)));
    assert_eq!(values(&trace, 0, "utilization.gpu [%]"), [35.0, 45.0]);
    assert_eq!(values(&trace, 0, "memory.used [MiB]"), [1_200.0, 1_200.0]);
    assert_eq!(values(&trace, 0, "power.draw [W]"), [61.5, 61.5]);
    assert!(trace.tracks().iter().all(|track| !trace.str(track.name).starts_with("clocks")));
    let times = &metric(&trace, 0, "utilization.gpu [%]").samples.times;
    assert_eq!(*times, [Time::ZERO, Time::from_ns(2_000_000_000)]);
    assert_eq!(trace.devices().first().map(|device| trace.str(device.name)), Some("NVIDIA L4"));
}

#[test]
fn damage_gives_an_error_or_a_trace_but_never_a_panic() {
    let mut rng = Rng::new(3);
    for round in 0..2_000 {
        let bytes = TWO_GPUS.as_bytes();
        let damaged = if round % 2 == 0 {
            flip_bits(bytes, &mut rng, 1 + round / 100)
        } else {
            splice(bytes, &mut rng)
        };
        let _ = try_read(&damaged);
    }
}

#[test]
fn real_logs_are_read() {
    let Some(folder) = corpus("nvidia-smi") else { return };
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let opened = open(&path, &Progress::new()).unwrap();
        let trace = &opened.trace;
        let samples: usize = trace.tracks().iter().map(|track| track.samples.values.len()).sum();
        eprintln!(
            "{}: {} GPUs, {} counters, {samples} samples, {:?}",
            path.display(),
            trace.devices().len(),
            trace.tracks().len(),
            trace.span()
        );
        assert_eq!(opened.format.name, "nvidia-smi");
        assert!(trace.notes().is_empty() && samples > 50);
        assert!(!metric(trace, 0, "memory.used [MiB]").samples.values.is_empty());
    }
}
