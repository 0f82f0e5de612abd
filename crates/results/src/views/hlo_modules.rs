//! `stepscope hlo modules`: which compiled programs ran, and what they cost.

use stepscope_analyze::Analysis;
use stepscope_analyze::work::programs::{
    Cost, MatrixType, Peaks, ProgramOp, ProgramRow, Programs, ProgramsPartial, Usage,
};

use super::{Group, Hosts, View, all_hosts, describe_window, window_members};
use crate::format::{percent, plural, prefixed};
use crate::table::{Field, Table, columns, described};

/// How to record programs.
pub(super) const RECORD: &[&str] = &[
    "JAX: `jax.profiler.trace(\"logs\")` around a few steps; programs are recorded by default",
    "TensorFlow: compile with `tf.function(jit_compile=True)`, then `tf.profiler.experimental.start(\"logs\")`",
];

/// The member that [`describe_peaks`] adds.
macro_rules! peaks_members {
    () => {
        "peaks?: peaks? -- What the device could do at best; null if unknown.\n\
         @peaks\n\
         device: string -- The device; empty if it is given.\n\
         source: string -- Where the figures come from.\n\
         matrix_flops_per_s: {number?} -- Operations per second of matrix units, by type.\n\
         vector_flops_per_s: number? -- Operations per second of all other units.\n\
         memory_bytes_per_s: number? -- Bytes per second of the memory.\n\
         on_chip_read_bytes_per_s: number? -- Bytes per second that memory on the chip (VMEM) delivers.\n\
         on_chip_write_bytes_per_s: number? -- Bytes per second that memory on the chip (VMEM) takes.\n\
         cache_bytes: integer? -- Bytes of the last cache before the memory (L2).\n"
    };
}
pub(super) use peaks_members;

pub(super) const VIEW: View = View {
    name: "hlo_modules",
    title: "Programs",
    group: Group::Time,
    question: "Which programs did XLA compile, and which ran?",
    about: "Show the programs that XLA compiled, by time; those that never ran come last",
    after_help: "Examples:\n  \
        stepscope hlo modules logs/                 most time first\n  \
        stepscope hlo modules logs/ --sort runs     most runs first",
    record: RECORD,
    events: None,
    recording: false,
    sql: Some((
        "hlo_module",
        "Programs that XLA compiled, over the counted steps; those that never ran have no runs.",
    )),
    columns: || described(columns()),
    members: concat!(window_members!(), peaks_members!()),
    table: |hosts| table(&programs(hosts, None)),
    groupings: &[],
};

fn columns<'a>() -> Vec<Field<Line<'a>>> {
    columns! { line: Line<'a>;
        program_id: Id "id", "number of the program in the profile" => line.row.key.id;
        name.known: Name "program", "name of the program" => line.row.key.name.as_str();
        time_ms.known: Ms "time", "time in its instructions" => line.row.facts.time.ms();
        fraction: Percent "share", "share of the time in all programs" => line.of_all;
        runs.known: Count "runs", "runs, summed over devices; 0 if it never ran" => line.row.facts.runs;
        instructions.known: Count "instructions", "instructions in all computations" => line.row.facts.instructions;
        flops.hidden: Count "FLOPs", "operations of everything that ran" => line.flops;
        flops_shown.drawn.optional: Text "FLOPs" => line.flops.map(|flops| prefixed(flops as f64));
        bytes.optional: Bytes "bytes", "bytes read and written by everything that ran" => line.bytes;
        flops_per_run.hidden: Short "FLOPs/run", "operations per run" => line.per_run(line.flops);
        bytes_per_run.hidden: Short "bytes/run", "bytes per run" => line.per_run(line.bytes);
        flops_once.hidden: Count "FLOPs once", "operations of one run by the compiler's count, in which loops count once" => line.once(|cost| cost.flops());
        transcendentals_once.hidden: Count "transcendentals once", "transcendental operations of one run by the compiler's count" => line.once(|cost| cost.transcendentals);
        bytes_once.hidden: Bytes "bytes once", "bytes of one run by the compiler's count" => line.once(|cost| cost.bytes);
        mfu.optional: Percent "MFU", "share of the peak that the model's matrix operations reach while it runs, without recomputation" => line.mfu;
        unknown_fraction.optional: Percent "unknown", "share of its time in instructions of unknown cost" => line.unknown;
        peak_bytes: Bytes "peak memory", "the most memory that exists at once" => line.row.facts.peak.as_ref().map(|peak| peak.bytes);
        has_module.hidden: Flag "module", "the profile holds the program itself" => line.row.facts.has_module;
    }
}

