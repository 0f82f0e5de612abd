//! `stepscope ops`: which ops the time goes to.

use stepscope_analyze::work::ops::{Ops, OpsPartial};
use stepscope_render::{Style, Table, views};

use super::{View, all_hosts};
use crate::Profile;

pub(super) const VIEW: View = View {
    name: "ops",
    about: "Show which ops the time goes to, on the host and on devices",
    after_help: "Examples:\n  \
        stepscope ops logs/                    most expensive ops first\n  \
        stepscope ops logs/ --by type          MatMul, Conv2D, … instead of every single op\n  \
        stepscope ops logs/ --filter conv      only ops with `conv` in their name or type\n  \
        stepscope ops logs/ --sort count --csv for a spreadsheet",
    recording: false,
    table: |profile, _: Style| views::ops::table(&ops(profile)),
};

/// For `--by type`.
pub(super) fn by_type(profile: &Profile, _: Style) -> Table {
    views::ops::table_by_type(&ops(profile))
}

fn ops(profile: &Profile) -> Ops {
    all_hosts(profile, OpsPartial::of, OpsPartial::merge).finish()
}
