//! Profiles that tfprof shows wrongly, and what becomes of them.
use std::collections::BTreeSet;

use stepscope_tfgraph::{Graph, NodeDef, NodeRecord, OpLog, OpLogEntry, OutputUse, Shape};

use super::*;
use crate::options::Options;
use crate::view::{Shown, View};
use crate::{Advice, advise};

const CPU: &str = "/job:localhost/replica:0/task:0/device:CPU:0";

fn node(name: &str, op: &str, inputs: &[&str], outputs: &[&[i64]]) -> NodeDef {
    let shape = |dims: &&[i64]| Shape { dims: dims.to_vec(), unknown_rank: false };
    NodeDef {
        name: name.to_owned(),
        op: op.to_owned(),
        inputs: inputs.iter().map(|input| (*input).to_owned()).collect(),
        attrs: vec![("_output_shapes".to_owned(), Attr::Shapes(outputs.iter().map(shape).collect()))],
        ..NodeDef::default()
    }
}

fn ran(profile: &mut Profile, label: &'static str, shapes: &[&[i64]], micros: i64) {
    let name = label.split_once(" = ").map_or(label, |(name, _)| name);
    let output =
        |(slot, dims): (i64, &&[i64])| OutputUse { slot, shape: Some(dims.to_vec()), ..OutputUse::default() };
    let record = NodeRecord {
        name: name.into(),
        label: label.into(),
        start_micros: 1_000,
        op_end_micros: micros,
        outputs: (0..).zip(shapes).map(output).collect(),
        ..NodeRecord::default()
    };
    profile.add_record(0, CPU, &record);
}

/// A layer of which the batch is not known and whose operations ran as one kernel.
fn fused_layer() -> Profile {
    let mut profile = Profile::to_be_fixed();
    let nodes = vec![
        node("x", "Placeholder", &[], &[&[-1, 64]]),
        node("w", "Const", &[], &[&[64, 128]]),
        node("b", "Const", &[], &[&[128]]),
        node("dense/MatMul", "MatMul", &["x", "w"], &[&[-1, 128]]),
        node("dense/BiasAdd", "BiasAdd", &["dense/MatMul", "b"], &[&[-1, 128]]),
        node("dense/Relu", "Relu", &["dense/BiasAdd"], &[&[-1, 128]]),
        node("init", "Mul", &["w", "w"], &[&[64, 128]]),
    ];
    profile.add_graph(&Graph { nodes });
    let entry = OpLogEntry { name: "init".to_owned(), float_ops: 8_192, ..OpLogEntry::default() };
    profile.add_op_log(&OpLog { entries: vec![entry], ..OpLog::default() });
    ran(&mut profile, "_arg_x_0_0 = _Arg()", &[&[32, 64]], 1);
    ran(&mut profile, "w = Const()", &[&[64, 128]], 1);
    ran(&mut profile, "b = Const()", &[&[128]], 1);
    ran(&mut profile, "dense/Relu = _FusedMatMul(_arg_x_0_0, w, b)", &[&[32, 128]], 50);
    profile.end_step(0, &[CPU.to_owned()]);
    profile
}

fn selecting(columns: &[Column]) -> Options {
    Options { select: columns.iter().copied().collect::<BTreeSet<_>>(), ..Options::default() }
}

fn reasons(fixed: &Fixed, kind: ReasonKind) -> Vec<&str> {
    let of_kind = fixed.reasons.iter().filter(|reason| reason.kind == kind);
    of_kind.flat_map(|reason| &reason.nodes).map(String::as_str).collect()
}

#[test]
fn a_fused_kernel_has_a_row_of_its_own_with_its_time_and_work() {
    let profile = fused_layer();
    let fixed = profile.fixed();
    let options = selecting(&[Column::Micros, Column::FloatOps]);
    let table = |profile: &Profile| Shown::new(profile, View::Op, &options).unwrap().table();
    let row = |table: &str, name: &str| table.lines().find(|line| line.starts_with(name)).map(str::to_owned);
    assert!(row(&table(&profile), "Relu ").is_some_and(|row| row.contains("50us")));
    assert_eq!(row(&table(&profile), "_FusedMatMul"), None);
    let after = row(&table(&fixed.profile), "_FusedMatMul").unwrap();
    // 2·64·32·128, and 32·128 each for bias and activation.
    assert!(after.contains("50us") && after.contains("532.48k float_ops"), "{after}");
    assert_eq!(row(&table(&fixed.profile), "Relu "), None);
    assert!(row(&table(&fixed.profile), "_Arg").is_some());
    assert!(reasons(&fixed, ReasonKind::Ran).contains(&"dense/Relu ran _FusedMatMul"));
}

