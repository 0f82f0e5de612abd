//! Programs written by hand: what each figure must be.

use stepscope_hlo::{AllocationKind, Costs, MatrixType, Module, Movement, Phase, Phases, label};
use stepscope_testkit::hlo::{self, array, computation, element, instruction, module, packed, proto, tuple};
use stepscope_testkit::xspace::Message;

fn parameter(id: i64, name: &str, number: u64, shape: &Message) -> Message {
    let mut parameter = instruction(id, name, "parameter", shape, &[]);
    parameter.varint(9, number);
    parameter
}

/// A program of one computation, the last of `instructions` its result.
fn program(instructions: &[Message], root: i64) -> Vec<u8> {
    proto(&module("jit_test", 7, 1, &[computation("main", 1, root, instructions)]), None)
}

#[test]
fn a_product_and_a_fusion_cost_what_their_shapes_say() {
    let bytes = hlo::sample(5);
    let module = Module::read(&bytes).unwrap();
    assert_eq!((module.name, module.id, module.instructions.len(), module.damage), ("jit_step", 5, 7, None));
    let costs = Costs::of(&module);
    let dot = costs.instruction(module.named("dot.2").unwrap());
    assert_eq!(dot.matrix[MatrixType::F32 as usize], 2 * 64 * 32 * 128);
    assert_eq!(dot.bytes, 4 * (64 * 128 + 128 * 32 + 64 * 32));
    let fusion = costs.instruction(module.named("tanh_fusion").unwrap());
    assert_eq!((fusion.vector, fusion.transcendentals, fusion.bytes), (2_048, 2_048, 16_384));
    assert_eq!(costs.total().flops(), 524_288 + 2_048);
    assert!(costs.total().is_known());
}

#[test]
fn an_instruction_knows_its_scope_its_line_and_its_category() {
    let bytes = hlo::sample(5);
    let module = Module::read(&bytes).unwrap();
    let dot = module.instruction(module.named("dot.2").unwrap()).unwrap();
    assert_eq!(label(dot.op_name), "mlp/dot_general");
    assert_eq!(module.source(dot).unwrap().to_string(), "/home/me/model.py:41");
    assert_eq!(module.category(dot), "matmul");
    let fusion = module.instruction(module.named("tanh_fusion").unwrap()).unwrap();
    assert_eq!(module.category(fusion), "loop fusion");
}

#[test]
fn the_peak_holds_arguments_and_the_values_that_overlap() {
    let bytes = hlo::sample(5);
    let module = Module::read(&bytes).unwrap();
    let memory = module.memory().remove(0);
    assert_eq!((memory.argument_bytes, memory.temp_bytes, memory.heap_peak_bytes), (49_152, 16_384, 16_384));
    assert_eq!((memory.peak_bytes, memory.peak_position, memory.fragmentation_bytes), (65_536, 1, 0));
    assert_eq!(memory.peak_instruction, module.named("tanh_fusion"));
    let kinds: Vec<_> = memory.live.iter().map(|live| (live.kind, live.size)).collect();
    let (argument, temporary) = (AllocationKind::Parameter, AllocationKind::Temporary);
    assert_eq!(kinds, [(argument, 32_768), (argument, 16_384), (temporary, 8_192), (temporary, 8_192)]);
    assert_eq!(memory.live[2].span, Some((0, 2)));
}

