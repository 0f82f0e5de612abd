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
