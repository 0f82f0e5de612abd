//! What the time of steps is spent on beyond its categories: occasional long steps, output, callbacks, eager ops, lines of
//! Python, requests; and how long a step is over all hosts. Knows nothing about single ops' tables or devices.

pub mod callbacks;
pub mod checkpoint_cost;
pub mod critical;
pub mod eager;
pub mod graph_loops;
pub mod inference;
pub mod named_ranges;
pub mod odd_steps;
pub mod optimizer;
pub mod over_time;
pub mod peaks;
pub mod pipeline_setup;
pub mod python;
pub mod recurrence;
pub mod requests;
pub mod summary;
pub mod typical_step;
pub mod uneven_steps;

/// The analyses of this room, for the results of a session ([`crate::session`]): a line each.
macro_rules! analyses {
    ($next:ident $($rooms:ident)* => $($listed:tt)*) => {
        crate::$next::analyses! { $($rooms)* => $($listed)*
            {
                /// Eager execution.
                eager: crate::time::eager::Eager,
                /// Host callbacks.
                callbacks: crate::time::callbacks::Callbacks,
                /// Loops inside the compiled step.
                graph_loops: crate::time::graph_loops::GraphLoops,
                /// Pipelines that are set up in the steps.
                setup: crate::time::pipeline_setup::SetUp,
                /// The optimizer's updates.
                updates: crate::time::optimizer::Updates,
                /// What surrounds output.
                checkpoint_cost: crate::time::checkpoint_cost::CheckpointCost,
                /// Requests that a server recorded one by one; `None` without any.
                requests: crate::time::requests::RequestsPartial,
                /// Ranges around time of which nothing else is known.
                ranges: crate::time::named_ranges::NamedRanges,
            }
        }
    };
}
pub(crate) use analyses;
