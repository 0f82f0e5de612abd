//! A long watch: one sample every so often, one line each, within a budget of the disk, until the job ends or the
//! user has seen enough.

use std::io::Write;
use std::time::{Duration, Instant};

use stepscope_capture::grpc::{Keep, Limits, Session};
use stepscope_read::Progress;
use stepscope_render::capture as render;
use stepscope_render::report::Report;
use stepscope_session::report::report;
use stepscope_session::{Chosen, Exit, Problem, Profile, Wanted};

use super::take::{Taken, Taker};
use super::words;
use crate::failure::Failure;

/// How often, how many, and how much of it stays.
pub(super) struct Rhythm {
    pub(super) every: Duration,
    pub(super) samples: Option<u64>,
    pub(super) limits: Limits,
}

/// Samples until told to stop, until the job has ended, or as often as was asked for.
pub(super) fn watch(taker: &Taker<'_>, rhythm: &Rhythm, json: bool) -> Result<Exit, Failure> {
    let mut keep = Keep::new(rhythm.limits);
    let (mut taken, mut lacking) = (0, false);
    loop {
        let began = Instant::now();
        match taker.take() {
            Ok(Taken { session, missing }) => {
                taken += 1;
                lacking |= !missing.is_empty();
                missing.iter().for_each(|problem| {
                    taker.terminal.report(problem);
                });
                line(taker, &session, json)?;
                add(taker, &mut keep, session);
            }
            Err(_) if taker.recorder.is_stopped() => break,
            Err(not) if taken == 0 => return Err(not.into_failure(taker.terminal)),
            Err(not) if not.gone => {
                taker.terminal.remark("the job has ended, and with it the watch");
                break;
            }
            Err(not) => {
                lacking = true;
                not.problems.iter().for_each(|problem| {
                    taker.terminal.report(problem);
                });
            }
        }
        if rhythm.samples.is_some_and(|most| taken >= most) {
            break;
        }
        taker.recorder.pause(rhythm.every.saturating_sub(began.elapsed()));
        if taker.recorder.is_stopped() {
            break;
        }
    }
    taker.terminal.remark(&render::kept(taken, keep.sessions() as u64, keep.bytes()));
    match (taken, lacking) {
        (0, _) => Err(words::interrupted().into()),
        (_, true) => Ok(Exit::Damaged),
        (_, false) => Ok(Exit::Done),
    }
}

/// Makes room for the new session.
fn add(taker: &Taker<'_>, keep: &mut Keep, session: Session) {
    if let Err(error) = keep.add(session) {
        let problem = Problem::new(Exit::Nothing, "an old session of this run could not be removed");
        taker
            .terminal
            .report(&problem.then(error.to_string()).then("remove it by hand to keep to the budget"));
    }
}

/// One line: verdict and step time.
fn line(taker: &Taker<'_>, session: &Session, json: bool) -> Result<(), Failure> {
    let mut out = taker.terminal.stdout();
    match seen(session) {
        Ok(report) if json => render::write_line_json(&report, &session.name, session.bytes(), &mut out)?,
        Ok(report) => writeln!(out, "{}", render::line(&report, &session.name, session.bytes()))?,
        Err(problem) => {
            taker.terminal.report(&problem);
        }
    }
    out.flush()?;
    Ok(())
}

/// The report on a session, with all its memory given back afterwards: the watch may last for days.
fn seen(session: &Session) -> Result<Report, Problem> {
    let wanted = Wanted { paths: vec![session.path.clone()], ..Wanted::default() };
    let profile = Profile::load(Chosen::of(&wanted, &|_| {})?, &Progress::new())?;
    report(&profile, vec![session.path.display().to_string()])
}