/// A program with what its instructions add up to.
struct Line<'a> {
    row: &'a ProgramRow,
    of_all: Option<f64>,
    flops: Option<u64>,
    bytes: Option<u64>,
    mfu: Option<f64>,
    unknown: Option<f64>,
}

impl<'a> Line<'a> {
    fn of(programs: &'a Programs, row: &'a ProgramRow, all: f64) -> Self {
        let ops = || programs.ops.iter().filter(|op| op.program == row.key);
        let ran = row.facts.runs > 0;
        let sum = |of: fn(&ProgramOp) -> Option<u64>| {
            ran.then(|| ops().filter_map(of).fold(0, u64::saturating_add))
        };
        let time = row.facts.time.ms();
        let is_unknown = |op: &&ProgramOp| !op.facts.container && op.flops().is_none();
        let unknown: f64 = ops().filter(is_unknown).map(|op| op.totals.own.ms()).sum();
        Line {
            row,
            of_all: (all > 0.0).then(|| time / all),
            flops: sum(ProgramOp::flops),
            bytes: sum(ProgramOp::bytes),
            mfu: programs
                .peaks
                .as_ref()
                .and_then(|peaks| Usage::of(peaks, ops(), time))
                .map(|usage| usage.model),
            unknown: (time > 0.0).then(|| unknown / time),
        }
    }

    fn per_run(&self, total: Option<u64>) -> Option<f64> {
        total.map(|total| total as f64 / self.row.facts.runs as f64)
    }

    fn once(&self, of: fn(&Cost) -> u64) -> Option<u64> {
        let facts = &self.row.facts;
        (facts.has_module && facts.runs > 0).then(|| of(&facts.cost_once))
    }
}

/// Programs joined with what ran, on all hosts.
pub fn programs(hosts: &dyn Hosts, peaks: Option<Peaks>) -> Programs {
    all_hosts(hosts, ProgramsPartial::of, ProgramsPartial::merge).finish().with_peaks(peaks)
}

/// One row per program, the one with the most time first; those that never ran come last.
pub fn table(programs: &Programs) -> Table {
    let all: f64 = programs.programs.iter().map(|row| row.facts.time.ms()).sum();
    let lines: Vec<Line<'_>> = programs.programs.iter().map(|row| Line::of(programs, row, all)).collect();
    let mut table = Table::of("hlo_modules", &columns(), &lines);
    table.top = Some(20);
    table.headline = Some(headline(programs, all));
    describe_window(&mut table, programs.window);
    describe_peaks(&mut table, programs.peaks.as_ref());
    if !programs.programs.is_empty() {
        table.note("FLOPs and bytes count every execution, so that a loop counts as often as it ran.");
    }
    table
}

fn headline(programs: &Programs, all: f64) -> String {
    let ran = programs.programs.iter().filter(|row| row.facts.runs > 0).count();
    let never = programs.programs.len() - ran;
    let Some(first) = programs.programs.first().filter(|row| row.facts.runs > 0 && all > 0.0) else {
        return match programs.programs.len() {
            0 => "The profile holds no compiled programs".to_owned(),
            count => {
                let programs = plural(count as u64, "program", "programs");
                format!("{programs} in the profile, none of which ran while it was recorded")
            }
        };
    };
    let share = percent(first.facts.time.ms() / all);
    let name = short_program(&first.key.name);
    format!("`{name}` takes {share} of the time in programs; {ran} ran, {never} did not")
}

/// A program's name in sentences: without what TensorFlow adds to the names of clusters.
pub(super) fn short_program(name: &str) -> &str {
    name.split_once("__XlaCompiledKernel").map_or(name, |(cluster, _)| cluster)
}

/// States in a table's JSON what the device could do at best.
pub(super) fn describe_peaks(table: &mut Table, peaks: Option<&Peaks>) {
    let Some(peaks) = peaks else {
        table.member("peaks", serde_json::Value::Null);
        return;
    };
    let by_type = |kind: MatrixType| (kind.name().to_owned(), serde_json::Value::from(peaks.matrix(kind)));
    let matrix: serde_json::Map<String, serde_json::Value> =
        MatrixType::ALL.into_iter().map(by_type).collect();
    table.member(
        "peaks",
        serde_json::json!({
            "device": peaks.device,
            "source": peaks.source.words(),
            "matrix_flops_per_s": matrix,
            "vector_flops_per_s": peaks.vector,
            "memory_bytes_per_s": peaks.memory,
            "on_chip_read_bytes_per_s": peaks.on_chip_read,
            "on_chip_write_bytes_per_s": peaks.on_chip_write,
            "cache_bytes": peaks.cache_bytes,
        }),
    );
}
