//! One capture: records the window, writes the session, analyses it.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use stepscope_analyze::Selection;
use stepscope_capture::grpc::{
    Address, CaptureError, Levels, Options, Recorded, Recorder, Recording, SessionFolder, WrittenSession,
};
use stepscope_render::capture as render;
use stepscope_results::report::Report;
use stepscope_session::report::judge_drawn;
use stepscope_session::{Problem, Query};

use crate::exit::Exit;

use super::watch::Listener;
use super::words;
use crate::commands::report::{self, Form};
use crate::failure::Failure;
use crate::load;
use crate::output::Terminal;

/// Takes captures with the options of the command line.
pub(super) struct Taker<'t> {
    pub(super) recorder: &'t Recorder,
    /// Who hears of the progress.
    pub(super) listener: &'t dyn Listener,
    pub(super) hosts: Vec<Address>,
    pub(super) logdir: PathBuf,
    pub(super) duration: Duration,
    pub(super) delay: Duration,
    pub(super) wait: Duration,
    pub(super) timeout: Duration,
    pub(super) max_bytes: u64,
    pub(super) levels: Levels,
}

/// A session on disk, and what is missing from it.
pub(super) struct Taken {
    pub(super) session: WrittenSession,
    pub(super) missing: Vec<Problem>,
}

/// Why nothing was taken.
pub(super) struct NotTaken {
    /// The reasons, one per host.
    pub(super) problems: Vec<Problem>,
    /// The hosts that sent nothing, if none sent anything.
    pub(super) failed: Vec<(Address, CaptureError)>,
    /// True if all processes are gone.
    pub(super) gone: bool,
}

impl NotTaken {
    /// Prints all reasons except the last, which ends the command.
    pub(super) fn into_failure(mut self, terminal: &Terminal) -> Failure {
        let last = self.problems.pop();
        self.problems.iter().for_each(|problem| {
            terminal.report(problem);
        });
        last.unwrap_or_else(words::interrupted).into()
    }
}

impl Taker<'_> {
    /// Takes one capture and reports on it in the requested format.
    pub(super) fn once(&self, form: Option<&Form>, terminal: &Terminal) -> Result<Exit, Failure> {
        let Taken { session, missing } = self.take().map_err(|not| not.into_failure(terminal))?;
        let shown = match form {
            Some(form) => self.report(&session, form, terminal),
            None => path_only(&session, terminal),
        };
        for problem in &missing {
            terminal.report(problem);
        }
        let exit = shown?;
        Ok(if missing.is_empty() { exit } else { Exit::Damaged })
    }

    /// Records the window and writes the session. If some hosts fail, the rest is kept.
    pub(super) fn take(&self) -> Result<Taken, NotTaken> {
        let place = SessionFolder::below(&self.logdir);
        let recorded = self.record(self.duration, self.wait, &place);
        let mut came: Vec<(String, Recording)> = Vec::new();
        let mut failed: Vec<(Address, CaptureError)> = Vec::new();
        for outcome in recorded.outcomes {
            match outcome.result {
                Ok(recording) => came.push((outcome.address.file_stem(&self.hosts), recording)),
                Err(error) => failed.push((outcome.address, error)),
            }
        }
        let mut missing: Vec<Problem> =
            failed.iter().map(|(address, error)| words::problem(address, error, self)).collect();
        if came.is_empty() {
            missing.dedup();
            let gone = failed.iter().all(|(_, error)| error.is_gone());
            return Err(NotTaken { problems: missing, failed, gone });
        }
        let profiles = came.iter().map(|(host, recording)| (host.clone(), &recording.profile[..]));
        match place.write(recorded.began, profiles) {
            Ok(session) => Ok(Taken { session, missing }),
            Err(error) => {
                missing.push(words::unwritable(&self.logdir, &error));
                Err(NotTaken { problems: missing, failed: Vec::new(), gone: false })
            }
        }
    }

    /// Records one window.
    pub(super) fn record(&self, duration: Duration, wait: Duration, place: &SessionFolder) -> Recorded {
        let options = Options {
            duration,
            delay: self.delay,
            wait,
            timeout: self.timeout,
            max_bytes: self.max_bytes,
            levels: self.levels,
            hidden: place.hidden(),
        };
        let (_shown, watch) = self.listener.watch();
        self.recorder.record(&self.hosts, &options, &watch)
    }

    /// Analyses the session at once: does it contain what was requested, and what does it show?
    fn report(&self, session: &WrittenSession, form: &Form, terminal: &Terminal) -> Result<Exit, Failure> {
        let wanted = Query { paths: vec![session.path.clone()], ..Query::default() };
        let look = |profile, only| load::look_at(profile, Selection::default(), only, form.html.is_some());
        let looked = load::analyse_hosts(&wanted, terminal, look)?;
        let (report, problems) = judge_drawn(looked, vec![session.path.display().to_string()], None)?;
        self.remark_on(session, &report, terminal);
        report::show(&report, form, terminal)?;
        Ok(load::named(&problems, terminal))
    }

    fn remark_on(&self, session: &WrittenSession, report: &Report, terminal: &Terminal) {
        terminal.remark(&render::what_came(&session.path.display().to_string(), session.bytes(), report));
        for remark in render::what_to_change(report, self.duration.as_secs_f64() * 1e3) {
            terminal.remark(&remark);
        }
    }
}

fn path_only(session: &WrittenSession, terminal: &Terminal) -> Result<Exit, Failure> {
    let mut out = terminal.stdout();
    writeln!(out, "{}", session.path.display())?;
    out.flush()?;
    Ok(Exit::Done)
}
