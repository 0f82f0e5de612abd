//! Findings about compiled programs that only accelerators can have: scenes of a TPU with a program in its profile, each beside
//! the same scene without the flaw.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use serde_json::Value;
use stepscope_testkit::hlo::{array, comes_from, computation, element, instruction, module, packed, proto};
use stepscope_testkit::xspace::{Message, XEvent, XEventMetadata, XLine, XPlane, XSpace, XStat, XValue};
use support::{ids, json};

const STEPS: i64 = 12;
const STEP_PS: i64 = 10_000_000_000;
/// The device: 100 TFLOP/s, 1 TB/s of HBM, 20 TB/s of VMEM, 1 GB.
const FLOPS: f64 = 100.0;
const HBM: f64 = 1_000.0;
const VMEM: f64 = 20_000.0;
const SIZE: u64 = 1_000_000_000;

/// An instruction of the scene.
struct Op {
    name: &'static str,
    message: Message,
    /// The share of the step, in per cent.
    share: i64,
    flops: u64,
    bytes: u64,
}

/// A scene: what runs in each step, and what the program keeps in memory.
struct Scene {
    ops: Vec<Op>,
    arguments: Vec<Message>,
    peak: u64,
}

fn line(name: &str, events: Vec<XEvent>) -> XLine {
    XLine { name: name.to_owned(), events, timestamp_ns: 1_000, ..XLine::default() }
}

impl Scene {
    fn program(&self) -> Vec<u8> {
        let mut all = self.arguments.clone();
        all.extend(self.ops.iter().map(|op| op.message.clone()));
        let root = 100 + self.ops.len() as i64 - 1;
        let module = module("jit_step", 7, 1, &[computation("main", 1, root, &all)]);
        let mut allocation = Message::default();
        allocation.varint(2, self.peak);
        allocation.varint(5, 1);
        let mut buffers = Message::default();
        buffers.bytes(3, &allocation.0);
        proto(&module, Some(&buffers))
    }

    fn device(&self) -> XPlane {
        let mut plane = XPlane::named("/device:TPU:0");
        let names = [
            "hlo_category",
            "program_id",
            "flops",
            "bytes_accessed",
            "peak_teraflops_per_second",
            "peak_hbm_bw_gigabytes_per_second",
            "peak_vmem_rd_bw_gigabytes_per_second",
            "peak_vmem_wr_bw_gigabytes_per_second",
            "device_type_string",
            "memory_size",
        ];
        plane.stat_metadata = (1..).zip(names.map(str::to_owned)).collect();
        plane.stats = vec![
            XStat::new(5, XValue::Double(FLOPS)),
            XStat::new(6, XValue::Double(HBM)),
            XStat::new(7, XValue::Double(VMEM)),
            XStat::new(8, XValue::Double(VMEM)),
            XStat::new(9, XValue::Str("TPU v9".to_owned())),
            XStat::new(10, XValue::UInt64(SIZE)),
        ];
        let mut kinds = vec![(1, XEventMetadata::named("jit_step(7)"))];
        for (op, id) in self.ops.iter().zip(2..) {
            let stats = vec![
                XStat::new(1, XValue::Str("fusion".to_owned())),
                XStat::new(2, XValue::UInt64(7)),
                XStat::new(3, XValue::UInt64(op.flops)),
                XStat::new(4, XValue::UInt64(op.bytes)),
            ];
            let name = format!("%{} = f32[] fusion()", op.name);
            kinds.push((id, XEventMetadata { stats, ..XEventMetadata::named(&name) }));
        }
        let numbers =
            (1..).zip(0..STEPS).map(|(id, step)| (100 + id, XEventMetadata::named(&step.to_string())));
        kinds.extend(numbers);
        plane.event_metadata = kinds;
        let (mut steps, mut modules, mut ops) = (Vec::new(), Vec::new(), Vec::new());
        for step in 0..STEPS {
            let mut at = step * STEP_PS;
            steps.push(XEvent::at(at, STEP_PS, 101 + step));
            modules.push(XEvent::at(at, STEP_PS, 1));
            for (op, id) in self.ops.iter().zip(2..) {
                let length = STEP_PS / 100 * op.share;
                ops.push(XEvent::at(at, length, id));
                at += length;
            }
        }
        plane.lines = vec![line("Steps", steps), line("XLA Modules", modules), line("XLA Ops", ops)];
        plane
    }

