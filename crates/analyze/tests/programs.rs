//! Programs joined with what ran, against an independent reader of the same profiles.
#![allow(clippy::unwrap_used, reason = "what helps a test may fail it")]

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use serde_json::Value as Json;
use stepscope_analyze::breakdown::selection::Range;
use stepscope_analyze::work::programs::{Bound, GroupBy, ProgramOp, Programs, ProgramsPartial};
use stepscope_analyze::{Analysis, Context, Selection};
use stepscope_read::{Input, Progress, Reader, XPlaneReader};
use stepscope_testkit::corpus::{corpus, files_below};
use stepscope_trace::Trace;

fn open(path: &Path) -> Trace {
    let is_profile = |path: &std::path::PathBuf| path.to_string_lossy().ends_with(".xplane.pb");
    let file = if path.is_file() {
        path.to_owned()
    } else {
        files_below(path).into_iter().find(is_profile).unwrap()
    };
    XPlaneReader.read(&Input::open(&file).unwrap(), &Progress::new()).unwrap()
}

fn programs(path: &str) -> Option<Programs> {
    let trace = open(&corpus(path)?);
    let whole = Selection { range: Range::Whole, ..Selection::default() };
    let context = Context::new(&trace, "host").selecting(whole);
    Some(ProgramsPartial::of(&context).finish())
}

