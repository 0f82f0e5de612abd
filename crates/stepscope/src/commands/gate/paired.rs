//! `gate --paired`: runs both programs at the same time and lets them take turns in short windows of steps.
//!
//! Where a program reports no steps, or several of its processes do, whole runs take turns instead. The order within a pair
//! is random. After some pairs the sequence is looked at; all looks together are wrong in at most 5 % of cases. If it is still
//! open, both programs are started again, since two processes of one program differ a little in all of their steps.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use stepscope_capture::bench::Stop;
use stepscope_capture::bench::command::{self, End};
use stepscope_capture::turns::{Plan, Side, Step, Turns, TurnsError};
use stepscope_diagnose::compare::{Comparison, Margins};
use stepscope_diagnose::gate::{Gate, Outcome};
use stepscope_diagnose::paired::{LOOKS, PairedStep, Turn, compare_pairs};
use stepscope_diagnose::statistics::{Confidence, Random};
use stepscope_session::{Cause, Problem};

use crate::commands::bench::words;
use crate::output::Terminal;

/// How long it takes at most by default.
const BUDGET: Duration = Duration::from_secs(300);
/// How long a program may take to warm up, or for one turn.
const PATIENCE: Duration = Duration::from_secs(600);

/// Two programs instead of two recordings.
#[derive(Debug, Args)]
pub(super) struct PairedArgs {
    /// Run both programs at the same time, taking turns step by step; --base and --new are commands then.
    #[arg(long)]
    paired: bool,
    /// With --paired: the folder that the base runs in.
    #[arg(long, value_name = "DIR", requires_all = ["paired", "new_dir"])]
    base_dir: Option<PathBuf>,
    /// With --paired: the folder that the new program runs in.
    #[arg(long, value_name = "DIR", requires_all = ["paired", "base_dir"])]
    new_dir: Option<PathBuf>,
    /// With --paired: steps of each program before the first turn.
    #[arg(long, value_name = "N", default_value_t = 10, requires = "paired",
        value_parser = clap::value_parser!(u16).range(1..))]
    warm_up: u16,
    /// With --paired: the command for both folders, after --.
    #[arg(last = true, value_name = "COMMAND", requires = "base_dir")]
    command: Vec<OsString>,
}

impl PairedArgs {
    /// Whether programs are to be run.
    pub(super) fn wanted(&self) -> bool {
        self.paired
    }

    /// Runs both programs until `judge` has decided, or the budget is spent.
    pub(super) fn decide(
        &self,
        (base, new): (&[PathBuf], &[PathBuf]),
        margins: Margins,
        budget: Option<Duration>,
        judge: &dyn Fn(&Comparison) -> Gate,
        terminal: &Terminal,
    ) -> Result<(Gate, Comparison), Problem> {
        let sides = self.sides(base, new)?;
        let labels = [label(&sides[0]), label(&sides[1])];
        let stop = Stop::on_interrupt()
            .map_err(|error| Problem::new(Cause::Usage, "cannot watch for Ctrl-C").then(error.to_string()))?;
        let warm_up = usize::from(self.warm_up);
        let plan = Plan { sides, warm_up, patience: PATIENCE, stop: stop.clone() };
        let mut source = Source::start(plan, terminal)?;
        let margins = Margins { confidence: Confidence::of_looks(LOOKS.len()), ..margins };
        let until = Instant::now() + budget.unwrap_or(BUDGET);
        let mut random = Random::new(seed());
        let mut pairs: Vec<(Turn, Turn)> = Vec::new();
        let mut processes = 1;
        loop {
            let look = LOOKS.into_iter().find(|look| *look > pairs.len());
            while Some(pairs.len()) < look && Instant::now() < until && !stop.is_wished() {
                pairs.extend(source.pair(random.below(2))?);
            }
            let different = if matches!(source, Source::Runs(_)) { pairs.len() } else { processes };
            let comparison = compare_pairs([&labels[0], &labels[1]], &pairs, different, margins);
            let gate = judge(&comparison);
            let spent = look.is_none() || Instant::now() >= until || stop.is_wished();
            if spent || gate.worst() != Outcome::Unclear {
                return Ok((gate, comparison));
            }
            terminal.remark(&format!("{} pairs: unclear so far", pairs.len()));
            if let Source::Turns(turns) = &mut source {
                match turns.restart() {
                    Ok(()) | Err((_, TurnsError::Stopped)) => processes += 1,
                    Err((place, error)) => return Err(problem(place, &error)),
                }
            }
        }
    }

