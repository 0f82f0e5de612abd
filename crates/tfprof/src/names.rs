//! Names that tfprof gives to what is not a node of the graph.

/// The row above all others.
pub(crate) const ROOT: &str = "_TFProfRoot";
/// The type of a name scope that is no node itself.
pub(crate) const SCOPE_PARENT: &str = "_kTFScopeParent";
/// The type of the root of the graph view.
pub(crate) const GRAPH_PARENT: &str = "_TFGraphParent";
/// The type of nodes that a checkpoint holds.
pub(crate) const CHECKPOINT_VARIABLE: &str = "_checkpoint_variables";
/// The type of variables that are trained.
pub(crate) const TRAINABLE: &str = "_trainable_variables";
