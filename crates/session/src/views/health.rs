//! `stepscope health`: what is wrong with the recording itself.

use rayon::prelude::*;
use stepscope_analyze::health::{Issue, health};
use stepscope_render::{Style, Table};

use super::View;
use crate::Profile;

pub(super) const VIEW: View = View {
    name: "health",
    about: "Show what is wrong with the recording itself: errors, lost or mended data, odd events",
    after_help: "Examples:\n  \
        stepscope health logs/                  what may be missing from this profile, and the cure\n  \
        stepscope health logs/ --filter error   only what makes conclusions doubtful\n  \
        stepscope health logs/ --json           for programs",
    recording: true,
    table,
};

fn table(profile: &Profile, style: Style) -> Table {
    let per_host: Vec<Vec<Issue>> =
        profile.hosts.par_iter().map(|loaded| health(&loaded.trace, &loaded.host)).collect();
    stepscope_render::health::table(&per_host.concat(), &profile.sources(), style)
}
