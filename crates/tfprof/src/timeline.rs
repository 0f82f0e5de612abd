//! Views as Chrome traces. The graph view of one step shows what ran when on each device; scope and code view
//! show a flame graph of their totals.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::device::{is_accelerator, is_canonical, is_cpu};
use crate::display::in_order;
use crate::graph::inputs;
use crate::numbers::general;
use crate::profile::{Node, Profile};
use crate::rows::{Of, Row};

/// Number of allocations named at each point.
const NAMED_ALLOCATIONS: usize = 10;
/// Points closer than this, in µs, are dropped.
const CLOSEST: i64 = 100;

/// Events as text; processes and regions come before flows and counters.
#[derive(Default)]
struct Trace {
    first: Vec<String>,
    then: Vec<String>,
}

impl Trace {
    fn process(&mut self, name: &str, pid: i64) {
        let name = quoted(name);
        self.first
            .push(format!(r#"{{"args":{{"name":{name}}},"name":"process_name","ph":"M","pid":{pid}}}"#));
    }

    fn region(&mut self, name: &str, args: &str, pid: i64, tid: i64, ts: i64, dur: i64) {
        let name = quoted(name);
        self.first.push(format!(
            r#"{{"args":{args},"cat":"Op","dur":{dur},"name":{name},"ph":"X","pid":{pid},"tid":{tid},"ts":{ts}}}"#
        ));
    }

    fn flow(&mut self, phase: char, name: &str, id: i64, (pid, tid, ts): (i64, i64, i64)) {
        let name = quoted(&format!("{name}_flow"));
        self.then.push(format!(
            r#"{{"cat":"DataFlow","id":{id},"name":{name},"ph":"{phase}","pid":{pid},"tid":{tid},"ts":{ts}}}"#
        ));
    }

    fn counter(&mut self, name: &str, args: &str, pid: i64, ts: i64) {
        self.then.push(format!(
            r#"{{"args":{args},"cat":"Memory","name":"{name}","ph":"C","pid":{pid},"tid":0,"ts":{ts}}}"#
        ));
    }

    fn finish(mut self) -> String {
        self.first.append(&mut self.then);
        format!("{{\"traceEvents\":[{}]}}\n", self.first.join(","))
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The totals of a scope or code view, one process per depth.
pub(crate) fn tree(rows: &[Row], root: usize) -> String {
    let mut trace = Trace::default();
    let mut deepest = -1;
    let mut open = vec![(root, 0, 0)];
    while let Some((at, start, depth)) = open.pop() {
        if depth > deepest {
            trace.process(&format!("Scope:{depth}"), depth);
            deepest = depth;
        }
        let row = &rows[at];
        let name = quoted(&row.name);
        let args = format!(r#"{{"name":{name},"op":{name}}}"#);
        trace.region(&row.name, &args, depth, 0, start, row.total.exec_micros);
        let (mut next, mut below) = (start, Vec::new());
        for &child in row.shown.iter().filter(|&&child| rows[child].total.exec_micros > 0) {
            below.push((child, next, depth + 1));
            next = i64::saturating_add(next, rows[child].total.exec_micros);
        }
        open.extend(below.into_iter().rev());
    }
    trace.finish()
}

/// An execution to be drawn.
struct Drawn {
    node: usize,
    duration: i64,
    lane: i64,
    /// Where it sends data: device, start.
    feeds: Vec<(String, i64)>,
}

/// What ran when in one step, and the peak of each accelerator's memory in words.
pub(crate) fn graph(profile: &Profile, step: i64, rows: &[Row], root: usize) -> (String, Vec<String>) {
    let mut trace = Trace::default();
    let mut pids: BTreeMap<String, i64> = BTreeMap::new();
    let mut drawn: BTreeMap<String, BTreeMap<i64, Drawn>> = BTreeMap::new();
    let mut memory: BTreeMap<&str, Memory> = BTreeMap::new();
    for at in in_order(rows, root).into_iter().skip(1) {
        let Of::Node(index) = rows[at].of else { continue };
        let node = &profile.nodes[index];
        let Some(exec) = node.trackable(step) else { continue };
        memory.entry(&node.device).or_default().track(node, step);
        let mut lanes: Vec<_> =
            exec.lanes.iter().map(|lane| (profile.device_name(lane.device).to_owned(), lane)).collect();
        lanes.sort_by(|a, b| a.0.cmp(&b.0));
        for (device, lane) in lanes {
            let new = pids.len() as i64;
            if !pids.contains_key(&device) {
                let kind = if device.contains("stream") { "execution" } else { "scheduling" };
                trace.process(&format!("Op {kind} threads: {device}"), new);
                pids.insert(device.clone(), new);
            }
            let on_device = drawn.entry(device).or_default();
            for &(start, duration) in &lane.times {
                // If several start together, the first is drawn.
                on_device.entry(start).or_insert(Drawn { node: index, duration, lane: 0, feeds: Vec::new() });
            }
        }
    }
    link(profile, step, rows, &mut drawn);
    drawn.values_mut().for_each(spread);
    emit(profile, &drawn, &pids, &mut trace);
    let words = counters(&memory, pids.len() as i64, &mut trace);
    (trace.finish(), words)
}

/// Data that crosses devices.
fn link(profile: &Profile, step: i64, rows: &[Row], drawn: &mut BTreeMap<String, BTreeMap<i64, Drawn>>) {
    let mut flows: Vec<(String, i64, String, i64)> = Vec::new();
    for (device, on_device) in drawn.iter().filter(|(device, _)| is_canonical(device)) {
        for (start, to) in on_device {
            for from in inputs(profile, to.node).into_iter().filter(|&from| rows[from].accounted) {
                let Some(exec) = profile.nodes[from].trackable(step) else { continue };
                for lane in exec.lanes.iter().filter(|lane| !lane.accelerator) {
                    let source = profile.device_name(lane.device);
                    if source == device || !is_canonical(source) {
                        continue;
                    }
                    let times = lane.times.iter().map(|(from, _)| *from);
                    flows.extend(times.map(|from| (source.to_owned(), from, device.clone(), *start)));
                }
            }
        }
    }
    for (source, from, device, start) in flows {
        if let Some(from) = drawn.get_mut(&source).and_then(|on_device| on_device.get_mut(&from)) {
            from.feeds.push((device, start));
        }
    }
}

/// Assigns each execution of a device to the first free lane.
fn spread(on_device: &mut BTreeMap<i64, Drawn>) {
    let mut ends: Vec<i64> = Vec::new();
    for (&start, drawn) in on_device.iter_mut() {
        let free = ends.iter().position(|end| *end <= start);
        let lane = free.unwrap_or(ends.len());
        let end = start.saturating_add(drawn.duration);
        match free {
            Some(lane) => ends[lane] = end,
            None => ends.push(end),
        }
        drawn.lane = lane as i64;
    }
}

fn emit(
    profile: &Profile,
    drawn: &BTreeMap<String, BTreeMap<i64, Drawn>>,
    pids: &BTreeMap<String, i64>,
    trace: &mut Trace,
) {
    let pid_of = |device: &str| pids.get(device).copied().unwrap_or(0);
    let mut devices: Vec<&String> = drawn.keys().collect();
    devices.sort_by_key(|device| pid_of(device));
    let mut flow = 1;
    for device in devices {
        let (on_device, pid) = (&drawn[device], pid_of(device));
        let mut all: Vec<(&i64, &Drawn)> = on_device.iter().collect();
        all.sort_by_key(|(start, drawn)| (drawn.lane, **start));
        for (&start, from) in all {
            let name = &profile.nodes[from.node].name;
            let args = format!(r#"{{"name":{}}}"#, quoted(name));
            trace.region(name, &args, pid, from.lane, start, from.duration);
            for (device, start_of) in &from.feeds {
                let Some(to) = drawn.get(device).and_then(|on_device| on_device.get(start_of)) else {
                    continue;
                };
                let end = start.saturating_add(from.duration);
                trace.flow('s', name, flow, (pid, from.lane, end));
                trace.flow('t', name, flow, (pid_of(device), to.lane, *start_of));
                flow += 1;
            }
        }
    }
}

/// Memory of one device over a step.
#[derive(Default)]
struct Memory {
    /// What each node holds, by start time.
    held: BTreeMap<String, BTreeMap<i64, i64>>,
    /// What the allocator had given out.
    in_use: BTreeMap<i64, i64>,
}

impl Memory {
    fn track(&mut self, node: &Node, step: i64) {
        let Some(exec) = node.execs.get(&step) else { return };
        let mut changes: BTreeMap<i64, i64> = BTreeMap::new();
        let mut add = |at: i64, bytes: i64| {
            let sum = changes.entry(at).or_default();
            *sum = sum.saturating_add(bytes);
        };
        exec.allocations.iter().for_each(|&(at, bytes)| add(at, bytes));
        add(0, node.accelerator_persistent());
        let held = self.held.entry(node.name.clone()).or_default();
        let mut last = 0i64;
        for (at, bytes) in changes {
            last = last.saturating_add(bytes);
            held.insert(at, last);
        }
        self.in_use.extend(exec.in_use.iter().copied().filter(|(at, _)| *at > 0));
    }

    /// What is held at a time, by size: names of nodes.
    fn at(&self, time: i64) -> BTreeMap<i64, Vec<&str>> {
        let mut sizes: BTreeMap<i64, Vec<&str>> = BTreeMap::new();
        for (name, held) in &self.held {
            let before = held.range(..time).next_back().or_else(|| held.first_key_value());
            if let Some((_, &bytes)) = before.filter(|(_, bytes)| **bytes > 0) {
                sizes.entry(bytes).or_default().push(name);
            }
        }
        sizes
    }
}

fn counters(memory: &BTreeMap<&str, Memory>, mut pid: i64, trace: &mut Trace) -> Vec<String> {
    let mut words = Vec::new();
    for (device, memory) in memory.iter().filter(|(device, _)| !is_cpu(device)) {
        trace.process(&format!("mem usage on:{device}"), pid);
        trace.process(&format!("mem usage on:{device} allocations"), pid + 1);
        let (mut most, mut last) = (0, 0);
        for (&at, &bytes) in &memory.in_use {
            most = most.max(bytes);
            if at.saturating_sub(last) < CLOSEST {
                continue;
            }
            last = at;
            trace.counter("Allocated Bytes", &format!(r#"{{"Allocator Bytes in Use":{bytes}}}"#), pid, at);
            trace.counter("Top Allocations", &top(&memory.at(at), bytes), pid + 1, at);
        }
        if is_accelerator(device) {
            words.push(format!("{device} peak memory: {:.2} MB", most as f64 / 1e6));
        }
        pid += 2;
    }
    words
}

/// The largest allocations at a point, and what is left.
fn top(sizes: &BTreeMap<i64, Vec<&str>>, mut left: i64) -> String {
    let mut named: BTreeMap<String, String> =
        (1..NAMED_ALLOCATIONS).map(|at| (format!("Top Allocation {at:02}"), "N/A".to_owned())).collect();
    let mut count = 0;
    for (&bytes, names) in sizes.iter().rev() {
        for name in names {
            if left < bytes || count >= NAMED_ALLOCATIONS {
                break;
            }
            let text = format!("{} MB from {name}", general(bytes as f64 / 1e6));
            named.insert(format!("Top Allocation {count:02}"), text);
            count += 1;
            left -= bytes;
        }
    }
    named.insert("Not Displayed".to_owned(), format!("{:.2} MB", left as f64 / 1e6));
    let mut text = String::from("{");
    for (at, (key, value)) in named.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        let _ = write!(text, "{comma}{}:{}", quoted(key), quoted(value));
    }
    text + "}"
}

/// The notice that tfprof prints after writing a timeline.
pub fn timeline_notice(view: crate::View, file: &str, peaks: &[String]) -> String {
    let line = "******************************************************";
    let mut text = String::new();
    if view == crate::View::Graph {
        text += "generating trace file.\n";
        peaks.iter().for_each(|peak| text += &format!("{peak}\n"));
    }
    text += &format!("\n{line}\nTimeline file is written to {file}.\n");
    text + &format!("Open a Chrome browser, enter URL chrome://tracing and load the timeline file.\n{line}\n")
}
