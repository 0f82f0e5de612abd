//! The views: one table each, built from the traces of a profile. A new view is one file with a [`View`] and
//! one line in the list below; the command line and the page both pick it up from there.

use stepscope_analyze::breakdown::selection::Range;
use stepscope_analyze::{Context, Coverage, Selection};
use stepscope_render::{Style, Table};

use crate::problem::missed;
use crate::{HostProfile, Hosts, Problem};

/// One table of a profile.
#[derive(Debug)]
pub struct View {
    /// Its name: the command, the table's `view`, and its address on the page.
    pub name: &'static str,
    /// What the page calls it: a noun or two.
    pub title: &'static str,
    /// Where the page lists it.
    pub group: Group,
    /// The question that it answers; the page shows it above the answer.
    pub question: &'static str,
    /// One-line description for the command's help.
    pub about: &'static str,
    /// Examples and notes for the command's help.
    pub after_help: &'static str,
    /// How to record what it shows, one way per line; the page shows it where there are no rows.
    pub record: &'static [&'static str],
    /// The column whose values are names of events, so that a row can be found on the timeline.
    pub events: Option<&'static str>,
    /// True if the view always covers the whole recording, whatever part is selected.
    pub recording: bool,
    /// Computes and renders the table. The style applies to prose only; the caller styles the columns.
    pub table: fn(&Hosts<'_>, Style) -> Table,
    /// Other ways to group its rows. The default grouping is [`DEFAULT_GROUPING`].
    pub groupings: &'static [Grouping],
}

/// Another way to group a view's rows.
#[derive(Debug)]
pub struct Grouping {
    /// Name of this grouping.
    pub by: &'static str,
    /// Computes and renders the table.
    pub table: fn(&Hosts<'_>, Style) -> Table,
}

/// Name of the grouping that a view has by itself.
pub const DEFAULT_GROUPING: &str = "name";

/// Views that belong together; the page lists them under one heading.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Group {
    /// What the whole recording looks like.
    Summary,
    /// Where the time goes.
    Time,
    /// What the hardware did, and how reliable the data is.
    Hardware,
}

impl Group {
    /// The heading.
    pub fn title(self) -> &'static str {
        match self {
            Group::Summary => "Summary",
            Group::Time => "Time",
            Group::Hardware => "Hardware and data",
        }
    }
}

/// Declares the modules and lists their views.
macro_rules! views {
    ($($name:ident,)+) => {
        $(mod $name;)+

        /// All views, in reading order. Not a constant: every crate that names one compiles the functions in it again.
        pub static VIEWS: &[View] = &[$($name::VIEW),+];
    };
}

views! {
    steps,
    ops,
    kernels,
    scopes,
    critical_path,
    functions,
    input,
    memory,
    devices,
    inference,
    health,
}

impl View {
    /// The view with this name.
    pub fn named(name: &str) -> Option<&'static View> {
        VIEWS.iter().find(|view| view.name == name)
    }

    /// Builds a table of the hosts with `make` (the default or another grouping), and adds what it covers.
    pub fn of(
        &self,
        hosts: &Hosts<'_>,
        make: fn(&Hosts<'_>, Style) -> Table,
        style: Style,
    ) -> Result<Table, Problem> {
        let mut table = make(hosts, style);
        hosts.any()?;
        let covers = if self.recording { hosts.recording() } else { hosts.covers() };
        missed(&covers)?;
        table.cover(&covers);
        Ok(table)
    }

    /// The function that builds the table, grouped this way; `None` if the view has no such grouping.
    pub fn grouped(&self, by: &str) -> Option<fn(&Hosts<'_>, Style) -> Table> {
        if by == DEFAULT_GROUPING {
            return Some(self.table);
        }
        self.groupings.iter().find(|grouping| grouping.by == by).map(|grouping| grouping.table)
    }

    /// The names of all groupings, its own first; empty if there is no choice.
    pub fn ways(&self) -> Vec<&'static str> {
        let others = self.groupings.iter().map(|grouping| grouping.by);
        let ways: Vec<_> = std::iter::once(DEFAULT_GROUPING).chain(others).collect();
        if ways.len() > 1 { ways } else { Vec::new() }
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

/// Runs one analysis on all hosts: each host on its own, on all cores, then merged. A view that needs two analyses runs
/// both in one visit, because a visit may read the files.
fn all_hosts<P: Default + Send>(
    hosts: &Hosts<'_>,
    of: impl Fn(&Context) -> P + Sync,
    merge: impl Fn(&mut P, P),
) -> P {
    merged_hosts(hosts, |loaded| one_host(loaded, &of), merge)
}

/// The same for an analysis of whole recordings. What it covers is known without the steps, so nobody looks for them.
fn merged_hosts<P: Default + Send>(
    hosts: &Hosts<'_>,
    of: impl Fn(&HostProfile) -> P + Sync,
    merge: impl Fn(&mut P, P),
) -> P {
    let merged = hosts.visit(of).into_iter().reduce(|mut all, one| {
        merge(&mut all, one);
        all
    });
    merged.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use stepscope_diagnose::rules::RULES;

    use super::{VIEWS, View};

    #[test]
    fn every_view_says_what_the_page_needs() {
        for view in VIEWS {
            assert!(!view.title.is_empty() && view.title.len() < 20, "{}: {}", view.name, view.title);
            assert!(!view.group.title().is_empty(), "{}", view.name);
            assert!(view.question.ends_with('?'), "{}: {}", view.name, view.question);
            // A full stop would end the sentence twice: the page adds its own.
            assert!(view.record.iter().all(|line| !line.ends_with('.')), "{}", view.name);
        }
    }

    #[test]
    fn names_and_titles_are_unique_and_leave_the_pages_their_own() {
        // The pages that are no views; `ui/src/lib/pages.ts` has them.
        let mut names = vec!["overview", "timeline", "model", "sql", "compare", "curves"];
        let mut titles = vec!["Overview", "Timeline", "Model", "SQL", "Compare", "Curves"];
        for view in VIEWS {
            assert!(!names.contains(&view.name) && !titles.contains(&view.title), "{}", view.name);
            names.push(view.name);
            titles.push(view.title);
        }
    }

    #[test]
    fn every_grouping_can_be_asked_for() {
        let ops = View::named("ops").unwrap();
        assert_eq!(ops.ways(), ["name", "type"]);
        assert!(ops.grouped("name").is_some() && ops.grouped("type").is_some());
        assert!(ops.grouped("colour").is_none());
        assert_eq!(View::named("steps").unwrap().ways(), [""; 0], "there is no choice");
    }

    #[test]
    fn every_finding_leads_to_a_view_or_to_the_curves() {
        for rule in RULES {
            let known = View::named(rule.view).is_some() || rule.view == "scalars";
            assert!(known, "{} names the view {}", rule.id, rule.view);
        }
    }
}
