//! Damaged programs: nothing panics, hangs or allocates out of proportion, and what came before the damage is kept.

use stepscope_hlo::{Costs, Module, Phases};
use stepscope_testkit::damage::{
    FOREIGN, HUGE_VARINTS, Rng, flip_bits, noise, overwrite, splice, truncations,
};
use stepscope_testkit::hlo::{self, array, computation, element, instruction, module, packed, proto, tuple};

/// Asks everything that can be asked.
fn ask_everything(bytes: &[u8]) {
    let Some(module) = Module::read(bytes) else { return };
    let costs = Costs::of(&module);
    let phases = Phases::of(&module);
    for (instruction, id) in module.instructions.iter().zip(0..) {
        let _ = (costs.instruction(id), phases.of_instruction(id), module.category(instruction));
        let _ = (module.stack(instruction), module.collective(instruction), module.trip_count(instruction));
        let _ =
            (module.movement(instruction), module.is_unfused(instruction), module.padding_bytes(instruction));
        let _ = (instruction.shape.to_string(), stepscope_hlo::label(instruction.op_name));
    }
    let _ = (costs.total(), module.memory(), module.occupied(0));
    let around = module.neighbourhood(0, 3);
    assert_eq!(around.draw(|_| 50.0).nodes.len(), around.nodes.len());
}

#[test]
fn truncated_programs_keep_what_came_first() {
    let whole = hlo::sample(1);
    let mut most = 0;
    for cut in truncations(&whole) {
        ask_everything(cut);
        let found = Module::read(cut).map_or(0, |module| module.instructions.len());
        assert!(found >= most || found == 0 || most == 7, "{found} after {most}");
        most = most.max(found);
    }
    assert_eq!(most, 7);
}

#[test]
fn flipped_spliced_and_huge_numbers_do_no_harm() {
    let whole = hlo::sample(1);
    let mut rng = Rng::new(34);
    for round in 0..3_000 {
        let flips = 1 + round % 8;
        ask_everything(&flip_bits(&whole, &mut rng, flips));
        ask_everything(&splice(&whole, &mut rng));
        ask_everything(&overwrite(&whole, &mut rng, HUGE_VARINTS[round % HUGE_VARINTS.len()]));
        ask_everything(&noise(&mut rng, round % 300));
    }
    FOREIGN.iter().for_each(|bytes| ask_everything(bytes));
}

#[test]
fn programs_that_call_themselves_end() {
    let shape = array(element::F32, &[4]);
    let mut call = instruction(1, "call.1", "call", &shape, &[1]);
    call.bytes(38, &packed(&[1, 2]));
    let mut fusion = instruction(2, "fusion.1", "fusion", &shape, &[1, 2]);
    fusion.bytes(38, &packed(&[2]));
    let first = computation("a", 1, 1, &[call]);
    let second = computation("b", 2, 2, &[fusion]);
    ask_everything(&proto(&module("m", 1, 2, &[first, second]), None));
    let waits = instruction(1, "copy-done.1", "copy-done", &shape, &[1]);
    ask_everything(&proto(&module("m", 1, 1, &[computation("a", 1, 1, &[waits])]), None));
}

#[test]
fn tuples_within_tuples_end() {
    let mut shape = array(element::F32, &[4]);
    for _ in 0..2_000 {
        shape = tuple(&[shape]);
    }
    let bytes = proto(
        &module("m", 1, 1, &[computation("a", 1, 1, &[instruction(1, "p", "parameter", &shape, &[])])]),
        None,
    );
    ask_everything(&bytes);
    assert_eq!(Module::read(&bytes).unwrap().instructions.len(), 1);
}
