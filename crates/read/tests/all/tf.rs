//! Files of classic TensorFlow: intact files yield their content, damaged ones what is left, with the damage
//! reported.

#![allow(clippy::unwrap_used, reason = "what helps a test may fail it")]

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use stepscope_read::tf::{self, Damages, Kind, kind_of};
use stepscope_read::{Bytes, Input, Progress, ReadError, Reader, TimelineReader};
use stepscope_testkit::damage::{
    FOREIGN, HUGE_VARINTS, Rng, flip_bits, noise, overwrite, splice, truncations,
};
use stepscope_testkit::tfprof;
use stepscope_tfgraph::{Attr, Shape, Values};

fn files() -> Vec<(Kind, Vec<u8>)> {
    vec![
        (Kind::Graph, tfprof::graph()),
        (Kind::GraphText, tfprof::graph_text().into_bytes()),
        (Kind::Run, tfprof::run(0, 5)),
        (Kind::OpLog, tfprof::op_log()),
        (Kind::Saved, tfprof::saved()),
        (Kind::CheckpointIndex, tfprof::checkpoint().0),
        (Kind::Events, tfprof::events(&tfprof::graph(), &[tfprof::run(0, 5)])),
    ]
}

/// Reads bytes as every kind; the damage of that which they are meant to be, `None` where nothing could be read.
fn read(folder: &Path, kind: Kind, bytes: &[u8]) -> Option<Damages> {
    let path = folder.join("m.index");
    fs::write(&path, bytes).unwrap();
    let _ = (tf::read_graph(&path), tf::read_op_log(&path), tf::read_saved(&path), tf::read_events(&path));
    match kind {
        Kind::Graph | Kind::GraphText => tf::read_graph(&path).ok().map(|found| found.damage),
        Kind::Run => tf::read_run(&path, &mut |_, _| {}).ok().map(|found| found.damage),
        Kind::OpLog => tf::read_op_log(&path).ok().map(|found| found.damage),
        Kind::Saved => tf::read_saved(&path).ok().map(|found| found.damage),
        Kind::Events => tf::read_events(&path).ok().map(|found| found.damage),
        _ => tf::read_checkpoint(&path, true).ok().map(|found| found.damage),
    }
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m.data-00000-of-00001"), tfprof::checkpoint().1).unwrap();
    folder
}

#[test]
fn every_kind_is_recognised_and_read_whole() {
    let folder = folder();
    for (kind, bytes) in files() {
        assert_eq!(kind_of(&bytes), Some(kind));
        let damage = read(folder.path(), kind, &bytes).unwrap();
        assert!(damage.is_empty(), "{kind:?}: {damage:?}");
    }
    FOREIGN.iter().for_each(|bytes| assert_eq!(kind_of(bytes), None));
}

#[test]
fn a_graph_is_the_same_binary_and_as_text() {
    let folder = folder();
    let read = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        tf::read_graph(&path).unwrap().value
    };
    let graph = read("graph.pb", &tfprof::graph());
    assert_eq!(graph, read("graph.pbtxt", tfprof::graph_text().as_bytes()));
    let kernel = graph.nodes.iter().find(|node| node.op == "VariableV2").unwrap();
    assert_eq!(kernel.attr("shape"), Some(&Attr::Shape(Shape { dims: vec![3, 2], unknown_rank: false })));
    assert_eq!(kernel.attr("data_format").and_then(Attr::as_text), Some("NHWC"));
    assert_eq!(graph.nodes[5].inputs, ["dense/Relu", "^x"]);
}

#[test]
fn a_run_gives_times_memory_and_labels() {
    let folder = folder();
    let path = folder.path().join("run.pb");
    fs::write(&path, tfprof::run(0, 5)).unwrap();
    let mut seen = Vec::new();
    let found = tf::read_run(&path, &mut |device, record| {
        assert_eq!(device, tfprof::CPU);
        let used = &record.memory[0];
        seen.push((record.name.to_string(), record.label.to_string(), record.op_end_micros));
        assert_eq!((used.total_bytes, used.peak_bytes, used.live_bytes, used.changes.len()), (64, 48, 24, 1));
        assert_eq!(record.outputs[0].bytes, Some((40, 64)));
        assert_eq!(record.outputs[0].shape.as_deref(), Some(&[5, 2][..]));
    });
    assert_eq!((found.unwrap().value.records, seen.len()), (3, 3));
    assert_eq!(stepscope_tfgraph::timeline_op(&seen[1].1), Some("_FusedMatMul"));
}

#[test]
fn a_checkpoint_gives_shapes_and_values() {
    let folder = folder();
    fs::write(folder.path().join("m.index"), tfprof::checkpoint().0).unwrap();
    let found = tf::read_checkpoint(&folder.path().join("m"), true).unwrap();
    let variable = &found.value.variables[0];
    assert_eq!((variable.name.as_str(), variable.data_type.name()), ("dense/kernel", "float32"));
    assert_eq!((variable.shape.as_slice(), variable.bytes), (&[3, 2][..], 24));
    assert_eq!(variable.values, Some(Values::Floats(vec![0.5, -1.25, 2.0, 0.0, 1.0, 3.5])));
    fs::write(folder.path().join("m.data-00000-of-00001"), [0; 24]).unwrap();
    let found = tf::read_checkpoint(&folder.path().join("m.index"), true).unwrap();
    assert!(found.damage.first().unwrap().what.contains("checksum"));
    assert_eq!(found.value.variables[0].values, None);
}

