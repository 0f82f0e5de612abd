//! What the server may use: how much may be open, and how long and how large one load may get.

use std::time::Duration;

/// What the server may use.
#[derive(Copy, Clone, Debug)]
pub struct Limits {
    /// Sessions that may be open at a time.
    pub sessions: usize,
    /// Bytes of memory for all open sessions, including mapped files. One load may not need more either.
    pub bytes: u64,
    /// How long one load may take.
    pub load: Duration,
}

impl Default for Limits {
    /// A quarter of the machine's memory, and five minutes for one load.
    fn default() -> Self {
        let bytes = memory_of_machine().map_or(4 << 30, |all| all / 4);
        Limits { sessions: 32, bytes, load: Duration::from_secs(300) }
    }
}

fn memory_of_machine() -> Option<u64> {
    kibibytes("/proc/meminfo", "MemTotal:")
}

/// Memory of this process that is not backed by files; `None` if the system does not say.
pub(super) fn anonymous_bytes() -> Option<u64> {
    kibibytes("/proc/self/status", "RssAnon:")
}

fn kibibytes(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}
