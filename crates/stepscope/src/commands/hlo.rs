//! `stepscope hlo`: the programs that XLA compiled. Its tables are views; this adds the options that only programs have.

use std::io::Write;

use clap::{Args, Subcommand, ValueEnum};
use stepscope_analyze::Selection;
use stepscope_analyze::breakdown::selection::Range;
use stepscope_analyze::work::programs::{GroupBy, Peaks};
use stepscope_render::format::printable;
use stepscope_results::Table;
use stepscope_results::views::hlo_modules::programs;
use stepscope_results::views::{DEFAULT_GROUPING, Hosts, View, hlo_modules, hlo_ops, hlo_roofline};
use stepscope_session::program::{self, Wanted};
use stepscope_session::{Cause, Problem, Query};

use super::view;
use crate::cli::ViewArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::load;
use crate::output::Terminal;
use crate::quantity;

/// Show the programs that XLA compiled: what ran, what it costs, how close it comes to the device's limits, what it keeps
/// in memory.
///
/// Reads the programs that profiles of JAX and TensorFlow carry, and joins them with the recorded events, on CPUs, GPUs and
/// TPUs. Every instruction has its scope in the model and its line of Python. Operations are counted by what ran, so that
/// loops count as often as they ran.
#[derive(Debug, Args)]
pub(crate) struct HloArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Programs by time; those that never ran come last.
    #[command(after_help = View::named("hlo_modules").map_or("", |view| view.after_help))]
    Modules(TableArgs),
    /// Instructions that ran: time, executions, FLOPs, bytes, scope and source line.
    #[command(after_help = View::named("hlo_ops").map_or("", |view| view.after_help))]
    Ops(OpsArgs),
    /// Each instruction against the peak of its unit and type, and of the memory.
    #[command(after_help = View::named("hlo_roofline").map_or("", |view| view.after_help))]
    Roofline(TableArgs),
    /// What is live at the memory peak of each program.
    #[command(after_help = View::named("hlo_memory").map_or("", |view| view.after_help))]
    Memory(MemoryArgs),
    /// Ops that ran outside of programs, why, and what the borders of programs cost (TensorFlow).
    #[command(after_help = View::named("hlo_outside").map_or("", |view| view.after_help))]
    Outside(ViewArgs),
    /// A program as HLO text, or one instruction with its neighbours and its stack.
    #[command(after_help = "Examples:\n  \
        stepscope hlo show logs/                             the program with the most time\n  \
        stepscope hlo show logs/ jit_train_step              by name\n  \
        stepscope hlo show logs/ jit_train_step:fusion.21    one instruction with its neighbours")]
    Show(ShowArgs),
}

#[derive(Debug, Args)]
struct TableArgs {
    #[command(flatten)]
    view: ViewArgs,
    #[command(flatten)]
    peak: PeakArgs,
}

#[derive(Debug, Args)]
struct OpsArgs {
    #[command(flatten)]
    view: ViewArgs,
    #[command(flatten)]
    peak: PeakArgs,
    /// Sum up rows by this.
    #[arg(long, value_enum, value_name = "WHAT", default_value = "op")]
    by: OpsBy,
}

#[derive(Debug, Args)]
struct MemoryArgs {
    #[command(flatten)]
    view: ViewArgs,
    /// Sum up rows by this.
    #[arg(long, value_enum, value_name = "WHAT", default_value = "buffer")]
    by: BufferBy,
}

/// What a device can do at best, where the profile does not say it.
#[derive(Debug, Args)]
pub(crate) struct PeakArgs {
    /// Peak of one device: FLOP/s, and after a comma bytes/s of its memory, such as 989T,3.35T.
    #[arg(long, value_name = "FLOPS[,BYTES]", value_parser = peak)]
    peak: Option<(f64, Option<f64>)>,
}

#[derive(Copy, Clone, Debug, ValueEnum)]
enum OpsBy {
    Op,
    Category,
    Scope,
    Source,
    Phase,
    Module,
}

#[derive(Copy, Clone, Debug, ValueEnum)]
enum BufferBy {
    Buffer,
    Kind,
    Source,
    Scope,
}

#[derive(Debug, Args)]
struct ShowArgs {
    /// A profile, session folder or log directory.
    #[arg(value_name = "PATH")]
    path: std::path::PathBuf,
    /// A program by name or number, and after a colon an instruction; without it, the program with the most time.
    #[arg(value_name = "MODULE[:OP]")]
    what: Option<String>,
    /// Print signatures, and where each instruction comes from.
    #[arg(long)]
    long: bool,
    /// Distance of the neighbours that are shown.
    #[arg(long, value_name = "N", default_value_t = 1)]
    radius: usize,
    /// Write JSON (schema stepscope.hlo_show.v1).
    #[arg(long)]
    json: bool,
}

