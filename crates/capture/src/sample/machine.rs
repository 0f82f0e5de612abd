//! The machine: processors, memory, disks and network, from /proc/stat, meminfo, diskstats and net/dev.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::file::{Polled, keyed};

/// Utilisation of the whole machine. Unknown is `None`; shares are 0 to 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// Share of all cores' time spent working.
    pub cpu: Option<f64>,
    /// The same for each core; empty if unknown.
    pub cores: Vec<f64>,
    /// Share of all cores' time in which a core was idle and waiting for a disk.
    pub io_wait: Option<f64>,
    /// Share of all cores' time that the hypervisor gave to other machines.
    pub steal: Option<f64>,
    /// Total memory in bytes.
    pub memory_total: Option<u64>,
    /// Available memory in bytes.
    pub memory_available: Option<u64>,
    /// Swap in use, in bytes.
    pub swap_used: Option<u64>,
    /// Bytes per second read from disks.
    pub disk_read: Option<f64>,
    /// Bytes per second written to disks.
    pub disk_write: Option<f64>,
    /// Bytes per second received over the network.
    pub net_receive: Option<f64>,
    /// Bytes per second sent over the network.
    pub net_send: Option<f64>,
    /// Context switches per second.
    pub switches: Option<f64>,
}

/// Jiffies of one core, or of all.
#[derive(Copy, Clone, Debug, Default)]
struct Jiffies {
    busy: u64,
    io_wait: u64,
    steal: u64,
    total: u64,
}

impl Jiffies {
    fn of(fields: &str) -> Option<Self> {
        let mut values = [0_u64; 8];
        let mut fields = fields.split_ascii_whitespace();
        for (place, value) in values.iter_mut().enumerate() {
            match fields.next() {
                Some(field) => *value = field.parse().ok()?,
                None if place >= 4 => break,
                None => return None,
            }
        }
        let [user, nice, system, idle, io_wait, irq, soft_irq, steal] = values;
        let busy = user + nice + system + irq + soft_irq;
        Some(Jiffies { busy, io_wait, steal, total: busy + idle + io_wait + steal })
    }

    fn share(self, before: Self, part: impl Fn(Self) -> u64) -> Option<f64> {
        let total = self.total.checked_sub(before.total).filter(|&total| total > 0)?;
        // The kernel's wait counter may go back a little.
        Some(part(self).saturating_sub(part(before)) as f64 / total as f64).map(|share| share.min(1.0))
    }
}

/// Counts since boot.
#[derive(Clone, Debug, Default)]
struct Counts {
    all: Option<Jiffies>,
    cores: Vec<Jiffies>,
    switches: Option<u64>,
    disk: Option<(u64, u64)>,
    net: Option<(u64, u64)>,
}

/// Watches the machine.
#[derive(Debug)]
pub(super) struct MachineWatch {
    stat: Polled,
    meminfo: Polled,
    diskstats: Polled,
    net: Polled,
    sys: PathBuf,
    /// Names of whole disks; partitions and layers above them would count the same bytes again.
    disks: Vec<String>,
    /// Names of network devices to count.
    interfaces: Vec<String>,
    before: Option<Counts>,
    now: Counts,
}

impl MachineWatch {
    pub(super) fn new(proc: &Path, sys: &Path) -> Self {
        MachineWatch {
            stat: Polled::new(proc.join("stat")),
            meminfo: Polled::new(proc.join("meminfo")),
            diskstats: Polled::new(proc.join("diskstats")),
            net: Polled::new(proc.join("net/dev")),
            sys: sys.to_owned(),
            disks: with_device(&sys.join("block")),
            interfaces: with_device(&sys.join("class/net")),
            before: None,
            now: Counts::default(),
        }
    }

    pub(super) fn cores(&self) -> usize {
        self.before.as_ref().map_or(0, |before| before.cores.len())
    }

    /// What happened since the last call, `passed` ago; rates are unknown on the first call.
    pub(super) fn sample(&mut self, passed: Option<Duration>, buffer: &mut Vec<u8>) -> Machine {
        self.count(buffer);
        let mut machine = Machine::default();
        self.memory(&mut machine, buffer);
        if let Some(before) = &self.before {
            let now = &self.now;
            let share = |part: fn(Jiffies) -> u64| now.all?.share(before.all?, part);
            machine.cpu = share(|jiffies| jiffies.busy);
            machine.io_wait = share(|jiffies| jiffies.io_wait);
            machine.steal = share(|jiffies| jiffies.steal);
            if now.cores.len() == before.cores.len() {
                let pairs = now.cores.iter().zip(&before.cores);
                // Within less than a tick, a core's share is unknown; the machine's share is used.
                let one = |(now, before): (&Jiffies, &Jiffies)| {
                    now.share(*before, |jiffies| jiffies.busy).or(machine.cpu).unwrap_or_default()
                };
                machine.cores = pairs.map(one).collect();
            }
            let seconds = passed.map(|passed| passed.as_secs_f64()).filter(|&seconds| seconds > 0.0);
            let rate =
                |now: Option<u64>, before: Option<u64>| Some(now?.checked_sub(before?)? as f64 / seconds?);
            let each = |now: Option<(u64, u64)>, before: Option<(u64, u64)>| {
                let part = |pick: fn((u64, u64)) -> u64| rate(now.map(pick), before.map(pick));
                (part(|pair| pair.0), part(|pair| pair.1))
            };
            (machine.disk_read, machine.disk_write) = each(now.disk, before.disk);
            (machine.net_receive, machine.net_send) = each(now.net, before.net);
            machine.switches = rate(now.switches, before.switches);
        }
        std::mem::swap(self.before.get_or_insert_default(), &mut self.now);
        machine
    }

