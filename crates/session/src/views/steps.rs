//! `stepscope steps`: every step, how long it took and who owned it.

use rayon::prelude::*;
use stepscope_analyze::selection::Range;
use stepscope_analyze::summary::{HostSummary, Summary};
use stepscope_analyze::{Context, Selection};
use stepscope_render::{Style, Table};

use super::{View, one_host};
use crate::Profile;

pub(super) const VIEW: View = View {
    name: "steps",
    about: "Show every step: its time, who owns it, which stand out",
    after_help: "Examples:\n  \
        stepscope steps logs/                        all steps of the newest session\n  \
        stepscope steps logs/ --sort duration_ms     the longest first\n  \
        stepscope steps logs/ --csv > steps.csv      for a spreadsheet",
    recording: false,
    table,
};

/// Of the whole recording all steps are shown, and all count.
fn summary(context: &Context) -> HostSummary {
    if context.selection.range != Range::Whole {
        return HostSummary::of(context);
    }
    let all = Selection { range: Range::Counted, warm_up: true };
    HostSummary::of(&Context::new(context.trace, context.host.as_str()).selecting(all))
}

fn table(profile: &Profile, _style: Style) -> Table {
    let hosts = profile.hosts.par_iter().map(|loaded| one_host(loaded, summary));
    stepscope_render::views::steps::table(&Summary::finish(hosts.collect()))
}
