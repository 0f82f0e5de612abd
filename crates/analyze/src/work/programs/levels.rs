//! Levels of memory: what an instruction reads and writes on the chip and in main memory, and how large the last cache is.
//!
//! TPUs place arrays in memory on the chip (VMEM), which the layout of each array states. GPUs have caches, which no program
//! mentions: all that can be said is whether one execution fits. What neither file nor table states is unknown.

use stepscope_hlo::{Instruction, Module, VECTOR_SPACE};

use super::{Peaks, ProgramOp};

/// Bytes that one execution moves to and from memory on the chip.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct OnChip {
    /// Bytes of operands that lie there.
    pub read: u64,
    /// Bytes of results that lie there.
    pub written: u64,
}

impl OnChip {
    /// What the layouts of an instruction's operands and results say.
    pub(super) fn of(module: &Module<'_>, instruction: &Instruction<'_>) -> Self {
        let read = module.operands(instruction).map(|operand| operand.shape.bytes_in(VECTOR_SPACE));
        OnChip { read: read.fold(0, u64::saturating_add), written: instruction.shape.bytes_in(VECTOR_SPACE) }
    }

    fn all(self) -> u64 {
        self.read.saturating_add(self.written)
    }
}

/// Where the bytes of an instruction come from at best.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Level {
    /// The device's main memory.
    Main,
    /// One execution fits into the last cache, which may serve all of it.
    Cache,
    /// Memory on the chip that programs place arrays in.
    OnChip,
}

impl Level {
    /// For tables.
    pub fn name(self) -> &'static str {
        match self {
            Level::Main => "HBM",
            Level::Cache => "L2",
            Level::OnChip => "VMEM",
        }
    }
}

impl ProgramOp {
    /// Bytes of all executions that cross the device's main memory; `None` if unknown.
    pub fn main_bytes(&self) -> Option<u64> {
        let all = self.bytes()?;
        let stated = self.facts.stated_main_bytes.map(|bytes| bytes.saturating_mul(self.totals.executions));
        Some(stated.unwrap_or_else(|| {
            all.saturating_sub(self.facts.on_chip.all().saturating_mul(self.totals.executions))
        }))
    }

    /// Bytes that all executions read from and write to memory on the chip.
    pub fn on_chip(&self) -> OnChip {
        let OnChip { read, written } = self.facts.on_chip;
        let times = |bytes: u64| bytes.saturating_mul(self.totals.executions);
        OnChip { read: times(read), written: times(written) }
    }

    /// Bytes that all executions move to and from memory on the chip.
    pub fn on_chip_bytes(&self) -> u64 {
        self.on_chip().all()
    }

    /// Whether its time is only that of starting something: rates of what it starts would be nonsense.
    pub fn only_starts(&self) -> bool {
        self.facts.opcode.ends_with("-start")
    }

    /// The level that serves it at best; `None` if nothing is known about the device's memory, or if the host's is the limit.
    pub fn level(&self, peaks: &Peaks) -> Option<Level> {
        if self.facts.host_memory() {
            return None;
        }
        let main = self.main_bytes()?;
        if main == 0 && self.on_chip_bytes() > 0 {
            return Some(Level::OnChip);
        }
        let each = main / self.totals.executions.max(1);
        match peaks.cache_bytes {
            Some(cache) if each <= cache => Some(Level::Cache),
            _ => peaks.memory.map(|_| Level::Main),
        }
    }
}