#[test]
fn a_custom_call_is_unknown_unless_its_configuration_tells() {
    let shape = array(element::BF16, &[256, 256]);
    let call = |target: &str, config: &str| {
        let mut call = instruction(3, "call.1", "custom-call", &shape, &[1, 2]);
        call.bytes(28, target.as_bytes());
        call.bytes(43, config.as_bytes());
        let bytes = program(&[parameter(1, "a", 0, &shape), parameter(2, "b", 1, &shape), call], 3);
        Costs::of(&Module::read(&bytes).unwrap()).total()
    };
    let dims = r#"{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}}"#;
    let wrapped = format!(r#"{{"gemm_backend_config":{dims}}}"#);
    for config in [&wrapped, dims] {
        let gemm = call("__cublas$gemm", config);
        assert_eq!(gemm.matrix[MatrixType::Bf16 as usize], 2 * 256 * 256 * 256);
        assert_eq!((gemm.bytes, gemm.is_known()), (3 * 131_072, true));
    }
    for (target, config) in
        [("mystery", ""), ("mystery", "{"), ("__cublas$gemm", "\u{1}opaque"), ("__cudnn$convForward", "")]
    {
        let unknown = call(target, config);
        assert_eq!((unknown.unknown_flops, unknown.flops()), (1, 0), "{target} {config}");
    }
    let pallas = call(
        "tpu_custom_call",
        r#"{"custom_call_config":{"cost_estimate":{"flops":"1000","bytes_accessed":64}}}"#,
    );
    assert_eq!((pallas.flops(), pallas.bytes, pallas.is_known()), (1_000, 64, true));
}

#[test]
fn reading_a_slice_of_a_fused_operand_costs_the_slice() {
    let (whole, part) = (array(element::F32, &[1000, 64]), array(element::F32, &[10, 64]));
    let fused = computation(
        "fused",
        1,
        2,
        &[parameter(1, "p", 0, &whole), instruction(2, "slice.1", "slice", &part, &[1])],
    );
    let mut fusion = instruction(12, "fusion", "fusion", &part, &[11]);
    fusion.bytes(38, &packed(&[1]));
    let entry = computation("main", 2, 12, &[parameter(11, "x", 0, &whole), fusion]);
    let bytes = proto(&module("m", 1, 2, &[fused, entry]), None);
    assert_eq!(Costs::of(&Module::read(&bytes).unwrap()).total().bytes, 2 * 10 * 64 * 4);
}

#[test]
fn what_uses_gradients_is_the_optimizer() {
    let shape = array(element::F32, &[4]);
    let named = |id, name: &str, opcode: &str, operands: &[i64], op_name: &str| {
        let mut made = instruction(id, name, opcode, &shape, operands);
        hlo::comes_from(&mut made, op_name, "a.py", 1);
        made
    };
    let bytes = program(
        &[
            parameter(1, "w", 0, &shape),
            named(2, "prepare", "multiply", &[1, 1], "jit(step)/mul"),
            named(3, "forward", "tanh", &[2], "jit(step)/jvp(mlp)/tanh"),
            named(4, "backward", "multiply", &[3, 3], "jit(step)/transpose(jvp(mlp))/mul"),
            instruction(5, "copy.1", "copy", &shape, &[4]),
            named(6, "update", "subtract", &[1, 5], "jit(step)/sub"),
        ],
        6,
    );
    let module = Module::read(&bytes).unwrap();
    let phases = Phases::of(&module);
    let phase = |name: &str| phases.of_instruction(module.named(name).unwrap());
    assert_eq!(phase("prepare"), Phase::Forward);
    assert_eq!(phase("forward"), Phase::Forward);
    assert_eq!(phase("backward"), Phase::Backward);
    assert_eq!(phase("copy.1"), Phase::Backward, "an unnamed copy belongs to what it copies");
    assert_eq!(phase("update"), Phase::Optimizer);
}

#[test]
fn fifty_thousand_instructions_take_no_time_that_anyone_notices() {
    let shape = array(element::F32, &[128, 128]);
    let mut all = vec![parameter(1, "x", 0, &shape)];
    for id in 2..50_002 {
        all.push(instruction(id, &format!("add.{id}"), "add", &shape, &[id - 1, id - 1]));
    }
    let bytes = program(&all, 50_001);
    let started = std::time::Instant::now();
    let module = Module::read(&bytes).unwrap();
    let total = Costs::of(&module).total();
    assert_eq!(total.vector, 50_000 * 128 * 128);
    // Ten times what a debug build needs on a slow machine: fails if anything is quadratic.
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
}

/// An array in a memory space.
fn array_in(space: u64, dims: &[i64]) -> Message {
    let mut layout = Message::default();
    layout.bytes(1, &packed(&(0..dims.len() as i64).rev().collect::<Vec<_>>()));
    layout.varint(8, space);
    let mut shape = Message::default();
    shape.varint(2, element::F32);
    shape.bytes(3, &packed(dims));
    shape.bytes(5, &layout.0);
    shape
}

#[test]
fn both_halves_of_a_copy_know_the_memory_spaces() {
    let (host, device) = (array_in(5, &[64, 32]), array_in(0, &[64, 32]));
    let start = instruction(2, "copy-start.1", "copy-start", &tuple(&[device, host.clone()]), &[1]);
    let done = instruction(3, "copy-done.1", "copy-done", &array_in(0, &[64, 32]), &[2]);
    let bytes = program(&[parameter(1, "w", 0, &host), start, done], 3);
    let module = Module::read(&bytes).unwrap();
    for name in ["copy-start.1", "copy-done.1"] {
        let half = module.instruction(module.named(name).unwrap()).unwrap();
        assert_eq!(module.movement(half), Some(Movement::Between { from: 5, to: 0 }), "{name}");
        assert_eq!(module.moved(half).unwrap().array_bytes(), 64 * 32 * 4, "{name}");
    }
}

#[test]
fn the_neighbourhood_ends_at_the_radius_and_at_what_many_use() {
    let shape = array(element::F32, &[8]);
    let mut chain = vec![parameter(1, "p", 0, &shape)];
    chain.extend((2..=6).map(|id| instruction(id, &format!("add.{id}"), "add", &shape, &[id - 1, id - 1])));
    // Many users of the parameter, which is two steps away from the middle.
    chain.extend((7..=40).map(|id| instruction(id, &format!("neg.{id}"), "negate", &shape, &[1])));
    let bytes = program(&chain, 6);
    let module = Module::read(&bytes).unwrap();
    let around = module.neighbourhood(module.named("add.3").unwrap(), 2);
    let names: Vec<&str> =
        around.nodes.iter().filter_map(|(id, _)| Some(module.instruction(*id)?.name)).collect();
    assert_eq!(names, ["p", "add.2", "add.3", "add.4", "add.5"]);
    assert_eq!(around.edges, [(0, 1), (1, 2), (2, 3), (3, 4)]);
    assert!(around.cut.contains(&0) && around.cut.contains(&4), "{:?}", around.cut);
}

#[test]
fn temporary_values_lie_at_their_offsets_while_they_live() {
    let bytes = hlo::sample(5);
    let module = Module::read(&bytes).unwrap();
    let lives: Vec<(usize, usize, u64)> =
        module.occupied(0).iter().map(|piece| (piece.start, piece.end, piece.size)).collect();
    assert_eq!(lives, [(0, 2, 8_192), (1, 3, 8_192)]);
}
