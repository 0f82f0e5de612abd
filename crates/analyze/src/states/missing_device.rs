//! Why a recording contains no kernels of a device: whether they were requested, and whether anything was
//! launched.
//!
//! Looks at the names of calls and at the profiler's options; only useful if kernels are missing.

use stepscope_trace::{Datum, KindId, ProcessKind, Trace, TrackKind};

use crate::vocabulary::{
    Framework, Role, Vocabulary, is_device_call, is_replayed, runs_on_device, starts_kernels,
};

/// What is known about a device whose kernels were not recorded.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum MissingDevice {
    /// The profiler's settings did not include the device.
    NotAsked {
        /// What the settings included.
        asked: Vec<String>,
    },
    /// A profiler replayed kernels to collect counters: their durations were not recorded.
    Replayed {
        /// Number of ranges with counters.
        ranges: u64,
    },
    /// Work was launched on the device, or its memory was used, but the device side is missing.
    Unseen,
    /// Compiled programs were started, but none of their work was recorded, on whichever device they ran: JAX starts
    /// them without waiting, so they may have run after the recording ended.
    ProgramsOnly,
    /// The device's library was called, but no call launched a kernel.
    NothingStarted {
        /// Number of calls.
        calls: u64,
    },
    /// The profiler traced the device's library, but nothing called it.
    NeverCalled,
    /// Neither calls nor work were recorded, and the settings do not say whether they were requested.
    Unknown,
}

/// The option in which Nsight Systems lists what to record, once each.
const ASKED: &str = "CAPTURE_EVENT_TYPE";
/// Its word for calls and work of the device.
const DEVICE: &str = "Cuda";

impl MissingDevice {
    /// Analyses one host.
    pub fn of(trace: &Trace, vocabulary: &Vocabulary) -> Self {
        let ranges = replayed(trace, vocabulary);
        if ranges > 0 {
            return MissingDevice::Replayed { ranges };
        }
        let asked = asked(trace);
        let (calls, starts) = calls(trace, vocabulary);
        if starts > 0 || uses_device_memory(trace) || has_device_ops(trace) {
            MissingDevice::Unseen
        } else if programs_without_work(trace, vocabulary) {
            MissingDevice::ProgramsOnly
        } else if calls > 0 {
            MissingDevice::NothingStarted { calls }
        } else if asked.iter().any(|what| what.eq_ignore_ascii_case(DEVICE)) {
            MissingDevice::NeverCalled
        } else if asked.is_empty() {
            MissingDevice::Unknown
        } else {
            MissingDevice::NotAsked { asked }
        }
    }
}

fn asked(trace: &Trace) -> Vec<String> {
    let options = trace.environment().capture.iter().filter(|option| trace.str(option.key) == ASKED);
    let named = options.filter_map(|option| match option.value {
        Datum::Str(what) => Some(trace.str(what).to_owned()),
        _ => None,
    });
    named.collect()
}

/// Number of ranges that a profiler replayed to collect counters.
fn replayed(trace: &Trace, vocabulary: &Vocabulary) -> u64 {
    let kinds = (0..trace.kinds().len()).map(KindId::from_index);
    let ranges = kinds.filter(|&kind| is_replayed(trace.str(trace.kind(kind).category)));
    ranges.map(|kind| vocabulary.signatures.events(kind)).sum()
}

/// Number of calls of the device's library, and how many of them launch kernels.
fn calls(trace: &Trace, vocabulary: &Vocabulary) -> (u64, u64) {
    let called = (0..trace.kinds().len())
        .map(KindId::from_index)
        .filter(|&kind| is_device_call(trace.kind_name(kind)) && vocabulary.signatures.events(kind) > 0);
    called.fold((0, 0), |(calls, starts), kind| {
        let events = vocabulary.signatures.events(kind);
        (calls + events, if starts_kernels(trace.kind_name(kind)) { starts + events } else { starts })
    })
}

/// Whether programs were called that run elsewhere, and nothing of what they did was recorded.
pub(crate) fn programs_without_work(trace: &Trace, vocabulary: &Vocabulary) -> bool {
    let recorded = |role: Role| {
        let mut kinds = (0..trace.kinds().len()).map(KindId::from_index);
        kinds.any(|kind| vocabulary.role(kind) == role && vocabulary.signatures.events(kind) > 0)
    };
    let work = [Role::Op, Role::EagerKernel, Role::HostCollective, Role::Kernel, Role::Collective];
    vocabulary.framework == Framework::Jax && recorded(Role::FunctionCall) && !work.into_iter().any(recorded)
}

/// Whether a device memory allocator was used.
pub(crate) fn uses_device_memory(trace: &Trace) -> bool {
    trace.strings().find("GPU_0_bfc").is_some()
}

/// Whether there are ops that only devices have.
pub(crate) fn has_device_ops(trace: &Trace) -> bool {
    trace.kinds().iter().any(|kind| runs_on_device(trace.str(kind.name)))
}

/// Whether a host thread launches kernels.
pub(crate) fn starts_any_kernel(trace: &Trace) -> bool {
    let calls = trace.kinds_where(|kind| starts_kernels(trace.kind_name(kind)));
    let on_host = |process| trace.process(process).kind != ProcessKind::Device;
    !calls.is_empty()
        && trace
            .tracks()
            .iter()
            .any(|track| track.kind == TrackKind::Thread && on_host(track.process) && track.has_any(&calls))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::{Dur, Kind, Time, TraceBuilder};

    fn missing_device(options: &[&str], calls: &[&str]) -> MissingDevice {
        let mut builder = TraceBuilder::new();
        let name = builder.strings.intern("python");
        let host = builder.process(name, ProcessKind::Host, 1);
        let track = builder.track(host, name, TrackKind::Thread, 1, TraceBuilder::ARENA);
        for (place, call) in calls.iter().enumerate() {
            let name = builder.strings.intern(call);
            let kind = builder.kind(Kind::slice(name));
            let start = Time::ZERO + Dur::from_us(10 * place as i64);
            builder.event(track, start, Dur::from_us(5), kind, None);
        }
        for option in options {
            let property = builder.text_property(ASKED, option);
            builder.environment.capture.push(property);
        }
        let trace = builder.finish();
        MissingDevice::of(&trace, &Vocabulary::of(&trace))
    }

    #[test]
    fn what_was_asked_and_what_was_called_tell_why() {
        assert_eq!(missing_device(&[], &["python"]), MissingDevice::Unknown);
        assert_eq!(missing_device(&["Cuda", "OSRuntime"], &["python"]), MissingDevice::NeverCalled);
        let asked = vec!["OSRuntime".to_owned()];
        assert_eq!(missing_device(&["OSRuntime"], &[]), MissingDevice::NotAsked { asked });
        let calls = ["cudaFree", "cudaMalloc", "cudaMemsetAsync"];
        assert_eq!(missing_device(&["Cuda"], &calls), MissingDevice::NothingStarted { calls: 3 });
        assert_eq!(missing_device(&[], &["cudaMalloc", "cudaLaunchKernel"]), MissingDevice::Unseen);
        assert_eq!(missing_device(&[], &["hipGraphLaunch"]), MissingDevice::Unseen);
    }

    #[test]
    fn programs_without_ops_ran_unrecorded() {
        let call = "PjitFunction(train_step)";
        assert_eq!(missing_device(&[], &[call]), MissingDevice::ProgramsOnly);
        assert_eq!(missing_device(&[], &[call, "ThunkExecutor::Execute"]), MissingDevice::Unknown);
    }
}
