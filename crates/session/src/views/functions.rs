//! `stepscope functions`: how often compiled functions were called, traced and compiled, and what it cost.

use stepscope_analyze::work::functions::{Functions, FunctionsPartial};
use stepscope_render::{Style, views};

use super::{Group, View, all_hosts};
use crate::Hosts;

pub(super) const VIEW: View = View {
    name: "functions",
    title: "Functions",
    group: Group::Time,
    question: "Was anything retraced or recompiled?",
    about: "Show how often compiled functions were called, traced and compiled, and what it cost",
    after_help: "Examples:\n  \
        stepscope functions logs/          which functions are retraced or recompiled, and why\n  \
        stepscope functions logs/ --json   including the compiled XLA modules",
    record: &[
        "Calls of `tf.function` and of `jax.jit` are recorded by default, at host tracer level 2 or more",
        "PyTorch's eager ops do not count as such calls",
    ],
    events: Some("name"),
    recording: false,
    table: |hosts, _: Style| views::functions::table(&functions(hosts)),
    groupings: &[],
};

fn functions(hosts: &Hosts<'_>) -> Functions {
    all_hosts(hosts, FunctionsPartial::of, FunctionsPartial::merge).finish()
}
