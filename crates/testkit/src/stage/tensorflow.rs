//! TensorFlow programs on the host's processor, as TensorFlow's own recorder writes them: calls from Python, the executor's
//! threads, ops that wait in the background. Each scene has one problem, or none.

use super::Ns;
use super::to_xplane::Plane;
use crate::xspace::{XSpace, XValue};

const PYTHON: (i64, &str) = (1, "python");
const EXECUTOR: (i64, &str) = (2, "tf_Compute/1");
const SECOND: (i64, &str) = (3, "tf_Compute/2");
const QUEUE: (i64, &str) = (4, "tf_GrpcWorkerEnvQueues/1");
const INPUT: (i64, &str) = (5, "tf_data_iterator_get_next/1");

const MS: Ns = 1_000_000;

/// What slows down the steps of a scene.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing: products in float32.
    None,
    /// The same, with biases that are not fused, as in float64.
    Double,
    /// A loop over samples inside the step.
    InnerLoop,
    /// Text is formatted beside the model's ops.
    Print,
    /// Tensors of another process are awaited.
    RemoteTensors,
    /// Another process runs the step.
    RemoteCalls,
    /// Python threads of the input pipeline hold the interpreter lock.
    LockedByInput,
    /// Other Python threads hold it.
    Locked,
    /// A shuffle buffer fills for 100 ms at the start of each epoch of four steps.
    Refill,
    /// An evaluation of 100 ms follows each epoch of four steps.
    Evaluation,
    /// The same, once, in the middle of the recording.
    EvaluationOnce,
    /// Ops are started one by one, and other programs take the processor away, at another place in each step.
    EagerOnBusyMachine,
    /// Python saves the model after each step.
    SavedEachStep,
}

/// Steps per epoch.
const EPOCH: i64 = 4;

/// A scene under construction.
struct Stage {
    plane: Plane,
}

impl Stage {
    fn put(&mut self, line: (i64, &str), name: &str, from: Ns, until: Ns, stats: &[(&str, XValue)]) {
        let stats = stats.iter().map(|(key, value)| self.plane.stat(key, value.clone())).collect();
        self.plane.put(line, name, (from, until), stats);
    }

    fn op(&mut self, line: (i64, &str), name: &str, from: Ns, until: Ns) {
        self.put(line, name, from, until, &[]);
    }

    /// A call of a compiled function from Python; with `elsewhere`, another process runs it. `rest` is the time until the
    /// call can return.
    fn call(&mut self, from: Ns, until: Ns, rest: Ns, elsewhere: bool) {
        let call = XValue::Str("notTraced-nonXla".to_owned());
        self.put(PYTHON, "train_step", from, until + rest + 20_000, &[("tf_function_call", call)]);
        self.op(PYTHON, "TFE_Py_ExecuteCancelable", from + 10_000, until + rest + 10_000);
        let op = XValue::Str("__inference_train_step_7".to_owned());
        self.put(PYTHON, "EagerExecute", from + 20_000, until, &[("eager_op", op)]);
        if !elsewhere {
            self.op(PYTHON, "EagerLocalExecute: __inference_train_step_7", from + 30_000, until - 1_000);
            self.op(PYTHON, "KernelAndDeviceFunc::Run", from + 40_000, until - 2_000);
            self.put(PYTHON, "FunctionRun", from + 50_000, from + 60_000, &[("_r", XValue::Int64(1))]);
        }
    }

    /// A step of 20 ms that starts at `at`.
    fn step(&mut self, number: i64, at: Ns, trouble: Trouble) {
        let marks = [("step_num", XValue::Int64(number)), ("_r", XValue::Int64(1))];
        self.put(PYTHON, "train", at, at + 20 * MS, &marks);
        let (from, until) = (at + 100_000, at + 19 * MS);
        match trouble {
            Trouble::Locked | Trouble::LockedByInput => {
                self.call(from, at + 8 * MS, 11 * MS, false);
                self.op(EXECUTOR, "dense/Relu:_FusedMatMul", at + MS, at + 7 * MS);
                if trouble == Trouble::LockedByInput {
                    self.op(INPUT, "IteratorGetNextOp::DoCompute", at + 400_000, at + 900_000);
                    self.op(INPUT, "Iterator::Root::FlatMap[0]::Generator", at + 410_000, at + 890_000);
                }
            }
            Trouble::EagerOnBusyMachine => self.eager(number, at),
            Trouble::SavedEachStep => {
                self.call(from, at + 6 * MS, 0, false);
                self.op(EXECUTOR, "dense/Relu:_FusedMatMul", at + MS, at + 5 * MS);
                for variable in 0..8 {
                    let read = at + 7 * MS + variable * MS;
                    self.op(PYTHON, "TFE_Py_FastPathExecute_C", read, read + 50_000);
                    self.op(PYTHON, "EagerLocalExecute: ReadVariableOp", read + 5_000, read + 45_000);
                }
            }
            Trouble::RemoteCalls => {
                self.call(from, until, 0, true);
                // The result is read here.
                let op = XValue::Str("Identity".to_owned());
                let read = until + 100_000;
                self.put(PYTHON, "EagerExecute", read, read + 50_000, &[("eager_op", op)]);
                self.op(PYTHON, "EagerLocalExecute: Identity", read + 1_000, read + 49_000);
                self.op(QUEUE, "ThreadpoolListener::StartRegion", until - 1_000, until - 900);
            }
            _ => {
                self.call(from, until, 0, false);
                self.model(number, at, trouble);
            }
        }
    }

