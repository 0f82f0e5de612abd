//! The profile: nodes with everything that graph, op log, runs and checkpoint say about them. Views are
//! computed from it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use stepscope_tfgraph::{
    Attr, Frame, Graph, InputSource, NodeDef, NodeRecord, OpLog, SavedProfile, Shape, Variable, timeline_call,
};

use crate::device::{Device, host_of, is_accelerator};
use crate::exec::Exec;
use crate::measures::Measures;
use crate::names::CHECKPOINT_VARIABLE;

/// Everything known about a model and its runs.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    pub(crate) nodes: Vec<Node>,
    by_name: HashMap<String, usize>,
    pub(crate) strings: BTreeMap<i64, String>,
    pub(crate) steps: BTreeSet<i64>,
    pub(crate) has_stacks: bool,
    pub(crate) misses_streams: bool,
    pub(crate) devices: Vec<Device>,
    /// Devices by the name that records use.
    device_numbers: HashMap<String, u32>,
    covered: HashSet<usize>,
    pub(crate) variables: BTreeMap<String, Variable>,
    /// Is that kept of runs which only corrected views need?
    keeps_calls: bool,
    /// Is it corrected?
    pub(crate) is_fixed: bool,
}

/// A node of the graph, or one that only occurs in runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub name: String,
    pub op: String,
    pub types: BTreeSet<String>,
    /// The shape of the parameter that it holds.
    pub shape: Vec<i64>,
    pub output_shapes: BTreeMap<i64, Vec<i64>>,
    /// Inputs by position: the producer's name.
    pub inputs: BTreeMap<i64, String>,
    /// Which output of a producer is used.
    pub ports: HashMap<String, i64>,
    /// Which output each input really is, by position; `None` where only the order of execution is meant.
    pub true_ports: Vec<Option<i64>>,
    /// The tensors that it takes, producer and output: only in a corrected profile.
    pub tensors: Option<Vec<(String, i64)>>,
    /// What a run says that ran.
    pub ran: Option<Box<Ran>>,
    /// What the graph calls it where something else ran: only in a corrected profile.
    pub graph_op: Option<String>,
    /// The device that it ran on; empty where it never ran.
    pub device: String,
    pub host_device: String,
    pub float_ops: i64,
    pub stack: Option<Vec<Frame>>,
    pub attrs: Vec<(String, Attr)>,
    pub execs: BTreeMap<i64, Exec>,
}

/// What a run says that ran in a node's place, and the shapes that came out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ran {
    pub op: String,
    /// Tensors that went in: producer and output.
    pub tensors: Vec<(String, i64)>,
    /// By output.
    pub shapes: BTreeMap<i64, Vec<i64>>,
}

impl Profile {
    /// An empty profile that keeps what runs say beyond what tfprof reads, so that it can be corrected.
    pub fn to_be_fixed() -> Self {
        Profile { keeps_calls: true, ..Profile::default() }
    }

    /// Adds the nodes of a graph; those that are known already stay as they are.
    pub fn add_graph(&mut self, graph: &Graph) {
        for def in &graph.nodes {
            if !self.by_name.contains_key(&def.name) {
                self.insert(Node::of(def));
            }
        }
    }

    /// Adds what an op log says about known nodes.
    pub fn add_op_log(&mut self, log: &OpLog) {
        for (id, text) in &log.strings {
            self.strings.entry(*id).or_insert_with(|| text.clone());
        }
        for entry in &log.entries {
            let Some(&index) = self.by_name.get(&entry.name) else { continue };
            let node = &mut self.nodes[index];
            node.types.extend(entry.types.iter().cloned());
            if entry.float_ops != 0 {
                node.float_ops = entry.float_ops;
            }
            if let Some(stack) = &entry.stack {
                self.has_stacks = true;
                node.stack.get_or_insert_with(|| stack.clone());
            }
        }
    }

    /// Adds one record of a step's run.
    pub fn add_record(&mut self, step: i64, device: &str, record: &NodeRecord<'_>) {
        let name = record.name.split_once(':').map_or(&*record.name, |(name, _)| name);
        let number = self.device(device);
        let index = match self.by_name.get(name) {
            Some(&index) => {
                self.covered.insert(index);
                index
            }
            None if name == "RecvTensor" || name == "_SOURCE" || name.contains("MEMCPY") => return,
            // A node that only occurs in the run is its own type.
            None => self.insert(Node::named(name, name)),
        };
        let device = &self.devices[number as usize];
        self.nodes[index].add_record(step, number, device, record);
        if self.keeps_calls {
            self.nodes[index].add_call(record);
        }
    }