    fn count(&mut self, buffer: &mut Vec<u8>) {
        let now = &mut self.now;
        (now.all, now.switches) = (None, None);
        now.cores.clear();
        if let Some(text) = self.stat.read(buffer) {
            for line in text.lines() {
                if let Some(rest) = line.strip_prefix("cpu") {
                    match rest.strip_prefix(' ') {
                        Some(fields) => now.all = Jiffies::of(fields),
                        None => {
                            let fields = rest.split_once(' ').and_then(|(_, fields)| Jiffies::of(fields));
                            now.cores.extend(fields);
                        }
                    }
                } else if let Some(count) = line.strip_prefix("ctxt ") {
                    now.switches = count.trim().parse().ok();
                    break;
                }
            }
        }
        now.disk = self.diskstats.read(buffer).and_then(|text| disk_bytes(text, &self.disks));
        now.net = self.net.read(buffer).and_then(|text| net_bytes(text, &self.interfaces));
        // Disks may be added at run time; looking at the folder is cheap if none was found.
        if self.disks.is_empty() && self.diskstats.is_open() {
            self.disks = with_device(&self.sys.join("block"));
        }
    }

    fn memory(&self, machine: &mut Machine, buffer: &mut Vec<u8>) {
        let Some(text) = self.meminfo.read(buffer) else { return };
        let bytes = |key| keyed(text, key).map(|kilobytes| kilobytes * 1024);
        machine.memory_total = bytes("MemTotal");
        machine.memory_available = bytes("MemAvailable");
        machine.swap_used =
            bytes("SwapTotal").zip(bytes("SwapFree")).map(|(total, free)| total.saturating_sub(free));
    }
}

/// The entries of a /sys folder that stand for hardware.
fn with_device(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let hardware = entries.flatten().filter(|entry| entry.path().join("device").exists());
    hardware.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Bytes read and written by whole disks. The kernel counts sectors of 512 bytes, whatever the disk's own size.
fn disk_bytes(text: &str, disks: &[String]) -> Option<(u64, u64)> {
    let mut sum: Option<(u64, u64)> = None;
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace().skip(2);
        let Some(name) = fields.next() else { continue };
        if !disks.iter().any(|disk| disk == name) {
            continue;
        }
        let read = fields.nth(2).and_then(|field| field.parse::<u64>().ok());
        let written = fields.nth(3).and_then(|field| field.parse::<u64>().ok());
        if let Some((read, written)) = read.zip(written) {
            let (all_read, all_written) = sum.get_or_insert_default();
            *all_read += read * 512;
            *all_written += written * 512;
        }
    }
    sum
}

/// Bytes received and sent. If no device is hardware, as in a container, all except loopback count.
fn net_bytes(text: &str, interfaces: &[String]) -> Option<(u64, u64)> {
    let mut sum: Option<(u64, u64)> = None;
    for line in text.lines() {
        let Some((name, fields)) = line.split_once(':') else { continue };
        let name = name.trim();
        let counts =
            if interfaces.is_empty() { name != "lo" } else { interfaces.iter().any(|it| it == name) };
        if !counts {
            continue;
        }
        let mut fields = fields.split_ascii_whitespace().map(|field| field.parse::<u64>().ok());
        let received = fields.next().flatten();
        let sent = fields.nth(7).flatten();
        if let Some((received, sent)) = received.zip(sent) {
            let (all_received, all_sent) = sum.get_or_insert_default();
            *all_received += received;
            *all_sent += sent;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_disks_count() {
        let text = "   8 0 sda 10 0 100 5 20 0 200 6 0 7 8\n   8 1 sda1 10 0 100 5 20 0 200 6 0 7 8\n\
                    252 0 dm-0 10 0 100 5 20 0 200 6 0 7 8\n";
        assert_eq!(disk_bytes(text, &["sda".to_owned()]), Some((51_200, 102_400)));
        assert_eq!(disk_bytes(text, &[]), None, "unknown is not nothing");
    }

    #[test]
    fn the_loopback_never_counts() {
        let text = "Inter-|   Receive\n face |bytes\n    lo: 9 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0\n\
                    eth0: 100 1 0 0 0 0 0 0 50 1 0 0 0 0 0 0\nveth1: 7 1 0 0 0 0 0 0 8 1 0 0 0 0 0 0\n";
        assert_eq!(net_bytes(text, &["eth0".to_owned()]), Some((100, 50)));
        assert_eq!(net_bytes(text, &[]), Some((107, 58)));
    }
}
