//! Distributed TensorFlow jobs on processors, as each process' own recorder writes them: workers that meet in collectives,
//! replicas inside one process, parameter servers, a tf.data service. One scene per cause, and one without it. Nothing here knows the program
//! under test: who is late follows from how the scene was made.

use super::Ns;
use super::to_xplane::Plane;
use crate::xspace::{XSpace, XValue};

const PYTHON: (i64, &str) = (1, "python");
const EXECUTOR: (i64, &str) = (2, "tf_Compute/1");
const QUEUE: (i64, &str) = (3, "tf_GrpcWorkerEnvQueues/1");
const EXCHANGE: (i64, &str) = (4, "collective_ops/1");
const INPUT: (i64, &str) = (50, "tf_data_iterator_resource/1");

const MS: Ns = 1_000_000;
const STEPS: i64 = 12;
/// In 2026.
const BEGAN_NS: Ns = 1_790_000_000_000_000_000;

/// What is wrong with a job of three workers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum JobTrouble {
    /// Nothing: equal workers.
    None,
    /// Nothing either, but two workers ask the third for parameters before each collective.
    SetUp,
    /// Worker 1 runs an op that the others do not run.
    ExtraOp,
    /// Every op of worker 1 takes three times as long.
    SlowMachine,
    /// One op of worker 1 takes seven times as long, the others as long as elsewhere.
    SlowOp,
    /// Worker 1 spends time in Python.
    Python,
    /// Worker 1 waits for its input pipeline.
    Input,
    /// Another worker spends time in Python in each step.
    InTurn,
    /// Forty collectives per step, each with its set-up.
    ManyCollectives,
    /// One collective per step that takes most of it.
    Transfer,
    /// The same, while another thread computes.
    Hidden,
}

/// A process' file under construction.
struct Process {
    plane: Plane,
    calls: u64,
}

impl Process {
    fn new() -> Self {
        Process { plane: Plane::new("/host:CPU"), calls: 0 }
    }

    fn put(&mut self, line: (i64, &str), name: &str, from: Ns, until: Ns, stats: &[(&str, XValue)]) {
        let stats = stats.iter().map(|(key, value)| self.plane.stat(key, value.clone())).collect();
        self.plane.put(line, name, (from, until), stats);
    }

    fn op(&mut self, line: (i64, &str), name: &str, from: Ns, until: Ns) {
        self.put(line, name, from, until, &[]);
    }

    /// A step with the call of its function.
    fn step(&mut self, number: i64, from: Ns, until: Ns) {
        self.put(
            PYTHON,
            "train",
            from,
            until,
            &[("step_num", XValue::Int64(number)), ("_r", XValue::Int64(1))],
        );
    }

    fn call(&mut self, from: Ns, until: Ns) {
        let call = XValue::Str("notTraced-nonXla".to_owned());
        self.put(PYTHON, "step", from, until, &[("tf_function_call", call)]);
        self.op(PYTHON, "TFE_Py_ExecuteCancelable", from + 5_000, until - 5_000);
        self.op(PYTHON, "EagerLocalExecute: __inference_step_7", from + 10_000, until - 10_000);
    }

    /// One collective: called, set up, exchanged.
    fn collective(&mut self, name: &str, line: (i64, &str), instance: i64, times: [Ns; 3], ranks: i64) {
        let [arrived, began, ended] = times;
        self.calls += 1;
        let (call, run) = (XValue::UInt64(1_000 + self.calls), XValue::UInt64(900_000 + self.calls));
        let named = ("name", XValue::Str(name.to_owned()));
        let group = [("group_key", XValue::Int64(1)), ("group_size", XValue::Int64(ranks))];
        self.put(
            EXECUTOR,
            "CollectiveOpV2Kernel::Run",
            arrived,
            arrived + 1_000,
            &[named.clone(), ("_p", call.clone())],
        );
        let resolved = began - 9_000;
        self.put(QUEUE, "CollectiveExecutor::CompleteParams", arrived + 2_000, resolved - 1_000, &group);
        let done = "CollectiveExecutor::CompleteParamsAsync::Done";
        self.put(QUEUE, done, resolved, resolved + 5_000, &[named.clone(), ("_c", call.clone())]);
        self.put(
            QUEUE,
            "BaseCollectiveExecutor::ExecuteAsync",
            resolved + 1_000,
            resolved + 2_000,
            &[("_p", run.clone())],
        );
        let keys = [("instance_key", XValue::Int64(instance)), ("group_key", XValue::Int64(1)), ("_c", run)];
        self.put(line, &format!("{name}:CollectiveReduceV2"), began, ended + 2_000, &keys);
        self.put(
            line,
            "CollectiveExecutor::ExecuteAsync::Done",
            ended,
            ended + 1_500,
            &[named, ("_c", call)],
        );
    }

