//! `stepscope compare`: what changed between two sides, and whether the change is more than noise.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use stepscope_analyze::Selection;
use stepscope_diagnose::compare::{ComparedRun, Comparison, Margins, compare};
use stepscope_render::compare as render;
use stepscope_render::format::printable;
use stepscope_session::side::run_of;
use stepscope_session::{Cause, Hosts, Problem, Query};

use crate::exit::Exit;

use super::report::write_page;
use crate::failure::Failure;
use crate::load;
use crate::output::Terminal;

/// Compare two profiles: what changed, and is it more than noise?
///
/// The verdict is about the mean step, which is what the whole loop pays. A side can be several recordings of
/// the same program: repeat --base or --new. If steps scatter by about 3 %, one run per side detects a change
/// of 10 %; more runs per side detect smaller ones. On a busy machine, record several runs per side,
/// alternating between BASE and NEW.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope compare before/ after/                    the newest session of each\n  \
    stepscope compare --base a1 --base a2 --new b1 --new b2   several runs per side\n  \
    stepscope compare before/ after/ --markdown         for a pull request\n  \
    stepscope compare before/ after/ --html change.html  one page to share")]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    sides: SidesArgs,
    /// Write JSON (schema stepscope.compare.v1).
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Write Markdown.
    #[arg(long)]
    markdown: bool,
    /// Also explain the verdict: intervals, noise, rank test.
    #[arg(long)]
    explain: bool,
    /// Write one self-contained HTML page with both sides to FILE.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// The two sides.
#[derive(Debug, Args)]
pub(crate) struct SidesArgs {
    /// The profile before the change, then the one after it.
    #[arg(value_names = ["BASE", "NEW"], num_args = 2)]
    pair: Vec<PathBuf>,
    /// A recording before the change, instead of BASE; repeatable.
    #[arg(long, value_name = "PATH", requires = "new", conflicts_with = "pair")]
    base: Vec<PathBuf>,
    /// A recording after the change, instead of NEW; repeatable.
    #[arg(long, value_name = "PATH", requires = "base", conflicts_with = "pair")]
    new: Vec<PathBuf>,
    /// The smallest change worth reporting.
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = percent)]
    min_effect: f64,
}

/// `5%` or `5` as 0.05.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim().parse::<f64>().ok();
    let number = number.filter(|number| number.is_finite() && *number >= 0.0);
    number.map(|number| number / 100.0).ok_or_else(|| "give a percentage, e.g. 5%".to_owned())
}

/// Both sides, as they were read.
pub(crate) struct Sides {
    pub(crate) base: Vec<ComparedRun>,
    pub(crate) new: Vec<ComparedRun>,
    pub(crate) margins: Margins,
    /// `Done`, or `Damaged` where a file was.
    pub(crate) exit: Exit,
}

impl Sides {
    /// What changed between them.
    pub(crate) fn compare(&self) -> Comparison {
        compare(&self.base, &self.new, self.margins)
    }

    /// Adds one more run to a side.
    pub(crate) fn add(&mut self, to_new: bool, run: HostProfile) {
        if run.exit != Exit::Done {
            self.exit = run.exit;
        }
        let side = if to_new { &mut self.new } else { &mut self.base };
        side.push(run.run);
    }
}

/// One recording, read.
pub(crate) struct HostProfile {
    run: ComparedRun,
    exit: Exit,
}

impl HostProfile {
    /// Reads a recording.
    pub(crate) fn of(path: PathBuf, terminal: &Terminal) -> Result<Self, Problem> {
        let label = path.display().to_string();
        let wanted = Query { paths: vec![path], ..Query::default() };
        let of = |hosts: &Hosts<'_>| run_of(hosts, &label);
        let (run, problems) = load::hosts(&wanted, Selection::default(), terminal, of)?;
        let exit = load::named(&problems, terminal);
        Ok(HostProfile { run, exit })
    }
}

impl SidesArgs {
    /// What stands after --base and after --new.
    #[cfg(unix)]
    pub(crate) fn named(&self) -> (&[PathBuf], &[PathBuf]) {
        (&self.base, &self.new)
    }

    pub(crate) fn margins(&self) -> Margins {
        Margins { practical: self.min_effect, ..Margins::default() }
    }

    /// Reads both sides. Profiles are read one after the other: each may fill much of the memory.
    pub(crate) fn load(&self, terminal: &Terminal) -> Result<Sides, Problem> {
        let (base, new) = match &self.pair[..] {
            [base, new] => (std::slice::from_ref(base), std::slice::from_ref(new)),
            _ => (&self.base[..], &self.new[..]),
        };
        if base.is_empty() || new.is_empty() {
            return Err(Problem::new(Cause::Usage, "nothing to compare")
                .then("give the profile before the change and the one after it: BASE NEW")
                .then("or several of each: --base A --base B --new C --new D"));
        }
        let margins = self.margins();
        let mut sides = Sides { base: Vec::new(), new: Vec::new(), margins, exit: Exit::Done };
        for (paths, to_new) in [(base, false), (new, true)] {
            for path in paths {
                sides.add(to_new, HostProfile::of(path.clone(), terminal)?);
            }
        }
        Ok(sides)
    }
}

impl CompareArgs {
    pub(crate) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        let sides = self.sides.load(terminal)?;
        let comparison = sides.compare();
        if let Some(path) = &self.html {
            write_page(path, |out| render::write_html(&comparison, &sides.base, &sides.new, out))?;
        }
        let mut out = terminal.stdout_as(self.json);
        if self.json {
            render::write_json(&comparison, &mut out)?;
        } else if self.markdown {
            render::write_markdown(&comparison, &mut out)?;
        } else if let Some(path) = &self.html {
            writeln!(out, "{}", printable(&path.display().to_string()))?;
        } else {
            render::write_text(&comparison, self.explain, terminal.out, &mut out)?;
        }
        out.flush()?;
        Ok(sides.exit)
    }
}