    /// Ends a step that ran on these devices.
    pub fn end_step(&mut self, step: i64, devices: &[String]) {
        self.steps.insert(step);
        let lower: Vec<String> = devices.iter().map(|device| device.to_ascii_lowercase()).collect();
        let placed = lower.iter().any(|device| is_accelerator(device));
        let streams = lower.iter().any(|device| is_accelerator(device) && device.contains("stream:all"));
        self.misses_streams |= placed && !streams;
    }

    /// Adds the variables of a checkpoint.
    pub fn add_variables(&mut self, variables: Vec<Variable>) {
        for variable in variables {
            if let Some(&index) = self.by_name.get(&variable.name) {
                self.nodes[index].types.insert(CHECKPOINT_VARIABLE.to_owned());
            }
            self.variables.insert(variable.name.clone(), variable);
        }
    }

    /// A profile that was saved as a whole.
    pub fn of_saved(saved: &SavedProfile) -> Self {
        let mut profile = Profile {
            strings: saved.strings.clone(),
            steps: saved.steps.iter().copied().collect(),
            has_stacks: saved.has_trace,
            ..Profile::default()
        };
        let names: HashMap<i64, &str> =
            saved.nodes.iter().map(|node| (node.id, node.name.as_str())).collect();
        for node in &saved.nodes {
            let name_of = |id: &i64| names.get(id).map(|name| (*name).to_owned());
            let execs = node.execs.iter();
            let execs = execs
                .map(|(step, exec)| {
                    (*step, Exec::of_saved(exec, &node.device, |device| profile.device(device)))
                })
                .collect();
            let inputs = node.inputs.iter().filter_map(|(at, id)| Some((*at, name_of(id)?))).collect();
            let ports = node.ports.iter().filter_map(|(id, port)| Some((name_of(id)?, *port))).collect();
            profile.insert(Node {
                name: node.name.clone(),
                op: node.op.clone(),
                types: node.types.iter().cloned().collect(),
                shape: node.shape.clone(),
                output_shapes: node.output_shapes.clone(),
                inputs,
                ports,
                device: node.device.clone(),
                host_device: node.host_device.clone(),
                float_ops: node.float_ops,
                stack: Some(node.stack.clone()),
                attrs: node.attrs.clone(),
                execs,
                ..Node::default()
            });
        }
        profile
    }

    /// The share of known nodes that ran.
    pub fn coverage(&self) -> f64 {
        self.covered.len() as f64 / (self.nodes.len() as f64 + 1e-10)
    }

    /// The available steps.
    pub fn steps(&self) -> impl Iterator<Item = i64> {
        self.steps.iter().copied()
    }

    /// How many nodes are known.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Is nothing known?
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether there are call stacks, so that the code view has something to show.
    pub fn has_stacks(&self) -> bool {
        self.has_stacks
    }

    /// The nodes in the byte order of their names.
    pub(crate) fn in_order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by(|a, b| self.nodes[*a].name.cmp(&self.nodes[*b].name));
        order
    }

    pub(crate) fn node(&self, name: &str) -> Option<&Node> {
        self.by_name.get(name).map(|index| &self.nodes[*index])
    }

    pub(crate) fn index_of(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The shapes of a node's inputs; empty if one is unknown.
    pub(crate) fn input_shapes(&self, node: &Node) -> BTreeMap<i64, Vec<i64>> {
        if let Some(tensors) = &node.tensors {
            let shape =
                |(producer, port): &(String, i64)| self.node(producer)?.output_shapes.get(port).cloned();
            return (0..).zip(tensors.iter().map(|tensor| shape(tensor).unwrap_or_default())).collect();
        }
        let shape = |producer: &String| {
            let port = node.ports.get(producer)?;
            self.node(producer)?.output_shapes.get(port).cloned()
        };
        node.inputs.iter().map(|(at, producer)| (*at, shape(producer).unwrap_or_default())).collect()
    }

    pub(crate) fn device_name(&self, number: u32) -> &str {
        self.devices.get(number as usize).map_or("", |device| &device.name)
    }

    fn insert(&mut self, node: Node) -> usize {
        let index = *self.by_name.entry(node.name.clone()).or_insert(self.nodes.len());
        if index == self.nodes.len() {
            self.nodes.push(node);
        }
        index
    }

    fn device(&mut self, name: &str) -> u32 {
        if let Some(number) = self.device_numbers.get(name) {
            return *number;
        }
        let device = Device::new(name);
        let known = self.devices.iter().position(|known| *known == device);
        let number = known.unwrap_or(self.devices.len()) as u32;
        if known.is_none() {
            self.devices.push(device);
        }
        self.device_numbers.insert(name.to_owned(), number);
        number
    }
}

impl Node {
    fn named(name: &str, op: &str) -> Self {
        Node {
            name: name.to_owned(),
            op: op.to_owned(),
            types: BTreeSet::from([op.to_owned()]),
            ..Node::default()
        }
    }