    fn file(mut self) -> Vec<u8> {
        // Lines say when they began, by the machine's clock.
        self.plane.plane.lines.iter_mut().for_each(|line| line.timestamp_ns = BEGAN_NS);
        let hostnames = vec!["machine".to_owned()];
        XSpace { planes: vec![self.plane.plane], hostnames, ..XSpace::default() }.encode()
    }
}

/// A small difference that is always the same, below two percent.
fn jitter(worker: i64, step: i64) -> Ns {
    ((worker * 7 + step * 13) % 11) * 30_000
}

/// What a worker does before the collective of a step, in order: wait for input, Python, ops; in nanoseconds.
fn own_work(trouble: JobTrouble, worker: i64, step: i64) -> [Ns; 4] {
    let late = worker == 1;
    let factor = if trouble == JobTrouble::SlowMachine && late { 3 } else { 1 };
    let ops = if trouble == JobTrouble::ManyCollectives { 4 } else { 20 };
    let compute = factor * (ops * MS + jitter(worker, step));
    match trouble {
        JobTrouble::Input if late => [60 * MS, 0, compute, 0],
        JobTrouble::Python if late => [0, 60 * MS, compute, 0],
        JobTrouble::InTurn if step % 3 == worker => [0, 60 * MS, compute, 0],
        JobTrouble::ExtraOp if late => [0, 0, compute, 60 * MS],
        JobTrouble::SlowOp if late => [0, 0, compute, 24 * MS],
        _ => [0, 0, compute, 0],
    }
}

/// The files of three workers of a MultiWorkerMirrored job with this trouble.
pub fn workers(trouble: JobTrouble) -> Vec<Vec<u8>> {
    let mut all: Vec<Process> = (0..3).map(|_| Process::new()).collect();
    let mut start = vec![MS; 3];
    let mut instance = 100;
    let (packs, transfer) = match trouble {
        JobTrouble::ManyCollectives => (40, 400_000),
        JobTrouble::Transfer | JobTrouble::Hidden => (1, 40 * MS),
        _ => (1, 4 * MS),
    };
    for step in 0..STEPS {
        let begins = start.clone();
        let mut ready: Vec<Ns> = Vec::new();
        for (worker, process) in all.iter_mut().enumerate() {
            let at = begins[worker] + 100_000;
            let [input, python, compute, extra] = own_work(trouble, worker as i64, step);
            if input > 0 {
                batch(process, at, at + input);
            }
            let from = at + input + python;
            ops(process, from, compute);
            if trouble == JobTrouble::Hidden {
                // The next layers, until just before the exchange ends.
                process.op(
                    (9, "tf_Compute/9"),
                    "next/MatMul:MatMul",
                    from + compute,
                    from + compute + 39 * MS,
                );
            }
            if trouble == JobTrouble::SlowOp && worker == 1 {
                process.op(EXECUTOR, "loss/Sum:Sum", from + compute, from + compute + 24 * MS);
            } else if extra > 0 {
                process.op(EXECUTOR, "extra_work:MatMul", from + compute, from + compute + extra);
            }
            ready.push(from + compute + extra + 50_000);
        }
        for pack in 0..packs {
            instance += 1;
            let sets_up = matches!(trouble, JobTrouble::SetUp | JobTrouble::ManyCollectives);
            let setup = |worker: usize| {
                if sets_up && worker > 0 { 600_000 * if packs > 1 { 1 } else { 10 } } else { 100_000 }
            };
            let began: Vec<Ns> = ready.iter().enumerate().map(|(worker, at)| at + setup(worker)).collect();
            let ended = began.iter().copied().max().unwrap_or(0) + transfer;
            for (worker, process) in all.iter_mut().enumerate() {
                let name = if pack == 0 {
                    "sgd/CollectiveReduceV2".to_owned()
                } else {
                    format!("sgd/CollectiveReduceV2_{pack}")
                };
                let ended = ended + 5_000 * worker as Ns;
                process.collective(&name, EXCHANGE, instance, [ready[worker], began[worker], ended], 3);
                ready[worker] = ended + 20_000;
            }
        }
        for (worker, process) in all.iter_mut().enumerate() {
            let [input, python, ..] = own_work(trouble, worker as i64, step);
            let until = ready[worker] + 500_000;
            process.call(begins[worker] + 100_000 + input + python, until - 100_000);
            process.step(step, begins[worker], until);
            start[worker] = until;
        }
    }
    all.into_iter().map(Process::file).collect()
}

