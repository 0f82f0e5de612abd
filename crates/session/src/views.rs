//! The tables of views, from the hosts of a session: what each covers is learned on the way.

use stepscope_analyze::recording::health::Issue;
use stepscope_analyze::{Context, Coverage};
use stepscope_results::Table;
use stepscope_results::views::{self, View};

use crate::problem::missed;
use crate::{HostProfile, Hosts, Problem, Profile};

impl Hosts<'_> {
    /// A view's table made with `make` (its own or another grouping), and what it covers.
    pub fn table(
        &self,
        view: &View,
        make: impl FnOnce(&dyn views::Hosts) -> Table,
    ) -> Result<Table, Problem> {
        let mut table = make(&Visits { hosts: self, covering: !view.recording });
        self.any()?;
        let covers = if view.recording { self.recording() } else { self.covers() };
        missed(&covers)?;
        table.cover(&covers);
        Ok(table)
    }

    /// What `of` makes of whole recordings; fails if no host could be read.
    pub fn over_whole_recording<T>(&self, of: impl FnOnce(&dyn views::Hosts) -> T) -> Result<T, Problem> {
        let made = of(&Visits { hosts: self, covering: false });
        self.any()?;
        Ok(made)
    }
}

struct Visits<'h, 's> {
    hosts: &'h Hosts<'s>,
    /// Looks for what the figures cover. What a view of whole recordings covers is known without the steps, so nobody looks
    /// for them.
    covering: bool,
}

impl views::Hosts for Visits<'_, '_> {
    fn visit(&self, of: &(dyn Fn(usize, &Context<'_>) + Sync)) {
        self.hosts.visit_each(&|number, loaded| {
            let context = loaded.context();
            of(number, &context);
            if self.covering {
                loaded.covered.get_or_init(|| Coverage::of(&context));
            }
        });
    }

    fn unread(&self) -> Vec<Issue> {
        self.hosts.problems().iter().filter_map(Problem::issue).collect()
    }
}

/// One host alone.
impl views::Hosts for HostProfile {
    fn visit(&self, of: &(dyn Fn(usize, &Context<'_>) + Sync)) {
        of(0, &self.context());
    }
}

/// All hosts that are open.
impl views::Hosts for Profile {
    fn visit(&self, of: &(dyn Fn(usize, &Context<'_>) + Sync)) {
        self.hosts.iter().enumerate().for_each(|(number, loaded)| of(number, &loaded.context()));
    }
}
