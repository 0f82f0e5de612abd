//! Work of GPUs: render stages and kernels with their queue and launch, and counters.

use std::ops::Range;

use rustc_hash::FxHashMap;
use stepscope_trace::{Datum, Kind, StrId, TraceBuilder};
use stepscope_wire::{Payload, walk};

use super::load::Loader;
use super::points::{ArgSpan, Point, What};
use super::sequence::{Sequence, Table};

/// Names of stages that are no kernels, and the category that Kineto's JSON has for them.
const STAGES: [(&str, &str); 3] =
    [("Memcpy", "gpu_memcpy"), ("Memset", "gpu_memset"), ("Annotation", "gpu_user_annotation")];
/// The category of kernels in every format that is read.
const KERNEL: &str = "kernel";
/// What PyTorch calls parts of a launch here, and what Kineto's JSON calls them.
const LAUNCH_KEYS: [(&str, &str); 2] =
    [("registers_per_thread", "registers per thread"), ("shared_mem_dynamic", "shared memory")];

/// What the first event of a recorder says about its queues and stages, by place.
#[derive(Debug, Default)]
pub(super) struct Specifications {
    queues: Vec<StrId>,
    stages: Vec<StrId>,
}

/// The fields of one piece of work.
#[derive(Default)]
struct Work {
    duration: i64,
    queue: Option<u64>,
    queue_number: Option<u64>,
    stage: Option<u64>,
    stage_number: Option<u64>,
    gpu: i64,
    name: Option<Range<usize>>,
    name_number: Option<u64>,
    kernel: Option<u64>,
    launch: Option<Range<usize>>,
    submission: Option<u64>,
    extra: Vec<Range<usize>>,
}

fn read(file: &[u8], range: Range<usize>, specifications: &mut Option<Range<usize>>) -> Work {
    let mut work = Work::default();
    walk(file, range, |field| match (field.number, field.value) {
        (2, Payload::Varint(value)) => work.duration = value as i64,
        (3, Payload::Varint(value)) => work.queue_number = Some(value),
        (4, Payload::Varint(value)) => work.stage_number = Some(value),
        (13, Payload::Varint(value)) => work.queue = Some(value),
        (14, Payload::Varint(value)) => work.stage = Some(value),
        (10, Payload::Varint(value)) => work.submission = Some(value),
        (11, Payload::Varint(value)) => work.gpu = i64::from(value as i32),
        (17, Payload::Len(range)) => work.name = Some(range),
        (20, Payload::Varint(value)) => work.name_number = Some(value),
        (19, Payload::Varint(value)) => work.kernel = Some(value),
        (21, Payload::Len(range)) => work.launch = Some(range),
        (6, Payload::Len(range)) => work.extra.push(range),
        (7, Payload::Len(range)) => *specifications = Some(range),
        _ => {}
    });
    work
}

impl Specifications {
    fn take(&mut self, builder: &mut TraceBuilder, file: &[u8], range: Range<usize>) {
        walk(file, range, |field| {
            let Payload::Len(entry) = field.value else { return };
            let list = match field.number {
                2 => &mut self.queues,
                3 => &mut self.stages,
                _ => return,
            };
            walk(file, entry, |field| {
                if let (1, Payload::Len(name)) = (field.number, field.value) {
                    list.push(builder.strings.intern_bytes(file.get(name).unwrap_or_default()));
                }
            });
        });
    }

    fn at(list: &[StrId], number: Option<u64>) -> Option<StrId> {
        list.get(usize::try_from(number?).ok()?).copied()
    }
}

