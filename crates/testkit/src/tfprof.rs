//! Files of classic TensorFlow, written byte by byte: a small model with one matrix product, its runs, its op log, a
//! saved profile, a checkpoint and an event file.

use crate::tfevents::masked_crc;
use crate::xspace::Message;

/// A node: name, operation, inputs, shape of its output.
type Node = (&'static str, &'static str, &'static [&'static str], &'static [i64]);

/// The nodes of the model.
const NODES: &[Node] = &[
    ("x", "Placeholder", &[], &[-1, 3]),
    ("dense/kernel", "VariableV2", &[], &[3, 2]),
    ("dense/kernel/read", "Identity", &["dense/kernel"], &[3, 2]),
    ("dense/MatMul", "MatMul", &["x", "dense/kernel/read"], &[-1, 2]),
    ("dense/Relu", "Relu", &["dense/MatMul"], &[-1, 2]),
    ("gradients/dense/MatMul_grad/MatMul", "MatMul", &["dense/Relu", "^x"], &[3, 2]),
];

/// The device that runs everything.
pub const CPU: &str = "/job:localhost/replica:0/task:0/device:CPU:0";

fn message(write: impl FnOnce(&mut Message)) -> Vec<u8> {
    let mut message = Message::default();
    write(&mut message);
    message.0
}

fn shape(dims: &[i64]) -> Vec<u8> {
    message(|shape| {
        for &size in dims {
            shape.bytes(2, &message(|dim| dim.varint(1, size as u64)));
        }
    })
}

fn attr(key: &str, value: Vec<u8>) -> Vec<u8> {
    message(|entry| {
        entry.bytes(1, key.as_bytes());
        entry.bytes(2, &value);
    })
}

/// The graph (GraphDef).
pub fn graph() -> Vec<u8> {
    message(|graph| {
        for (name, op, inputs, dims) in NODES {
            graph.bytes(1, &node(name, op, inputs, dims));
        }
        graph.bytes(4, &message(|versions| versions.varint(1, 1_882)));
    })
}

fn node(name: &str, op: &str, inputs: &[&str], dims: &[i64]) -> Vec<u8> {
    message(|node| {
        node.bytes(1, name.as_bytes());
        node.bytes(2, op.as_bytes());
        inputs.iter().for_each(|input| node.bytes(3, input.as_bytes()));
        let shapes = message(|value| value.bytes(1, &message(|list| list.bytes(7, &shape(dims)))));
        node.bytes(5, &attr("_output_shapes", shapes));
        if op == "VariableV2" {
            node.bytes(5, &attr("shape", message(|value| value.bytes(7, &shape(dims)))));
        }
        node.bytes(5, &attr("T", message(|value| value.varint(6, 1))));
        node.bytes(5, &attr("data_format", message(|value| value.bytes(2, b"NHWC"))));
    })
}

/// The same graph as text.
pub fn graph_text() -> String {
    let mut text = String::from("# a graph\n");
    for (name, op, inputs, dims) in NODES {
        let shapes: String = dims.iter().map(|size| format!("dim {{ size: {size} }} ")).collect();
        text += &format!("node {{\n  name: \"{name}\"\n  op: '{op}'\n");
        inputs.iter().for_each(|input| text += &format!("  input: \"{input}\"\n"));
        text += &format!("  attr {{ key: \"_output_shapes\" value {{ list {{ shape {{ {shapes}}} }} }} }}\n");
        if *op == "VariableV2" {
            text += &format!("  attr {{ key: \"shape\" value {{ shape {{ {shapes}}} }} }}\n");
        }
        text += "  attr { key: \"T\" value { type: DT_FLOAT } }\n";
        text += "  attr { key: \"data_format\" value { s: \"NH\\127C\" } }\n}\n";
    }
    text + "versions {\n  producer: 1882\n}\n"
}

/// The recording of one step (RunMetadata): each node once, `micros` apart.
pub fn run(step: i64, micros: i64) -> Vec<u8> {
    let start = 1_700_000_000_000_000 + step * 100_000;
    let records = ["dense/kernel", "dense/Relu", "_retval_y_0_0"];
    let device = message(|device| {
        device.bytes(1, CPU.as_bytes());
        for (at, name) in (0..).zip(records) {
            device.bytes(2, &record(name, start + at * micros, micros));
        }
        device.bytes(
            3,
            &message(|thread| {
                thread.varint(1, 1);
                thread.bytes(2, b"executor");
            }),
        );
    });
    message(|run| run.bytes(1, &message(|stats| stats.bytes(1, &device))))
}

