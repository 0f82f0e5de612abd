//! The views: one table each, built from the traces of a profile. A new view is one file with a [`View`] and
//! one line in [`VIEWS`]; the command line and the page both pick it up from there.

mod devices;
mod functions;
mod health;
mod inference;
mod input;
mod kernels;
mod memory;
mod ops;
mod scopes;
mod steps;

use rayon::prelude::*;
use stepscope_analyze::breakdown::selection::Range;
use stepscope_analyze::{Context, Coverage, Selection};
use stepscope_render::{Style, Table};

use crate::problem::missed;
use crate::{HostProfile, Problem, Profile};

/// One table of a profile.
#[derive(Debug)]
pub struct View {
    /// Its name: the command, and the table's `view`.
    pub name: &'static str,
    /// One-line description.
    pub about: &'static str,
    /// Examples and notes for the command's help.
    pub after_help: &'static str,
    /// True if the view always covers the whole recording, whatever part is selected.
    pub recording: bool,
    /// Computes and renders the table. The style applies to prose only; the caller styles the columns.
    pub table: fn(&Profile, Style) -> Table,
}

/// Another way to group a view's rows. The default grouping is `name`.
#[derive(Debug)]
pub struct Grouping {
    /// The view's name.
    pub view: &'static str,
    /// Name of this grouping.
    pub by: &'static str,
    /// Computes and renders the table.
    pub table: fn(&Profile, Style) -> Table,
}

/// All views, in reading order.
pub const VIEWS: &[View] = &[
    steps::VIEW,
    ops::VIEW,
    kernels::VIEW,
    scopes::VIEW,
    functions::VIEW,
    input::VIEW,
    memory::VIEW,
    devices::VIEW,
    inference::VIEW,
    health::VIEW,
];

/// Other ways to group a view's rows.
pub const GROUPINGS: &[Grouping] = &[Grouping { view: "ops", by: "type", table: ops::by_type }];

impl View {
    /// The view with this name.
    pub fn named(name: &str) -> Option<&'static View> {
        VIEWS.iter().find(|view| view.name == name)
    }

    /// Builds a profile's table with `make` (the default or another grouping), and adds what it covers.
    pub fn of(
        &self,
        profile: &Profile,
        make: fn(&Profile, Style) -> Table,
        style: Style,
    ) -> Result<Table, Problem> {
        let mut table = make(profile, style);
        let covers = if self.recording { profile.recording() } else { profile.covers() };
        missed(&covers)?;
        table.cover(&covers);
        Ok(table)
    }

    /// The other groupings of its rows.
    pub fn groupings(&self) -> impl Iterator<Item = &'static Grouping> {
        let name = self.name;
        GROUPINGS.iter().filter(move |grouping| grouping.view == name)
    }
}

/// Runs one analysis on one host, and records what all figures about the host cover.
fn one_host<P>(loaded: &HostProfile, of: impl Fn(&Context) -> P) -> P {
    let context = loaded.context();
    let partial = of(&context);
    loaded.covered.get_or_init(|| Coverage::of(&context));
    partial
}

/// Runs one analysis that distinguishes steps. For a whole recording, all steps count.
fn step_by_step<P>(context: &Context, of: impl Fn(&Context) -> P) -> P {
    if context.selection.range != Range::Whole {
        return of(context);
    }
    let all = Selection { range: Range::Counted, warm_up: true };
    of(&Context::new(context.trace, context.host.as_str()).selecting(all))
}

/// Runs one analysis on all hosts: each host on its own, on all cores, then merged.
fn all_hosts<P: Default + Send>(
    profile: &Profile,
    of: impl Fn(&Context) -> P + Sync,
    merge: impl Fn(&mut P, P) + Sync,
) -> P {
    let partials = profile.hosts.par_iter().map(|loaded| one_host(loaded, &of));
    let merged = partials.reduce_with(|mut all, one| {
        merge(&mut all, one);
        all
    });
    merged.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use stepscope_diagnose::rules::RULES;

    use super::View;

    #[test]
    fn every_finding_leads_to_a_view() {
        for rule in RULES {
            assert!(View::named(rule.view).is_some(), "{} names the view {}", rule.id, rule.view);
        }
    }
}
