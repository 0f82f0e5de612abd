//! `stepscope functions`: how often compiled functions were called, traced and compiled, and what it cost.

use stepscope_analyze::work::functions::{Functions, FunctionsPartial};
use stepscope_render::{Style, views};

use super::{View, all_hosts};
use crate::Profile;

pub(super) const VIEW: View = View {
    name: "functions",
    about: "Show how often compiled functions were called, traced and compiled, and what it cost",
    after_help: "Examples:\n  \
        stepscope functions logs/          which functions are retraced or recompiled, and why\n  \
        stepscope functions logs/ --json   including the compiled XLA modules",
    recording: false,
    table: |profile, _: Style| views::functions::table(&functions(profile)),
};

fn functions(profile: &Profile) -> Functions {
    all_hosts(profile, FunctionsPartial::of, FunctionsPartial::merge).finish()
}
