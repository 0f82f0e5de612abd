//! Limits of the control group: processors and memory, versions 1 and 2, and throttling.
//!
//! A container sees all cores of its machine but may only be allowed to use two of them: without the limit,
//! utilisation says little.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::file::{Polled, keyed, number, read_once};

/// Limits and throttling of a control group. `None` if not limited or unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cgroup {
    /// CPU limit in cores.
    pub cpu_limit: Option<f64>,
    /// Memory limit in bytes.
    pub memory_limit: Option<u64>,
    /// Memory in use in bytes.
    pub memory_used: Option<u64>,
    /// Share of time since the last sample in which the group was throttled because its processor time was used
    /// up, 0 to 1.
    pub throttled: Option<f64>,
}

/// Version 1 writes the largest number of pages if there is no limit.
const UNLIMITED: u64 = 1 << 60;

/// Watches the control group of a process.
#[derive(Debug)]
pub(super) struct CgroupWatch {
    cpu_limit: Option<f64>,
    memory_limit: Option<u64>,
    memory: Option<Polled>,
    cpu_stat: Option<Polled>,
    before: Option<Duration>,
}

impl CgroupWatch {
    /// `pid` selects the group; `None` means the current process.
    pub(super) fn new(proc: &Path, sys: &Path, pid: Option<u32>) -> Self {
        let who = pid.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
        let groups = read_once(&proc.join(who).join("cgroup")).unwrap_or_default();
        let mount = sys.join("fs/cgroup");
        let cpu = levels(&groups, &mount, "cpu");
        let memory = levels(&groups, &mount, "memory");
        // A limit on any level above also applies.
        let cpu_limit = cpu.iter().filter_map(|folder| cpu_limit(folder)).reduce(f64::min);
        let memory_limit = memory.iter().filter_map(|folder| memory_limit(folder)).min();
        // The relevant usage is that of the level that sets the limit.
        let limiting = memory.iter().find(|folder| memory_limit_is(folder, memory_limit)).or(memory.first());
        let throttling = cpu.iter().find(|folder| cpu_limit_is(folder, cpu_limit)).or(cpu.first());
        let first_open = |folder: Option<&PathBuf>, names: &[&str]| {
            let files = names.iter().filter_map(|name| folder.map(|folder| Polled::new(folder.join(name))));
            files.into_iter().find(Polled::is_open)
        };
        CgroupWatch {
            cpu_limit,
            memory_limit,
            memory: first_open(limiting, &["memory.current", "memory.usage_in_bytes"]),
            cpu_stat: first_open(throttling, &["cpu.stat"]),
            before: None,
        }
    }

    pub(super) fn sample(&mut self, passed: Option<Duration>, buffer: &mut Vec<u8>) -> Cgroup {
        let read = self.memory.as_ref().and_then(|file| file.read_record(buffer));
        let memory_used = read.and_then(|text| text.trim().parse().ok());
        let throttled =
            self.cpu_stat.as_ref().and_then(|file| file.read_record(buffer)).and_then(throttled_time);
        let share = throttled.zip(self.before).zip(passed).map(|((now, before), passed)| {
            (now.saturating_sub(before).as_secs_f64() / passed.as_secs_f64().max(1e-9)).min(1.0)
        });
        self.before = throttled;
        Cgroup {
            cpu_limit: self.cpu_limit,
            memory_limit: self.memory_limit,
            memory_used,
            throttled: share.filter(|_| self.cpu_limit.is_some()),
        }
    }
}

/// The folders of a controller's groups, from the innermost outwards.
fn levels(groups: &str, mount: &Path, controller: &str) -> Vec<PathBuf> {
    let mut found: Option<(Vec<PathBuf>, &str)> = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        if controllers.split(',').any(|name| name == controller) {
            // Mounted under its own name, or with the others on its line.
            found = Some((vec![mount.join(controllers), mount.join(controller)], path));
            break;
        }
        if controllers.is_empty() {
            found = Some((vec![mount.to_owned(), mount.join("unified")], path));
        }
    }
    let Some((bases, path)) = found else { return Vec::new() };
    let Some(base) = bases.into_iter().find(|base| base.is_dir()) else { return Vec::new() };
    let path = path.trim_start_matches('/');
    // Inside a container the path may be the machine's, while the mount shows the container's own group as
    // root.
    let inner = base.join(path);
    if path.is_empty() || !inner.is_dir() || path.split('/').any(|part| part == "..") {
        return vec![base];
    }
    inner.ancestors().take_while(|level| level.starts_with(&base)).map(Path::to_owned).collect()
}

fn cpu_limit(folder: &Path) -> Option<f64> {
    let (quota, period) = match read_once(&folder.join("cpu.max")) {
        Some(text) => {
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?)
        }
        // Without a limit, version 1 contains -1, which is not a valid number here.
        None => {
            let quota = number(&folder.join("cpu.cfs_quota_us"))?;
            (quota as f64, number(&folder.join("cpu.cfs_period_us"))? as f64)
        }
    };
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

fn memory_limit(folder: &Path) -> Option<u64> {
    let version_2 = number(&folder.join("memory.max"));
    version_2.or_else(|| number(&folder.join("memory.limit_in_bytes"))).filter(|&limit| limit < UNLIMITED)
}

fn memory_limit_is(folder: &Path, limit: Option<u64>) -> bool {
    limit.is_some() && memory_limit(folder) == limit
}

fn cpu_limit_is(folder: &Path, limit: Option<f64>) -> bool {
    limit.is_some() && cpu_limit(folder) == limit
}

/// Version 2 counts microseconds, version 1 nanoseconds.
fn throttled_time(text: &str) -> Option<Duration> {
    keyed(text, "throttled_usec")
        .map(Duration::from_micros)
        .or_else(|| keyed(text, "throttled_time").map(Duration::from_nanos))
}
