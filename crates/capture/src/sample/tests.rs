//! The sampler on fake /proc and /sys trees, and on the real machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use stepscope_testkit::skip::{Needs, skip};

use super::*;

/// A fake machine.
struct Fake {
    folder: tempfile::TempDir,
}

impl Fake {
    fn new() -> Self {
        let fake = Fake { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(fake.path("proc")).unwrap();
        fs::create_dir_all(fake.path("sys")).unwrap();
        fake
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A process with its own ticks, those of the dead children it waited for, and its pages.
    fn process(&self, pid: u32, parent: u32, own: u64, reaped: u64, pages: u64) {
        let stat = format!(
            "{pid} (a b) S {parent} 1 1 0 -1 0 0 0 0 0 {own} 0 {reaped} 0 20 0 2 0 100 0 {pages} 0 0\n"
        );
        self.write(&format!("proc/{pid}/stat"), &stat);
    }

    /// An empty file reads like that of a process that is gone.
    fn end(&self, pid: u32) {
        self.write(&format!("proc/{pid}/stat"), "");
        fs::remove_dir_all(self.path(&format!("proc/{pid}"))).unwrap();
    }

    fn sampler(&self, root: Option<u32>) -> Sampler {
        let options = Options {
            proc: self.path("proc"),
            sys: self.path("sys"),
            root,
            from_birth: true,
            nvml: Nvml::Off,
            ..Options::default()
        };
        Sampler::new(&options)
    }
}

fn at(sampler: &mut Sampler, ms: u64) -> Sample {
    sampler.sample_at(0, Duration::from_millis(ms))
}

#[test]
fn nothing_known_is_nothing_said() {
    let fake = Fake::new();
    let sample = at(&mut fake.sampler(None), 100);
    assert_eq!(sample.machine, Machine::default());
    assert_eq!((sample.tree, sample.cgroup), (None, Cgroup::default()));
    assert!(sample.gpus.is_empty());
}

#[test]
fn shares_and_rates_are_those_between_two_samples() {
    let fake = Fake::new();
    let stat = |busy: u64, idle: u64, wait: u64, switches: u64| {
        format!(
            "cpu  {} 0 0 {} {} 0 0 0 0 0\ncpu0 {busy} 0 0 {idle} {wait} 0 0 0 0 0\ncpu1 0 0 0 100 0 0 0 0 0 0\n\
             intr 5 0\nctxt {switches}\nbtime 1\n",
            busy,
            idle + 100,
            wait
        )
    };
    fake.write("proc/stat", &stat(10, 10, 0, 100));
    fake.write(
        "proc/meminfo",
        "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable:  400 kB\nSwapTotal: 10 kB\nSwapFree: 4 kB\n",
    );
    fake.write("sys/block/sda/device", "");
    fake.write("proc/diskstats", "8 0 sda 1 0 100 5 2 0 200 6 0 7 8\n");
    let mut sampler = fake.sampler(None);
    assert_eq!(sampler.cores(), 2);
    fake.write("proc/stat", &stat(16, 12, 2, 150));
    fake.write("proc/diskstats", "8 0 sda 1 0 102 5 2 0 210 6 0 7 8\n");
    let machine = at(&mut sampler, 100).machine;
    assert_eq!(machine.cpu, Some(0.6), "6 of the 10 ticks that all cores had");
    assert_eq!(machine.io_wait, Some(0.2));
    assert_eq!(machine.cores[0], 0.6);
    assert_eq!((machine.disk_read, machine.disk_write), (Some(10_240.0), Some(51_200.0)));
    assert_eq!(machine.switches, Some(500.0));
    assert_eq!((machine.memory_total, machine.memory_available), (Some(1_024_000), Some(409_600)));
    assert_eq!(machine.swap_used, Some(6 * 1024));
    assert_eq!((machine.net_receive, machine.net_send), (None, None), "there is no such file");
}

#[test]
fn time_of_workers_that_come_and_go_is_kept() {
    let fake = Fake::new();
    fake.process(1, 0, 1_000, 0, 10);
    fake.process(50, 1, 0, 0, 100);
    let mut sampler = fake.sampler(Some(50));
    fake.process(51, 50, 30, 0, 40);
    fake.process(52, 51, 5, 0, 20);
    fake.process(50, 1, 10, 0, 100);
    let tree = at(&mut sampler, 100).tree.unwrap();
    assert_eq!((tree.processes, tree.threads), (3, 6));
    assert_eq!(tree.cpu_seconds, 0.45);
    assert!((tree.cpu.unwrap() - 4.5).abs() < 1e-9, "45 ticks of 10 ms in 100 ms");
    assert_eq!(tree.rss, 160 * rustix::param::page_size() as u64);

    // The worker ends and is waited for: it and its own child pass on their time, and a bit more that no sample
    // saw.
    fake.end(51);
    fake.end(52);
    fake.process(50, 1, 12, 40, 100);
    let tree = at(&mut sampler, 200).tree.unwrap();
    assert_eq!((tree.processes, tree.cpu_seconds), (1, 0.52));

    // A process that comes and goes between two samples.
    fake.process(50, 1, 12, 60, 100);
    assert_eq!(at(&mut sampler, 300).tree.unwrap().cpu_seconds, 0.72);

    // A process that nobody waits for.
    fake.process(60, 50, 25, 0, 10);
    assert_eq!(at(&mut sampler, 400).tree.unwrap().cpu_seconds, 0.97);
    fake.end(60);
    let tree = at(&mut sampler, 500).tree.unwrap();
    assert_eq!((tree.processes, tree.cpu_seconds, tree.cpu), (1, 0.97, Some(0.0)));

    fake.end(50);
    assert_eq!(at(&mut sampler, 600).tree, None);
}

#[test]
fn a_worker_whose_parent_ended_stays_in_the_tree() {
    let fake = Fake::new();
    fake.process(50, 1, 0, 0, 100);
    fake.process(51, 50, 10, 0, 40);
    let mut sampler = fake.sampler(Some(50));
    fake.end(50);
    fake.process(51, 1, 20, 0, 40);
    let tree = at(&mut sampler, 100).tree.unwrap();
    assert_eq!((tree.processes, tree.cpu_seconds), (1, 0.2));
}

#[test]
fn limits_of_control_groups_of_both_versions_are_found_on_every_level() {
    let fake = Fake::new();
    fake.write("proc/self/cgroup", "0::/a/b\n");
    fake.write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
    fake.write("sys/fs/cgroup/a/memory.max", "max\n");
    fake.write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    fake.write("sys/fs/cgroup/a/b/memory.max", "4096\n");
    fake.write("sys/fs/cgroup/a/b/memory.current", "1024\n");
    fake.write("sys/fs/cgroup/a/cpu.stat", "usage_usec 1\nnr_throttled 1\nthrottled_usec 1000\n");
    let mut sampler = fake.sampler(None);
    fake.write("sys/fs/cgroup/a/cpu.stat", "usage_usec 1\nnr_throttled 2\nthrottled_usec 26000\n");
    let group = at(&mut sampler, 100).cgroup;
    let want = Cgroup {
        cpu_limit: Some(1.5),
        memory_limit: Some(4096),
        memory_used: Some(1024),
        throttled: Some(0.25),
    };
    assert_eq!(group, want);

    let fake = Fake::new();
    fake.write("proc/self/cgroup", "5:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n1:name=systemd:/\n");
    fake.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n");
    fake.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    fake.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    fake.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "77\n");
    let group = at(&mut fake.sampler(None), 100).cgroup;
    assert_eq!(
        (group.cpu_limit, group.memory_limit, group.memory_used),
        (Some(0.5), None, Some(77)),
        "a container sees its own group as the root"
    );
}

#[test]
fn cards_of_amd_are_read_from_sys_and_other_cards_are_not() {
    let fake = Fake::new();
    let device = "sys/class/drm/card1/device";
    for (name, text) in [
        ("vendor", "0x1002"),
        ("gpu_busy_percent", "37"),
        ("mem_info_vram_used", "1000"),
        ("mem_info_vram_total", "4000"),
        ("hwmon/hwmon3/power1_average", "41000000"),
        ("hwmon/hwmon3/temp1_input", "55500"),
        ("hwmon/hwmon3/freq1_input", "1700000000"),
    ] {
        fake.write(&format!("{device}/{name}"), &format!("{text}\n"));
    }
    fake.write("sys/class/drm/card0/device/vendor", "0x8086\n");
    fake.write("sys/class/drm/card1-DP-1/status", "connected\n");
    let gpus = at(&mut fake.sampler(None), 100).gpus;
    let want = Gpu {
        busy: Some(0.37),
        memory_used: Some(1000),
        memory_total: Some(4000),
        power: Some(41.0),
        temperature: Some(55.5),
        clock: Some(1_700.0),
        ..Gpu::default()
    };
    assert_eq!(gpus, [want]);
}

/// The parts of NVIDIA's library that are called, with one GPU throttled by its power limit and one process on
/// it.
const NVML_SOURCE: &str = r#"
#include <string.h>
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory;
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } Process;
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = (void *)1; return i ? 6 : 0; }
int nvmlDeviceGetName(void *d, char *s, unsigned n) { strncpy(s, "Made-up GPU", n); return 0; }
int nvmlDeviceGetUtilizationRates(void *d, unsigned *u) { u[0] = 64; u[1] = 20; return 0; }
int nvmlDeviceGetMemoryInfo_v2(void *d, Memory *m) { m->total = 8000; m->free = 5000; m->used = 3000; return 0; }
int nvmlDeviceGetPowerUsage(void *d, unsigned *mw) { *mw = 150500; return 0; }
int nvmlDeviceGetEnforcedPowerLimit(void *d, unsigned *mw) { return 3; }
int nvmlDeviceGetClockInfo(void *d, int type, unsigned *mhz) { *mhz = type == 1 ? 1410 : 5001; return 0; }
int nvmlDeviceGetTemperature(void *d, int sensor, unsigned *c) { *c = 71; return 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *d, unsigned long long *r) { *r = 4; return 0; }
int nvmlDeviceGetPcieThroughput(void *d, int counter, unsigned *kb) { *kb = counter ? 200 : 100; return 0; }
int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, Process *p) {
  if (*n < 1) { *n = 1; return 7; }
  *n = 1; p->pid = 50; p->used = 2000; p->gi = p->ci = 0xffffffffu; return 0;
}
"#;

