//! Names of ONNX Runtime's own profile. Only their categories distinguish them from ranges of a program.

use super::Role;

/// The call that runs a model once.
pub(super) const MODEL_RUN: &str = "model_run";

/// How long a node ran; the node's name stands before it.
const NODE_TIME: &str = "_kernel_time";

/// Whether it is a node of the graph.
pub(crate) fn is_node(name: &str, category: &str) -> bool {
    category == "Node" && name.ends_with(NODE_TIME)
}

/// A node's own name.
pub(crate) fn node_name(name: &str) -> &str {
    name.strip_suffix(NODE_TIME).filter(|node| !node.is_empty()).unwrap_or(name)
}

pub(super) fn role(name: &str, category: &str) -> Option<Role> {
    match category {
        "Session" if name == MODEL_RUN || name.ends_with("Executor::Execute") => Some(Role::Framework),
        // Loading and optimising a graph, building engines for it.
        "Session" if name.starts_with("model_loading") || name == "session_initialization" => {
            Some(Role::Compile)
        }
        "Node" if is_node(name, category) => Some(Role::Op),
        "Node" if name.ends_with("_fence_before") || name.ends_with("_fence_after") => {
            Some(Role::Bookkeeping)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_within_their_categories_only() {
        assert_eq!(role("model_run", "Session"), Some(Role::Framework));
        assert_eq!(role("session_initialization", "Session"), Some(Role::Compile));
        assert_eq!(role("Conv_12_kernel_time", "Node"), Some(Role::Op));
        assert_eq!(role("Conv_12_fence_after", "Node"), Some(Role::Bookkeeping));
        assert_eq!(role("model_run", "user_annotation"), None);
    }
}
