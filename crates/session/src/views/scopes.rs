//! `stepscope scopes`: time by name scope, module, Python stack or annotated range, as a tree.

use stepscope_analyze::work::scopes::{Scopes, ScopesPartial};
use stepscope_render::{Style, views};

use super::{Group, View, all_hosts};
use crate::Hosts;

pub(super) const VIEW: View = View {
    name: "scopes",
    title: "Scopes",
    group: Group::Time,
    question: "Which layers and modules take the time?",
    about: "Show time by name scope, module, Python stack or annotated range, as a tree",
    after_help: "Examples:\n  \
        stepscope scopes logs/ --top 20    the 20 largest scopes as a tree\n  \
        stepscope scopes logs/ --json      every scope with its parent, for a flame graph",
    record: &[
        "TensorFlow: name layers, or wrap parts in `tf.name_scope('block')`",
        "JAX: wrap parts in `jax.named_scope('block')`",
        "PyTorch: `torch.profiler.profile(with_stack=True, with_modules=True)`, or wrap parts in `torch.profiler.record_function('block')`",
        "Nsight Systems: wrap parts in NVTX ranges (`torch.cuda.nvtx.range('block')`)",
    ],
    events: None,
    recording: false,
    table: |hosts, style: Style| views::scopes::table(&scopes(hosts), style),
    groupings: &[],
};

fn scopes(hosts: &Hosts<'_>) -> Scopes {
    all_hosts(hosts, ScopesPartial::of, ScopesPartial::merge).finish()
}
