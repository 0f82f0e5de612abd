//! `stepscope fleet serve`: the fleet on the web page.

use clap::Args;
use stepscope_fleet::Local;
use stepscope_render::format::plural;
use stepscope_serve::{FleetOptions, SessionSource};

use super::options::FleetSource;
use crate::commands::serve::PlaceArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Terminal;

/// Show the fleet on a web page: ranked jobs, slow hosts, a map of hosts and steps, changes over time.
///
/// From a job the page leads to the report of its recording, and from a cell of the map to that step on the timeline.
/// `stepscope serve` shows the same page without these options.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope fleet serve logs/                          all jobs below logs/\n  \
    stepscope fleet serve week.part --devices hours.csv  a merged partial, ranked by device hours\n  \
    stepscope fleet serve fleet/ --open                  the store of `fleet watch`; open the browser")]
pub(super) struct ServeArgs {
    #[command(flatten)]
    source: FleetSource,
    #[command(flatten)]
    place: PlaceArgs,
}

impl ServeArgs {
    pub(super) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        let finish = self.source.finish.options(self.source.plan.since)?;
        let Local { workers, cache, .. } = self.source.read.local(&self.source.paths)?;
        let fleet = FleetOptions { plan: self.source.plan.options(), finish, workers, cache };
        let server = self.place.start(SessionSource::Paths(self.source.paths.clone()), fleet)?;
        let sessions = plural(server.sessions() as u64, "session", "sessions");
        self.place.run_at(server, "#//fleet", &sessions, terminal)
    }
}