fn oracle(path: &str) -> Option<Json> {
    let mut text = String::new();
    let file = std::fs::File::open(corpus(&format!("hlo-oracle/{path}"))?).unwrap();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

#[test]
fn instructions_on_cpus_ran_as_often_and_as_long_as_an_independent_reader_says() {
    let profiles = [
        ("hlo/convnet", "hlo__convnet"),
        ("hlo/mixed_ops", "hlo__mixed_ops"),
        ("hlo/sharded_4dev", "hlo__sharded_4dev"),
        ("hlo/transformer_scan", "hlo__transformer_scan"),
        ("labelled/jax_train", "labelled__jax_train"),
        ("labelled/jax_recompile", "labelled__jax_recompile"),
        ("xplane-names/jax_recompile", "xplane-names__jax_recompile"),
        ("xplane-names/xla_jit", "xplane-names__xla_jit"),
    ];
    let (mut compared, mut wrong) = (0, Vec::new());
    for (profile, folder) in profiles {
        let Some(found) = programs(profile) else { return };
        let Some(expected) = oracle(&format!("{folder}/own.cpu_ops.json.gz")) else { return };
        let ours: BTreeMap<(u64, &str), _> =
            found.ops.iter().map(|op| ((op.program.id.unwrap_or(0), op.op.as_str()), op)).collect();
        for theirs in expected["ops"].as_array().unwrap() {
            let name = theirs["hlo_op"].as_str().unwrap();
            let key = (theirs["program_id"].as_u64().unwrap(), name);
            compared += 1;
            let Some(op) = ours.get(&key) else {
                wrong.push(format!("{profile}: {key:?} is missing"));
                continue;
            };
            let cost = op.facts.cost;
            let number = |key: &str| theirs[key].as_i64().unwrap_or(-2);
            let ours = [
                op.totals.executions as i64,
                // The reader knows events only.
                (op.totals.total - op.totals.background).ps(),
                (op.totals.own - op.totals.background).ps(),
                cost.flops() as i64 - cost.unknown_flops as i64,
                cost.bytes as i64 - cost.unknown_bytes as i64,
            ];
            let theirs = ["events", "total_ps", "self_ps", "flops", "bytes"].map(number);
            if ours != theirs {
                wrong.push(format!("{profile}: {key:?} {ours:?}, expected {theirs:?}"));
            }
        }
        for (name, theirs) in expected["modules"].as_object().unwrap() {
            let row = found
                .programs
                .iter()
                .find(|row| format!("{}({})", row.key.name, row.key.id.unwrap_or(0)) == *name);
            let ours = row.map(|row| (row.facts.runs, row.facts.instructions));
            let theirs = theirs["runs"].as_u64().zip(theirs["instructions"].as_u64());
            if ours != theirs && theirs.is_some() {
                wrong.push(format!("{profile}: {name} {ours:?}, expected {theirs:?}"));
            }
        }
        let never = found.programs.iter().filter(|row| row.facts.runs == 0).count();
        let theirs = expected["modules_not_run"].as_array().map_or(0, Vec::len);
        if never != theirs {
            wrong.push(format!("{profile}: {never} never ran, expected {theirs}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared >= 400, "{compared} instructions");
}

#[test]
fn loops_count_as_often_as_they_ran() {
    for (profile, program, flops) in
        [("hlo/transformer_scan", "jit_train_step", 354_312_788), ("hlo/mixed_ops", "jit_loop", 5_406_974)]
    {
        let Some(found) = programs(profile) else { return };
        let runs = found
            .programs
            .iter()
            .find(|row| row.key.name == program && row.facts.runs > 0)
            .unwrap()
            .facts
            .runs;
        let sum: u64 =
            found.ops.iter().filter(|op| op.program.name == program).filter_map(|op| op.flops()).sum();
        assert_eq!(sum / runs, flops, "{program}");
    }
}

#[test]
fn one_execution_on_a_gpu_may_run_several_kernels() {
    for (profile, folder) in [("jax08_gemm", "amd-jax08_gemm"), ("jax08_conv", "amd-jax08_conv")] {
        let Some(found) = programs(&format!("xplane-public/AMD-AGI+TraceLens/{profile}")) else { return };
        let Some(expected) = oracle(&format!("{folder}/own.gpu_ops.json.gz")) else { return };
        let mut compared = 0;
        for theirs in expected.as_array().unwrap() {
            let (Some(id), Some(name)) = (theirs["program_id"].as_u64(), theirs["hlo_op"].as_str()) else {
                continue;
            };
            let op = found.ops.iter().find(|op| op.program.id == Some(id) && op.op == name).unwrap();
            if let Some(flops) = theirs["flops_per_execution"].as_u64() {
                let ours = (op.facts.cost.flops(), op.facts.cost.bytes);
                assert_eq!(
                    ours,
                    (flops, theirs["bytes_per_execution"].as_u64().unwrap()),
                    "{profile} {id} {name}"
                );
                compared += 1;
            }
        }
        assert!(compared > 0, "{profile}");
    }
    let Some(found) = programs("xplane-public/AMD-AGI+TraceLens/jax08_conv") else { return };
    let convolution = found.ops.iter().find(|op| op.facts.category == "convolution").unwrap();
    assert_eq!((convolution.totals.executions, convolution.totals.events), (40, 79));
    let peaks = found.peaks.as_ref().unwrap();
    assert_eq!(peaks.device, "Instinct MI300X");
    // 33 GFLOP take 25 µs at the peak, 579 MB take 109 µs.
    assert_eq!(convolution.bound(Some(peaks)), Some(Bound::Memory));
}

#[test]
fn op_tables_of_devices_agree_with_xprof_within_a_thousandth() {
    let profiles = [
        ("xplane-public/openxla+xprof/tpu_inference_2.xplane.pb", "tpu_inference_2"),
        ("xplane-public/AMD-AGI+TraceLens/jax08_gemm", "amd-jax08_gemm"),
        ("xplane-public/AMD-AGI+TraceLens/jax08_conv", "amd-jax08_conv"),
        ("xplane-public/AMD-AGI+TraceLens/jax_conv_minimal_legacy", "amd-jax_conv_minimal_legacy"),
    ];
    let (mut compared, mut wrong, mut counted_otherwise) = (0, Vec::new(), 0);
    for (profile, folder) in profiles {
        let Some(found) = programs(profile) else { return };
        let Some(table) = oracle(&format!("{folder}/xprof.hlo_stats.json.gz")) else { return };
        let columns: Vec<&str> =
            table["cols"].as_array().unwrap().iter().filter_map(|column| column["id"].as_str()).collect();
        for row in table["rows"].as_array().unwrap() {
            let cell = |key: &str| {
                let place = columns.iter().position(|column| *column == key).unwrap();
                row["c"][place]["v"].clone()
            };
            let (id, name) = (cell("program_id"), cell("hlo_op_name"));
            let id = id.as_str().map(str::to_owned).unwrap_or_else(|| id.to_string());
            let own =
                |op: &&ProgramOp| op.program.id.map(|id| id.to_string()) == Some(id.clone()) && name == op.op;
            let Some(op) = found.ops.iter().find(own) else {
                wrong.push(format!("{folder}: {id} {name} is missing"));
                continue;
            };
            // XProf misses the first kernel of one instruction.
            if cell("occurrences").as_f64().unwrap() != op.totals.events as f64 {
                counted_otherwise += 1;
                continue;
            }
            compared += 1;
            let (ours, theirs) = (op.totals.own.ms() * 1e3, cell("total_self_time").as_f64().unwrap());
            if (ours - theirs).abs() > 1e-3 * theirs {
                wrong.push(format!("{folder}: {name} {ours} µs, XProf {theirs} µs"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(
        compared >= 40 && counted_otherwise <= 1,
        "{compared} rows, {counted_otherwise} counted otherwise"
    );
}

#[test]
fn phases_and_lines_hold_all_time() {
    let Some(found) = programs("hlo/transformer_scan") else { return };
    for by in [GroupBy::Category, GroupBy::Scope, GroupBy::Source, GroupBy::Phase] {
        let all: f64 = found.ops.iter().map(|op| op.totals.own.ms()).sum();
        let grouped: f64 = found.grouped(by).iter().map(|row| row.time_ms).sum();
        assert!((all - grouped).abs() < 1e-6, "{by:?}");
    }
    let phases: Vec<String> = found.grouped(GroupBy::Phase).into_iter().map(|row| row.name).collect();
    for phase in ["forward", "backward", "recompute", "optimizer"] {
        assert!(phases.iter().any(|name| name == phase), "{phases:?}");
    }
    let scopes: Vec<String> = found.grouped(GroupBy::Scope).into_iter().map(|row| row.name).collect();
    for scope in ["attention", "mlp", "embed", "head", "optimizer"] {
        assert!(scopes.iter().any(|name| name == scope), "{scopes:?}");
    }
}