#[test]
fn what_never_ran_counts_no_work() {
    let fixed = fused_layer().fixed();
    assert_eq!(reasons(&fixed, ReasonKind::NeverRan), ["init"]);
    assert_eq!(fixed.profile.node("init").unwrap().measures(-1).float_ops, 0);
}

#[test]
fn without_runs_nothing_is_taken_for_idle() {
    let mut profile = Profile::to_be_fixed();
    let nodes = vec![node("x", "Placeholder", &[], &[&[32, 64]]), node("relu", "Relu", &["x"], &[&[32, 64]])];
    profile.add_graph(&Graph { nodes });
    let fixed = profile.fixed();
    assert_eq!(fixed.profile.node("relu").unwrap().measures(-1).float_ops, 32 * 64);
    assert_eq!(reasons(&fixed, ReasonKind::FloatOps), ["relu"]);
}

#[test]
fn inputs_have_the_shape_of_the_output_that_they_take() {
    let mut profile = Profile::to_be_fixed();
    let nodes = vec![
        node("split", "Split", &[], &[&[8], &[3]]),
        node("use", "Mul", &["split:1", "split", "^wait"], &[&[8]]),
        node("wait", "NoOp", &[], &[]),
    ];
    profile.add_graph(&Graph { nodes });
    let options = selecting(&[Column::InputShapes]);
    let cell = |profile: &Profile| {
        let table = Shown::new(profile, View::Scope, &options).unwrap().table();
        table.lines().find(|line| line.contains("use")).unwrap().trim().to_owned()
    };
    assert_eq!(cell(&profile), "use (0:8|1:8|2:unknown)");
    let fixed = profile.fixed();
    assert_eq!(cell(&fixed.profile), "use (0:3|1:8)");
    assert_eq!(reasons(&fixed, ReasonKind::Ports), ["use"]);
}

#[test]
fn the_difference_is_listed_once_per_change() {
    let profile = fused_layer();
    let fixed = profile.fixed();
    let options = selecting(&[Column::FloatOps]);
    let [before, after] =
        [&profile, &fixed.profile].map(|profile| Shown::new(profile, View::Scope, &options).unwrap());
    let changes = Changes::between(&before, &after, &fixed);
    let names: Vec<&str> = changes.rows.iter().map(|row| row.name.as_str()).collect();
    // `dense` passes on what changed in `dense/Relu`.
    assert_eq!(names, ["whole view", "dense/Relu", "init"]);
    let text = changes.text();
    assert!(text.starts_with("\nChanged by --fix:\n  whole view: float_ops 8.19k -> 532.48k\n"), "{text}");
    assert!(text.contains("dense/Relu ran _FusedMatMul"), "{text}");
    let json = changes.json();
    assert_eq!(json["changed"][1]["after"], 532_480);
    assert!(json["reasons"].as_array().unwrap().iter().any(|it| it["reason"] == "ran-as"));
}

#[test]
fn a_view_that_stays_says_so() {
    let profile = fused_layer();
    let fixed = profile.fixed();
    let options = selecting(&[Column::Params]);
    let [before, after] =
        [&profile, &fixed.profile].map(|profile| Shown::new(profile, View::Scope, &options).unwrap());
    assert!(Changes::between(&before, &after, &fixed).text().contains("nothing in this view"));
}

#[test]
fn a_node_that_two_patterns_match_counts_once() {
    let profile = fused_layer();
    let mut options = selecting(&[Column::Micros]);
    options.set("account_type_regexes", &["Const,Con.*".to_owned()]).unwrap();
    let micros = |profile: &Profile| {
        let shown = Shown::new(profile, View::Op, &options).unwrap();
        shown.rows[shown.root].total.exec_micros
    };
    assert_eq!((micros(&profile), micros(&profile.fixed().profile)), (4, 2));
}

#[test]
fn advice_has_the_times_of_all_inside_a_scope() {
    let mut profile = Profile::to_be_fixed();
    profile.add_graph(&Graph { nodes: vec![node("dense/BatchNorm", "FusedBatchNormV3", &[], &[])] });
    ran(&mut profile, "dense/BatchNorm = FusedBatchNormV3()", &[], 500);
    profile.end_step(0, &[CPU.to_owned()]);
    let (before, after) = (advise(&profile), advise(&profile.fixed().profile));
    let changes = Advice::changes(&before, &after);
    let said = |text: &str, line: &Option<String>| line.as_ref().is_some_and(|line| line.contains(text));
    assert!(
        changes.iter().any(|(_, before, after)| said("total: 0us", before) && said("total: 500us", after))
    );
    assert!(
        changes.iter().any(|(_, before, after)| said("FusedBatchNorm instead", before) && after.is_none())
    );
    assert_eq!(changes.len(), 2);
}
