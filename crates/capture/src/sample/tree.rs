//! A process and its descendants. Workers start and end between two samples; their time must not be lost.
//!
//! A process's time passes to its parent when the parent has waited for it. Therefore the sum over all living
//! processes of their own time and that of children they waited for is the tree's time, even after some have ended. If a
//! parent does not wait (it ignores SIGCHLD, or died first), the child's last known time is kept separately.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::file::Polled;
use super::process::{DiskBytes, Process};

/// Resource use of a process tree. Unknown is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// Number of living processes.
    pub processes: u64,
    /// Number of threads.
    pub threads: u64,
    /// Busy cores since the last sample.
    pub cpu: Option<f64>,
    /// Processor time in seconds of the living and ended processes, since monitoring started.
    pub cpu_seconds: f64,
    /// Memory in bytes; shared pages count for each process.
    pub rss: u64,
    /// Memory in bytes, with shared pages divided among their users. Measured occasionally.
    pub pss: Option<u64>,
    /// Peak memory of the largest single process, in bytes.
    pub largest_peak: Option<u64>,
    /// Bytes per second read from disks.
    pub disk_read: Option<f64>,
    /// Bytes per second written to disks.
    pub disk_write: Option<f64>,
    /// Context switches per second. Measured occasionally, and not with very many threads.
    pub switches: Option<f64>,
}

/// Minimum interval between expensive measurements.
const RARELY: Duration = Duration::from_secs(1);
/// Share of one core that expensive measurements may use: one that took 2 ms is not repeated for 0.8 s.
const COST_SHARE: u32 = 400;
/// With more threads than this, context switches are not counted, because each needs a file.
const MOST_THREADS: u64 = 256;
/// A child's time missing in its parent's count may be rounded by as much as a tick.
const TICKS_OF_DOUBT: u64 = 2;

/// Watches a process and its descendants.
#[derive(Debug)]
pub(super) struct TreeWatch {
    proc: PathBuf,
    loadavg: Polled,
    root: u32,
    members: Vec<Process>,
    /// Processes outside the tree.
    others: HashSet<u32>,
    /// The newest process of the machine at the last search.
    newest: Option<u64>,
    /// Ticks of ended processes that no parent waited for.
    lost: u64,
    /// Ticks from before monitoring started.
    before_us: Option<u64>,
    last_ticks: Option<u64>,
    last_disk: Option<DiskBytes>,
    peak: Option<u64>,
    pss: Rare<u64>,
    switches: Rare<f64>,
    last_switches: Option<(u64, Instant)>,
}

/// An expensive value, measured as rarely as its cost demands.
#[derive(Debug)]
struct Rare<T> {
    value: Option<T>,
    next: Option<Instant>,
}

impl<T: Copy> Rare<T> {
    const NEVER: Rare<T> = Rare { value: None, next: None };

    fn get(&mut self, measure: impl FnOnce() -> Option<T>) -> Option<T> {
        let now = Instant::now();
        if self.next.is_none_or(|next| now >= next) {
            self.value = measure();
            self.next = Some(now + (now.elapsed() * COST_SHARE).max(RARELY));
        }
        self.value
    }
}

impl TreeWatch {
    /// `from_birth`: the root was just started, and all its time counts.
    pub(super) fn new(proc: &Path, root: u32, from_birth: bool) -> Self {
        TreeWatch {
            proc: proc.to_owned(),
            loadavg: Polled::new(proc.join("loadavg")),
            root,
            members: Vec::new(),
            others: HashSet::default(),
            newest: None,
            lost: 0,
            before_us: from_birth.then_some(0),
            last_ticks: None,
            last_disk: None,
            peak: None,
            pss: Rare::NEVER,
            switches: Rare::NEVER,
            last_switches: None,
        }
    }

