//! Costs and memory against what XLA itself says about the same programs.

use serde_json::Value as Json;
use stepscope_hlo::{Cost, Costs, Module};
use stepscope_testkit::corpus::{corpus, names_in};

use crate::profiles::{json, programs};

/// XLA counts an instruction that it does not know as -1, and sums in single precision.
fn check(name: &str, cost: &Cost, flops: f64, transcendentals: f64, bytes: f64) {
    let near = |ours: f64, theirs: f64| (ours - theirs).abs() <= 1e-6 * theirs.abs().max(1.0);
    let ours = [
        cost.flops() as f64 - cost.unknown_flops as f64,
        cost.transcendentals as f64,
        cost.bytes as f64 - cost.unknown_bytes as f64,
    ];
    let theirs = [flops, transcendentals, bytes];
    for ((what, ours), theirs) in ["flops", "transcendentals", "bytes"].into_iter().zip(ours).zip(theirs) {
        assert!(near(ours, theirs), "{name}: {what} {ours}, XLA says {theirs}");
    }
}

#[test]
fn programs_of_one_operation_cost_what_xla_says() {
    let Some(folder) = corpus("hlo/micro") else { return };
    let truth = json(&folder.join("truth.json"));
    let cases = truth.as_array().unwrap();
    assert!(cases.len() >= 25, "{} cases", cases.len());
    for case in cases {
        let bytes = std::fs::read(folder.join(case["file"].as_str().unwrap())).unwrap();
        let module = Module::read(&bytes).unwrap();
        assert_eq!(module.damage, None);
        let number = |key: &str| case[key].as_f64().unwrap();
        let cost = Costs::of(&module).total();
        check(
            case["case"].as_str().unwrap(),
            &cost,
            number("flops"),
            number("transcendentals"),
            number("bytes_accessed"),
        );
    }
}

#[test]
fn whole_programs_cost_and_keep_what_xla_says() {
    let Some(corpus) = corpus("hlo") else { return };
    let mut checked = 0;
    for scenario in names_in(&corpus) {
        let path = corpus.join(&scenario).join("truth.json");
        if scenario == "micro" || !path.exists() {
            continue;
        }
        let truth = json(&path);
        let programs = programs(&corpus.join(&scenario));
        for (name, expected) in truth["modules"].as_object().unwrap() {
            let own = |bytes: &&(String, Vec<u8>)| bytes.0.starts_with(&format!("{name}("));
            let matching: Vec<_> = programs.iter().filter(own).collect();
            let (id, bytes) = matching.first().unwrap_or_else(|| panic!("{scenario} has no {name}"));
            let module = Module::read(bytes).unwrap();
            check_module(&format!("{scenario} {id}"), &module, expected);
            checked += 1;
        }
    }
    assert!(checked >= 9, "{checked} programs");
}

fn check_module(name: &str, module: &Module<'_>, expected: &Json) {
    let cost = &expected["cost_analysis"];
    let number = |from: &Json, key: &str| from[key].as_f64().unwrap_or(0.0);
    let total = Costs::of(module).total();
    check(
        name,
        &total,
        number(cost, "flops"),
        number(cost, "transcendentals"),
        number(cost, "bytes accessed"),
    );
    let memory = &expected["memory_analysis"];
    let ours = module.memory().remove(0);
    let figures = [
        ("argument", ours.argument_bytes),
        ("output", ours.output_bytes),
        ("alias", ours.alias_bytes),
        ("temp", ours.temp_bytes),
    ];
    for (what, ours) in figures {
        let theirs = memory[format!("{what}_size_in_bytes")].as_u64().unwrap();
        assert_eq!(ours, theirs, "{name}: {what}");
    }
}