impl Loader<'_> {
    /// Takes over one piece of a GPU's work.
    pub(super) fn gpu_work(&mut self, file: &[u8], range: Range<usize>, writer: usize, ns: i64) {
        let mut specifications = None;
        let work = read(file, range, &mut specifications);
        if let Some(range) = specifications {
            self.specifications.take(&mut self.builder, file, range);
        }
        let Some(sequence) = self.sequences.get_mut(writer).and_then(Option::take) else { return };
        let stage = work.stage.and_then(|number| sequence.text(Table::Stages, number));
        let stage = stage.or_else(|| Specifications::at(&self.specifications.stages, work.stage_number));
        let name = self.work_name(file, &work, &sequence, stage);
        let from = self.args.len();
        self.work_args(file, &work, &sequence);
        let queue = work.queue.and_then(|number| sequence.text(Table::Stages, number));
        let queue = queue.or_else(|| Specifications::at(&self.specifications.queues, work.queue_number));
        let queue = queue.unwrap_or_else(|| {
            let number = work.queue.or(work.queue_number).unwrap_or(0);
            self.builder.strings.intern(&format!("queue {number}"))
        });
        self.put_back(writer, sequence);
        let node = self.gpu_node(work.gpu, queue);
        let stage = stage.map_or("", |stage| self.builder.strings.get(stage));
        let category =
            STAGES.iter().find(|(name, _)| *name == stage).map_or(KERNEL, |(_, category)| category);
        let category = self.builder.strings.intern(category);
        let kind = self.builder.kind(Kind { category, ..Kind::slice(name) });
        let args = ArgSpan { from: from as u32, to: self.args.len() as u32 };
        self.points.push(Point { node, ns, what: What::Whole(work.duration.max(0)), kind, args });
    }

    /// The kernel's name, else the event's, else that of its stage.
    fn work_name(&mut self, file: &[u8], work: &Work, sequence: &Sequence, stage: Option<StrId>) -> StrId {
        let text = |table, number: Option<u64>| sequence.text(table, number?);
        text(Table::Kernels, work.kernel)
            .or_else(|| {
                let name = file.get(work.name.clone()?)?;
                Some(self.builder.strings.intern_bytes(name))
            })
            .or_else(|| text(Table::Names, work.name_number))
            .or(stage)
            .unwrap_or_default()
    }

    fn work_args(&mut self, file: &[u8], work: &Work, sequence: &Sequence) {
        if let Some(range) = &work.launch {
            walk(file, range.clone(), |field| match (field.number, field.value) {
                (1, Payload::Len(range)) => self.dimensions(file, range, "grid"),
                (2, Payload::Len(range)) => self.dimensions(file, range, "block"),
                (3, Payload::Len(range)) => self.launch_arg(file, range, sequence),
                _ => {}
            });
        }
        if let Some(submission) = work.submission {
            let key = self.builder.strings.intern("submission");
            self.args.push((key, Datum::UInt(submission)));
        }
        for range in &work.extra {
            let (mut key, mut value) = (None, None);
            walk(file, range.clone(), |field| match (field.number, field.value) {
                (1, Payload::Len(range)) => key = Some(range),
                (2, Payload::Len(range)) => value = Some(range),
                _ => {}
            });
            if let (Some(key), Some(value)) = (key, value) {
                let mut text = |range: Range<usize>| {
                    self.builder.strings.intern_bytes(file.get(range).unwrap_or_default())
                };
                let entry = (text(key), Datum::Str(text(value)));
                self.args.push(entry);
            }
        }
    }

    /// Three sides, spelt as Kineto spells them.
    fn dimensions(&mut self, file: &[u8], range: Range<usize>, key: &str) {
        let mut sides = [1_u64; 3];
        walk(file, range, |field| {
            if let (1..=3, Payload::Varint(value)) = (field.number, field.value)
                && let Some(side) = sides.get_mut(field.number as usize - 1)
            {
                *side = value;
            }
        });
        let text = format!("[{}, {}, {}]", sides[0], sides[1], sides[2]);
        let (key, text) = (self.builder.strings.intern(key), self.builder.strings.intern(&text));
        self.args.push((key, Datum::Json(text)));
    }

    fn launch_arg(&mut self, file: &[u8], range: Range<usize>, sequence: &Sequence) {
        let (mut key, mut value) = (None, None);
        walk(file, range, |field| match (field.number, field.value) {
            (1, Payload::Varint(number)) => key = sequence.text(Table::LaunchKeys, number),
            (2, Payload::Len(range)) => {
                key = Some(self.builder.strings.intern_bytes(file.get(range).unwrap_or_default()));
            }
            (3, Payload::Varint(number)) => value = Some(Datum::Int(number as i64)),
            (4, Payload::Varint(number)) => value = Some(Datum::UInt(number)),
            (5, Payload::Fixed64(bits)) => value = Some(Datum::Float(f64::from_bits(bits))),
            (6, Payload::Len(range)) => {
                value =
                    Some(Datum::Str(self.builder.strings.intern_bytes(file.get(range).unwrap_or_default())));
            }
            (7, Payload::Varint(number)) => value = sequence.text(Table::Texts, number).map(Datum::Str),
            _ => {}
        });
        let Some((key, value)) = key.zip(value) else { return };
        let name = self.builder.strings.get(key);
        let usual = LAUNCH_KEYS.iter().find(|(known, _)| *known == name).map(|(_, usual)| *usual);
        let key = usual.map_or(key, |usual| self.builder.strings.intern(usual));
        self.args.push((key, value));
    }

    /// Takes over values of a GPU's counters; the first packet describes them.
    pub(super) fn gpu_counters(&mut self, file: &[u8], range: Range<usize>, ns: i64) {
        let mut values = Vec::new();
        let (mut gpu, mut described) = (0, None);
        walk(file, range, |field| match (field.number, field.value) {
            (1, Payload::Len(range)) => described = Some(range),
            (2, Payload::Len(range)) => {
                let (mut id, mut value) = (0, None);
                walk(file, range, |field| match (field.number, field.value) {
                    (1, Payload::Varint(number)) => id = number,
                    (2, Payload::Varint(number)) => value = Some(number as i64 as f64),
                    (3, Payload::Fixed64(bits)) => value = Some(f64::from_bits(bits)),
                    _ => {}
                });
                values.extend(value.map(|value| (id, value)));
            }
            (3, Payload::Varint(number)) => gpu = i64::from(number as i32),
            _ => {}
        });
        if let Some(range) = described {
            self.describe_counters(file, range, gpu);
        }
        for (id, value) in values {
            let known = self.gpu_counter_names.get(&(gpu, id)).copied();
            let name = known.unwrap_or_else(|| self.builder.strings.intern(&format!("counter {id}")));
            let node = self.gpu_node(gpu, name);
            self.samples.push((node, ns, value));
        }
    }

    fn describe_counters(&mut self, file: &[u8], range: Range<usize>, gpu: i64) {
        walk(file, range, |field| {
            let (1, Payload::Len(spec)) = (field.number, field.value) else { return };
            let (mut id, mut name) = (0, None);
            walk(file, spec, |field| match (field.number, field.value) {
                (1, Payload::Varint(number)) => id = number,
                (2, Payload::Len(range)) => name = Some(range),
                _ => {}
            });
            if let Some(range) = name {
                let name = self.builder.strings.intern_bytes(file.get(range).unwrap_or_default());
                self.gpu_counter_names.insert((gpu, id), name);
            }
        });
    }
}

/// Names of counters by GPU and number.
pub(super) type CounterNames = FxHashMap<(i64, u64), StrId>;
