//! Costs per instruction and peaks of memory against independent readers of the same profiles.

use std::path::PathBuf;

use stepscope_hlo::{Costs, Module, TextOptions};
use stepscope_testkit::corpus::{corpus, names_in};

use crate::profiles::{json, programs};

/// The profile, or its folder, that a folder of the oracle is about.
fn profiles(oracle: &str) -> Option<PathBuf> {
    let folder = match oracle.split_once("__") {
        Some((group, name)) => format!("{group}/{name}"),
        None if oracle.starts_with("amd-") => format!("xplane-public/AMD-AGI+TraceLens/{}", &oracle[4..]),
        None => format!("xplane-public/openxla+xprof/{oracle}.xplane.pb"),
    };
    corpus(&folder)
}

#[test]
fn every_instruction_costs_what_an_independent_reader_says() {
    let Some(oracles) = corpus("hlo-oracle") else { return };
    let (mut compared, mut wrong) = (0, Vec::new());
    for oracle in names_in(&oracles) {
        let path = oracles.join(&oracle).join("own.cost.json.gz");
        let Some(folder) = path.exists().then(|| profiles(&oracle)).flatten() else { continue };
        let expected = json(&path);
        for (program, bytes) in programs(&folder) {
            let module = Module::read(&bytes).unwrap();
            let costs = Costs::of(&module);
            let Some(instructions) = expected[&program]["instructions"].as_object() else { continue };
            for (name, figures) in instructions {
                let Some(id) = module.named(name) else { panic!("{oracle} {program} has no {name}") };
                let cost = costs.instruction(id);
                let ours = [
                    cost.flops() as i64 - cost.unknown_flops as i64,
                    cost.transcendentals as i64,
                    cost.bytes as i64 - cost.unknown_bytes as i64,
                ];
                let theirs = [0, 1, 2].map(|index| figures[index].as_f64().unwrap() as i64);
                compared += 1;
                if ours != theirs {
                    let opcode = module.instruction(id).map_or("", |instruction| instruction.opcode);
                    wrong.push(format!("{oracle} {program} {name} {opcode}: {ours:?}, expected {theirs:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 1000, "{compared} instructions");
}

#[test]
fn peaks_of_memory_are_those_of_an_independent_reader() {
    let Some(oracles) = corpus("hlo-oracle") else { return };
    let (mut compared, mut wrong) = (0, Vec::new());
    for oracle in names_in(&oracles) {
        let path = oracles.join(&oracle).join("xprof.memory_viewer.json.gz");
        let Some(folder) = path.exists().then(|| profiles(&oracle)).flatten() else { continue };
        let expected = json(&path);
        for (program, bytes) in programs(&folder) {
            let module = Module::read(&bytes).unwrap();
            for memory in module.memory() {
                let theirs = &expected[&program][format!("memory_space_{}", memory.space)];
                if !theirs.is_object() {
                    continue;
                }
                compared += 1;
                let bytes =
                    |key: &str| (theirs[key].as_f64().unwrap_or(0.0) * f64::from(1 << 20)).round() as u64;
                let position = theirs["peakHeapSizePosition"].as_u64().unwrap_or(0) as usize;
                let ours = (memory.peak_bytes, memory.peak_position, memory.total_bytes);
                let expected = (bytes("peakHeapMib"), position, bytes("totalBufferAllocationMib"));
                // Without a trace of the heap, that reader forgets what is temporary.
                if ours != expected && memory.traced {
                    wrong.push(format!(
                        "{oracle} {program} space {}: {ours:?}, expected {expected:?}",
                        memory.space
                    ));
                }
                let live: u64 = memory.live.iter().map(|buffer| buffer.size).sum();
                if live != memory.peak_bytes {
                    wrong.push(format!("{oracle} {program}: live {live}, peak {}", memory.peak_bytes));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 150, "{compared} memories");
}

/// Attributes that the text leaves out: they say nothing about what is computed.
const LEFT_OUT: [&str; 10] = [
    ", backend_config=",
    ", frontend_attributes=",
    ", operand_layout_constraints=",
    ", api_version=",
    ", output_to_operand_aliasing=",
    ", sharding=",
    ", parameter_replication=",
    ", fft_type=",
    ", is_stable=",
    ", called_computations=",
];

#[test]
fn lines_of_text_are_those_of_xla() {
    let Some(oracles) = corpus("hlo-oracle") else { return };
    let (mut compared, mut wrong) = (0, Vec::new());
    for oracle in names_in(&oracles) {
        let path = oracles.join(&oracle).join("xprof.hlo_text.json.gz");
        let Some(folder) = path.exists().then(|| profiles(&oracle)).flatten() else { continue };
        let expected = json(&path);
        for (program, bytes) in programs(&folder) {
            let Some(theirs) = expected[&program]["short_txt"].as_str() else { continue };
            let module = Module::read(&bytes).unwrap();
            let text = module.text(TextOptions::default());
            let ours: std::collections::HashSet<&str> = text.lines().collect();
            for line in theirs.lines().filter(|line| line.contains(" = ")) {
                let end = LEFT_OUT.iter().filter_map(|attribute| line.find(attribute)).min();
                let kept = &line[..end.unwrap_or(line.len())];
                compared += 1;
                if !ours.contains(kept) && !ours.iter().any(|own| own.starts_with(kept)) {
                    wrong.push(format!("{oracle} {program}: {kept}"));
                }
            }
        }
    }
    // Literals of small arrays are not printed.
    wrong.retain(|line| !line.contains("constant({"));
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 1000, "{compared} lines");
}
