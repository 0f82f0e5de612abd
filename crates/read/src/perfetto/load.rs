//! Walks the packets and puts the parts together.

use std::io::Read as _;
use std::ops::Range;
use std::sync::Arc;

use flate2::read::{DeflateDecoder, ZlibDecoder};
use rustc_hash::FxHashMap;
use stepscope_trace::{Clock, Datum, Dur, NoteKind, StrId, Trace, TraceBuilder};
use stepscope_wire::{Broken, Cursor, Payload};

use super::clocks::Clocks;
use super::ftrace::Scheduling;
use super::gpu::{CounterNames, Specifications};
use super::nodes::{Node, Nodes, Owner};
use super::packet::{self, Content, Packet};
use super::placing::Placing;
use super::points::Point;
use super::sequence::Sequence;
use super::track_event::Event;
use crate::budget::Budget;
use crate::{Bytes, Input, Progress};

/// Packets may be compressed together; compressed packets inside compressed packets are no such thing.
const DEPTH: usize = 2;
/// Numbers of processes that stand for GPUs; no process has them.
const GPU_BASE: i64 = -1_000_000;
/// Packets between two reports of progress.
const PACE: usize = 4_096;

/// One end of an arrow.
#[derive(Copy, Clone, Debug)]
pub(super) struct Arrow {
    pub(super) id: u64,
    pub(super) ns: i64,
    pub(super) node: u32,
    pub(super) ends: bool,
}

/// The trace as read so far.
pub(super) struct Loader<'b> {
    pub(super) builder: TraceBuilder,
    budget: &'b Arc<Budget>,
    pub(super) sequences: Vec<Option<Box<Sequence>>>,
    writers: FxHashMap<u32, usize>,
    clocks: Clocks,
    pub(super) nodes: Nodes,
    own_nodes: FxHashMap<(Owner, bool), u32>,
    pub(super) points: Vec<Point>,
    pub(super) args: Vec<(StrId, Datum)>,
    pub(super) samples: Vec<(u32, i64, f64)>,
    pub(super) arrows: Vec<Arrow>,
    pub(super) scheduling: Scheduling,
    pub(super) specifications: Specifications,
    pub(super) gpu_counter_names: CounterNames,
    pub(super) event: Event,
    skipped: u64,
    lost: u64,
}

