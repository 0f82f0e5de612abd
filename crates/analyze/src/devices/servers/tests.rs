//! A worker that waits for two servers, of which one is late.

use super::*;
use crate::sketch::{Arg, Sketch};
use stepscope_trace::Trace;

const TO_SERVER: &str =
    "/job:worker/replica:0/task:0/device:CPU:0;1;/job:ps/replica:0/task:0/device:CPU:0;e;0:0";
const FROM: [&str; 2] = [
    "/job:ps/replica:0/task:0/device:CPU:0;1;/job:worker/replica:0/task:0/device:CPU:0;e;0:0",
    "/job:ps/replica:0/task:1/device:CPU:0;1;/job:worker/replica:0/task:0/device:CPU:0;e;0:0",
];
const NAMES: [(&str, &str); 2] =
    [("a/ReadVariableOp", "a/ReadVariableOp/_3"), ("b/ReadVariableOp", "b/ReadVariableOp/_5")];

/// Steps of a millisecond. Variables are asked for at 100 µs; the first comes at 300, the second at 700.
fn worker_trace() -> Trace {
    let mut sketch = Sketch::new();
    let (python, executor, queue) =
        (sketch.thread("python"), sketch.thread("tf_Compute/1"), sketch.thread("tf_GrpcWorkerEnvQueues/1"));
    for step in 0..6 {
        let at = 1_000 * step;
        sketch.event(python, "train", at, 1_000, &[("step_num", Arg::Int(step)), ("_r", Arg::Int(1))]);
        for (number, (_, name)) in NAMES.iter().enumerate() {
            let link = 10 * step + number as i64;
            let args = |key| {
                [
                    ("name", Arg::Text(name)),
                    ("kernel_type", Arg::Text("_Recv")),
                    ("step_id", Arg::Int(step)),
                    (key, Arg::Int(link)),
                ]
            };
            sketch.event(executor, START, at + 90, 10, &args("_p"));
            sketch.event(queue, DONE, at + [300, 700][number], 5, &args("_c"));
        }
        sketch.event(executor, "mul/_9:_Send", at + 800, 10, &[("key", Arg::Text(TO_SERVER))]);
    }
    sketch.finish()
}

fn server_trace(task: usize) -> Trace {
    let mut sketch = Sketch::new();
    let thread = sketch.thread("tf_Compute/1");
    sketch.thread("tf_GrpcWorkerEnvQueues/1");
    for step in 0..6 {
        let at = 1_000 * step + [200, 600][task];
        sketch.event(thread, RUNS, at - 10, 50, &[("id", Arg::Int(step))]);
        let args = [("from", Arg::Text(NAMES[task].0)), ("key", Arg::Text(FROM[task]))];
        sketch.event(thread, "x/_3:_Send", at, 10, &args);
    }
    sketch.finish()
}

#[test]
fn what_a_worker_awaits_belongs_to_the_server_that_sends_it() {
    let (worker, servers) = (worker_trace(), [server_trace(0), server_trace(1)]);
    let mut all = ServersPartial::of(&Context::new(&worker, "w"));
    for server in &servers {
        all.merge(ServersPartial::of(&Context::new(server, "s")));
    }
    let found = all.finish().unwrap_or_default();
    assert_eq!((found.workers, found.waited_ms, found.pull_ms, found.push_ms), (1, 0.6, 0.6, 0.0));
    let by_task: Vec<(u64, i64)> =
        found.servers.iter().map(|server| (server.task, (server.pull_ms * 1e3).round() as i64)).collect();
    assert_eq!(by_task, [(0, 200), (1, 600)]);
    assert_eq!(ServersPartial::of(&Context::new(&servers[0], "s")).finish(), None, "nobody waits");
}

#[test]
fn names_say_what_a_tensor_is_for() {
    assert_eq!(traffic_of(sender_of("StatefulPartitionedCall/MatMul_3/ReadVariableOp/_7")), Traffic::Pull);
    let done = "GroupCrossDeviceControlEdges_0/StatefulPartitionedCall/NoOp/_18";
    assert_eq!(traffic_of(sender_of(done)), Traffic::Push);
    assert_eq!(traffic_of("input"), Traffic::Other);
}