    /// The living members.
    pub(super) fn pids(&self) -> impl Iterator<Item = u32> + '_ {
        self.members.iter().map(|process| process.pid)
    }

    /// What happened since the last call, `passed` ago. `None` if the whole tree is gone.
    pub(super) fn sample(&mut self, passed: Option<Duration>, buffer: &mut Vec<u8>) -> Option<Tree> {
        self.refresh(buffer);
        self.search(buffer);
        if self.members.is_empty() {
            return None;
        }
        let living: u64 = self.members.iter().map(|process| process.last.ticks()).sum();
        let ticks = living + self.lost;
        let before_us = *self.before_us.get_or_insert(ticks);
        // Rounding may take a tick back when a process passes on its time.
        let ticks = ticks.max(self.last_ticks.unwrap_or(0));
        let seconds = passed.map(|passed| passed.as_secs_f64()).filter(|&seconds| seconds > 0.0);
        let per_second = rustix::param::clock_ticks_per_second() as f64;
        let cpu = self.last_ticks.zip(seconds).map(|(last, s)| (ticks - last) as f64 / per_second / s);
        self.last_ticks = Some(ticks);
        let (disk_read, disk_write) = self.disk_rates(seconds);
        let page = rustix::param::page_size() as u64;
        let threads = self.members.iter().map(|process| process.last.threads).sum();
        Some(Tree {
            processes: self.members.len() as u64,
            threads,
            cpu,
            cpu_seconds: ticks.saturating_sub(before_us) as f64 / per_second,
            rss: self.members.iter().map(|process| process.last.rss_pages * page).sum(),
            largest_peak: self.largest_peak(buffer),
            disk_read,
            disk_write,
            pss: self.pss.get(|| {
                // A zombie process has no memory.
                let alive = self.members.iter().filter(|process| process.last.rss_pages > 0);
                let shares: Vec<u64> = alive.filter_map(|process| process.pss(buffer)).collect();
                (!shares.is_empty()).then(|| shares.iter().sum())
            }),
            switches: self.switch_rate(threads, buffer),
        })
    }

    /// Reads the members again and removes those that have ended.
    fn refresh(&mut self, buffer: &mut Vec<u8>) {
        let before: Vec<(u32, u32, u64, u64)> = self
            .members
            .iter()
            .map(|process| (process.pid, process.last.parent, process.last.ticks(), process.last.reaped))
            .collect();
        self.members.retain_mut(|process| process.refresh(buffer));
        if before.len() == self.members.len() {
            return;
        }
        let alive: Vec<(u32, u64)> =
            self.members.iter().map(|process| (process.pid, process.last.reaped)).collect();
        let living = |pid: u32| alive.iter().find(|(alive, _)| *alive == pid);
        let mut heirs: Vec<(u32, u64)> = Vec::new();
        for &(pid, parent, ticks, _) in before.iter().filter(|(pid, ..)| living(*pid).is_none()) {
            // The nearest living ancestor: a parent that died at the same time has passed everything on.
            let mut heir = parent;
            for _ in 0..before.len() {
                match before.iter().find(|(pid, ..)| *pid == heir) {
                    Some(&(_, next, ..)) if living(heir).is_none() && next != pid => heir = next,
                    _ => break,
                }
            }
            match heirs.iter_mut().find(|(known, _)| *known == heir) {
                Some((_, expected)) => *expected += ticks,
                None => heirs.push((heir, ticks)),
            }
        }
        for (heir, expected) in heirs {
            let had = before.iter().find(|(pid, ..)| *pid == heir).map(|&(.., reaped)| reaped);
            let got = living(heir).zip(had).map_or(0, |(&(_, now), had)| now.saturating_sub(had));
            if got + TICKS_OF_DOUBT < expected {
                self.lost += expected - got;
            }
        }
    }

    /// Searches for new members, if any process of the machine is new.
    fn search(&mut self, buffer: &mut Vec<u8>) {
        let newest =
            self.loadavg.read_record(buffer).and_then(|text| text.trim().rsplit(' ').next()?.parse().ok());
        if newest.is_some() && newest == self.newest {
            return;
        }
        self.newest = newest;
        let Ok(entries) = std::fs::read_dir(&self.proc) else { return };
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let all: HashSet<u32> = pids.collect();
        self.others.retain(|pid| all.contains(pid));
        let known: HashSet<u32> = self.pids().collect();
        let unknown = all.iter().filter(|pid| !known.contains(pid) && !self.others.contains(pid));
        let mut fresh: Vec<Process> =
            unknown.filter_map(|&pid| Process::open(&self.proc, pid, buffer)).collect();
        fresh.sort_unstable_by_key(|process| process.pid);
        // A child may have a lower number than its parent once numbers wrap around: continue while any is
        // found.
        let mut family = known;
        loop {
            let before = family.len();
            let belongs =
                |process: &mut Process| process.pid == self.root || family.contains(&process.last.parent);
            let found: Vec<Process> = fresh.extract_if(.., |process| belongs(process)).collect();
            for mut process in found {
                family.insert(process.pid);
                process.refresh(buffer);
                self.members.push(process);
            }
            if family.len() == before {
                break;
            }
        }
        self.others.extend(fresh.iter().map(|process| process.pid));
    }

    fn disk_rates(&mut self, seconds: Option<f64>) -> (Option<f64>, Option<f64>) {
        let known = self.members.iter().filter_map(|process| process.disk);
        let sum = known.reduce(|a, b| DiskBytes { read: a.read + b.read, written: a.written + b.written });
        let rate = |pick: fn(DiskBytes) -> u64| {
            Some(pick(sum?).saturating_sub(pick(self.last_disk?)) as f64 / seconds?)
        };
        let rates = (rate(|disk| disk.read), rate(|disk| disk.written));
        self.last_disk = sum.or(self.last_disk);
        rates
    }

    /// Only the largest is read at each sample: its peak is the one that can be the tree's.
    fn largest_peak(&mut self, buffer: &mut Vec<u8>) -> Option<u64> {
        if let Some(largest) = self.members.iter_mut().max_by_key(|process| process.last.rss_pages) {
            largest.refresh_peak(buffer);
            self.peak = self.peak.max(largest.peak);
        }
        self.peak
    }

    fn switch_rate(&mut self, threads: u64, buffer: &mut Vec<u8>) -> Option<f64> {
        if threads > MOST_THREADS {
            return None;
        }
        self.switches.get(|| {
            let now = Instant::now();
            let counts: Option<Vec<u64>> =
                self.members.iter().map(|process| process.switches(buffer)).collect();
            let sum = counts?.iter().sum::<u64>();
            let (before, then) = self.last_switches.replace((sum, now))?;
            Some(sum.checked_sub(before)? as f64 / now.duration_since(then).as_secs_f64())
        })
    }
}
