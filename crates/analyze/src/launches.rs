//! Which host call started which device work: a sorted join on the correlation id that CUPTI, ROCm and Kineto
//! write on both sides.

use stepscope_trace::{Args, Dur, EventId, ProcessKind, StrId, Time, Trace, TrackKind};

use crate::vocabulary::{Keys, Vocabulary};

/// A host call and a piece of device work that it started. A graph launch starts many.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The call on the host.
    pub call: EventId,
    /// When the call began.
    pub called: Time,
    /// The work on the device.
    pub work: EventId,
}

/// The keys under which recorders write the number that a call and what it caused share.
pub(crate) struct Correlations(Vec<StrId>);

impl Correlations {
    /// Those that this trace has.
    pub fn of(trace: &Trace) -> Self {
        let names = ["correlation_id", "correlation"];
        Correlations(names.iter().filter_map(|key| trace.strings().find(key)).collect())
    }

    /// The number of one event.
    pub fn read(&self, args: Args) -> Option<u64> {
        let mut id = None;
        args.visit(|key, value| {
            if id.is_none() && self.0.contains(&key) {
                id = value.as_u64();
            }
        });
        // 0 is what recorders write when they do not know.
        id.filter(|&id| id != 0)
    }
}

/// All launches that both sides recorded.
#[derive(Debug, Default)]
pub struct Launches {
    /// Sorted by device work: track, then time.
    pub all: Vec<Launch>,
}

impl Launches {
    /// Joins calls and work of equal correlation id.
    pub fn of(trace: &Trace, vocabulary: &Vocabulary) -> Self {
        let keys = Correlations::of(trace);
        if keys.0.is_empty() {
            return Launches::default();
        }
        let (mut calls, mut works) = (Vec::new(), Vec::new());
        for track in trace.tracks() {
            let side = match (track.kind, trace.process(track.process).kind) {
                (TrackKind::Thread, ProcessKind::Host) => &mut calls,
                (TrackKind::Stream, ProcessKind::Device) => &mut works,
                _ => continue,
            };
            for (index, &kind) in track.kinds().iter().enumerate() {
                if !vocabulary.signatures.keys(kind).has(Keys::Correlation) {
                    continue;
                }
                if let Some(id) = keys.read(trace.args_at(track, index)) {
                    side.push((id, track.event_id(index)));
                }
            }
        }
        Launches { all: join(trace, calls, works) }
    }

    /// How many calls there are, and how long they took together. A graph launch that starts many kernels is one.
    pub fn calls(&self, trace: &Trace) -> (u64, Dur) {
        let mut calls: Vec<EventId> = self.all.iter().map(|launch| launch.call).collect();
        calls.sort_unstable();
        calls.dedup();
        let length = |call: &EventId| trace.track(call.track).dur(call.index as usize);
        (calls.len() as u64, calls.iter().map(length).sum())
    }

    /// The call that started `work`.
    pub fn of_work(&self, work: EventId) -> Option<&Launch> {
        self.all.binary_search_by_key(&work, |launch| launch.work).ok().map(|at| &self.all[at])
    }
}

fn join(trace: &Trace, mut calls: Vec<(u64, EventId)>, mut works: Vec<(u64, EventId)>) -> Vec<Launch> {
    calls.sort_unstable();
    works.sort_unstable();
    let mut launches = Vec::with_capacity(works.len());
    let mut at = 0;
    for (id, work) in works {
        while calls.get(at).is_some_and(|&(call, _)| call < id) {
            at += 1;
        }
        // Several host events may carry the id (the runtime call and the driver call below it): the first
        // to begin is the outermost.
        let same = calls[at..].iter().take_while(|&&(call, _)| call == id);
        let started = |event: EventId| trace.track(event.track).start(event.index as usize);
        if let Some(&(_, call)) = same.min_by_key(|&&(_, event)| started(event)) {
            launches.push(Launch { call, called: started(call), work });
        }
    }
    launches.sort_unstable_by_key(|launch| launch.work);
    launches
}
