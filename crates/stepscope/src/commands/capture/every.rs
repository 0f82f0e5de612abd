//! Sampling of a long job: one capture per interval, one line each, within a disk budget, until the job ends or
//! the user stops it.

use std::io::Write;
use std::time::{Duration, Instant};

use stepscope_capture::grpc::{Keep, Limits, WrittenSession};
use stepscope_read::Progress;
use stepscope_render::capture as render;
use stepscope_results::report::Report;
use stepscope_session::report::report;
use stepscope_session::{Cause, Problem, Profile, Query, ResolvedSession};

use crate::exit::Exit;
use crate::output::Terminal;

use super::take::{Taken, Taker};
use super::words;
use crate::failure::Failure;

/// How often to sample, how many times, and how much to keep.
pub(super) struct Rhythm {
    pub(super) every: Duration,
    pub(super) samples: Option<u64>,
    pub(super) limits: Limits,
}

/// Samples until the user stops it, the job ends, or the requested number is reached.
pub(super) fn watch(
    taker: &Taker<'_>,
    rhythm: &Rhythm,
    json: bool,
    terminal: &Terminal,
) -> Result<Exit, Failure> {
    let mut keep = Keep::new(rhythm.limits);
    let (mut taken, mut lacking) = (0, false);
    loop {
        let began = Instant::now();
        match taker.take() {
            Ok(Taken { session, missing }) => {
                taken += 1;
                lacking |= !missing.is_empty();
                missing.iter().for_each(|problem| {
                    terminal.report(problem);
                });
                line(&session, json, terminal)?;
                add(&mut keep, session, terminal);
            }
            Err(_) if taker.recorder.is_stopped() => break,
            Err(not) if taken == 0 => return Err(not.into_failure(terminal)),
            Err(not) if not.gone => {
                terminal.remark("the job has ended; sampling stops");
                break;
            }
            Err(not) => {
                lacking = true;
                not.problems.iter().for_each(|problem| {
                    terminal.report(problem);
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
    terminal.remark(&render::sampling_summary(taken, keep.sessions() as u64, keep.bytes()));
    match (taken, lacking) {
        (0, _) => Err(words::interrupted().into()),
        (_, true) => Ok(Exit::Damaged),
        (_, false) => Ok(Exit::Done),
    }
}

/// Removes old sessions to make room for the new one.
fn add(keep: &mut Keep, session: WrittenSession, terminal: &Terminal) {
    if let Err(error) = keep.add(session) {
        let problem = Problem::new(Cause::Nothing, "an old session of this run could not be removed");
        terminal.report(&problem.then(error.to_string()).then("remove it by hand to stay within the budget"));
    }
}

/// Writes one line: step time and verdict.
fn line(session: &WrittenSession, json: bool, terminal: &Terminal) -> Result<(), Failure> {
    let mut out = terminal.stdout_as(json);
    match seen(session) {
        Ok(report) if json => render::write_line_json(&report, &session.name, session.bytes(), &mut out)?,
        Ok(report) => writeln!(out, "{}", render::line(&report, &session.name, session.bytes()))?,
        Err(problem) => {
            terminal.report(&problem);
        }
    }
    out.flush()?;
    Ok(())
}

/// Reports on a session and frees all its memory afterwards, because sampling may last for days.
fn seen(session: &WrittenSession) -> Result<Report, Problem> {
    let wanted = Query { paths: vec![session.path.clone()], ..Query::default() };
    let profile = Profile::load(ResolvedSession::of(&wanted, &|_| {})?, &Progress::new())?;
    report(&profile, vec![session.path.display().to_string()])
}
