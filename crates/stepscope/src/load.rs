//! Loading with progress: a progress bar, with notes and damage on standard error.

use std::sync::Mutex;

use stepscope_analyze::Selection;
use stepscope_analyze::session::HostPartial;
use stepscope_analyze::time::typical_step::StepPicture;
use stepscope_read::Progress;
use stepscope_session::report::HostLook;
use stepscope_session::{HostProfile, Hosts, PerHost, Problem, Profile, Query, ResolvedSession};

use crate::exit::Exit;
use crate::output::Terminal;
use crate::progress::with_bar;

/// Finds a profile. In a bucket that takes a while.
fn found(wanted: &Query, terminal: &Terminal) -> Result<ResolvedSession, Problem> {
    // A remark would be written into the bar.
    let remarks = Mutex::new(Vec::new());
    let remark = |text: &str| {
        if let Ok(mut remarks) = remarks.lock() {
            remarks.push(text.to_owned());
        }
    };
    let chosen = with_bar(&Progress::new(), || ResolvedSession::of(wanted, &remark));
    remarks.into_inner().unwrap_or_default().iter().for_each(|text| terminal.remark(text));
    chosen
}

/// Finds and reads a profile.
pub(crate) fn profile(wanted: &Query, terminal: &Terminal) -> Result<Profile, Problem> {
    let chosen = found(wanted, terminal)?;
    let progress = Progress::new();
    with_bar(&progress, || Profile::load(chosen, &progress))
}

/// Finds a profile and hands its hosts to `work`, which reads them one after the other. Returns the problems of their
/// files as well.
pub(crate) fn hosts<T>(
    wanted: &Query,
    selection: Selection,
    terminal: &Terminal,
    work: impl FnOnce(&Hosts<'_>) -> Result<T, Problem>,
) -> Result<(T, Vec<Problem>), Problem> {
    let chosen = found(wanted, terminal)?;
    let progress = Progress::new();
    let hosts = Hosts::on_disk(&chosen, &progress).selecting(selection).then_end();
    let done = with_bar(&progress, || work(&hosts))?;
    Ok((done, hosts.problems()))
}

/// Finds a profile and analyses each of its hosts.
pub(crate) fn analyse_hosts<T: Send>(
    wanted: &Query,
    terminal: &Terminal,
    look: impl Fn(HostProfile, bool) -> T + Sync,
) -> Result<PerHost<T>, Problem> {
    let chosen = found(wanted, terminal)?;
    let progress = Progress::new();
    let only = chosen.files.len() == 1;
    with_bar(&progress, || PerHost::at(chosen, &progress, |profile| look(profile, only)))
}

/// Analyses a part of one host. If it is the only one, the process ends soon: the system reclaims the memory of the trace
/// and of millions of states faster than they are freed one by one. With `drawn`, a picture of a typical step comes along.
pub(crate) fn look_at(
    profile: HostProfile,
    selection: Selection,
    only: bool,
    drawn: bool,
) -> (HostLook, Option<StepPicture>) {
    let context = profile.context().selecting(selection);
    let look = (profile.source_row(), HostPartial::of(&context));
    let picture = if drawn { StepPicture::of(&context) } else { None };
    if only {
        std::mem::forget(context);
        std::mem::forget(profile);
    }
    (look, picture)
}

/// Ends a command on a profile: reports damage to standard error and returns the exit code.
///
/// The traces are not freed one by one; the system reclaims their memory faster.
pub(crate) fn end(profile: Profile, terminal: &Terminal) -> Exit {
    let problems = profile.problems();
    std::mem::forget(profile);
    named(&problems, terminal)
}

/// Reports problems to standard error and returns the exit code.
pub(crate) fn named(problems: &[Problem], terminal: &Terminal) -> Exit {
    for problem in problems {
        terminal.report(problem);
    }
    if problems.is_empty() { Exit::Done } else { Exit::Damaged }
}
