//! The op log: what the graph itself does not contain about its nodes: FLOPs, user-defined types, call stacks.

use std::collections::BTreeMap;

/// An op log (`tfprof_log`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpLog {
    /// Information about nodes.
    pub entries: Vec<OpLogEntry>,
    /// The texts that frames refer to by number.
    pub strings: BTreeMap<i64, String>,
}

/// What an op log contains about one node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpLogEntry {
    /// The node's name.
    pub name: String,
    /// Its float operations per run; 0 if unknown.
    pub float_ops: i64,
    /// Types given to it, such as `_trainable_variables`.
    pub types: Vec<String>,
    /// The call stack that created it, outermost frame first.
    pub stack: Option<Vec<Frame>>,
}

/// One frame of a call stack. Texts are numbers in the log's table.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The line of the call.
    pub line: i32,
    /// The line where the function starts.
    pub function_line: i32,
    /// The file.
    pub file: i64,
    /// The function.
    pub function: i64,
    /// The text of the line.
    pub text: i64,
}
