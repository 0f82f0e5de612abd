//! What programs keep in memory, by the compiler's own assignment: who is live at the peak, and where it comes from.

use rustc_hash::FxHashMap;
use stepscope_hlo::{AllocationKind, LiveBuffer, MAIN_SPACE, MemoryUse, Module, label, scope};
use stepscope_trace::{Dur, Trace};

use super::ProgramKey;
use super::join::times;
use super::modules::modules;
use crate::context::Context;

/// What a program keeps in the device's main memory when that is fullest.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ProgramPeak {
    /// The most that exists at once.
    pub bytes: u64,
    /// Constants that are part of the program.
    pub constant_bytes: u64,
    /// Results.
    pub output_bytes: u64,
    /// Results that take the place of arguments.
    pub alias_bytes: u64,
    /// Temporary values at the peak.
    pub temporary_bytes: u64,
    /// What is allocated for all temporary values: more than exists at once if gaps are left.
    #[serde(default)]
    pub temporary_allocation: u64,
    /// Bytes of tiles that no element fills.
    pub padding_bytes: u64,
    /// What exists then by line of source, the largest first.
    pub lines: Vec<PeakLine>,
}

/// What one line of source keeps at the peak.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct PeakLine {
    /// Argument, output, constant or temporary.
    pub kind: String,
    /// The line of source; empty if unknown.
    pub source: String,
    /// The framework's name of the largest value.
    pub label: String,
    /// The shape of the largest value.
    pub shape: String,
    /// Bytes of all values of this line and kind.
    pub bytes: u64,
}

/// Lines that are kept.
const MOST_LINES: usize = 16;

/// The peak of a program, by line.
pub(super) fn peak_of(module: &Module<'_>) -> Option<ProgramPeak> {
    let memory = module.memory().into_iter().find(|memory| memory.space == MAIN_SPACE)?;
    let mut lines: Vec<PeakLine> = Vec::new();
    let mut places: FxHashMap<(&'static str, String), usize> = FxHashMap::default();
    let (mut padding_bytes, mut temporary_bytes) = (0, 0u64);
    for live in memory.live.iter().map(|buffer| value(module, buffer)) {
        padding_bytes += live.bytes.saturating_sub(live.unpadded.unwrap_or(live.bytes));
        if live.kind == AllocationKind::Temporary.name() {
            temporary_bytes = temporary_bytes.saturating_add(live.bytes);
        }
        // What no line is known of is told by its name.
        let key = if live.source.is_empty() { live.label.clone() } else { live.source.clone() };
        let place = *places.entry((live.kind, key)).or_insert(lines.len());
        match lines.get_mut(place) {
            Some(line) => line.bytes = line.bytes.saturating_add(live.bytes),
            None => lines.push(PeakLine {
                kind: live.kind.to_owned(),
                source: live.source,
                label: if live.label.is_empty() { live.instruction } else { live.label },
                shape: live.shape,
                bytes: live.bytes,
            }),
        }
    }
    lines.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.source.cmp(&b.source)));
    lines.truncate(MOST_LINES);
    Some(ProgramPeak {
        bytes: memory.peak_bytes,
        constant_bytes: memory.constant_bytes,
        output_bytes: memory.output_bytes,
        alias_bytes: memory.alias_bytes,
        temporary_bytes,
        temporary_allocation: memory.temp_bytes,
        padding_bytes,
        lines,
    })
}

/// Bytes of programs that are read to explain an allocator's peak: those of large models repeat their layers.
const MOST_BYTES: usize = 64 << 20;

/// The peaks of all programs of a trace, whether they ran or not, in the order of the file.
pub fn program_peaks(trace: &Trace) -> Vec<(ProgramKey, ProgramPeak)> {
    let mut left = MOST_BYTES;
    let mut found = Vec::new();
    for module in modules(trace) {
        if module.bytes.len() > left {
            continue;
        }
        left -= module.bytes.len();
        if let Some(peak) = Module::read(module.bytes).and_then(|module| peak_of(&module)) {
            found.push((module.key(), peak));
        }
    }
    found
}

