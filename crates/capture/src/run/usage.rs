//! Summarises the samples of a run as they come: memory only grows by a thin series of moments, from which the
//! utilisation of the steady state is computed.

use std::collections::{BTreeMap, BTreeSet};

use stepscope_results::usage::{GpuUsage, Spread, Usage};

use crate::sample::{Gpu, Sample, Throttle};

#[derive(Copy, Clone, Debug, Default)]
struct Tally {
    count: u64,
    sum: f64,
    max: f64,
}

impl Tally {
    fn add(&mut self, value: Option<f64>) {
        let Some(value) = value.filter(|value| value.is_finite()) else { return };
        self.max = if self.count == 0 { value } else { self.max.max(value) };
        self.count += 1;
        self.sum += value;
    }

    fn spread(&self) -> Option<Spread> {
        (self.count > 0).then(|| Spread { mean: self.sum / self.count as f64, max: self.max })
    }
}

/// Utilisation between two moments.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct UsageWindow {
    /// Seconds from the start of the run.
    pub from_s: f64,
    /// Seconds from the start of the run.
    pub to_s: f64,
    /// Busy cores of the tree.
    pub cpu: Option<f64>,
    /// Share of all cores' time spent waiting for disks.
    pub io_wait: Option<f64>,
    /// Share of time in which any kernel ran, over all GPUs that ran any.
    pub gpu_busy: Option<f64>,
}

/// The parts of a sample that a window needs.
#[derive(Copy, Clone, Debug)]
struct Moment {
    at_s: f32,
    cpu: f32,
    io_wait: f32,
    gpu_busy: f32,
}

/// Maximum number of moments; in longer runs every second one is dropped.
const MOST_MOMENTS: usize = 1 << 17;

/// Summarises samples.
#[derive(Debug, Default)]
pub struct Meter {
    usage: Usage,
    cpu: Tally,
    machine_cpu: Tally,
    io_wait: Tally,
    steal: Tally,
    throttled: Tally,
    disk_read: Tally,
    disk_write: Tally,
    net_receive: Tally,
    net_send: Tally,
    switches: Tally,
    gpus: BTreeMap<u32, GpuMeter>,
    moments: Vec<Moment>,
    /// Number of samples per moment.
    stride: u64,
}

#[derive(Debug, Default)]
struct GpuMeter {
    usage: GpuUsage,
    busy: Tally,
    memory: Tally,
    power: Tally,
    clock: Tally,
    temperature: Tally,
    bus_receive: Tally,
    bus_send: Tally,
    known: u64,
    held: u64,
    reasons: BTreeSet<Throttle>,
}

fn most<T: Ord>(place: &mut Option<T>, value: Option<T>) {
    if value > *place {
        *place = value;
    }
}

impl Meter {
    /// For a machine with this many cores.
    pub fn new(cores: usize) -> Self {
        Meter {
            usage: Usage { cores: Some(cores as u64).filter(|&cores| cores > 0), ..Usage::default() },
            stride: 1,
            ..Meter::default()
        }
    }

    /// Adds a sample.
    pub fn add(&mut self, sample: &Sample) {
        let Sample { machine, cgroup, .. } = sample;
        self.machine_cpu.add(machine.cpu);
        self.io_wait.add(machine.io_wait);
        self.steal.add(machine.steal);
        self.throttled.add(cgroup.throttled);
        self.net_receive.add(machine.net_receive);
        self.net_send.add(machine.net_send);
        let usage = &mut self.usage;
        usage.samples += 1;
        usage.cpu_limit_cores = cgroup.cpu_limit.or(usage.cpu_limit_cores);
        usage.memory_total_bytes = machine.memory_total.or(usage.memory_total_bytes);
        usage.memory_limit_bytes = cgroup.memory_limit.or(usage.memory_limit_bytes);
        most(&mut usage.memory_used_most_bytes, cgroup.memory_used);
        most(&mut usage.swap_peak_bytes, machine.swap_used);
        let least =
            [usage.memory_available_least_bytes, machine.memory_available].into_iter().flatten().min();
        usage.memory_available_least_bytes = least;
        if let Some(tree) = &sample.tree {
            usage.cpu_seconds = Some(tree.cpu_seconds);
            most(&mut usage.rss_peak_bytes, Some(tree.rss));
            most(&mut usage.rss_peak_bytes, tree.largest_peak);
            most(&mut usage.process_peak_bytes, tree.largest_peak);
            most(&mut usage.pss_peak_bytes, tree.pss);
            usage.processes = usage.processes.max(tree.processes);
            usage.threads = usage.threads.max(tree.threads);
            self.cpu.add(tree.cpu);
            self.disk_read.add(tree.disk_read);
            self.disk_write.add(tree.disk_write);
            self.switches.add(tree.switches);
        }
        for (gpu, of_tree) in sample.gpus.iter().zip(&sample.gpu_memory_of_tree) {
            self.gpus.entry(gpu.index).or_default().add(gpu, *of_tree);
        }
        self.keep_moment(sample);
    }

    fn keep_moment(&mut self, sample: &Sample) {
        if !self.usage.samples.is_multiple_of(self.stride.max(1)) {
            return;
        }
        let unknown = |value: Option<f64>| value.map_or(f32::NAN, |value| value as f32);
        let busy = sample.gpus.iter().filter_map(|gpu| gpu.busy).reduce(f64::max);
        self.moments.push(Moment {
            at_s: sample.elapsed.as_secs_f32(),
            cpu: unknown(sample.tree.as_ref().and_then(|tree| tree.cpu)),
            io_wait: unknown(sample.machine.io_wait),
            gpu_busy: unknown(busy),
        });
        if self.moments.len() >= MOST_MOMENTS {
            let mut place = 0;
            self.moments.retain(|_| {
                place += 1;
                place % 2 == 0
            });
            self.stride *= 2;
        }
    }