fn record(name: &str, start: i64, micros: i64) -> Vec<u8> {
    let label = if name == "dense/Relu" { "dense/Relu = _FusedMatMul(x, dense/kernel/read)" } else { "" };
    message(|record| {
        record.bytes(1, name.as_bytes());
        record.varint(2, start as u64);
        record.varint(3, 1);
        record.varint(4, micros as u64);
        record.varint(5, micros as u64 + 1);
        record.bytes(
            6,
            &message(|memory| {
                memory.bytes(1, b"cpu");
                memory.varint(2, 64);
                memory.varint(3, 48);
                memory.varint(4, 24);
                memory.bytes(
                    6,
                    &message(|change| {
                        change.varint(1, start as u64);
                        change.varint(2, 64);
                    }),
                );
            }),
        );
        record.bytes(
            7,
            &message(|output| {
                output.bytes(
                    3,
                    &message(|tensor| {
                        tensor.varint(1, 1);
                        tensor.bytes(2, &shape(&[5, 2]));
                        tensor.bytes(
                            4,
                            &message(|allocation| {
                                allocation.varint(1, 40);
                                allocation.varint(2, 64);
                                allocation.bytes(3, b"cpu");
                            }),
                        );
                    }),
                );
            }),
        );
        if !label.is_empty() {
            record.bytes(8, label.as_bytes());
        }
        record.varint(9, start as u64 - 2);
        record.varint(10, 1);
        record.bytes(12, &message(|stats| stats.varint(1, 16)));
    })
}

/// The op log (OpLogProto): FLOPs, the trainable variable, call stacks.
pub fn op_log() -> Vec<u8> {
    let texts = ["train.py", "main", "/home/user/model.py", "a_function_with_a_long_name"];
    message(|log| {
        for (name, _, _, _) in NODES {
            log.bytes(
                1,
                &message(|entry| {
                    entry.bytes(1, name.as_bytes());
                    if name.ends_with("MatMul") {
                        entry.varint(2, 60);
                    }
                    if *name == "dense/kernel" {
                        entry.bytes(3, b"_trainable_variables");
                    }
                    entry.bytes(4, &stack(name.len() as u64));
                }),
            );
        }
        for (id, text) in (1..).zip(texts) {
            log.bytes(
                2,
                &message(|entry| {
                    entry.varint(1, id);
                    entry.bytes(2, text.as_bytes());
                }),
            );
        }
    })
}

fn stack(line: u64) -> Vec<u8> {
    let frame = |line: u64, file: u64, function: u64| {
        message(|frame| {
            frame.varint(2, line);
            frame.varint(5, u64::MAX);
            frame.varint(6, file);
            frame.varint(7, function);
            frame.varint(8, 1);
        })
    };
    message(|code| {
        code.bytes(1, &frame(10, 1, 2));
        code.bytes(1, &frame(line, 3, 4));
    })
}

/// One run of a node (ExecProfile): 7 µs on the processor, 64 bytes.
fn executed() -> Vec<u8> {
    let times = message(|times| {
        let pair = message(|pair| {
            pair.bytes(
                1,
                &message(|packed| {
                    packed.raw_varint(1_000);
                    packed.raw_varint(7);
                }),
            );
        });
        times.bytes(1, &pair);
    });
    message(|exec| {
        exec.varint(1, 1);
        exec.varint(2, 1_000);
        exec.varint(3, 1_007);
        exec.bytes(
            5,
            &message(|entry| {
                entry.bytes(1, CPU.to_ascii_lowercase().as_bytes());
                entry.bytes(2, &times);
            }),
        );
        exec.bytes(
            7,
            &message(|memory| {
                memory.varint(1, 1_007);
                memory.varint(6, 64);
                memory.varint(7, 48);
            }),
        );
    })
}

/// A saved profile (ProfileProto) of two nodes and one step.
pub fn saved() -> Vec<u8> {
    let entry = |key: u64, value: &[u8]| {
        message(|entry| {
            entry.varint(1, key);
            entry.bytes(2, value);
        })
    };
    let exec = executed();
    let node = |id: u64, name: &str, op: &str| {
        message(|node| {
            node.bytes(1, name.as_bytes());
            if id == 1 {
                node.bytes(
                    2,
                    &message(|entry| {
                        entry.varint(1, 0);
                        entry.varint(2, 0);
                    }),
                );
            }
            node.bytes(5, op.as_bytes());
            node.bytes(6, CPU.to_ascii_lowercase().as_bytes());
            node.varint(8, 60);
            node.bytes(9, op.as_bytes());
            node.bytes(10, &stack(3));
            node.bytes(12, &entry(0, &exec));
            node.varint(13, id);
        })
    };
    message(|profile| {
        profile.bytes(1, &entry(0, &node(0, "a", "Const")));
        profile.bytes(1, &entry(1, &node(1, "b/c", "MatMul")));
        profile.varint(2, 1);
        profile.bytes(3, &[0]);
        for (id, text) in (1..).zip(["train.py", "main", "model.py", "call"]) {
            profile.bytes(4, &entry(id, text.as_bytes()));
        }
    })
}