    fn space(&self) -> XSpace {
        let mut programs = XPlane::named("/host:metadata");
        programs.stat_metadata = vec![(1, "Hlo Proto".to_owned())];
        let stats = vec![XStat::new(1, XValue::Bytes(self.program()))];
        programs.event_metadata = vec![(7, XEventMetadata { stats, ..XEventMetadata::named("jit_step(7)") })];
        XSpace { planes: vec![self.device(), programs], ..XSpace::default() }
    }

    /// What a command says about it.
    fn told(&self, command: &str) -> Value {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("host.xplane.pb");
        std::fs::write(&file, self.space().encode()).unwrap();
        match command.split_once(' ') {
            None => json(command, &file),
            Some((first, second)) => support::json_of(first, &[second.as_ref(), file.as_os_str()]),
        }
    }

    fn findings(&self) -> Vec<String> {
        ids(&self.told("report")).into_iter().map(str::to_owned).collect()
    }
}

fn parameter(id: i64, shape: &Message) -> Message {
    instruction(id, &format!("p{id}"), "parameter", shape, &[])
}

/// An array in tiles of 8 by 128, in a memory space.
fn tiled(element: u64, dims: &[i64], space: u64) -> Message {
    let mut tile = Message::default();
    tile.bytes(1, &packed(&[8, 128]));
    let mut layout = Message::default();
    layout.bytes(1, &packed(&(0..dims.len() as i64).rev().collect::<Vec<_>>()));
    layout.bytes(6, &tile.0);
    layout.varint(8, space);
    let mut shape = Message::default();
    shape.varint(2, element);
    shape.bytes(3, &packed(dims));
    shape.bytes(5, &layout.0);
    shape
}

/// A product of square matrices; `exact` asks for all bits of float32.
fn product(element: u64, size: i64, exact: bool, share: i64) -> Scene {
    let shape = array(element, &[size, size]);
    let mut dot = instruction(100, "dot.1", "dot", &shape, &[1, 2]);
    let mut dims = Message::default();
    dims.bytes(1, &packed(&[1]));
    dims.bytes(2, &packed(&[0]));
    dot.bytes(30, &dims.0);
    if exact {
        let mut precision = Message::default();
        precision.bytes(1, &packed(&[2, 2]));
        dot.bytes(51, &precision.0);
    }
    comes_from(&mut dot, "jit(step)/jvp(mlp)/dot_general", "/home/me/model.py", 41);
    let flops = 2 * (size * size * size) as u64;
    let op = Op { name: "dot.1", message: dot, share, flops, bytes: 3 * 4 * (size * size) as u64 };
    Scene { ops: vec![op], arguments: vec![parameter(1, &shape), parameter(2, &shape)], peak: SIZE / 10 }
}

/// One elementwise operation over an array of this shape, which takes all of the step.
fn elementwise(shape: &Message, bytes: u64, share: i64) -> Scene {
    let mut add = instruction(100, "add.1", "add", shape, &[1, 1]);
    comes_from(&mut add, "jit(step)/jvp(norm)/add", "/home/me/model.py", 7);
    let op = Op { name: "add.1", message: add, share, flops: 1_000, bytes };
    Scene { ops: vec![op], arguments: vec![parameter(1, shape)], peak: SIZE / 10 }
}

fn has(scene: &Scene, id: &str) -> bool {
    scene.findings().iter().any(|known| known == id)
}

/// 8192³ products take 11 ms at the peak; this one takes 9.5 ms for 6144³.
const LARGE: i64 = 6_144;

#[test]
fn products_in_all_bits_of_float32_are_told_and_those_in_brain_floating_point_are_not() {
    assert!(has(&product(element::F32, 4_096, true, 95), "float32-matmul"));
    assert!(!has(&product(element::BF16, LARGE, false, 95), "float32-matmul"));
}

#[test]
fn products_far_below_the_peak_are_a_low_mfu_and_those_near_it_are_not() {
    assert!(has(&product(element::BF16, 2_048, false, 95), "low-mfu"));
    assert!(!has(&product(element::BF16, LARGE, false, 95), "low-mfu"));
}

#[test]
fn work_at_the_speed_of_memory_is_told_and_slower_work_is_not() {
    // 9.5 ms at 1 TB/s are 9.5 GB.
    let shape = array(element::F32, &[8_192, 8_192]);
    assert!(has(&elementwise(&shape, 9_000_000_000, 95), "memory-bound-ops"));
    assert!(!has(&elementwise(&shape, 2_000_000_000, 95), "memory-bound-ops"));
}