/// The memory of one program in one memory space.
#[derive(Clone, Debug, Default)]
pub struct ProgramMemory {
    /// The program.
    pub program: ProgramKey,
    /// Time in its instructions; zero if it never ran.
    pub time: Dur,
    /// Figures; what is live is in [`Self::live`].
    pub figures: MemoryUse,
    /// The instruction that fills the memory most, and what it is.
    pub peak_at: (String, String),
    /// What is live at the peak, the largest first.
    pub live: Vec<LiveValue>,
}

/// A value that exists at the peak.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveValue {
    /// Argument, output, constant or temporary.
    pub kind: &'static str,
    /// Bytes with padding.
    pub bytes: u64,
    /// Bytes of its elements.
    pub unpadded: Option<u64>,
    /// The instruction that makes it; empty if unknown.
    pub instruction: String,
    /// Its shape.
    pub shape: String,
    /// The framework's name.
    pub label: String,
    /// The user's scopes.
    pub scope: String,
    /// The line of source.
    pub source: String,
}

impl LiveValue {
    /// The instruction that makes it; empty if unknown.
    pub fn made_by(&self) -> &str {
        &self.instruction
    }
}

/// The memory of the programs of one host, or of several merged.
#[derive(Clone, Debug, Default)]
pub struct ProgramMemories {
    /// Programs that ran, the one with the most time first; all programs if none ran.
    pub programs: Vec<ProgramMemory>,
}

impl ProgramMemories {
    /// The memory of one host's programs.
    pub fn of(context: &Context) -> Self {
        let found = modules(context.trace);
        let ran = times(context);
        let mut programs = Vec::new();
        for module in &found {
            let key = module.key();
            let time = ran.get(&key).copied().unwrap_or_default();
            if time == Dur::ZERO && !ran.is_empty() {
                continue;
            }
            let Some(read) = Module::read(module.bytes) else { continue };
            let spaces = read.memory().into_iter().filter(|memory| memory.total_bytes > 0);
            programs.extend(spaces.map(|memory| describe(&read, &key, time, memory)));
        }
        let mut all = ProgramMemories { programs };
        all.rank();
        all
    }

    /// Adds another host. A program that both ran is the same on both.
    pub fn merge(&mut self, other: ProgramMemories) {
        for one in other.programs {
            let same = |own: &&mut ProgramMemory| {
                own.program == one.program && own.figures.space == one.figures.space
            };
            match self.programs.iter_mut().find(same) {
                Some(own) => own.time += one.time,
                None => self.programs.push(one),
            }
        }
        self.rank();
    }

    fn rank(&mut self) {
        self.programs.sort_by(|a, b| {
            let peak = |memory: &ProgramMemory| memory.figures.peak_bytes;
            b.time.cmp(&a.time).then_with(|| peak(b).cmp(&peak(a))).then_with(|| a.program.cmp(&b.program))
        });
    }
}

fn describe(module: &Module<'_>, key: &ProgramKey, time: Dur, memory: MemoryUse) -> ProgramMemory {
    let live = memory.live.iter().map(|buffer| value(module, buffer)).collect();
    let at = memory.peak_instruction.and_then(|id| module.instruction(id));
    let peak_at = at.map(|at| (at.name.to_owned(), label(at.op_name))).unwrap_or_default();
    let figures = MemoryUse { live: Vec::new(), ..memory };
    ProgramMemory { program: key.clone(), time, figures, peak_at, live }
}

pub(super) fn value(module: &Module<'_>, buffer: &LiveBuffer) -> LiveValue {
    let (kind, bytes, unpadded) = (buffer.kind.name(), buffer.size, buffer.unpadded);
    let known = LiveValue { kind, bytes, unpadded, ..LiveValue::default() };
    let Some(instruction) = buffer.instruction.and_then(|id| module.instruction(id)) else { return known };
    LiveValue {
        instruction: instruction.name.to_owned(),
        shape: instruction.shape.at(&buffer.path).map(ToString::to_string).unwrap_or_default(),
        label: label(instruction.op_name),
        scope: scope(instruction.op_name),
        source: module.source(instruction).map(|source| source.to_string()).unwrap_or_default(),
        ..known
    }
}