    /// Both programs: two commands, or one command in two folders.
    fn sides(&self, base: &[PathBuf], new: &[PathBuf]) -> Result<[Side; 2], Problem> {
        let usage = || {
            Problem::new(Cause::Usage, "--paired needs two programs")
                .then("give --base CMD --new CMD, or --base-dir A --new-dir B -- COMMAND")
        };
        match (base, new, &self.base_dir, &self.new_dir) {
            ([base], [new], None, None) => {
                let side = |line: &PathBuf| -> Result<Side, Problem> {
                    let line = line.to_string_lossy();
                    let command = words(&line).map_err(|error| {
                        Problem::new(Cause::Usage, format!("cannot read the command {line:?}"))
                            .then(error)
                            .then("quote it once, as you would in a shell")
                    })?;
                    Ok(Side { command, folder: None })
                };
                Ok([side(base)?, side(new)?])
            }
            ([], [], Some(base), Some(new)) if !self.command.is_empty() => {
                let side =
                    |folder: &PathBuf| Side { command: self.command.clone(), folder: Some(folder.clone()) };
                Ok([side(base), side(new)])
            }
            _ => Err(usage()),
        }
    }
}

/// Any number: the order within pairs must not be known in advance.
fn seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_nanos() as u64 ^ u64::from(std::process::id())
}

fn label(side: &Side) -> String {
    let line = side.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    match &side.folder {
        Some(folder) => format!("{}: {line}", folder.display()),
        None => line,
    }
}

/// Where pairs come from.
enum Source {
    /// Windows of steps of two running programs.
    Turns(Box<Turns>),
    /// Whole runs.
    Runs(Plan),
}

impl Source {
    fn start(plan: Plan, terminal: &Terminal) -> Result<Source, Problem> {
        match Turns::start(&plan) {
            Ok(turns) => {
                terminal.remark(&format!("both programs take turns of {} steps", turns.steps()));
                Ok(Source::Turns(Box::new(turns)))
            }
            Err((place, error @ (TurnsError::NoSteps | TurnsError::SeveralRanks))) => {
                terminal.remark(&format!("{}: {error}; whole runs take turns instead", name(place)));
                Ok(Source::Runs(plan))
            }
            Err((place, error)) => Err(problem(place, &error)),
        }
    }

    /// One more pair; `None` where there is none yet.
    fn pair(&mut self, first: usize) -> Result<Option<(Turn, Turn)>, Problem> {
        match self {
            Source::Turns(turns) => match turns.pair(first) {
                Ok(pair) => Ok(pair.map(|[base, new]| (window(&base), window(&new)))),
                Err((_, TurnsError::Stopped)) => Ok(None),
                Err((place, error)) => Err(problem(place, &error)),
            },
            Source::Runs(plan) => {
                let order = if first == 0 { [0, 1] } else { [1, 0] };
                let mut windows = [None, None];
                for place in order {
                    windows[place] = whole_run(plan, place)?;
                }
                let [base, new] = windows;
                Ok(base.zip(new))
            }
        }
    }
}

fn window(steps: &[Step]) -> Turn {
    let one = |step: &Step| PairedStep {
        wall_ms: step.wall_ms,
        cpu_ms: step.cpu_ms,
        instructions: step.instructions,
    };
    steps.iter().map(one).collect()
}

/// A whole run as a window of one step; `None` if it was ended early.
fn whole_run(plan: &Plan, place: usize) -> Result<Option<Turn>, Problem> {
    let Some(side) = plan.sides.get(place) else { return Ok(None) };
    let mut command = side.command.clone();
    if let Some(folder) = &side.folder {
        let shell = ["sh", "-c", "cd \"$0\" && exec \"$@\""].map(OsString::from);
        command = shell.into_iter().chain([folder.clone().into_os_string()]).chain(command).collect();
    }
    let once = command::Plan { commands: vec![command], runs: 1, warmup: 0, show: false };
    let outcome = command::measure(&once, &plan.stop, &|_| {});
    let outcome = outcome.map_err(|error| failed(place, &error.to_string()))?;
    let Some(run) = outcome.runs.first().and_then(|runs| runs.first()) else { return Ok(None) };
    if run.end != End::Code(0) {
        return Err(failed(place, run.said.lines().last().unwrap_or("it failed without a message")));
    }
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let step = PairedStep { wall_ms: ms(run.wall), cpu_ms: ms(run.user + run.system), instructions: None };
    Ok(Some(vec![step]))
}

fn name(place: usize) -> &'static str {
    if place == 0 { "base" } else { "new" }
}

fn problem(place: usize, error: &TurnsError) -> Problem {
    failed(place, &error.to_string())
}

fn failed(place: usize, why: &str) -> Problem {
    Problem::new(Cause::Usage, format!("the program of --{} cannot take turns", name(place)))
        .then(why.to_owned())
        .then("try it on its own")
}