#[test]
fn memory_on_the_chip_has_a_roof_of_its_own() {
    // 4096 rows and columns of float32 in VMEM: read twice and written once, 201 MB per step of 9.5 ms.
    let on_chip = elementwise(&tiled(element::F32, &[4_096, 4_096], 1), 201_326_592, 95);
    let table = on_chip.told("hlo roofline");
    let row = &table["rows"][0];
    assert_eq!((&row["level"], &row["bound"]), (&"VMEM".into(), &"vmem".into()), "{row}");
    assert_eq!(table["peaks"]["on_chip_read_bytes_per_s"], VMEM * 1e9);
    assert_eq!(row["main_bytes_per_s"], 0.0);
    let main = elementwise(&tiled(element::F32, &[4_096, 4_096], 0), 201_326_592, 95).told("hlo roofline");
    let row = &main["rows"][0];
    assert_eq!((&row["level"], &row["bound"]), (&"HBM".into(), &"memory".into()), "{row}");
}

#[test]
fn tiles_that_are_mostly_padding_are_told_and_full_ones_are_not() {
    // Three columns of 128 are used.
    let narrow = tiled(element::F32, &[65_536, 3], 0);
    let bytes = 3 * 65_536 * 128 * 4;
    assert!(has(&elementwise(&narrow, bytes, 95), "padding-waste"));
    assert!(!has(&elementwise(&tiled(element::F32, &[65_536, 128], 0), bytes, 95), "padding-waste"));
}

#[test]
fn a_program_that_nearly_fills_the_memory_is_told() {
    let mut scene = product(element::BF16, LARGE, false, 95);
    assert!(!has(&scene, "hbm-peak"));
    scene.peak = SIZE / 100 * 90;
    assert!(has(&scene, "hbm-peak"));
}

#[test]
fn a_loop_that_spends_its_time_between_iterations_is_told() {
    // The loop itself takes a fifth of the step; its condition runs a thousand times.
    let (shape, flag) = (array(element::F32, &[8, 128]), array(element::PRED, &[]));
    let mut scene = product(element::BF16, LARGE, false, 70);
    let condition = computation(
        "cond",
        2,
        51,
        &[
            instruction(50, "q", "parameter", &shape, &[]),
            instruction(51, "compare.1", "compare", &flag, &[50, 50]),
        ],
    );
    let body = computation(
        "body",
        3,
        61,
        &[instruction(60, "r", "parameter", &shape, &[]), instruction(61, "copy.9", "negate", &shape, &[60])],
    );
    let mut while_loop = instruction(101, "while.1", "while", &shape, &[1]);
    while_loop.bytes(38, &packed(&[3, 2]));
    scene.ops.push(Op { name: "while.1", message: while_loop, share: 20, flops: 0, bytes: 0 });
    let mut looped = Looped { scene, others: vec![condition, body], iterations: 1_000 };
    assert!(looped.has("loop-overhead"));
    looped.iterations = 10;
    assert!(!looped.has("loop-overhead"), "ten long waits are no overhead of iterations");
}

/// A scene with a loop, whose condition runs at the end of its time.
struct Looped {
    scene: Scene,
    others: Vec<Message>,
    iterations: i64,
}

impl Looped {
    fn has(&self, id: &str) -> bool {
        let mut space = self.scene.space();
        let mut all = self.scene.arguments.clone();
        all.extend(self.scene.ops.iter().map(|op| op.message.clone()));
        let mut computations = self.others.clone();
        computations.push(computation("main", 1, 101, &all));
        let bytes = proto(&module("jit_step", 7, 1, &computations), None);
        space.planes[1].event_metadata[0].1.stats = vec![XStat::new(1, XValue::Bytes(bytes))];
        let device = &mut space.planes[0];
        let stats = vec![
            XStat::new(1, XValue::Str("compare".to_owned())),
            XStat::new(2, XValue::UInt64(7)),
            XStat::new(3, XValue::UInt64(1)),
            XStat::new(4, XValue::UInt64(1)),
        ];
        device
            .event_metadata
            .push((99, XEventMetadata { stats, ..XEventMetadata::named("%compare.1 = pred[] compare()") }));
        let begin = STEP_PS / 100 * 70;
        let each = STEP_PS / 100 * 20 / self.iterations;
        for step in 0..STEPS {
            for round in 0..self.iterations {
                device.lines[2].events.push(XEvent::at(step * STEP_PS + begin + round * each, 1_000, 99));
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("host.xplane.pb");
        std::fs::write(&file, space.encode()).unwrap();
        let report = json("report", &file);
        ids(&report).contains(&id)
    }
}