impl<'b> Loader<'b> {
    pub(super) fn new(budget: &'b Arc<Budget>) -> Self {
        Loader {
            builder: TraceBuilder::new(),
            budget,
            sequences: Vec::new(),
            writers: FxHashMap::default(),
            clocks: Clocks::default(),
            nodes: Nodes::default(),
            own_nodes: FxHashMap::default(),
            points: Vec::new(),
            args: Vec::new(),
            samples: Vec::new(),
            arrows: Vec::new(),
            scheduling: Scheduling::default(),
            specifications: Specifications::default(),
            gpu_counter_names: CounterNames::default(),
            event: Event::default(),
            skipped: 0,
            lost: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.points.is_empty() && self.samples.is_empty() && self.scheduling.is_empty()
    }

    /// Reads all packets. Returns what ended them early.
    pub(super) fn packets(&mut self, file: &[u8], progress: &Progress) -> Option<Broken> {
        let (mut cursor, mut told, mut count) = (Cursor::new(file, 0..file.len()), 0, 0_usize);
        let most = self.budget.most_events(file.len());
        loop {
            let field = match cursor.field() {
                Ok(Some(field)) => field,
                Ok(None) => break,
                Err(broken) => return Some(broken),
            };
            let cut = matches!(field.value, Payload::Cut(_));
            if let (1, Payload::Len(range) | Payload::Cut(range)) = (field.number, field.value) {
                self.packet(file, range, DEPTH);
            }
            if cut {
                return Some(Broken { what: Broken::OVERRUN, at: field.at });
            }
            count += 1;
            if count.is_multiple_of(PACE) {
                progress.advance((cursor.at() - told) as u64, PACE as u64);
                told = cursor.at();
                if self.points.len() + self.samples.len() > most {
                    self.budget.over_events(most);
                    break;
                }
                if self.budget.in_time().is_err() {
                    break;
                }
            }
        }
        progress.advance((file.len() - told) as u64, (count % PACE) as u64);
        None
    }

    fn packet(&mut self, file: &[u8], range: Range<usize>, depth: usize) {
        let (packet, broken) = packet::read(file, range);
        if let Some(broken) = broken {
            self.builder.note(NoteKind::Damaged, broken.what, 1, Some(broken.at as u64));
        }
        let writer = self.writer(packet.sequence);
        let Some(mut sequence) = self.sequences.get_mut(writer).and_then(Option::take) else { return };
        let readable = sequence.take(&mut self.builder, file, &packet);
        let clock = packet.clock.or(sequence.clock);
        self.put_back(writer, sequence);
        self.lost += u64::from(packet.lost && !packet.clears_state());
        if !readable {
            self.skipped += 1;
            return;
        }
        let ns = packet.timestamp.map(|at| self.clocks.time(packet.sequence, clock, at));
        self.content(file, packet, writer, ns, depth);
    }

    fn content(&mut self, file: &[u8], packet: Packet, writer: usize, ns: Option<i64>, depth: usize) {
        match packet.content {
            Some(Content::TrackEvent(range)) => self.track_event(file, range, writer, ns),
            Some(Content::TrackDescriptor(range)) => self.nodes.describe(&mut self.builder, file, range),
            Some(Content::ThreadDescriptor(range)) => {
                let found = self.nodes.thread(&mut self.builder, file, range);
                if let (Some((id, reference)), Some(Some(sequence))) = (found, self.sequences.get_mut(writer))
                {
                    sequence.thread = Some(id);
                    sequence.reference_us = reference;
                }
            }
            Some(Content::ProcessDescriptor(range)) => {
                self.nodes.process(&mut self.builder, file, range);
            }
            Some(Content::ClockSnapshot(range)) => self.clocks.snapshot(file, range, packet.sequence),
            Some(Content::ProcessTree(range)) => self.nodes.tree(&mut self.builder, file, range),
            Some(Content::Ftrace(range)) => self.ftrace(file, range),
            Some(Content::GpuWork(range)) => self.gpu_work(file, range, writer, ns.unwrap_or(0)),
            Some(Content::GpuCounters(range)) => self.gpu_counters(file, range, ns.unwrap_or(0)),
            Some(Content::Deflated(range)) => self.compressed(file, range, false, depth),
            Some(Content::Zstd(range)) => self.compressed(file, range, true, depth),
            None => {}
        }
    }

    /// Packets that were compressed together.
    fn compressed(&mut self, file: &[u8], range: Range<usize>, zstd: bool, depth: usize) {
        let packed = file.get(range.clone()).unwrap_or_default();
        let limit = self.budget.value_bytes();
        let (mut bytes, mut failed) = (Vec::new(), false);
        if zstd {
            let (inflated, error) = Input::from_bytes("", Bytes::held(packed.to_vec())).inflated();
            (bytes, failed) = (inflated.to_vec(), error.is_some());
        } else if ZlibDecoder::new(packed).take(limit).read_to_end(&mut bytes).is_err() && bytes.is_empty() {
            failed = DeflateDecoder::new(packed).take(limit).read_to_end(&mut bytes).is_err();
        }
        if failed || depth == 0 || bytes.len() as u64 >= limit {
            self.builder.note(NoteKind::Damaged, "compressed packets", 1, Some(range.start as u64));
        }
        if depth == 0 {
            return;
        }
        let mut cursor = Cursor::new(&bytes, 0..bytes.len());
        while let Ok(Some(field)) = cursor.field() {
            if let (1, Payload::Len(range) | Payload::Cut(range)) = (field.number, field.value) {
                self.packet(&bytes, range, depth - 1);
            }
        }
    }

    fn writer(&mut self, sequence: u32) -> usize {
        let sequences = &mut self.sequences;
        *self.writers.entry(sequence).or_insert_with(|| {
            sequences.push(Some(Box::default()));
            sequences.len() - 1
        })
    }

    pub(super) fn put_back(&mut self, writer: usize, sequence: Box<Sequence>) {
        if let Some(place) = self.sequences.get_mut(writer) {
            *place = Some(sequence);
        }
    }

    /// A track that the file does not describe by number.
    fn own_node(&mut self, owner: Owner, counts: bool, node: Node) -> u32 {
        *self.own_nodes.entry((owner, counts)).or_insert_with(|| {
            self.nodes.all.push(node);
            (self.nodes.all.len() - 1) as u32
        })
    }

    pub(super) fn thread_node(&mut self, pid: i64, tid: i64) -> u32 {
        let node = Node { thread: Some((pid, tid)), ..Node::default() };
        self.own_node(Owner::Thread(pid, tid), false, node)
    }

    pub(super) fn named_node(&mut self, process: Option<i64>, name: StrId) -> u32 {
        self.own_node(Owner::Named(process, name), true, Node { name, process, ..Node::default() })
    }

    /// The track of an asynchronous operation of an older version.
    pub(super) fn operation_node(&mut self, process: Option<i64>, id: u64) -> u32 {
        // Operations of one process are drawn together; each is paired by itself.
        let key = self.builder.strings.intern(&format!("operation {id:x}"));
        let name = self.builder.strings.intern("operations");
        self.own_node(Owner::Named(process, key), false, Node { name, process, ..Node::default() })
    }

    /// A queue or a counter of a GPU.
    pub(super) fn gpu_node(&mut self, gpu: i64, name: StrId) -> u32 {
        let pid = GPU_BASE.saturating_sub(gpu);
        let title = self.builder.strings.intern(&format!("GPU {gpu}"));
        self.nodes.process_names.insert(pid, title);
        self.own_node(
            Owner::Named(Some(pid), name),
            true,
            Node { name, process: Some(pid), ..Node::default() },
        )
    }

    /// Makes slices, tracks and arrows of everything, and freezes the trace.
    pub(super) fn finish(mut self) -> Trace {
        let mut times: Vec<i64> = self.points.iter().map(|point| point.ns).collect();
        times.extend(self.samples.iter().map(|sample| sample.1));
        times.extend(self.scheduling.ends().map(|ends| [ends.0, ends.1]).into_iter().flatten());
        let origin = times.iter().copied().min().unwrap_or(0);
        let last = times.iter().copied().max().unwrap_or(0);
        drop(times);
        let mut placing = Placing::new(&self.nodes, origin);
        placing.name_all(&mut self.builder);
        let oddities = placing.events(&mut self.builder, &self.points, &self.args, last);
        placing.counters(&mut self.builder, &self.samples);
        placing.arrows(&mut self.builder, self.arrows);
        placing.finish(&mut self.builder);
        let lost = self.scheduling.lost;
        self.scheduling.finish(&mut self.builder, &self.nodes, (origin, last));
        let wall_ns_at_origin = self.clocks.wall_ns(origin).filter(|&ns| ns > 0);
        self.builder.clock = Clock { wall_ns_at_origin, resolution: Dur::from_ns(1) };
        let builder = &mut self.builder;
        builder.note(NoteKind::Unpaired, "", oddities.unpaired, None);
        builder.note(NoteKind::NegativeDuration, "", oddities.negative, None);
        builder.note(NoteKind::DroppedByRecorder, "packets", self.lost, None);
        builder.note(
            NoteKind::DroppedByRecorder,
            "packets without the names that they refer to",
            self.skipped,
            None,
        );
        builder.note(NoteKind::DroppedByRecorder, "events of the kernel", lost, None);
        builder.note(NoteKind::DanglingReference, "clock", self.clocks.unconnected, None);
        self.builder.finish()
    }
}