fn fake_nvml(folder: &Path) -> Option<PathBuf> {
    let (source, library) = (folder.join("nvml.c"), folder.join("libmade-up.so"));
    fs::write(&source, NVML_SOURCE).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-w", "-o"]).arg(&library).arg(&source).status();
    match built {
        Ok(status) if status.success() => Some(library),
        _ => {
            skip(Needs::Compiler, "no C compiler for a stand-in of NVIDIA's library");
            None
        }
    }
}

#[test]
fn gpus_of_nvidia_are_read_through_its_library_and_what_it_cannot_say_is_unknown() {
    let fake = Fake::new();
    let Some(library) = fake_nvml(fake.folder.path()) else { return };
    fake.process(50, 1, 0, 0, 100);
    let options = Options {
        proc: fake.path("proc"),
        sys: fake.path("sys"),
        root: Some(50),
        nvml: Nvml::At(library),
        interval: Duration::from_millis(1),
        ..Options::default()
    };
    let mut sampler = Sampler::new(&options);
    assert_eq!(sampler.gpus(), 1);
    let deadline = Instant::now() + Duration::from_secs(5);
    // The bus is read on the sampler's own thread.
    let sample = loop {
        let sample = sampler.sample();
        if sample.gpus[0].bus_send.is_some() || Instant::now() > deadline {
            break sample;
        }
        std::thread::yield_now();
    };
    let want = Gpu {
        index: 0,
        name: Some("Made-up GPU".to_owned()),
        busy: Some(0.64),
        memory_busy: Some(0.20),
        memory_used: Some(3000),
        memory_total: Some(8000),
        processes: vec![(50, 2000)],
        power: Some(150.5),
        power_limit: None,
        clock: Some(1410.0),
        memory_clock: Some(5001.0),
        temperature: Some(71.0),
        throttled: Some(vec![Throttle::PowerCap]),
        bus_receive: Some(200_000.0),
        bus_send: Some(100_000.0),
    };
    assert_eq!(sample.gpus, [want]);
    assert_eq!(sample.gpu_memory_of_tree, [Some(2000)]);
}

