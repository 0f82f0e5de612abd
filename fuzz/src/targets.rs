//! What is done with an input: read it, then access everything that is decoded on demand. Whatever the bytes
//! are, nothing may panic, hang, or use memory out of proportion to the input.

use std::fs;
use std::path::Path;

use stepscope_fleet::fuzzing;
use stepscope_hlo::{Costs, MAIN_SPACE, Module, Phases, TextOptions, Users, main_memory_bytes};
use stepscope_read::discover::discover as find;
use stepscope_read::tf::{self, Damages};
use stepscope_read::tfevents::{RunReader, graph_of, picture, run_of};
use stepscope_read::{Bytes, Input, Progress, READERS, Reader, TableFile, open_input};
use stepscope_trace::series::GraphForm;
use stepscope_trace::{Args, Trace};

pub use crate::pipeline::{analyses, rendering, requests, tiles};
pub use crate::queries::queries;

/// Something that is done with the bytes.
pub type Function = fn(&[u8]);

/// A fuzzing target.
#[derive(Copy, Clone)]
pub enum Target {
    /// Something that is done with the bytes.
    Function(Function),
    /// A reader, whether it recognises the bytes or not.
    Reader(&'static dyn Reader),
}

impl Target {
    /// Runs it on these bytes.
    pub fn run(self, bytes: &[u8]) {
        match self {
            Target::Function(function) => function(bytes),
            Target::Reader(reader) => read_with(reader, bytes),
        }
    }
}

/// All targets, by name: every reader under the name of its format, then the others.
pub fn targets() -> impl Iterator<Item = (&'static str, Target)> {
    let readers = all_readers().map(|reader| (reader.format().name, Target::Reader(reader)));
    readers.chain(OTHERS.iter().map(|(name, function)| (*name, Target::Function(*function))))
}

/// The readers of every format. Reports of Nsight Systems are converted by another program, which is not ours to test.
fn all_readers() -> impl Iterator<Item = &'static dyn Reader> {
    READERS.iter().copied().filter(|reader| reader.format().name != "nsys-rep")
}

/// Targets that are not one reader.
const OTHERS: &[(&str, Function)] = &[
    ("hlo", hlo),
    ("tables", tables),
    ("tf_graph", tf_graph),
    ("tf_run", tf_run),
    ("tf_op_log", tf_op_log),
    ("tf_saved", tf_saved),
    ("tf_checkpoint", tf_checkpoint),
    ("tf_events", tf_events),
    ("tfevents", tfevents),
    ("fleet", fleet),
    ("any", any),
    ("discover", discover),
    ("analyses", analyses),
    ("rendering", rendering),
    ("tiles", tiles),
    ("requests", requests),
    ("queries", queries),
];

/// All readers, whether they recognise the bytes or not.
pub fn readers(bytes: &[u8]) {
    all_readers().for_each(|reader| read_with(reader, bytes));
}

/// A compiled program, with everything that can be asked about it.
pub fn hlo(bytes: &[u8]) {
    let _ = (main_memory_bytes(bytes), Module::name_in(bytes), Module::instructions_in(bytes));
    let Some(module) = Module::read(bytes) else { return };
    let (costs, phases, users) = (Costs::of(&module), Phases::of(&module), Users::of(&module));
    for (instruction, id) in module.instructions.iter().zip(0..) {
        let _ =
            (costs.instruction(id), phases.of_instruction(id), module.category(instruction), users.get(id));
        let _ = (module.source(instruction), module.collective(instruction), module.trip_count(instruction));
        let _ = (module.movement(instruction), module.moved(instruction), module.is_unfused(instruction));
        let _ = (module.padding_bytes(instruction), instruction.shape.bytes_in(MAIN_SPACE));
    }
    // Every neighbourhood would take as long as the square of the program.
    for id in (0..).take(module.instructions.len().min(NEIGHBOURHOODS)) {
        let _ = module.neighbourhood(id, 3).draw(|_| 100.0);
    }
    let _ = (costs.total(), module.memory(), module.text(TextOptions { long: true }));
}

/// Instructions whose neighbours are laid out.
const NEIGHBOURHOODS: usize = 16;

