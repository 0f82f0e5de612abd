//! The views: one table each, from a profile's traces to what people read. A new view is one file with a [`View`] in
//! it and one line in [`VIEWS`]; the command line and the page both find it there.

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
use stepscope_analyze::selection::Range;
use stepscope_analyze::{Context, Coverage, Selection};
use stepscope_render::{Style, Table};

use crate::problem::missed;
use crate::{Loaded, Problem, Profile};

/// One table of a profile.
#[derive(Debug)]
pub struct View {
    /// Its name: the command, and the table's `view`.
    pub name: &'static str,
    /// What it shows, in one line.
    pub about: &'static str,
    /// Examples and remarks for the command's help.
    pub after_help: &'static str,
    /// Is it about the whole recording, whichever part is asked for?
    pub recording: bool,
    /// Computes and words the table. The style is for prose only; columns are dressed by whoever shows them.
    pub table: fn(&Profile, Style) -> Table,
}

/// Another way to group a view's rows. The view's own way is called `name`.
#[derive(Debug)]
pub struct Grouping {
    /// The view's name.
    pub view: &'static str,
    /// What this way is called.
    pub by: &'static str,
    /// Computes and words the table.
    pub table: fn(&Profile, Style) -> Table,
}

/// Every view, in the order in which people read them.
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
    /// The view of this name.
    pub fn named(name: &str) -> Option<&'static View> {
        VIEWS.iter().find(|view| view.name == name)
    }

    /// The table that `make`, the view's own way or another grouping, makes of a profile, with what it covers.
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

    /// The other ways to group its rows.
    pub fn groupings(&self) -> impl Iterator<Item = &'static Grouping> {
        let name = self.name;
        GROUPINGS.iter().filter(move |grouping| grouping.view == name)
    }
}

/// One analysis of one host, which also tells what all figures about it cover.
fn one_host<P>(loaded: &Loaded, of: impl Fn(&Context) -> P) -> P {
    let context = loaded.context();
    let partial = of(&context);
    loaded.covered.get_or_init(|| Coverage::of(&context));
    partial
}

/// One analysis that tells steps apart: of a whole recording all steps are looked at, and all count.
fn step_by_step<P>(context: &Context, of: impl Fn(&Context) -> P) -> P {
    if context.selection.range != Range::Whole {
        return of(context);
    }
    let all = Selection { range: Range::Counted, warm_up: true };
    of(&Context::new(context.trace, context.host.as_str()).selecting(all))
}

/// One analysis of all hosts: each is looked at by itself, on all cores; then they are merged.
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
