//! The command line, turned into plain option structs. Nothing behind this layer knows clap.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use stepscope_analyze::Selection;
use stepscope_analyze::breakdown::selection::Range;
use stepscope_results::Select;
use stepscope_session::Query;
use stepscope_trace::Span;

use crate::exit::Exit;

#[cfg(unix)]
use crate::commands::{AttachArgs, BenchArgs, MonitorArgs, RunArgs};
use crate::commands::{
    CaptureArgs, CompareArgs, CompletionsArgs, ExplainArgs, Exported, FleetArgs, GateArgs, HloArgs,
    JournalArgs, ManArgs, McpArgs, PeakArgs, PlaceArgs, ScalarsArgs, ServeArgs, SqlArgs, TfprofArgs,
    ViewCommand, demo, export, info, report,
};
use crate::failure::Failure;
use crate::output::{Color, Terminal};
use crate::quantity;

/// Explains why a machine-learning step is slow, with evidence and a fix.
///
/// Reads profiles of TensorFlow, JAX and PyTorch: a file, a session folder or a whole log directory.
#[derive(Debug, Parser)]
#[command(name = "stepscope", version, max_term_width = 100, arg_required_else_help = true)]
#[command(disable_help_subcommand = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 gate failed, 2 wrong usage, 3 nothing readable, 4 damaged input.\n\
                        `stepscope COMMAND --help` shows a command's options and examples."
)]
pub(crate) struct Cli {
    /// When to use colour.
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "auto",
        value_name = "WHEN",
        hide_possible_values = true
    )]
    pub(crate) color: Color,
    /// Read at most this much of each file once it is decompressed; by default 64 times its size, at least 268MB.
    #[arg(long, global = true, value_name = "SIZE", value_parser = quantity::size)]
    pub(crate) budget: Option<u64>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Report(ReportArgs),
    Demo(DemoArgs),
    Info(InfoArgs),
    #[command(flatten)]
    View(ViewCommand),
    Hlo(HloArgs),
    Explain(ExplainArgs),
    Compare(CompareArgs),
    Gate(GateArgs),
    Journal(JournalArgs),
    Fleet(FleetArgs),
    Serve(ServeArgs),
    Mcp(McpArgs),
    Capture(CaptureArgs),
    #[cfg(unix)]
    Run(RunArgs),
    #[cfg(unix)]
    Attach(AttachArgs),
    #[cfg(unix)]
    Monitor(MonitorArgs),
    #[cfg(unix)]
    Bench(BenchArgs),
    Export(ExportArgs),
    Tfprof(TfprofArgs),
    Scalars(ScalarsArgs),
    Sql(SqlArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

impl Command {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<Exit, Failure> {
        match self {
            Command::Report(args) => {
                let ReportArgs { source, range, peak, form } = args;
                report::run(&source.wanted(), range.selection(), peak.peaks(), &form.form(), terminal)
            }
            Command::Demo(args) if args.serve => demo::serve(&args.place, terminal),
            Command::Demo(args) => demo::run(&args.form.form(), terminal),
            Command::Info(args) => info::run(&args.source.wanted(), args.json, terminal),
            Command::View(view) => view.run(terminal),
            Command::Hlo(args) => args.run(terminal),
            Command::Explain(args) => args.run(terminal),
            Command::Compare(args) => args.run(terminal),
            Command::Gate(args) => args.run(terminal),
            Command::Journal(args) => args.run(terminal),
            Command::Fleet(args) => args.run(terminal),
            Command::Serve(args) => args.run(terminal),
            Command::Mcp(args) => args.run(),
            Command::Capture(args) => args.run(terminal),
            #[cfg(unix)]
            Command::Run(args) => args.run(terminal),
            #[cfg(unix)]
            Command::Attach(args) => args.run(terminal),
            #[cfg(unix)]
            Command::Monitor(args) => args.run(terminal),
            #[cfg(unix)]
            Command::Bench(args) => args.run(terminal),
            Command::Tfprof(args) => args.run(terminal),
            Command::Scalars(args) => args.run(terminal),
            Command::Sql(args) => args.run(terminal),
            Command::Completions(args) => args.run(terminal),
            Command::Man(args) => args.run(terminal),
            Command::Export(args) => {
                let ExportArgs { source, to, output } = args;
                export::run(&source.wanted(), to, output.as_deref(), terminal)
            }
        }
    }
}

/// Selects the profile.
#[derive(Clone, Debug, Args)]
pub(crate) struct SourceArgs {
    /// Profiles, session folders or log directories, at any depth; several paths are hosts of one recording if they were
    /// recorded together.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Use the session with this name instead of the newest one.
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Use only hosts whose names match.
    #[arg(long, value_name = "REGEX")]
    host: Option<String>,
}

impl SourceArgs {
    pub(crate) fn wanted(self) -> Query {
        Query { paths: self.paths, session: self.session, host: self.host, ..Query::default() }
    }
}

/// Selects a part of the recording.
#[derive(Copy, Clone, Debug, Args)]
pub(crate) struct RangeArgs {
    /// Cover the whole recording as one piece instead of the counted steps.
    #[arg(long, conflicts_with = "steps")]
    whole: bool,
    /// Cover only steps A to B, inclusive, such as 10..20, 10.. or 7.
    #[arg(long, value_name = "A..B", value_parser = quantity::steps, conflicts_with = "time", allow_hyphen_values = true)]
    steps: Option<(i64, i64)>,
    /// Cover only the steps within this time range, such as 1.2s..1.5s; with --whole, the time range itself.
    #[arg(long, value_name = "FROM..TO", value_parser = quantity::time)]
    time: Option<Span>,
    /// Exclude warm-up steps.
    #[arg(long, value_enum, value_name = "yes|no", default_value = "yes", hide_possible_values = true)]
    exclude_warmup: YesNo,
}

impl RangeArgs {
    pub(crate) fn selection(self) -> Selection {
        let range = match (self.steps, self.time) {
            (Some((first, last)), _) => Range::Steps(first, last),
            (None, Some(time)) if self.whole => Range::Piece(time),
            (None, Some(time)) => Range::Time(time),
            (None, None) if self.whole => Range::Whole,
            (None, None) => Range::Counted,
        };
        Selection { range, warm_up: self.exclude_warmup == YesNo::No }
    }
}

/// Yes or no.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum YesNo {
    Yes,
    No,
}