    /// Utilisation between two moments, in seconds since sampling started.
    pub fn window(&self, from_s: f64, to_s: f64) -> Option<UsageWindow> {
        let (mut cpu, mut io_wait, mut gpu) = (Tally::default(), Tally::default(), Tally::default());
        let inside = |moment: &&Moment| (from_s..=to_s).contains(&f64::from(moment.at_s));
        for moment in self.moments.iter().filter(inside) {
            cpu.add(Some(f64::from(moment.cpu)));
            io_wait.add(Some(f64::from(moment.io_wait)));
            gpu.add(Some(f64::from(moment.gpu_busy)));
        }
        let mean = |tally: Tally| tally.spread().map(|spread| spread.mean);
        (cpu.count > 0).then(|| UsageWindow {
            from_s,
            to_s,
            cpu: mean(cpu),
            io_wait: mean(io_wait),
            gpu_busy: mean(gpu),
        })
    }

    /// The summary.
    pub fn usage(&self) -> Usage {
        Usage {
            cpu_cores: self.cpu.spread(),
            machine_cpu_fraction: self.machine_cpu.spread(),
            io_wait_fraction: self.io_wait.spread(),
            steal_fraction: self.steal.spread(),
            throttled_fraction: self.throttled.spread(),
            disk_read_bytes_per_s: self.disk_read.spread(),
            disk_write_bytes_per_s: self.disk_write.spread(),
            net_receive_bytes_per_s: self.net_receive.spread(),
            net_send_bytes_per_s: self.net_send.spread(),
            switches_per_s: self.switches.spread(),
            gpus: self.gpus.values().map(GpuMeter::usage).collect(),
            ..self.usage.clone()
        }
    }
}

impl GpuMeter {
    fn add(&mut self, gpu: &Gpu, of_tree: Option<u64>) {
        let usage = &mut self.usage;
        usage.index = gpu.index;
        if usage.name.is_none() {
            usage.name.clone_from(&gpu.name);
        }
        usage.memory_total_bytes = gpu.memory_total.or(usage.memory_total_bytes);
        usage.power_limit_watts = gpu.power_limit.or(usage.power_limit_watts);
        most(&mut usage.memory_of_tree_bytes, of_tree);
        self.busy.add(gpu.busy);
        self.memory.add(gpu.memory_used.map(|bytes| bytes as f64));
        self.power.add(gpu.power);
        self.clock.add(gpu.clock);
        self.temperature.add(gpu.temperature);
        self.bus_receive.add(gpu.bus_receive);
        self.bus_send.add(gpu.bus_send);
        if let Some(reasons) = &gpu.throttled {
            self.known += 1;
            self.held += u64::from(!reasons.is_empty());
            self.reasons.extend(reasons);
        }
    }

    fn usage(&self) -> GpuUsage {
        let share = self.held as f64 / self.known.max(1) as f64;
        GpuUsage {
            busy_fraction: self.busy.spread(),
            memory_used_bytes: self.memory.spread(),
            power_watts: self.power.spread(),
            clock_mhz: self.clock.spread(),
            temperature_celsius: self.temperature.spread(),
            bus_receive_bytes_per_s: self.bus_receive.spread(),
            bus_send_bytes_per_s: self.bus_send.spread(),
            throttled_fraction: (self.known > 0).then_some(share),
            throttled_by: self.reasons.iter().map(|why| why.key().to_owned()).collect(),
            ..self.usage.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sample::Tree;

    fn sample(at_ms: u64, cpu: f64, rss: u64) -> Sample {
        let tree = Tree { cpu: Some(cpu), rss, cpu_seconds: 3.0, ..Tree::default() };
        let gpu = Gpu { busy: Some(cpu / 10.0), throttled: Some(vec![Throttle::PowerCap]), ..Gpu::default() };
        Sample {
            elapsed: Duration::from_millis(at_ms),
            tree: Some(tree),
            gpus: vec![gpu],
            gpu_memory_of_tree: vec![Some(rss)],
            ..Sample::default()
        }
    }

    #[test]
    fn means_peaks_and_windows_are_those_of_the_samples() {
        let mut meter = Meter::new(4);
        meter.add(&sample(100, 1.0, 10));
        meter.add(&sample(200, 3.0, 30));
        meter.add(&sample(300, 5.0, 20));
        meter.add(&Sample { elapsed: Duration::from_millis(400), ..Sample::default() });
        let usage = meter.usage();
        assert_eq!(usage.cpu_cores, Some(Spread { mean: 3.0, max: 5.0 }));
        assert_eq!((usage.rss_peak_bytes, usage.samples, usage.cores), (Some(30), 4, Some(4)));
        assert_eq!(usage.io_wait_fraction, None, "nobody knew");
        assert_eq!(usage.gpus[0].throttled_fraction, Some(1.0));
        assert_eq!(usage.gpus[0].throttled_by, [Throttle::PowerCap.key()]);
        assert_eq!(usage.gpus[0].memory_of_tree_bytes, Some(30));
        let window = meter.window(0.15, 9.0).unwrap();
        assert_eq!(window.cpu, Some(4.0));
        assert!((window.gpu_busy.unwrap() - 0.4).abs() < 1e-6);
        assert_eq!(meter.window(7.0, 9.0), None);
    }

    #[test]
    fn a_day_takes_bounded_memory() {
        let mut meter = Meter::new(1);
        for at in 0..864_000_u64 {
            meter.add(&sample(at * 100, 1.0, 1));
        }
        assert!(meter.moments.len() <= MOST_MOMENTS);
        assert_eq!(meter.window(0.0, 1e9).unwrap().cpu, Some(1.0));
    }
}
