//! A saved profile: graph, runs and log of several steps in one file, as stored by tfprof.

use std::collections::BTreeMap;

use crate::{Attr, Frame};

/// A saved profile (`ProfileProto`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SavedProfile {
    /// Its nodes.
    pub nodes: Vec<SavedNode>,
    /// Whether there are call stacks.
    pub has_trace: bool,
    /// The steps that were added.
    pub steps: Vec<i64>,
    /// The texts that frames refer to by number.
    pub strings: BTreeMap<i64, String>,
    /// True if accelerator work was seen, but none of its streams.
    pub misses_streams: bool,
}

/// One node with everything known about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SavedNode {
    /// Its number, by which other nodes refer to it.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// Its operation type.
    pub op: String,
    /// All types that it counts as.
    pub types: Vec<String>,
    /// The shape of the parameter that it holds.
    pub shape: Vec<i64>,
    /// The device that it ran on.
    pub device: String,
    /// The host of that device.
    pub host_device: String,
    /// Its float operations per run.
    pub float_ops: i64,
    /// The call stack that created it, outermost frame first.
    pub stack: Vec<Frame>,
    /// Its attributes.
    pub attrs: Vec<(String, Attr)>,
    /// Its inputs: position, number of the node.
    pub inputs: BTreeMap<i64, i64>,
    /// Which output of a node is used, by the node's number.
    pub ports: BTreeMap<i64, i64>,
    /// The shapes of its outputs.
    pub output_shapes: BTreeMap<i64, Vec<i64>>,
    /// The recording of each step.
    pub execs: BTreeMap<i64, SavedExec>,
}

/// What one step recorded about one node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SavedExec {
    /// Number of runs.
    pub run_count: i64,
    /// Its first start in µs.
    pub start_micros: i64,
    /// Its last end in µs.
    pub end_micros: i64,
    /// Accelerator work by device: start and duration in µs.
    pub accelerator: BTreeMap<String, Vec<(i64, i64)>>,
    /// Host work by device: start and duration in µs.
    pub cpu: BTreeMap<String, Vec<(i64, i64)>>,
    /// Every device that it was seen on.
    pub devices: Vec<String>,
    /// Memory, once per run.
    pub memory: Vec<SavedMemory>,
    /// Changes of allocations: time in µs, number of bytes.
    pub allocations: Vec<(i64, i64)>,
}

/// Memory of one run of one node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SavedMemory {
    /// When, in µs.
    pub micros: i64,
    /// Scratch memory on the host.
    pub host_temp: i64,
    /// Kept memory on the host.
    pub host_persistent: i64,
    /// Scratch memory on the accelerator.
    pub accelerator_temp: i64,
    /// Kept memory on the accelerator.
    pub accelerator_persistent: i64,
    /// Total requested.
    pub requested: i64,
    /// Peak.
    pub peak: i64,
    /// Still held afterwards.
    pub residual: i64,
    /// In outputs.
    pub output: i64,
    /// In use by everyone, according to the allocator.
    pub in_use: i64,
}
