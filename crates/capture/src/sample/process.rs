//! One process, from its files below /proc.

use std::path::Path;

use super::file::{Polled, keyed};

/// The content of `/proc/PID/stat`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) parent: u32,
    /// Its own ticks.
    pub(super) own: u64,
    /// Ticks of children that it has waited for.
    pub(super) reaped: u64,
    pub(super) threads: u64,
    pub(super) rss_pages: u64,
}

impl Stat {
    /// The name may contain spaces and brackets, so fields are counted from its last bracket.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        // From here on, the state is the first field; proc(5) counts it as the third.
        let mut fields = rest.split_ascii_whitespace();
        let parent = fields.nth(1)?.parse().ok()?;
        let mut number = |skip: usize| fields.nth(skip)?.parse::<i64>().ok();
        let (user, system) = (number(9)?, number(0)?);
        let (user_reaped, system_reaped) = (number(0)?, number(0)?);
        let threads = number(2)?;
        let rss_pages = number(3)?;
        let plain = |value: i64| u64::try_from(value).unwrap_or(0);
        Some(Stat {
            parent,
            own: plain(user) + plain(system),
            reaped: plain(user_reaped) + plain(system_reaped),
            threads: plain(threads),
            rss_pages: plain(rss_pages),
        })
    }

    /// All ticks known through this process.
    pub(super) fn ticks(&self) -> u64 {
        self.own + self.reaped
    }
}

/// Bytes read from and written to disks by a process and the children it waited for.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DiskBytes {
    pub(super) read: u64,
    pub(super) written: u64,
}

/// A process of the tree.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    stat: Polled,
    io: Polled,
    status: Polled,
    /// The last known state.
    pub(super) last: Stat,
    pub(super) disk: Option<DiskBytes>,
    /// Peak memory in bytes, according to the kernel.
    pub(super) peak: Option<u64>,
}

impl Process {
    pub(super) fn open(proc: &Path, pid: u32, buffer: &mut Vec<u8>) -> Option<Self> {
        let folder = proc.join(pid.to_string());
        let stat = Polled::new(folder.join("stat"));
        let last = Stat::parse(stat.read_record(buffer)?)?;
        let (io, status) = (Polled::new(folder.join("io")), Polled::new(folder.join("status")));
        Some(Process { pid, stat, io, status, last, disk: None, peak: None })
    }

    /// Reads again. Returns `false` if it is gone.
    pub(super) fn refresh(&mut self, buffer: &mut Vec<u8>) -> bool {
        let Some(stat) = self.stat.read_record(buffer).and_then(Stat::parse) else { return false };
        self.last = stat;
        if let Some(text) = self.io.read_record(buffer) {
            let bytes = keyed(text, "read_bytes").zip(keyed(text, "write_bytes"));
            self.disk = bytes.map(|(read, written)| DiskBytes { read, written });
        }
        true
    }

    /// The kernel's record of the peak; a process that has ended has none.
    pub(super) fn refresh_peak(&mut self, buffer: &mut Vec<u8>) {
        let peak = self.status.read_record(buffer).and_then(|text| keyed(text, "VmHWM"));
        self.peak = peak.map(|kilobytes| kilobytes * 1024).or(self.peak);
    }

    /// Its share of memory, with shared pages divided among their users. Expensive: the kernel walks all its
    /// pages.
    pub(super) fn pss(&self, buffer: &mut Vec<u8>) -> Option<u64> {
        let rollup = Polled::new(self.folder()?.join("smaps_rollup"));
        keyed(rollup.read(buffer)?, "Pss").map(|kilobytes| kilobytes * 1024)
    }

    /// Context switches of all its threads since they started.
    pub(super) fn switches(&self, buffer: &mut Vec<u8>) -> Option<u64> {
        let mut sum = 0;
        for thread in std::fs::read_dir(self.folder()?.join("task")).ok()?.flatten() {
            let status = Polled::new(thread.path().join("status"));
            // A thread may end while it is being read.
            let Some(text) = status.read_record(buffer) else { continue };
            sum += keyed(text, "voluntary_ctxt_switches")? + keyed(text, "nonvoluntary_ctxt_switches")?;
        }
        Some(sum)
    }

    fn folder(&self) -> Option<&Path> {
        self.stat.path().parent()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_brackets_do_not_shift_the_fields() {
        let text =
            "42 (a) b (c)) S 7 42 42 0 -1 4194304 1 0 0 0 100 20 30 4 20 0 8 0 1000 123456 512 184467 1 1";
        let stat = Stat::parse(text).unwrap();
        assert_eq!(stat, Stat { parent: 7, own: 120, reaped: 34, threads: 8, rss_pages: 512 });
        assert_eq!(stat.ticks(), 154);
        assert_eq!(Stat::parse("42 (x) S 7"), None);
    }
}
