//! Calls of eager ops of a program with a server. Another process may run them: then this one only waits for the answer.

use stepscope_trace::{KindId, KindSet, Trace, Track};

use crate::vocabulary::is_server_thread;

/// Which calls may run elsewhere, and what those that run here contain; both are empty unless the program has a server, and
/// unless the recorder shows where ops run.
#[derive(Debug, Default)]
pub(super) struct RemoteCalls {
    calls: KindSet,
    run_here: KindSet,
}

/// What runs here shows at most this many events further inside: checks and copies of inputs come first.
const WITHIN: usize = 16;

impl RemoteCalls {
    pub(super) fn of(trace: &Trace) -> Self {
        if !trace.tracks().iter().any(|track| is_server_thread(trace.str(track.name))) {
            return RemoteCalls::default();
        }
        let run_here = trace.kinds_where(|kind| {
            let name = trace.kind_name(kind);
            name.starts_with("EagerLocalExecute") || name.starts_with("KernelAndDeviceFunc")
        });
        if run_here.is_empty() {
            return RemoteCalls::default();
        }
        let calls = trace.kinds_where(|kind| trace.kind_name(kind) == "EagerExecute");
        RemoteCalls { calls, run_here }
    }

    /// Whether events of this kind have to be looked at one by one.
    pub(super) fn may_be(&self, kind: KindId) -> bool {
        self.calls.has(kind)
    }

    /// Whether another process runs what the `index`th event of a track calls.
    pub(super) fn runs_elsewhere(&self, track: &Track, index: usize) -> bool {
        let end = track.end(index);
        self.calls.has(track.kind_of(index))
            && !(index + 1..track.len())
                .take(WITHIN)
                .take_while(|&inside| track.start(inside) < end)
                .any(|inside| self.run_here.has(track.kind_of(inside)))
    }
}
