//! The recorded nodes of a run. A step can contain millions of records, so they are passed on one by one and
//! borrow from the file.

use std::borrow::Cow;

/// One execution of a node on a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeRecord<'a> {
    /// The node's name, possibly followed by a colon and more.
    pub name: Cow<'a, str>,
    /// The label for timelines: `name = Op(inputs)`.
    pub label: Cow<'a, str>,
    /// When it was scheduled, in µs since 1970.
    pub scheduled_micros: i64,
    /// When it started, in µs since 1970; 0 if not recorded.
    pub start_micros: i64,
    /// From there to the start of its kernel, in µs.
    pub op_start_micros: i64,
    /// From there to the end of its kernel, in µs.
    pub op_end_micros: i64,
    /// From there to its end with everything around it, in µs.
    pub end_micros: i64,
    /// When it started in ns; 0 in older files, like all nanosecond fields.
    pub start_nanos: i64,
    /// From there to the start of its kernel, in ns.
    pub op_start_nanos: i64,
    /// From there to the end of its kernel, in ns.
    pub op_end_nanos: i64,
    /// From there to its end, in ns.
    pub end_nanos: i64,
    /// When it was scheduled, in ns.
    pub scheduled_nanos: i64,
    /// The thread or stream that ran it.
    pub thread: u32,
    /// Its use of each allocator.
    pub memory: Vec<AllocatorUse<'a>>,
    /// Its outputs.
    pub outputs: Vec<OutputUse<'a>>,
    /// Temporary memory while it ran.
    pub temp_bytes: i64,
    /// Memory that it keeps.
    pub persistent_bytes: i64,
    /// Whether either was reported.
    pub has_memory_stats: bool,
}

/// Use of one allocator by one execution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AllocatorUse<'a> {
    /// The allocator's name.
    pub allocator: Cow<'a, str>,
    /// Total requested.
    pub total_bytes: i64,
    /// Peak.
    pub peak_bytes: i64,
    /// What is still held.
    pub live_bytes: i64,
    /// Memory in use by everyone.
    pub in_use_bytes: i64,
    /// Each change: time in µs, and number of bytes.
    pub changes: Vec<(i64, i64)>,
}

/// One output of an execution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutputUse<'a> {
    /// The output's index.
    pub slot: i64,
    /// Its element type, by TensorFlow's number.
    pub data_type: i64,
    /// Its shape at run time.
    pub shape: Option<Vec<i64>>,
    /// The memory behind it: requested, allocated.
    pub bytes: Option<(i64, i64)>,
    /// Its allocator.
    pub allocator: Cow<'a, str>,
    /// Its address.
    pub address: u64,
}

/// The operation that a label names: `dense1/Relu = _FusedMatMul(x, w, b)` ran `_FusedMatMul`.
pub fn timeline_op(label: &str) -> Option<&str> {
    timeline_call(label).map(|call| call.op)
}

/// What a label says ran.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// The operation.
    pub op: &'a str,
    inputs: &'a str,
}

impl<'a> Call<'a> {
    /// Its inputs as written: `[^]name[:port]`.
    pub fn inputs(self) -> impl Iterator<Item = &'a str> {
        self.inputs.split(", ").filter(|input| !input.is_empty())
    }
}

/// The call that a label holds: `dense1/Relu = _FusedMatMul(x, w, b)` called `_FusedMatMul` with three inputs.
pub fn timeline_call(label: &str) -> Option<Call<'_>> {
    let (_, call) = label.split_once(" = ")?;
    let (op, rest) = call.split_once('(')?;
    let inputs = rest.rsplit_once(')').map_or(rest, |(inputs, _)| inputs);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '>');
    (!op.is_empty() && op.chars().all(plain)).then_some(Call { op, inputs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_names_the_operation_that_ran() {
        assert_eq!(timeline_op("dense1/Relu = _FusedMatMul(x, w, b)"), Some("_FusedMatMul"));
        assert_eq!(timeline_op("[cpu_to_gpu] edge_3_x = Recv(x)"), Some("Recv"));
        assert_eq!(timeline_op("dense1/Relu:Relu"), None);
        assert_eq!(timeline_op("a = b"), None);
        assert_eq!(timeline_op("a = (b)"), None);
    }

    #[test]
    fn a_label_names_the_inputs_of_the_call() {
        let inputs = |label| timeline_call(label).map(|call| call.inputs().collect::<Vec<_>>());
        let label = "[cpu 0.2MB 0.2MB] g/mul = Mul(loss/xent:1, x, ^g/add)";
        assert_eq!(inputs(label), Some(vec!["loss/xent:1", "x", "^g/add"]));
        assert_eq!(inputs("x = _Arg()"), Some(vec![]));
        assert_eq!(inputs("x = Mul(a, b"), Some(vec!["a", "b"]));
        assert_eq!(inputs("x"), None);
    }
}
