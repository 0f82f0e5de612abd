//! The views: one table each, about one recording. A view is one file, which holds everything about it: name, help, columns,
//! headline, notes, and how it comes from the hosts' traces. The command line, the page, SQL, data frames, the schemas and
//! the documentation pick it up from the list below.

mod counted;

use std::sync::{Mutex, PoisonError};

use stepscope_analyze::breakdown::selection::Range;
use stepscope_analyze::recording::health::Issue;
use stepscope_analyze::window::Window;
use stepscope_analyze::{Context, Selection};

use crate::table::{Column, Table};

/// One table of a recording.
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
    /// Its table in SQL, host by host, with the same columns: name, and what a row is.
    pub sql: Option<(&'static str, &'static str)>,
    /// Its columns.
    pub columns: fn() -> Vec<Column>,
    /// What its JSON has beside the rows, in the notation of `docs/schema/source`.
    pub members: &'static str,
    /// Computes the table.
    pub table: Make,
    /// Other ways to group its rows. The default grouping is [`DEFAULT_GROUPING`].
    pub groupings: &'static [Grouping],
}

/// Computes a table from the hosts of a recording.
pub type Make = fn(&dyn Hosts) -> Table;

/// The hosts of a recording. A visit may read their files, so that a table needs one visit only.
pub trait Hosts: Sync {
    /// Calls `of` for each host with its number, on all cores.
    fn visit(&self, of: &(dyn Fn(usize, &Context<'_>) + Sync));

    /// The hosts that the last visit could not read.
    fn unread(&self) -> Vec<Issue> {
        Vec::new()
    }
}

/// Another way to group a view's rows.
#[derive(Debug)]
pub struct Grouping {
    /// Name of this grouping.
    pub by: &'static str,
    /// Computes the table.
    pub table: Make,
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
        $(pub mod $name;)+

        /// All views, in reading order. Not a constant: every crate that names one compiles the functions in it again.
        pub static VIEWS: &[View] = &[$($name::VIEW),+];
    };
}

views! {
    steps,
    ranks,
    ops,
    kernels,
    scopes,
    critical_path,
    whatif,
    functions,
    hlo_modules,
    hlo_ops,
    hlo_roofline,
    hlo_memory,
    hlo_outside,
    input,
    memory,
    devices,
    inference,
    health,
}

pub use critical_path::of_step as path_of_step;

impl View {
    /// The words of its command: `hlo ops` for the view `hlo_ops`.
    pub fn command(&self) -> impl Iterator<Item = &str> {
        self.name.split('_')
    }

    /// The view with this name.
    pub fn named(name: &str) -> Option<&'static View> {
        VIEWS.iter().find(|view| view.name == name)
    }

    /// The function that builds the table, grouped this way; `None` if the view has no such grouping.
    pub fn grouped(&self, by: &str) -> Option<Make> {
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

/// What `of` finds on each host, in order.
fn each_host<P: Send>(hosts: &dyn Hosts, of: impl Fn(&Context<'_>) -> P + Sync) -> Vec<P> {
    let found = Mutex::new(Vec::new());
    hosts.visit(&|number, context| {
        let one = of(context);
        found.lock().unwrap_or_else(PoisonError::into_inner).push((number, one));
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(number, _)| *number);
    found.into_iter().map(|(_, one)| one).collect()
}

/// Runs one analysis on all hosts: each host on its own, then merged. A view that needs two analyses runs both in one visit.
fn all_hosts<P: Default + Send>(
    hosts: &dyn Hosts,
    of: impl Fn(&Context<'_>) -> P + Sync,
    merge: impl Fn(&mut P, P),
) -> P {
    let merged = each_host(hosts, of).into_iter().reduce(|mut all, one| {
        merge(&mut all, one);
        all
    });
    merged.unwrap_or_default()
}

/// Runs one analysis that distinguishes steps. For a whole recording, all steps count.
fn step_by_step<P>(context: &Context<'_>, of: impl Fn(&Context<'_>) -> P) -> P {
    if context.selection.range != Range::Whole {
        return of(context);
    }
    let all = Selection { range: Range::Counted, warm_up: true };
    of(&Context::new(context.trace, context.host.as_str()).selecting(all))
}

/// What a figure covers, in a few words.
fn covers(window: Window) -> &'static str {
    match window {
        Window::Steps(_) => "per step",
        Window::WholeCapture => "in total",
    }
}

/// The members that [`describe_window`] adds.
macro_rules! window_members {
    () => {
        "window?: 'steps' | 'capture' -- What the figures are about: the counted steps, or the whole capture.\n\
         steps?: integer? -- Steps that count; null if the figures are about the whole capture.\n"
    };
}
use window_members;

/// States in a table's JSON what totals cover; [`Table::cover`] does the same below the table.
fn describe_window(table: &mut Table, window: Window) {
    let steps = match window {
        Window::Steps(steps) => serde_json::Value::from(steps),
        Window::WholeCapture => serde_json::Value::Null,
    };
    table.member("window", if steps.is_null() { "capture" } else { "steps" });
    table.member("steps", steps);
}

/// A bar of at most `width` characters.
fn bar(length: f64, longest: f64, width: usize) -> String {
    let filled = if longest > 0.0 { (length / longest * width as f64).round() as usize } else { 0 };
    "█".repeat(filled.min(width))
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
    fn every_column_has_a_key_of_its_own_and_a_meaning() {
        for view in VIEWS {
            let columns = (view.columns)();
            for (place, column) in columns.iter().enumerate() {
                assert!(!columns[..place].iter().any(|other| other.key == column.key), "{}", column.key);
                assert!(column.drawn || !column.about.is_empty(), "{}: {}", view.name, column.key);
                // Sentences are made of it, in schemas and in the description of SQL.
                assert!(!column.about.ends_with('.'), "{}: {}", view.name, column.about);
            }
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