impl PeakArgs {
    pub(crate) fn peaks(&self) -> Option<Peaks> {
        self.peak.map(|(flops, memory)| Peaks::given(Some(flops), memory))
    }
}

/// `989T,3.35T`.
fn peak(text: &str) -> Result<(f64, Option<f64>), String> {
    let (flops, memory) = text.split_once(',').map_or((text, None), |(flops, memory)| (flops, Some(memory)));
    let memory = memory.map(quantity::rate).transpose()?;
    Ok((quantity::rate(flops)?, memory))
}

impl HloArgs {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<Exit, Failure> {
        match self.what {
            What::Modules(args) => {
                let peaks = args.peak.peaks();
                show("hlo_modules", args.view, terminal, |hosts| hlo_modules::table(&programs(hosts, peaks)))
            }
            What::Ops(args) => {
                let (peaks, by) = (args.peak.peaks(), args.by.group());
                show("hlo_ops", args.view, terminal, |hosts| hlo_ops::ops(hosts, by, peaks))
            }
            What::Roofline(args) => {
                let peaks = args.peak.peaks();
                show("hlo_roofline", args.view, terminal, |hosts| {
                    hlo_roofline::table(&programs(hosts, peaks))
                })
            }
            What::Memory(args) => {
                let view = named("hlo_memory")?;
                let make = view.grouped(args.by.word()).unwrap_or(view.table);
                view::show(view, args.view, terminal, make)
            }
            What::Outside(args) => {
                let view = named("hlo_outside")?;
                view::show(view, args, terminal, view.table)
            }
            What::Show(args) => args.run(terminal),
        }
    }
}

impl OpsBy {
    fn group(self) -> Option<GroupBy> {
        match self {
            OpsBy::Op => None,
            OpsBy::Category => Some(GroupBy::Category),
            OpsBy::Scope => Some(GroupBy::Scope),
            OpsBy::Source => Some(GroupBy::Source),
            OpsBy::Phase => Some(GroupBy::Phase),
            OpsBy::Module => Some(GroupBy::Module),
        }
    }
}

impl BufferBy {
    fn word(self) -> &'static str {
        match self {
            BufferBy::Buffer => DEFAULT_GROUPING,
            BufferBy::Kind => "kind",
            BufferBy::Source => "source",
            BufferBy::Scope => "scope",
        }
    }
}

impl ShowArgs {
    fn run(self, terminal: &Terminal) -> Result<Exit, Failure> {
        let (program, op) = match self.what.as_deref().map(|what| what.split_once(':').unwrap_or((what, "")))
        {
            None => (None, None),
            Some((program, op)) => {
                (Some(program).filter(|name| !name.is_empty()), Some(op).filter(|op| !op.is_empty()))
            }
        };
        let wanted = Wanted {
            program: program.map(str::to_owned),
            op: op.map(str::to_owned),
            long: self.long,
            radius: self.radius,
        };
        let whole = Selection { range: Range::Whole, ..Selection::default() };
        let source = Query { paths: vec![self.path], session: None, host: None, roots: Vec::new() };
        let (shown, problems) = load::hosts(&source, whole, terminal, |hosts| {
            let all = hosts.visit(|loaded| program::of_host(loaded, &wanted));
            hosts.any()?;
            program::best(all, &wanted)
        })?;
        let mut out = terminal.stdout_as(self.json);
        if self.json {
            let document = serde_json::json!({
                "schema": "stepscope.hlo_show.v1",
                "module": shown.program.name,
                "program_id": shown.program.id,
                "text": shown.text,
                "stack": shown.stack,
            });
            writeln!(out, "{document}")?;
        } else {
            for line in shown.text.lines() {
                writeln!(out, "{}", printable(line))?;
            }
            if !shown.stack.is_empty() {
                writeln!(out, "\nfrom")?;
            }
            for place in &shown.stack {
                writeln!(out, "  {}", printable(place))?;
            }
        }
        out.flush()?;
        Ok(load::named(&problems, terminal))
    }
}

fn show(
    name: &str,
    args: ViewArgs,
    terminal: &Terminal,
    make: impl FnOnce(&dyn Hosts) -> Table,
) -> Result<Exit, Failure> {
    view::show(named(name)?, args, terminal, make)
}

fn named(name: &str) -> Result<&'static View, Problem> {
    View::named(name).ok_or_else(|| Problem::new(Cause::Usage, format!("there is no view {name}")))
}