#[test]
fn what_an_index_names_again_is_not_kept_again() {
    let folder = folder();
    let read = |(index, data): (Vec<u8>, Vec<u8>)| {
        fs::write(folder.path().join("m.index"), index).unwrap();
        fs::write(folder.path().join("m.data-00000-of-00001"), data).unwrap();
        tf::read_checkpoint(&folder.path().join("m"), true).unwrap()
    };
    let found = read(tfprof::checkpoint_that_repeats(3, 1_000));
    assert_eq!(found.value.variables.len(), 3, "each block is read once");
    assert!(found.damage.listed().iter().any(|damage| damage.what.contains("named twice")));
    let found = read(tfprof::checkpoint_that_repeats(1_000, 1));
    let with_values = found.value.variables.iter().filter(|variable| variable.values.is_some()).count();
    assert_eq!((found.value.variables.len(), with_values), (1_000, 1), "the data file has values for one");
}

#[test]
fn an_event_file_delivers_its_graph_and_runs() {
    let folder = folder();
    let path = folder.path().join("events.out.tfevents.1.host");
    fs::write(&path, tfprof::events(&tfprof::graph(), &[tfprof::run(0, 5), tfprof::run(1, 6)])).unwrap();
    let events = tf::read_events(&path).unwrap().value;
    assert_eq!((events.graphs.len(), events.events), (1, 4));
    let tags: Vec<(&str, i64)> = events.runs.iter().map(|run| (run.tag.as_str(), run.step)).collect();
    assert_eq!(tags, [("step0", 0), ("step1", 1)]);
    assert_eq!(events.bytes[events.runs[1].place.clone()], tfprof::run(1, 6));
}

#[test]
fn a_file_of_another_kind_is_named() {
    let folder = folder();
    let path = folder.path().join("run.pb");
    fs::write(&path, tfprof::graph()).unwrap();
    let error = tf::read_run(&path, &mut |_, _| {}).unwrap_err();
    assert!(matches!(error, ReadError::WrongKind { found: Some(_), .. }));
    assert!(error.to_string().ends_with("is a graph (GraphDef), not run metadata (RunMetadata)"));
    fs::write(&path, b"").unwrap();
    assert!(matches!(tf::read_graph(&path), Err(ReadError::Empty { .. })));
    fs::write(&path, noise(&mut Rng::new(1), 2_048)).unwrap();
    assert!(matches!(tf::read_graph(&path), Err(ReadError::WrongKind { found: None, .. })));
}

#[test]
fn files_that_are_cut_short_are_never_taken_as_whole() {
    let folder = folder();
    for (kind, bytes) in files() {
        // Where a record ends, a shorter file is a whole file; only a checksum or a count could tell.
        let mut whole = 0;
        for cut in truncations(&bytes) {
            whole += usize::from(read(folder.path(), kind, cut).is_some_and(|damage| damage.is_empty()));
        }
        assert!(whole <= 13, "{kind:?}: {whole} cuts of {} went unnoticed", bytes.len());
    }
}

#[test]
fn damaged_files_never_panic() {
    let folder = folder();
    let mut rng = Rng::new(15);
    for (kind, bytes) in files() {
        for round in 0..120 {
            let damaged = match round % 4 {
                0 => flip_bits(&bytes, &mut rng, 1 + round / 10),
                1 => splice(&bytes, &mut rng),
                2 => overwrite(&bytes, &mut rng, HUGE_VARINTS[round % HUGE_VARINTS.len()]),
                _ => flip_bits(&bytes[..bytes.len() / 2], &mut rng, 3),
            };
            read(folder.path(), kind, &damaged);
        }
    }
}

#[test]
fn a_damaged_timeline_yields_what_is_left() {
    let (cpu, stream) = ("/job:localhost/replica:0/task:0/cpu:0", "/gpu:0/stream:14");
    let ops: Vec<(usize, &str, &str, i64, i64)> =
        (0..20).map(|index| (index % 2, "dense/MatMul", "MatMul", index as i64 * 100, 70)).collect();
    let bytes = tfprof::timeline(&[cpu, stream], &ops).into_bytes();
    let events = |bytes: &[u8]| {
        let input = Input::from_bytes("timeline.json", Bytes::held(bytes.to_vec()));
        TimelineReader.read(&input, &Progress::default()).map(|trace| trace.events()).ok()
    };
    assert!(TimelineReader.recognises(&bytes));
    assert_eq!(events(&bytes), Some(22), "the ops, and the run with its call");
    for cut in truncations(&bytes) {
        assert!(events(cut).unwrap_or(0) <= 22);
    }
    let mut rng = Rng::new(16);
    for round in 0..120 {
        events(&flip_bits(&bytes, &mut rng, 1 + round / 10));
        events(&splice(&bytes, &mut rng));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// A text graph holds any name and any bytes.
    #[test]
    fn names_survive_the_text_form(name in "[ -~]{1,20}", bytes in prop::collection::vec(any::<u8>(), 0..20)) {
        let escaped: String = name.chars().flat_map(|c| c.escape_default()).collect();
        let octal: String = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
        let text = format!(
            "node {{ name: \"{escaped}\" op: \"A\" attr {{ key: \"k\" value {{ s: \"{octal}\" }} }} }}"
        );
        let found = tf::graph_of(&PathBuf::from("x"), text.as_bytes(), Damages::default()).unwrap();
        prop_assert!(found.damage.is_empty());
        prop_assert_eq!(&found.value.nodes[0].name, &name);
        prop_assert_eq!(found.value.nodes[0].attr("k"), Some(&Attr::Bytes(bytes)));
    }

    /// Whatever the bytes are, every reader gives an answer.
    #[test]
    fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let folder = folder();
        for (kind, _) in files() {
            read(folder.path(), kind, &bytes);
        }
    }
}
