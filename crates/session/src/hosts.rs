//! The hosts of one session, for analyses that visit each once: all open, or read, visited and dropped one after the
//! other. Views, comparisons and descriptions ask for hosts here and do not know which it is.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;
use stepscope_analyze::{Coverage, Selection};
use stepscope_read::Progress;
use stepscope_trace::Span;

use crate::find::ResolvedSession;
use crate::load::{HostProfile, Profile, damage, unreadable_file};
use crate::problem::Problem;

/// The hosts of one session.
#[derive(Debug)]
pub struct Hosts<'s> {
    /// The session's name.
    pub session: &'s str,
    /// All sessions found, newest first, including this one.
    pub sessions: &'s [String],
    place: Place<'s>,
    seen: Mutex<Seen>,
}

#[derive(Debug)]
enum Place<'s> {
    /// All are in memory.
    Memory(&'s Profile),
    /// They are read when they are visited.
    Files { chosen: &'s ResolvedSession, progress: &'s Progress, selection: Selection, ends: bool },
}

/// What visits learned on the way.
#[derive(Debug, Default)]
struct Seen {
    covers: Option<Coverage>,
    recorded: Option<Span>,
    problems: Vec<Problem>,
    read: usize,
}

impl<'s> Hosts<'s> {
    /// Those of a profile that is open.
    pub fn of(profile: &'s Profile) -> Self {
        let seen = Mutex::default();
        Hosts { session: &profile.session, sessions: &profile.sessions, place: Place::Memory(profile), seen }
    }

    /// Those of a session on disk. Each visit reads its files; at most one host per core is in memory.
    pub fn on_disk(chosen: &'s ResolvedSession, progress: &'s Progress) -> Self {
        let place = Place::Files { chosen, progress, selection: Selection::default(), ends: false };
        Hosts { session: &chosen.session, sessions: &chosen.sessions, place, seen: Mutex::default() }
    }

    /// The same with another part selected for analysis; a profile that is open has its own.
    pub fn selecting(mut self, wanted: Selection) -> Self {
        if let Place::Files { selection, .. } = &mut self.place {
            *selection = wanted;
        }
        self
    }

    /// The same for a process that ends soon. The trace of a single host is not freed: the system does that faster.
    pub fn then_end(mut self) -> Self {
        if let Place::Files { chosen, ends, .. } = &mut self.place {
            *ends = chosen.files.len() == 1;
        }
        self
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Visits each host that can be read, on all cores; the results are in order.
    pub fn visit<P: Send>(&self, of: impl Fn(&HostProfile) -> P + Sync) -> Vec<P> {
        let count = match self.place {
            Place::Memory(profile) => profile.hosts.len(),
            Place::Files { chosen, .. } => chosen.files.len(),
        };
        let results = Results::new(count);
        self.visit_each(&|number, host| results.put(number, of(host)));
        results.in_order()
    }

    /// The same for all types of results, so that it exists once.
    pub(crate) fn visit_each(&self, of: &(dyn Fn(usize, &HostProfile) + Sync)) {
        let seen = match self.place {
            Place::Memory(profile) => {
                profile.hosts.par_iter().enumerate().for_each(|(number, host)| of(number, host));
                let covers = profile.hosts.iter().filter_map(|host| host.covered.get().cloned());
                let spans = profile.hosts.iter().filter_map(|host| host.trace.span());
                Seen {
                    covers: covers.reduce(Coverage::merge),
                    recorded: spans.reduce(Span::hull),
                    problems: profile.problems(),
                    read: profile.hosts.len(),
                }
            }
            Place::Files { chosen, progress, selection, ends } => {
                let mut seen = Seen::default();
                // A thread that waits for a part of one host may take up another host in the meantime, so only as many
                // as there are cores are given out at once.
                let most = rayon::current_num_threads().max(1);
                for (part, some) in chosen.files.chunks(most).enumerate() {
                    let read = some.par_iter().enumerate().map(|(number, file)| {
                        let input = file.open()?;
                        let mut loaded = HostProfile::read(file.host.clone(), &input, progress)?;
                        loaded.selection = selection;
                        of(part * most + number, &loaded);
                        let span = loaded.trace.span();
                        let learned = (loaded.covered.get().cloned(), span, damage(&loaded));
                        if ends {
                            std::mem::forget(loaded);
                        }
                        Ok(learned)
                    });
                    for (host, file) in read.collect::<Vec<_>>().into_iter().zip(some) {
                        match host {
                            Ok(learned) => seen.add(learned),
                            Err(error) => seen.problems.push(unreadable_file(&error).without(&file.host)),
                        }
                    }
                }
                seen
            }
        };
        *self.seen() = seen;
    }

    /// Fails if the last visit could read no host.
    pub fn any(&self) -> Result<(), Problem> {
        let seen = self.seen();
        match seen.problems.last().filter(|_| seen.read == 0) {
            Some(problem) => Err(problem.clone()),
            None => Ok(()),
        }
    }

    /// Problems of the files that the last visit met: damage, and files that could not be read.
    pub fn problems(&self) -> Vec<Problem> {
        self.seen().problems.clone()
    }

    /// What the figures of the last visit cover.
    pub(crate) fn covers(&self) -> Coverage {
        self.seen().covers.clone().unwrap_or_default()
    }

    /// The part of the whole recording that the figures of the last visit cover.
    pub(crate) fn recording(&self) -> Coverage {
        Coverage::of_recording(self.seen().recorded)
    }
}

/// Results that arrive in any order.
pub(crate) struct Results<T>(Vec<Mutex<Option<T>>>);

impl<T> Results<T> {
    /// Places for this many.
    pub(crate) fn new(count: usize) -> Self {
        Results((0..count).map(|_| Mutex::new(None)).collect())
    }

    pub(crate) fn put(&self, number: usize, result: T) {
        if let Some(place) = self.0.get(number) {
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }
    }

    /// Those that arrived, by their numbers.
    pub(crate) fn in_order(self) -> Vec<T> {
        let taken =
            self.0.into_iter().map(|place| place.into_inner().unwrap_or_else(PoisonError::into_inner));
        taken.flatten().collect()
    }
}

impl Seen {
    fn add(&mut self, (covers, span, problem): (Option<Coverage>, Option<Span>, Option<Problem>)) {
        self.read += 1;
        self.covers = match (self.covers.take(), covers) {
            (Some(all), Some(one)) => Some(all.merge(one)),
            (all, one) => all.or(one),
        };
        self.recorded = match (self.recorded, span) {
            (Some(all), Some(one)) => Some(all.hull(one)),
            (all, one) => all.or(one),
        };
        // Files that could not be read come after those that could.
        self.problems.extend(problem);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_those_that_never_came_are_passed_over() {
        let results = Results::new(4);
        for number in [3, 0, 2, 9] {
            results.put(number, number);
        }
        assert_eq!(results.in_order(), [0, 2, 3]);
    }
}