impl Peaks {
    /// Seconds that memory takes at best, and the level that takes longest; `None` if no level that is used has a known rate.
    pub(super) fn memory_seconds(&self, op: &ProgramOp) -> Option<(Level, f64)> {
        let chip = op.on_chip();
        let time = |bytes: u64, rate: Option<f64>| rate.map(|rate| bytes as f64 / rate);
        let main = time(op.main_bytes()?, self.memory).map(|seconds| (Level::Main, seconds));
        let on_chip = [time(chip.read, self.on_chip_read), time(chip.written, self.on_chip_write)];
        let on_chip = on_chip.into_iter().flatten().reduce(f64::max).map(|seconds| (Level::OnChip, seconds));
        main.into_iter().chain(on_chip).max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// Bytes of the last cache before main memory, by the device's common name as the table of specifications writes it; from the
/// vendors' data sheets and architecture papers. What is not listed is unknown.
pub(super) fn cache_bytes(device: &str) -> Option<u64> {
    const MIB: u64 = 1 << 20;
    let mib = match device {
        "T4" => 4,
        "P100 SXM2" | "P100 PCIe" => 4,
        "V100 SXM2" | "V100 SXM3" | "V100 PCIe" | "V100S" => 6,
        "A10" | "A10G" | "A40" | "RTX A6000" | "RTX 3090" | "RTX 3090 Ti" => 6,
        "A30" => 24,
        "A100 40GB" | "A100 SXM 80GB" | "A100 PCIe 80GB" | "A800 SXM 80GB" | "A800 PCIe 80GB" => 40,
        "L4" => 48,
        "L40" | "L40S" | "RTX 6000 Ada" => 96,
        "RTX 4090" => 72,
        "H100 SXM" | "H100 PCIe" | "H100 NVL" | "H200" | "H200 NVL" => 50,
        "Instinct MI100" | "Instinct MI210" | "Instinct MI250" | "Instinct MI250X" => 8,
        "Instinct MI300X" | "Instinct MI300A" | "Instinct MI325X" => 256,
        _ => return None,
    };
    Some(mib * MIB)
}

#[cfg(test)]
mod tests {
    use super::super::{Cost, OpFacts, OpTotals, ProgramKey};
    use super::*;
    use stepscope_trace::Dur;

    fn op(bytes: u64, on_chip: OnChip) -> ProgramOp {
        ProgramOp {
            program: ProgramKey::default(),
            op: "fusion.1".to_owned(),
            facts: OpFacts {
                known: true,
                cost: Cost { bytes, vector: 1, ..Cost::default() },
                on_chip,
                ..OpFacts::default()
            },
            totals: OpTotals { executions: 2, own: Dur::from_us(10), ..OpTotals::default() },
        }
    }

    #[test]
    fn each_level_counts_against_its_own_rate() {
        let mut peaks = Peaks::given(Some(1e15), Some(100.0));
        peaks.on_chip_read = Some(1_000.0);
        peaks.on_chip_write = Some(500.0);
        let split = op(1_000, OnChip { read: 600, written: 300 });
        assert_eq!((split.main_bytes(), split.on_chip_bytes()), (Some(200), 1_800));
        // 200 bytes at 100 per second against 1,200 at 1,000 and 600 at 500.
        assert_eq!(peaks.memory_seconds(&split), Some((Level::Main, 2.0)));
        assert_eq!(split.level(&peaks), Some(Level::Main));
        let inside = op(900, OnChip { read: 600, written: 300 });
        assert_eq!(peaks.memory_seconds(&inside), Some((Level::OnChip, 1.2)));
        assert_eq!(inside.level(&peaks), Some(Level::OnChip));
    }

    #[test]
    fn what_fits_into_the_cache_is_marked_and_an_unknown_cache_is_not_guessed() {
        let peaks = Peaks::given(None, Some(100.0));
        let small = op(1_000, OnChip::default());
        assert_eq!(small.level(&peaks), Some(Level::Main));
        assert_eq!(small.level(&Peaks { cache_bytes: Some(1_000), ..peaks.clone() }), Some(Level::Cache));
        assert_eq!(small.level(&Peaks { cache_bytes: Some(999), ..peaks }), Some(Level::Main));
        assert_eq!(small.level(&Peaks::default()), None);
        assert_eq!(cache_bytes("A device of next year"), None);
    }

    #[test]
    fn bytes_that_the_profile_states_come_first() {
        let mut stated = op(1_000, OnChip { read: 600, written: 0 });
        stated.facts.stated_main_bytes = Some(50);
        assert_eq!(stated.main_bytes(), Some(100));
    }
}
