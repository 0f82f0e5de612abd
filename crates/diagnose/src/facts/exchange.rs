//! What devices exchange in a session, by the names of its collectives, and whether the program learns.

use stepscope_analyze::session::Session;
use stepscope_analyze::time::summary::HostSummary;
use stepscope_analyze::vocabulary::{Framework, is_collective, is_remote_op, op_type};
use stepscope_analyze::work::ops::{COLLECTIVE, OpRow};
use stepscope_trace::DeviceKind;

/// A sort of collective.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// Everyone gets the sum.
    AllReduce,
    /// Everyone gets its part of the sum.
    ReduceScatter,
    /// Everyone gets all parts.
    AllGather,
    /// Everyone sends a part to everyone.
    AllToAll,
    /// One sends to another.
    PointToPoint,
    /// One sends to all.
    Broadcast,
    /// A name that does not say.
    Unknown,
}

/// What is exchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exchanges {
    /// The sorts of collectives with their milliseconds in all, the longest first.
    pub sorts: Vec<(Exchange, f64)>,
    /// Tensors go to other processes and come from there by calls of the framework's runtime, and no collective was
    /// recorded.
    pub remote: bool,
    /// Whether gradients are computed; `None` if no op of the model was recorded by name.
    pub learns: Option<bool>,
}

/// Ranks of a distributed job of which the recording shows a part.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct OneSide {
    /// Ranks that were recorded.
    pub recorded: usize,
    /// Ranks of the job, if the recording says.
    pub of: Option<u64>,
}

/// The ranks that were recorded, unless all were, or they could be compared.
impl OneSide {
    /// Of a session.
    pub fn of(session: &Session) -> Option<Self> {
        let working = |host: &HostSummary| {
            let devices = host.devices.iter().filter(|device| device.kind != DeviceKind::Cpu);
            devices.filter(|device| device.steps_seen > 0).count().max(1)
        };
        let recorded: usize = session.summary.hosts.iter().map(working).sum();
        // A collective of one rank alone has partners that were not recorded.
        let missing = session.collectives.world_size.map_or(recorded == 1, |ranks| ranks > recorded as u64);
        (session.collectives.waiting.is_none() && missing)
            .then_some(OneSide { recorded, of: session.collectives.world_size })
    }

    /// Of ranks that could be compared, while others of the job were not recorded.
    pub fn missing(session: &Session) -> Option<Self> {
        let (recorded, of) = (session.collectives.recorded, session.collectives.world_size);
        let compared = session.collectives.waiting.is_some();
        (compared && of.is_some_and(|ranks| ranks > recorded as u64)).then_some(OneSide { recorded, of })
    }
}

impl Exchanges {
    /// Of a session.
    pub fn of(session: &Session) -> Self {
        let mut sorts: Vec<(Exchange, f64)> = Vec::new();
        let is_remote = |row: &OpRow| op_type(&row.key.name).is_some_and(is_remote_op);
        let known = |row: &&OpRow| names(row).any(is_collective) && !is_remote(row);
        for row in session.ops.rows.iter().filter(known) {
            let found = names(row).map(sort_of).find(|sort| *sort != Exchange::Unknown);
            let sort = found.unwrap_or(Exchange::Unknown);
            match sorts.iter_mut().find(|(known, _)| *known == sort) {
                Some((_, ms)) => *ms += row.self_ms,
                None => sorts.push((sort, row.self_ms)),
            }
        }
        sorts.sort_by(|a, b| b.1.total_cmp(&a.1));
        let collectives = session.ops.rows.iter().any(|row| row.key.kind == COLLECTIVE && !is_remote(row));
        let tensorflow = session
            .summary
            .bound()
            .is_some_and(|host| matches!(host.framework, Framework::TensorFlow | Framework::Keras));
        let learns = session.ops.rows.iter().any(|row| names(row).any(is_gradient));
        let named = session.ops.rows.iter().any(|row| names(row).any(|name| name.starts_with("aten::")));
        let remote = tensorflow && !collectives && sorts.is_empty();
        Exchanges { sorts, remote, learns: (learns || named).then_some(learns) }
    }

    /// The sort that takes most of the time.
    pub fn most(&self) -> Option<Exchange> {
        self.sorts.first().map(|(sort, _)| *sort)
    }

    /// Whether there is such an exchange.
    pub fn has(&self, wanted: Exchange) -> bool {
        self.sorts.iter().any(|(sort, _)| *sort == wanted)
    }
}

fn names(row: &OpRow) -> impl Iterator<Item = &str> {
    [row.key.name.as_str(), row.key.kind.as_str()].into_iter()
}

/// Libraries write `AllReduce`, `all_reduce` and `all-reduce`.
fn sort_of(name: &str) -> Exchange {
    let letters = name.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_lowercase());
    let name = String::from_utf8(letters.collect()).unwrap_or_default();
    let sorts: [(Exchange, &[&str]); 6] = [
        (Exchange::AllReduce, &["allreduce", "crossdevicereduce"]),
        (Exchange::ReduceScatter, &["reducescatter"]),
        (Exchange::AllGather, &["allgather"]),
        (Exchange::AllToAll, &["alltoall"]),
        (Exchange::PointToPoint, &["sendrecv", "send", "recv", "permute"]),
        (Exchange::Broadcast, &["broadcast"]),
    ];
    let fits = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    sorts.iter().find(|(_, parts)| fits(parts)).map_or(Exchange::Unknown, |(sort, _)| *sort)
}

/// Ops, kernels and ranges of the backward pass and the optimizer.
fn is_gradient(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let parts = ["backward", "optimizer.step", "wgrad", "dgrad", "_bwd", "fused_adam", "fusedadam"];
    parts.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collectives_are_known_by_all_spellings() {
        for (name, sort) in [
            ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", Exchange::AllReduce),
            ("c10d::_allgather_base_", Exchange::AllGather),
            ("nccl:_reduce_scatter_base", Exchange::ReduceScatter),
            ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", Exchange::PointToPoint),
            ("gloo:broadcast", Exchange::Broadcast),
            ("all-to-all.3", Exchange::AllToAll),
            ("ncclDevKernel_Generic", Exchange::Unknown),
        ] {
            assert_eq!(sort_of(name), sort, "{name}");
        }
        assert!(is_gradient("aten::convolution_backward") && !is_gradient("aten::mm"));
    }
}
