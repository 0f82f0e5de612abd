//! A compiled program, or one instruction of it, as text: what the terminal and assistants show.

use stepscope_analyze::work::programs::show;

pub use stepscope_analyze::work::programs::{Shown, Wanted};

use crate::load::{HostProfile, Profile};
use crate::problem::{Cause, Problem};

/// What one host says; `None` if it has no programs.
pub fn of_host(host: &HostProfile, wanted: &Wanted) -> Option<Shown> {
    show(&host.context(), wanted)
}

/// What the hosts of an open profile say.
pub fn of_profile(profile: &Profile, wanted: &Wanted) -> Result<Shown, Problem> {
    best(profile.hosts.iter().map(|host| of_host(host, wanted)), wanted)
}

/// The first host that has what is wanted; otherwise what is missing, and what comes close.
pub fn best(hosts: impl IntoIterator<Item = Option<Shown>>, wanted: &Wanted) -> Result<Shown, Problem> {
    let best = hosts.into_iter().flatten().min_by_key(|shown| shown.missing.is_some());
    let Some(shown) = best else {
        let what = Problem::new(Cause::Nothing, "the profile holds no compiled programs");
        return Err(what.then("record with JAX, or with TensorFlow's `jit_compile=True`"));
    };
    let Some(close) = &shown.missing else { return Ok(shown) };
    let what = match &wanted.op {
        Some(op) if !shown.program.name.is_empty() => {
            format!("`{}` has no instruction `{op}`", shown.program.name)
        }
        _ => format!("there is no program `{}`", wanted.program.as_deref().unwrap_or_default()),
    };
    let problem = Problem::new(Cause::Usage, what);
    if close.is_empty() {
        return Err(problem.then("`stepscope hlo ops` lists those that ran"));
    }
    Err(problem.then(format!("found {}", close.join(", "))))
}