    fn of(def: &NodeDef) -> Self {
        let mut node = Node::named(&def.name, &def.op);
        if let Some(Attr::Shape(shape)) = def.attr("shape") {
            node.shape = dims_of(shape);
        }
        if let Some(Attr::Shapes(shapes)) = def.attr("_output_shapes") {
            node.output_shapes = (0..).zip(shapes.iter().map(dims_of)).collect();
        }
        for (at, input) in (0..).zip(&def.inputs) {
            let source = InputSource::of(input);
            let name = source.name.to_owned();
            node.true_ports.push(source.port);
            // tfprof never reads the port, so that shapes are always those of the first output.
            node.ports.insert(name.clone(), 0);
            node.inputs.insert(at, name);
        }
        node.attrs.clone_from(&def.attrs);
        node
    }

    fn add_record(&mut self, step: i64, number: u32, device: &Device, record: &NodeRecord<'_>) {
        if device.canonical {
            if self.device.is_empty() {
                self.device.clone_from(&device.name);
                self.host_device = host_of(&device.name);
                self.types.insert(device.name.clone());
            } else if self.device != device.name {
                // A node belongs to one device; records of another are copies.
                return;
            }
        }
        let exec = self.execs.entry(step).or_default();
        exec.add_time(number, device, record);
        if self.device == device.name {
            exec.add_memory(device, record);
        }
    }

    /// Keeps what ran, from the first record that says it, and the shapes that came out.
    fn add_call(&mut self, record: &NodeRecord<'_>) {
        let shapes =
            || record.outputs.iter().filter_map(|output| Some((output.slot, output.shape.as_ref()?)));
        match &mut self.ran {
            Some(ran) => {
                for (slot, shape) in shapes() {
                    ran.shapes.entry(slot).or_insert_with(|| run_dims(shape));
                }
            }
            None => {
                let Some(call) = timeline_call(&record.label) else { return };
                let sources = call.inputs().map(InputSource::of);
                self.ran = Some(Box::new(Ran {
                    op: call.op.to_owned(),
                    tensors: sources.filter_map(|it| Some((it.name.to_owned(), it.port?))).collect(),
                    shapes: shapes().map(|(slot, shape)| (slot, run_dims(shape))).collect(),
                }));
            }
        }
    }

    /// The attribute of this name.
    pub fn attr(&self, name: &str) -> Option<&Attr> {
        self.attrs.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Its values in a step, or their averages over the recorded steps if `step` is negative.
    pub fn measures(&self, step: i64) -> Measures {
        let mut measures = self.recorded(step);
        measures.parameters = self.parameters();
        measures.float_ops = match self.execs.is_empty() {
            true => self.float_ops,
            false => self.float_ops.saturating_mul(measures.runs),
        };
        measures
    }

    fn recorded(&self, step: i64) -> Measures {
        if step >= 0 {
            return self.execs.get(&step).map(Exec::measures).unwrap_or_default();
        }
        let mut all = Measures::default();
        self.execs.values().for_each(|exec| all += exec.measures());
        let steps = self.execs.len().max(1) as i64;
        Measures {
            runs: all.runs / steps,
            definitions: 0,
            exec_micros: all.exec_micros / steps,
            accelerator_micros: all.accelerator_micros / steps,
            cpu_micros: all.cpu_micros / steps,
            requested_bytes: all.requested_bytes / steps,
            peak_bytes: all.peak_bytes / steps,
            residual_bytes: all.residual_bytes / steps,
            output_bytes: all.output_bytes / steps,
            ..all
        }
    }

    /// The size of its parameter; 0 if unknown.
    fn parameters(&self) -> i64 {
        if self.shape.is_empty() || self.shape.iter().any(|size| *size < 0) {
            return 0;
        }
        self.shape.iter().copied().fold(1, i64::saturating_mul)
    }

    /// The most memory that it keeps on an accelerator over a step.
    pub fn accelerator_persistent(&self) -> i64 {
        self.execs.values().map(|exec| exec.memory.accelerator_persistent).fold(0, i64::max)
    }

    /// Whether the step can be drawn.
    pub(crate) fn trackable(&self, step: i64) -> Option<&Exec> {
        let exec = self.execs.get(&step)?;
        (exec.start != 0 && !self.device.is_empty() && !self.host_device.is_empty()).then_some(exec)
    }
}

/// A shape of a run, where a single value counts as one dimension, too.
fn run_dims(dims: &[i64]) -> Vec<i64> {
    if dims.is_empty() { vec![1] } else { dims.to_vec() }
}

/// A shape as tfprof takes it: a single value counts as one dimension.
fn dims_of(shape: &Shape) -> Vec<i64> {
    if shape.dims.is_empty() && !shape.unknown_rank { vec![1] } else { shape.dims.clone() }
}
