//! `stepscope scopes`: time by name scope, module or Python stack, as a tree.

use stepscope_analyze::work::scopes::{Scopes, ScopesPartial};
use stepscope_render::{Style, views};

use super::{View, all_hosts};
use crate::Profile;

pub(super) const VIEW: View = View {
    name: "scopes",
    about: "Show time by name scope, module or Python stack, as a tree",
    after_help: "Examples:\n  \
        stepscope scopes logs/ --top 20    the 20 largest scopes as a tree\n  \
        stepscope scopes logs/ --json      every scope with its parent, for a flame graph",
    recording: false,
    table: |profile, style: Style| views::scopes::table(&scopes(profile), style),
};

fn scopes(profile: &Profile) -> Scopes {
    all_hosts(profile, ScopesPartial::of, ScopesPartial::merge).finish()
}