/// A folder of tables in which the bytes are used for every table that is read.
pub fn tables(bytes: &[u8]) {
    let names = ["StringIds", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"];
    let table = |name: &str| TableFile { name: name.to_owned(), bytes: Bytes::held(bytes.to_vec()) };
    let input = Input::from_tables("fuzz", names.map(table).to_vec());
    if let Ok(opened) = open_input(&input, &Progress::new()) {
        walk(&opened.trace);
    }
}

/// A partial of a fleet: as it is, and as the content of entries whose checksums fit.
pub fn fleet(bytes: &[u8]) {
    for partial in [bytes.to_vec(), fuzzing::framed(bytes), fuzzing::packed(bytes)] {
        let _ = stepscope_fleet::finish(&partial);
        let _ = stepscope_fleet::merge(&[partial]);
    }
}

/// TensorFlow's graphs, binary or text.
pub fn tf_graph(bytes: &[u8]) {
    tf::kind_of(bytes);
    let _ = tf::graph_of(Path::new("fuzz"), bytes, Damages::default());
}

/// TensorFlow's run metadata, record by record.
pub fn tf_run(bytes: &[u8]) {
    let mut records = 0;
    if let Ok(found) = tf::run_of(Path::new("fuzz"), bytes, Damages::default(), &mut |_, _| records += 1) {
        assert_eq!(found.value.records, records);
    }
}

/// Op logs of tfprof.
pub fn tf_op_log(bytes: &[u8]) {
    let _ = tf::op_log_of(Path::new("fuzz"), bytes, Damages::default());
}

/// Saved profiles of tfprof.
pub fn tf_saved(bytes: &[u8]) {
    let _ = tf::saved_of(Path::new("fuzz"), bytes, Damages::default());
}

/// Checkpoints; the bytes are index and data.
pub fn tf_checkpoint(bytes: &[u8]) {
    tf::checkpoint_of(bytes, true, &|_, _| Ok(Bytes::held(bytes.to_vec())));
}

/// Event files.
pub fn tf_events(bytes: &[u8]) {
    let events = tf::events_of(Bytes::held(bytes.to_vec()), Damages::default()).value;
    assert!(events.runs.iter().all(|run| run.place.end <= bytes.len()));
}

/// Values logged for TensorBoard, as series; what else is logged, and the input as each of these by itself.
pub fn tfevents(bytes: &[u8]) {
    let log = RunReader::of_bytes(bytes);
    picture::recognise(bytes);
    for form in [GraphForm::Graph, GraphForm::MetaGraph, GraphForm::Traced] {
        graph_of(form, bytes);
    }
    let held =
        |at: u64, length: u64| bytes.get(usize::try_from(at).ok()?..)?.get(..usize::try_from(length).ok()?);
    for graph in &log.graphs {
        graph_of(graph.form, held(graph.place.at, graph.place.bytes).unwrap_or_default());
    }
    for run in &log.recorded {
        run_of(held(run.place.at, run.place.bytes).unwrap_or_default(), &mut |_, _| {});
    }
    for sample in log.pictures.iter().flat_map(|it| &it.kept).flat_map(|it| &it.samples) {
        assert!(held(sample.at, sample.bytes).is_some(), "a picture lies within the file");
    }
    for series in &log.series {
        assert!(series.steps.len() == series.values.len() && series.steps.len() == series.wall_s.len());
    }
}

/// Whatever reader recognises the bytes.
pub fn any(bytes: &[u8]) {
    if let Ok(opened) = open_input(&input(bytes), &Progress::new()) {
        walk(&opened.trace);
    }
}

/// The search for profiles, with the bytes as one of the files.
pub fn discover(bytes: &[u8]) {
    let Ok(folder) = tempfile::tempdir() else { return };
    let session = folder.path().join("plugins/profile/2026_01_01_00_00_00");
    let written = fs::create_dir_all(&session)
        .and_then(|()| fs::write(session.join("a.xplane.pb"), bytes))
        .and_then(|()| fs::write(session.join("a.trace.json.gz"), bytes));
    if written.is_ok()
        && let Ok(found) = find(&[folder.path().to_owned()])
    {
        let sizes = found.sessions.iter().flat_map(|session| &session.files).map(|file| file.bytes);
        assert!(sizes.sum::<u64>() <= 2 * bytes.len() as u64);
    }
}

pub(crate) fn input(bytes: &[u8]) -> Input {
    Input::from_bytes("fuzz", Bytes::held(bytes.to_vec()))
}

fn read_with(reader: &dyn Reader, bytes: &[u8]) {
    reader.recognises(&bytes[..bytes.len().min(Input::HEAD)]);
    if let Ok(trace) = reader.read(&input(bytes), &Progress::new()) {
        walk(&trace);
    }
}

/// Accesses every event, its position, nesting and arguments, and checks the invariants of a trace.
fn walk(trace: &Trace) {
    let mut events = 0;
    for track in trace.tracks() {
        let nesting = track.nesting();
        trace.str(track.name);
        trace.process(track.process);
        assert!(track.starts().is_sorted(), "events are in time order");
        for index in 0..track.len() {
            assert!(track.dur(index).ps() >= 0, "no duration is negative");
            assert!(nesting.lane(index) < nesting.lanes());
            trace.kind_name(track.kind_of(index));
            visit(trace.args_at(track, index));
            events += 1;
        }
        assert!(track.samples.values.iter().all(|value| value.is_finite()));
        assert_eq!(track.samples.times.len(), track.samples.values.len());
    }
    assert_eq!(events, trace.events());
    assert!(trace.flows().iter().all(|flow| trace.track(flow.track).id == flow.track));
    trace.attachments().for_each(|(_, args)| visit(args));
    let names = trace.devices().iter().map(|device| trace.str(device.name).len());
    assert!(names.sum::<usize>() < usize::MAX);
}

fn visit(args: Args<'_>) {
    args.visit(|_, value| {
        let _ = (value.as_i64(), value.as_u64(), value.as_f64(), value.as_str().map(str::len));
    });
}