/// The output format of a report.
#[derive(Clone, Debug, Args)]
pub(crate) struct FormArgs {
    /// Write JSON (schema stepscope.report.v1).
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Write Markdown for pull requests.
    #[arg(long)]
    markdown: bool,
    /// Write one self-contained HTML page to FILE.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl FormArgs {
    pub(crate) fn form(&self) -> report::Form {
        report::Form { json: self.json, markdown: self.markdown, html: self.html.clone() }
    }
}

/// Explain why the step is slow: verdict, step time, breakdown, ops, findings and fixes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope report logs/                    the newest session below logs/\n  \
    stepscope report trace.json.gz            a PyTorch or Chrome trace\n  \
    stepscope report logs/ --json             JSON for scripts\n  \
    stepscope report logs/ --html report.html one file to share")]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    range: RangeArgs,
    #[command(flatten)]
    peak: PeakArgs,
    #[command(flatten)]
    form: FormArgs,
}

/// Report on a built-in sample profile.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope demo                 the report in the terminal\n  \
    stepscope demo --serve --open  the same in the browser, with the timeline")]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    form: FormArgs,
    /// Show it on a web page with the timeline instead.
    #[arg(long, conflicts_with_all = ["json", "markdown", "html"])]
    serve: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Show what a profile contains: sources, hosts, devices, tracks, versions, step markers.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope info logs/                      the newest session below logs/\n  \
    stepscope info logs/ --session 2026_01_31 another session\n  \
    stepscope info trace.json.gz --json       JSON for scripts")]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Write JSON (schema stepscope.info.v1).
    #[arg(long)]
    json: bool,
}

/// Export the trace for other tools.
///
/// Writes to standard output, or to the file given with -o.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope export logs/ --to perfetto -o trace.pftrace   then open it in https://ui.perfetto.dev\n  \
    stepscope export logs/ --to chrome -o trace.json   the same for chrome://tracing\n  \
    stepscope export logs/ --to csv | head             one line per event\n  \
    stepscope export logs/ --to parquet -o trace.parquet    one row per event")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// The output format.
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Exported,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Options shared by all views.
#[derive(Debug, Args)]
pub(crate) struct ViewArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    /// Write JSON.
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Write CSV.
    #[arg(long)]
    pub(crate) csv: bool,
    /// Show at most N rows; 0 shows all.
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Sort by this column; append `:asc` or `:desc` to choose the order.
    #[arg(long, value_name = "COLUMN", action = ArgAction::Set)]
    sort: Option<String>,
    /// Show only rows with matching text; ignores case.
    #[arg(long, value_name = "REGEX")]
    filter: Option<String>,
}

impl ViewArgs {
    pub(crate) fn select(&self) -> Select {
        Select { top: self.top, sort: self.sort.clone(), filter: self.filter.clone() }
    }
}