/// Ops of the model that take this long together.
fn ops(process: &mut Process, from: Ns, time: Ns) {
    let parts =
        [("dense/Relu:_FusedMatMul", 50), ("gradient_tape/dense/MatMul:MatMul", 30), ("loss/Sum:Sum", 20)];
    let mut at = from;
    for (name, part) in parts {
        process.op(EXECUTOR, name, at, at + time * part / 100 - 1_000);
        at += time * part / 100;
    }
}

/// A batch that a sequential map prepares.
fn batch(process: &mut Process, from: Ns, until: Ns) {
    process.op(PYTHON, "EagerLocalExecute: IteratorGetNext", from, until);
    process.op(PYTHON, "IteratorGetNextOp::DoCompute", from + 1_000, until - 1_000);
    let stage = |name: &str| [("name", XValue::Str(name.to_owned()))];
    process.put(PYTHON, "Iterator::Root", from + 2_000, until - 2_000, &stage("MapDataset:1"));
    process.put(PYTHON, "Iterator::Root::Map", from + 3_000, until - 3_000, &stage("MapDataset:1"));
    process.op(INPUT, "ThreadpoolListener::Record", from, from);
}

/// The file of one process with four replicas that meet in a collective in each step; replica 2 works `factor` times as long.
pub fn replicas(factor: Ns) -> Vec<u8> {
    let mut process = Process::new();
    let mut at = MS;
    for step in 0..STEPS {
        let begin = at;
        let mut ready = Vec::new();
        for replica in 0..4_i64 {
            let line = (10 + replica, "tf_Compute/2");
            let scope = if replica == 0 { String::new() } else { format!("replica_{replica}/") };
            let time = 10 * MS * if replica == 2 { factor } else { 1 } + jitter(replica, step);
            for (place, name) in ["dense/MatMul:MatMul", "dense/Relu:Relu", "loss/Sum:Sum"].iter().enumerate()
            {
                let from = begin + 200_000 + time * place as Ns / 3;
                process.op(line, &format!("{scope}{name}"), from, from + time / 3 - 1_000);
            }
            ready.push(begin + 200_000 + time);
        }
        let ended = ready.iter().copied().max().unwrap_or(0) + 2 * MS;
        for (replica, arrived) in ready.iter().enumerate() {
            let name = if replica == 0 {
                "sgd/CollectiveReduceV2".to_owned()
            } else {
                format!("sgd/CollectiveReduceV2_{replica}")
            };
            let line = (20 + replica as i64, "collective_ops/1");
            process.collective(&name, line, 200 + step, [*arrived, arrived + 50_000, ended], 4);
        }
        process.call(begin + 100_000, ended + 400_000);
        process.step(step, begin, ended + 500_000);
        at = ended + 500_000;
    }
    process.file()
}

const WORKER: &str = "/job:worker/replica:0/task:0/device:CPU:0";

fn server(task: usize) -> String {
    format!("/job:ps/replica:0/task:{task}/device:CPU:0")
}

