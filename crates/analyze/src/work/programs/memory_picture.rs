//! The memory of one program as a picture: the heap over the program, where each value lies and when, and what exists at the
//! peak by the stack that made it.

use std::collections::BTreeMap;

use stepscope_hlo::{MemoryUse, Module, label};
use stepscope_trace::Trace;

use super::card::stack;
use super::modules::modules;
use super::{LiveValue, ProgramKey};

/// The memory of one program in one space.
#[derive(Clone, Debug, Default)]
pub struct MemoryPicture {
    /// The program.
    pub program: ProgramKey,
    /// Spaces that it uses.
    pub spaces: Vec<i64>,
    /// Figures; the series and what is live are below.
    pub figures: MemoryUse,
    /// Bytes over the program: position in the compiler's trace, bytes with what exists all the time. Thinned, the peak kept.
    pub curve: Vec<(usize, u64)>,
    /// Positions in all.
    pub length: usize,
    /// Values in the memory for temporary ones, the largest first.
    pub boxes: Vec<MemoryBox>,
    /// Values that are too small to be drawn.
    pub more_boxes: usize,
    /// What exists at the peak, by stack: places from the outermost call inwards, and bytes.
    pub stacks: Vec<(Vec<String>, u64)>,
    /// What exists at the peak, the largest first.
    pub live: Vec<LiveValue>,
}

/// A value: where it lies, and from when to when.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryBox {
    /// The instruction.
    pub op: String,
    /// The framework's name.
    pub label: String,
    /// The line of source.
    pub source: String,
    /// Its place in the allocation.
    pub offset: u64,
    /// Its bytes.
    pub size: u64,
    /// When it comes.
    pub start: usize,
    /// When it goes.
    pub end: usize,
}

/// Points of the curve, and boxes, at most.
const MOST_POINTS: usize = 2_000;
const MOST_BOXES: usize = 1_500;
/// Values at the peak.
const MOST_LIVE: usize = 200;

/// The memory of a program in a space; `None` if there is no such program, or it has no buffers.
pub fn memory_picture(trace: &Trace, program: u64, space: i64) -> Option<MemoryPicture> {
    let found = modules(trace);
    let bytes = found.iter().find(|module| module.program_id == program)?;
    let module = Module::read(bytes.bytes)?;
    let all = module.memory();
    let spaces = all.iter().filter(|memory| memory.total_bytes > 0).map(|memory| memory.space).collect();
    let memory = all.into_iter().find(|memory| memory.space == space)?;
    let mut boxes = boxes(&module, space);
    boxes.sort_by(|a, b| area(b).cmp(&area(a)).then_with(|| a.start.cmp(&b.start)));
    let more_boxes = boxes.len().saturating_sub(MOST_BOXES);
    boxes.truncate(MOST_BOXES);
    let live =
        memory.live.iter().take(MOST_LIVE).map(|buffer| super::memory::value(&module, buffer)).collect();
    Some(MemoryPicture {
        program: ProgramKey { name: bytes.name.to_owned(), id: Some(bytes.program_id) },
        spaces,
        curve: curve(&memory),
        length: memory.series.len(),
        boxes,
        more_boxes,
        stacks: stacks(&module, &memory),
        live,
        figures: MemoryUse { live: Vec::new(), series: Vec::new(), ..memory },
    })
}

fn area(piece: &MemoryBox) -> u128 {
    u128::from(piece.size) * (piece.end - piece.start).max(1) as u128
}

fn boxes(module: &Module<'_>, space: i64) -> Vec<MemoryBox> {
    let occupied = module.occupied(space).into_iter().filter(|piece| piece.size > 0);
    let piece = |piece: stepscope_hlo::Occupied| {
        let made = piece.instruction.and_then(|id| module.instruction(id));
        MemoryBox {
            op: made.map(|made| made.name.to_owned()).unwrap_or_default(),
            label: made.map(|made| label(made.op_name)).unwrap_or_default(),
            source: made
                .and_then(|made| module.source(made))
                .map(|source| source.to_string())
                .unwrap_or_default(),
            offset: piece.offset,
            size: piece.size,
            start: piece.start,
            end: piece.end.max(piece.start),
        }
    };
    occupied.map(piece).collect()
}

/// Per stretch of the series its highest point, so that no peak is lost.
fn curve(memory: &MemoryUse) -> Vec<(usize, u64)> {
    let stretch = memory.series.len().div_ceil(MOST_POINTS).max(1);
    let chunks = memory.series.chunks(stretch).enumerate();
    let highest = chunks.filter_map(|(number, points)| {
        let place = points.iter().enumerate().max_by_key(|(_, point)| point.bytes)?;
        Some((number * stretch + place.0, place.1.bytes.saturating_add(memory.static_bytes)))
    });
    highest.collect()
}

/// Bytes at the peak by the stack that made them; values without one by their kind and name.
fn stacks(module: &Module<'_>, memory: &MemoryUse) -> Vec<(Vec<String>, u64)> {
    let mut found: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for buffer in &memory.live {
        let made = buffer.instruction.and_then(|id| module.instruction(id));
        let mut path = made.map(|made| stack(module, made)).unwrap_or_default();
        path.reverse();
        if path.is_empty() {
            path.push(format!("{} without a line", buffer.kind.name()));
        }
        let name = made.map_or("", |made| made.name);
        path.push(if name.is_empty() { buffer.kind.name().to_owned() } else { name.to_owned() });
        let bytes = found.entry(path).or_default();
        *bytes = bytes.saturating_add(buffer.size);
    }
    found.into_iter().collect()
}