    /// Sixty ops of 80 µs, and one pause of 10 ms among shorter ones.
    fn eager(&mut self, number: i64, at: Ns) {
        let mut from = at + 100_000;
        for op in 0..60 {
            self.op(PYTHON, "TFE_Py_FastPathExecute_C", from, from + 80_000);
            self.op(PYTHON, "EagerLocalExecute: Mul", from + 5_000, from + 75_000);
            let lost = if op == (number * 5 + 3) % 59 { 10 * MS } else { 0 };
            from += 80_000 + 60_000 + lost;
        }
    }

    /// The first batch of an epoch: one call of the shuffle asks for many elements.
    fn refill(&mut self, at: Ns) {
        let until = at + 100 * MS;
        self.op(PYTHON, "EagerLocalExecute: IteratorGetNext", at, until);
        self.op(PYTHON, "IteratorGetNextOp::DoCompute", at + 1_000, until - 1_000);
        self.op(PYTHON, "Iterator::Root::BatchV2", at + 2_000, until - 2_000);
        self.op(PYTHON, "Iterator::Root::BatchV2::Shuffle", at + 3_000, until - 3_000);
        for element in 0..90 {
            let from = at + (element + 1) * MS;
            self.op(PYTHON, "Iterator::Root::BatchV2::Shuffle::Map", from, from + 900_000);
        }
    }

    /// Ten evaluated batches of 10 ms.
    fn evaluation(&mut self, at: Ns) {
        for batch in 0..10 {
            let from = at + batch * 10 * MS;
            let call = XValue::Str("notTraced-nonXla".to_owned());
            let (start, end) = (from + 100_000, from + 9_900_000);
            self.put(PYTHON, "test_step", start, end, &[("tf_function_call", call)]);
            self.op(PYTHON, "EagerLocalExecute: __inference_test_step_9", start + 10_000, end - 10_000);
            self.op(EXECUTOR, "dense/Relu:_FusedMatMul", from + 200_000, from + 9_700_000);
        }
    }

    /// What comes before a step.
    fn between(&mut self, number: i64, at: Ns, trouble: Trouble) -> Ns {
        let starts_epoch = number % EPOCH == 0;
        match trouble {
            Trouble::Refill if starts_epoch => self.refill(at),
            Trouble::Evaluation if starts_epoch && number > 0 => self.evaluation(at),
            Trouble::EvaluationOnce if number == EPOCH => self.evaluation(at),
            _ => return at,
        }
        at + 100 * MS
    }

    /// What the executor does from 1 to 19 ms of a step.
    fn model(&mut self, number: i64, at: Ns, trouble: Trouble) {
        let from = at + MS;
        match trouble {
            Trouble::InnerLoop => {
                for round in 0..120 {
                    let piece = from + round * 140_000;
                    let stats = [("id", XValue::Int64(number)), ("iter_num", XValue::Int64(round))];
                    self.put(EXECUTOR, "ExecutorState::Process", piece, piece + 130_000, &stats);
                    let op = "map/while/body/_1/map/while/MatVec/MatMul:MatMul";
                    self.op(EXECUTOR, op, piece + 100_000, piece + 115_000);
                }
            }
            Trouble::Print => {
                self.op(EXECUTOR, "dense/Relu:_FusedMatMul", from, from + 16 * MS);
                self.op(SECOND, "StringFormat:StringFormat", from + 2 * MS, from + 12 * MS);
                self.op(SECOND, "PrintV2:PrintV2", from + 12 * MS, from + 13 * MS);
            }
            Trouble::RemoteTensors => {
                let stats = |link| {
                    [
                        ("name", XValue::Str("MatMul/ReadVariableOp/_2".to_owned())),
                        ("kernel_type", XValue::Str("_Recv".to_owned())),
                        ("step_id", XValue::Int64(number)),
                        (link, XValue::UInt64(12)),
                    ]
                };
                let (start, done) =
                    ("ExecutorState::ProcessAsync::Start", "ExecutorState::ProcessAsync::Done");
                self.put(EXECUTOR, start, from, from + 10_000, &stats("_p"));
                self.put(QUEUE, done, from + 10 * MS, from + 10 * MS + 10_000, &stats("_c"));
                self.op(EXECUTOR, "MatMul:MatMul", from + 10 * MS + 20_000, from + 15 * MS);
                self.op(EXECUTOR, "mul/_15:_Send", from + 15 * MS, from + 17 * MS);
            }
            Trouble::Double => {
                self.op(EXECUTOR, "dense/MatMul:MatMul", from, from + 15 * MS);
                self.op(EXECUTOR, "dense/BiasAdd:BiasAdd", from + 15 * MS, from + 17 * MS);
            }
            _ => self.op(EXECUTOR, "dense/Relu:_FusedMatMul", from, from + 17 * MS),
        }
    }
}

/// The file of a run of twelve steps of 20 ms with this trouble.
pub fn recorded(trouble: Trouble) -> Vec<u8> {
    let mut stage = Stage { plane: Plane::new("/host:CPU") };
    let mut at = 0;
    for number in 0..12 {
        at = stage.between(number, at, trouble);
        stage.step(number, at, trouble);
        at += 20 * MS;
    }
    XSpace { planes: vec![stage.plane.plane], hostnames: vec!["trainer".to_owned()], ..XSpace::default() }
        .encode()
}