/// The files of a worker and two parameter servers, of a worker that waits this long for the variables of each server.
pub fn servers(pulls: [Ns; 2]) -> Vec<Vec<u8>> {
    let mut worker = Process::new();
    let mut holders = [Process::new(), Process::new()];
    let mut at = MS;
    for step in 0..STEPS {
        let asked = at + 200_000;
        for (task, holder) in holders.iter_mut().enumerate() {
            let (variable, done) = (format!("dense_{task}/ReadVariableOp"), asked + pulls[task] + 10_000);
            let stats = |link, name: String| {
                [
                    ("name", XValue::Str(name)),
                    ("kernel_type", XValue::Str("_Recv".to_owned())),
                    ("step_id", XValue::Int64(step)),
                    (link, XValue::UInt64((step * 10) as u64 + task as u64)),
                ]
            };
            let name = format!("{variable}/_{task}");
            worker.put(
                EXECUTOR,
                "ExecutorState::ProcessAsync::Start",
                asked,
                asked + 1_000,
                &stats("_p", name.clone()),
            );
            worker.put(
                QUEUE,
                "ExecutorState::ProcessAsync::Done",
                done,
                done + 1_000,
                &stats("_c", name.clone()),
            );
            let sends = asked + pulls[task] / 4;
            holder.put(
                EXECUTOR,
                "ExecutorState::Process",
                sends - 2_000,
                sends + 30_000,
                &[("id", XValue::Int64(step))],
            );
            let key = format!("{};1;{WORKER};edge_{task}_{variable};0:0", server(task));
            let stats = [("from", XValue::Str(variable)), ("key", XValue::Str(key))];
            holder.put(EXECUTOR, &format!("{name}:_Send"), sends, sends + 20_000, &stats);
            holder.op(QUEUE, "ThreadpoolListener::StartRegion", sends, sends);
        }
        let from = asked + pulls.into_iter().max().unwrap_or(0) + 50_000;
        ops(&mut worker, from, 20 * MS);
        let sent = from + 20 * MS;
        let key = format!("{WORKER};1;{};edge_9_mul;0:0", server(0));
        worker.put(EXECUTOR, "mul/_9:_Send", sent, sent + 30_000, &[("key", XValue::Str(key))]);
        worker.call(at + 100_000, sent + 100_000);
        worker.step(step, at, sent + 200_000);
        at = sent + 200_000;
    }
    let [first, second] = holders;
    vec![worker.file(), first.file(), second.file()]
}

const FETCH: (i64, &str) = (60, "tf_data_iterator_resource/6");
const PREFETCH: (i64, &str) = (61, "tf_data_iterator_resource/7");
const SERVED: (i64, &str) = (70, "tf_data_service_fcfs_prefetch_thread/1");

/// The files of a trainer and of the one worker of a tf.data service that needs this long per batch. A trainer's step takes
/// 20 ms without its input.
pub fn data_service(batch: Ns) -> Vec<Vec<u8>> {
    let (mut trainer, mut worker) = (Process::new(), Process::new());
    let stage = |name: &str| vec![("name", XValue::Str(name.to_owned()))];
    let mut at = MS;
    // When the worker has the next batch.
    let mut ready = batch;
    for step in 0..STEPS {
        let asked = at + 100_000;
        let got = asked.max(ready) + 200_000;
        trainer.op(PYTHON, "EagerLocalExecute: IteratorGetNext", asked, got);
        trainer.op(PYTHON, "IteratorGetNextOp::DoCompute", asked + 1_000, got - 1_000);
        trainer.put(PYTHON, "Iterator::Root", asked + 2_000, got - 2_000, &stage("PrefetchDataset:5"));
        trainer.put(
            PYTHON,
            "Iterator::Root::Prefetch",
            asked + 3_000,
            got - 3_000,
            &stage("PrefetchDataset:5"),
        );
        let from = ready - batch + 10_000;
        let mut service = stage("DataServiceDatasetV4:6");
        service.push(("num_tasks", XValue::Int64(1)));
        let below = "Iterator::Root::Prefetch::ParallelMapV2";
        trainer.put(PREFETCH, below, from, ready + 90_000, &stage("ParallelMapDatasetV2:4"));
        trainer.put(PREFETCH, &format!("{below}::DataService"), from + 5_000, ready + 80_000, &service);
        let address = [("address", XValue::Str("10.0.0.7:5050".to_owned()))];
        trainer.put(FETCH, "GetDataServiceElement", from + 10_000, ready + 60_000, &address);
        worker.put(SERVED, "Iterator::Root", from, ready - 5_000, &stage("MapDataset:1"));
        worker.put(SERVED, "Iterator::Root::Map", from + 1_000, ready - 6_000, &stage("MapDataset:1"));
        ready += batch;
        ops(&mut trainer, got + 100_000, 20 * MS);
        trainer.call(got + 50_000, got + 20 * MS + 300_000);
        at = got + 20 * MS + 400_000;
        trainer.step(step, asked - 100_000, at);
    }
    vec![trainer.file(), worker.file()]
}