/// A checkpoint of one variable: the index and the data.
pub fn checkpoint() -> (Vec<u8>, Vec<u8>) {
    checkpoint_that_repeats(1, 1)
}

/// A checkpoint with this many variables that share their values, in one block that the index names for each.
pub fn checkpoint_that_repeats(variables: usize, times: usize) -> (Vec<u8>, Vec<u8>) {
    let data: Vec<u8> =
        [0.5f32, -1.25, 2.0, 0.0, 1.0, 3.5].iter().flat_map(|value| value.to_le_bytes()).collect();
    let header = message(|header| header.varint(1, 1));
    let entry = message(|entry| {
        entry.varint(1, 1);
        entry.bytes(2, &shape(&[3, 2]));
        entry.varint(5, data.len() as u64);
        entry.fixed32(6, masked_crc(&data));
    });
    let names: Vec<String> = (1..variables).map(|number| format!("dense_{number}/kernel")).collect();
    let mut pairs: Vec<(&[u8], &[u8])> = vec![(b"", &header), (b"dense/kernel", &entry)];
    pairs.extend(names.iter().map(|name| (name.as_bytes(), &entry[..])));
    let mut index = Vec::new();
    let content_at = handle(append(&mut index, &block(&pairs)));
    let meta_at = append(&mut index, &block(&[]));
    let index_at = append(&mut index, &block(&vec![(&b"e"[..], &content_at[..]); times]));
    let mut footer = [handle(meta_at), handle(index_at)].concat();
    footer.resize(40, 0);
    index.extend(footer);
    index.extend(0xdb47_7524_8b80_fb57u64.to_le_bytes());
    (index, data)
}

fn block(entries: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut block = Message::default();
    for (key, value) in entries {
        block.raw_varint(0);
        block.raw_varint(key.len() as u64);
        block.raw_varint(value.len() as u64);
        block.0.extend_from_slice(key);
        block.0.extend_from_slice(value);
    }
    block.0.extend([0u32, 1].iter().flat_map(|number| number.to_le_bytes()));
    block.0
}

/// Appends a block with its trailer; returns its position and length.
fn append(file: &mut Vec<u8>, block: &[u8]) -> (usize, usize) {
    let at = file.len();
    file.extend_from_slice(block);
    file.push(0);
    let checksum = masked_crc(&file[at..]);
    file.extend(checksum.to_le_bytes());
    (at, block.len())
}

fn handle((at, len): (usize, usize)) -> Vec<u8> {
    let mut handle = Message::default();
    handle.raw_varint(at as u64);
    handle.raw_varint(len as u64);
    handle.0
}

/// An event file that contains a graph and runs.
pub fn events(graph: &[u8], runs: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut add = |write: &dyn Fn(&mut Message)| {
        let event = message(|event| {
            event.fixed64(1, 1_700_000_000.0f64.to_bits());
            write(event);
        });
        let len = (event.len() as u64).to_le_bytes();
        file.extend(len);
        file.extend(masked_crc(&len).to_le_bytes());
        file.extend_from_slice(&event);
        file.extend(masked_crc(&event).to_le_bytes());
    };
    add(&|event| event.bytes(3, b"brain.Event:2"));
    add(&|event| event.bytes(4, graph));
    for (step, run) in (0u64..).zip(runs) {
        add(&|event| {
            event.varint(2, step);
            event.bytes(
                8,
                &message(|tagged| {
                    tagged.bytes(1, format!("step{step}").as_bytes());
                    tagged.bytes(2, run);
                }),
            );
        });
    }
    file
}

/// The Chrome JSON that TensorFlow writes for a run: the devices, and of each op the number of its device, its node, its type,
/// its start and its length in microseconds.
pub fn timeline(devices: &[&str], ops: &[(usize, &str, &str, i64, i64)]) -> String {
    /// Any time after 2001, from which on readers take microseconds for a date.
    const EPOCH_US: i64 = 1_500_000_000_000_000;
    let names = devices.iter().enumerate().map(|(pid, name)| {
        format!(r#"{{"name":"process_name","ph":"M","pid":{pid},"args":{{"name":"{name} Compute"}}}}"#)
    });
    let ops = ops.iter().map(|(pid, node, op, at, dur)| {
        let (at, args) = (EPOCH_US + at, format!(r#"{{"name":"{node}","op":"{op}"}}"#));
        format!(
            r#"{{"pid":{pid},"tid":0,"cat":"Op","ph":"X","name":"{op}","ts":{at},"dur":{dur},"args":{args}}}"#
        )
    });
    let events: Vec<String> = names.chain(ops).collect();
    format!(r#"{{"traceEvents":[{}]}}"#, events.join(","))
}
