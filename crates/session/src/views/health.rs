//! `stepscope health`: problems of the recording itself.

use stepscope_analyze::recording::health::{Issue, health};
use stepscope_render::{Style, Table};

use super::{Group, View};
use crate::Hosts;

pub(super) const VIEW: View = View {
    name: "health",
    title: "Health",
    group: Group::Hardware,
    question: "Is this recording reliable?",
    about: "Show problems of the recording itself: errors, lost or repaired data, odd events",
    after_help: "Examples:\n  \
        stepscope health logs/                  what may be missing from this profile, and how to fix it\n  \
        stepscope health logs/ --filter error   only problems that make conclusions unreliable\n  \
        stepscope health logs/ --json           JSON for scripts",
    record: &[],
    events: None,
    recording: true,
    table,
    groupings: &[],
};

fn table(hosts: &Hosts<'_>, style: Style) -> Table {
    let per_host = hosts.visit(|loaded| (health(&loaded.trace, &loaded.host), loaded.trace.events()));
    let (issues, events): (Vec<Vec<Issue>>, Vec<u64>) = per_host.into_iter().unzip();
    stepscope_render::health::table(&issues.concat(), &events, style)
}
