//! Loading with progress: a progress bar, with notes and damage on standard error.

use stepscope_read::Progress;
use stepscope_session::{Chosen, Exit, Loaded, Looked, Problem, Profile, Wanted};

use crate::output::Terminal;
use crate::progress::with_bar;

/// Finds and reads a profile.
pub(crate) fn profile(wanted: &Wanted, terminal: &Terminal) -> Result<Profile, Problem> {
    let chosen = Chosen::of(wanted, &|text| terminal.remark(text))?;
    let progress = Progress::new();
    with_bar(&progress, || Profile::load(chosen, &progress))
}

/// Finds a profile and analyses each of its hosts.
pub(crate) fn looked<T: Send>(
    wanted: &Wanted,
    terminal: &Terminal,
    look: impl Fn(&Loaded) -> T + Sync,
) -> Result<Looked<T>, Problem> {
    let chosen = Chosen::of(wanted, &|text| terminal.remark(text))?;
    let progress = Progress::new();
    with_bar(&progress, || Looked::at(chosen, &progress, look))
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