#[test]
fn a_library_that_is_none_is_as_good_as_no_gpu() {
    let fake = Fake::new();
    fake.write("not-a-library.so", "text");
    let options = Options { nvml: Nvml::At(fake.path("not-a-library.so")), ..Options::default() };
    assert!(
        Sampler::new(&options).sample().gpus.iter().all(|gpu| gpu.name.as_deref() != Some("Made-up GPU"))
    );
}

#[test]
fn this_machine_can_be_sampled() {
    let options = Options { root: Some(std::process::id()), ..Options::default() };
    let mut sampler = Sampler::new(&options);
    // Other tests and programs need the processor as well: measure our own time.
    let own =
        || Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime)).unwrap();
    let begun = own();
    while own() - begun < Duration::from_millis(150) {}
    let sample = sampler.sample();
    let tree = sample.tree.unwrap();
    assert!(tree.cpu_seconds >= 0.08, "{tree:?}");
    assert!(tree.rss > 1 << 20 && tree.largest_peak.unwrap() > 1 << 20);
    assert_eq!(sample.machine.cores.len(), sampler.cores());
    assert!(sample.machine.memory_total.unwrap() > tree.rss);
}

#[test]
fn lines_of_csv_have_as_many_cells_as_there_are_names() {
    let fake = Fake::new();
    fake.write("proc/stat", "cpu  1 0 0 1\ncpu0 1 0 0 1\n");
    fake.process(50, 1, 0, 0, 100);
    let mut sampler = fake.sampler(Some(50));
    let mut out = Vec::new();
    let mut csv = CsvWriter::new(&mut out, &sampler).unwrap();
    let sample = at(&mut sampler, 100);
    csv.write(&sample).unwrap();
    csv.write(&Sample::default()).unwrap();
    let text = String::from_utf8(out).unwrap();
    let cells: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
    assert_eq!(cells.len(), 3);
    assert!(cells.iter().all(|count| *count == cells[0]), "{text}");
    assert!(text.starts_with("time_unix_s,elapsed_s,machine_cpu_percent,"), "{text}");
    assert!(text.lines().next().unwrap().ends_with("core0_percent"));
}
