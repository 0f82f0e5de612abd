//! Runs as exported by Nsight Systems: all processes of a machine in one database.

use std::collections::BTreeMap;

use super::to_kineto::call_name;
use super::{Direction, Event, Kernel, Place, Run, What};
use crate::nsys::{Export, global_tid};

/// What the program reports to NVTX.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// The user's own marks, if any.
    Marks,
    /// Also every op, as with PyTorch's `emit_nvtx`.
    Ops,
}

/// The database as a script.
pub fn write(runs: &[Run], ranges: Ranges) -> Export {
    let mut writer = Writer { export: Export::new(), strings: BTreeMap::new(), ranges };
    writer.export.row(
        "TARGET_INFO_GPU",
        &[
            ("name", "'NVIDIA A100-SXM4-80GB'"),
            ("smCount", "108"),
            ("computeMajor", "8"),
            ("computeMinor", "0"),
            ("threadsPerWarp", "32"),
            ("maxWarpsPerSm", "64"),
            ("maxBlocksPerSm", "32"),
            ("maxRegistersPerSm", "65536"),
            ("maxShmemPerSm", "167936"),
        ],
    );
    for run in runs {
        writer.process(run);
        for event in &run.events {
            writer.event(run, event);
        }
    }
    writer.export
}

struct Writer {
    export: Export,
    strings: BTreeMap<String, i64>,
    ranges: Ranges,
}

type Fields<'a> = Vec<(&'a str, String)>;

impl Writer {
    fn row(&mut self, table: &str, fields: &Fields) {
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.export.row(table, &fields);
    }

    fn string(&mut self, text: &str) -> String {
        let next = self.strings.len() as i64 + 1;
        let id = *self.strings.entry(text.to_owned()).or_insert(next);
        if id == next {
            self.export.string(id, text);
        }
        id.to_string()
    }

    fn process(&mut self, run: &Run) {
        let process = global_tid(run.pid, 0).to_string();
        let name = self.string("python3");
        self.row(
            "PROCESSES",
            &vec![("globalPid", process), ("pid", run.pid.to_string()), ("name", "'python3'".to_owned())],
        );
        for thread in 0..2 {
            let tid = global_tid(run.pid, run.pid + thread).to_string();
            self.row("ThreadNames", &vec![("nameId", name.clone()), ("globalTid", tid)]);
        }
    }

    fn event(&mut self, run: &Run, event: &Event) {
        let times = vec![("start", event.start.to_string()), ("end", event.end.to_string())];
        match event.place {
            Place::Thread(number) => self.on_thread(times, global_tid(run.pid, run.pid + number), event),
            Place::Stream { device, stream } => {
                let queue = [
                    ("deviceId", device.to_string()),
                    ("contextId", "1".to_owned()),
                    ("streamId", stream.to_string()),
                    ("correlationId", event.id.to_string()),
                    ("globalPid", global_tid(run.pid, 0).to_string()),
                ];
                self.on_stream(times.into_iter().chain(queue).collect(), event);
            }
        }
    }

    fn on_thread(&mut self, mut fields: Fields<'static>, tid: i64, event: &Event) {
        fields.push(("globalTid", tid.to_string()));
        let text = match &event.what {
            What::Call(call) => {
                let name = self.string(&format!("{}_v3020", call_name(*call)));
                fields.extend([("correlationId", event.id.to_string()), ("nameId", name)]);
                return self.row("CUPTI_ACTIVITY_KIND_RUNTIME", &fields);
            }
            What::Step(number) => format!("step {number}"),
            What::Request(_) => "inference".to_owned(),
            What::Range(name) => (*name).to_owned(),
            What::Op(name) if self.ranges == Ranges::Ops => {
                format!("{name}, op_id = {}", event.start % 9_973)
            }
            What::WaitForBatch if self.ranges == Ranges::Ops => {
                "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__".to_owned()
            }
            // These are not reported to NVTX.
            _ => return,
        };
        fields.extend([("eventType", "59".to_owned()), ("text", format!("'{text}'"))]);
        self.row("NVTX_EVENTS", &fields);
    }

    fn on_stream(&mut self, mut fields: Fields<'static>, event: &Event) {
        match &event.what {
            What::Kernel(kernel) => self.kernel(fields, kernel, None),
            What::Node(kernel, node) => self.kernel(fields, kernel, Some(*node)),
            What::Graph => {
                fields.extend([("graphId", "3".to_owned()), ("graphExecId", "4".to_owned())]);
                self.row("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", &fields);
            }
            What::Copy { direction, pinned, bytes } => {
                // 0 pageable, 1 pinned, 2 the device's.
                let host = i64::from(*pinned);
                let (kind, from, to) = match direction {
                    Direction::In => (1, host, 2),
                    Direction::Out => (2, 2, host),
                };
                fields.extend([
                    ("bytes", bytes.to_string()),
                    ("copyKind", kind.to_string()),
                    ("srcKind", from.to_string()),
                    ("dstKind", to.to_string()),
                ]);
                self.row("CUPTI_ACTIVITY_KIND_MEMCPY", &fields);
            }
            _ => {}
        }
    }

    fn kernel(&mut self, mut fields: Fields<'static>, kernel: &Kernel, node: Option<i64>) {
        let name = self.string(kernel.torch);
        fields.extend([
            ("demangledName", name.clone()),
            ("shortName", name),
            ("registersPerThread", "32".to_owned()),
            ("gridX", kernel.blocks.to_string()),
            ("gridY", "1".to_owned()),
            ("gridZ", "1".to_owned()),
            ("blockX", "256".to_owned()),
            ("blockY", "1".to_owned()),
            ("blockZ", "1".to_owned()),
        ]);
        fields.extend(node.map(|node| ("graphNodeId", (12_884_901_888 + node).to_string())));
        self.row("CUPTI_ACTIVITY_KIND_KERNEL", &fields);
    }
}
