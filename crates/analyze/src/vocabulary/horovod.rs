//! Names of Horovod's timeline: a row per tensor, with the collective and what it consists of. It writes no categories.

use super::Role;

/// Collectives, as the row of a tensor names them.
const COLLECTIVES: [&str; 7] =
    ["ALLREDUCE", "ALLGATHER", "BROADCAST", "ALLTOALL", "REDUCESCATTER", "ADASUM", "BARRIER"];
/// Starts of names of libraries that do the exchange.
const LIBRARIES: [&str; 5] = ["NCCL_", "MPI_", "GLOO_", "CCL_", "DDL_"];
/// Parts around the exchange.
const PARTS: [&str; 7] = [
    "MEMCPY_IN_FUSION_BUFFER",
    "MEMCPY_OUT_FUSION_BUFFER",
    "MEMCPY_IN_HOST_BUFFER",
    "MEMCPY_OUT_HOST_BUFFER",
    "INIT_FUSION_BUFFER",
    "ALLOCATE_OUTPUT",
    "INIT_NCCL",
];

pub(super) fn role(name: &str, category: &str) -> Option<Role> {
    if !category.is_empty() {
        return None;
    }
    let exchange = |name: &str| COLLECTIVES.contains(&name);
    let library = |name: &str| {
        LIBRARIES.iter().any(|start| {
            name.strip_prefix(start).is_some_and(|rest| exchange(rest) || rest.ends_with("CAST"))
        })
    };
    // Ranks that are ready early wait here for the last one.
    let negotiates = name.strip_prefix("NEGOTIATE_").is_some_and(exchange);
    if exchange(name) || library(name) || negotiates {
        Some(Role::HostCollective)
    } else if PARTS.contains(&name) {
        Some(Role::Framework)
    } else if name == "QUEUE" || name.starts_with("WAIT_FOR_") {
        // The tensor is not computed yet, or another one is exchanged first.
        Some(Role::Annotation)
    } else if name == "CYCLE_START" {
        Some(Role::Bookkeeping)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collectives_are_known_and_other_capitals_are_not() {
        for name in ["ALLREDUCE", "NEGOTIATE_ALLREDUCE", "NCCL_ALLREDUCE", "MPI_BCAST", "GLOO_ALLGATHER"] {
            assert_eq!(role(name, ""), Some(Role::HostCollective), "{name}");
        }
        assert_eq!(role("MEMCPY_IN_FUSION_BUFFER", ""), Some(Role::Framework));
        assert_eq!(role("WAIT_FOR_DATA", ""), Some(Role::Annotation));
        assert_eq!(role("CYCLE_START", ""), Some(Role::Bookkeeping));
        for name in ["TRAIN", "NEGOTIATE", "MPI_Init", "allreduce"] {
            assert_eq!(role(name, ""), None, "{name}");
        }
        assert_eq!(role("ALLREDUCE", "user_annotation"), None);
    }
}
