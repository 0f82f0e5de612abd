//! One pass over a host's threads: the own time of what its ranks do in the counted steps.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use stepscope_trace::{Dur, Form, KindId, ProcessKind, StrId, Time, Trace, Track, TrackKind};

use super::{Item, RankWork, Sort};
use crate::context::Context;
use crate::states::host_collectives::{Inside, host_calls};
use crate::states::{is_pipeline_thread, is_range};
use crate::time::python::{frame_place, user_place};
use crate::vocabulary::{Keys, Role};
use crate::window::{Window, Windows};

/// Items of a rank that are kept: far more than any explanation needs.
const KEPT: usize = 200;
/// Events of a kind whose shapes are looked at.
const SAMPLES: u32 = 32;

/// The work of the ranks of a host; empty if it takes part in no collective.
pub(super) fn ranks(context: &Context) -> Vec<RankWork> {
    let inside: BTreeSet<Inside> =
        host_calls(context.trace, context.vocabulary()).iter().map(|call| call.rank).collect();
    let windows = Windows::of(context);
    let Window::Steps(steps) = windows.window else { return Vec::new() };
    if inside.is_empty() || steps == 0 {
        return Vec::new();
    }
    let several: Vec<Inside> = inside.into_iter().filter(|rank| *rank != Inside::Process).collect();
    let mut pass = Pass::new(context, if several.len() > 1 { several } else { Vec::new() });
    let trace = context.trace;
    let threads = trace.tracks().iter().filter(|track| {
        track.kind == TrackKind::Thread && trace.process(track.process).kind != ProcessKind::Device
    });
    threads.for_each(|track| pass.walk(track, &windows));
    pass.finish(steps)
}

/// What a kind of event is here.
#[derive(Clone)]
enum Class {
    /// Takes time from what surrounds it.
    Other,
    /// A piece of work, with its number.
    Work(usize),
    /// An exchange with other ranks: what happens inside it is waiting and transfer.
    Exchange,
    /// Nothing.
    Ignored,
}

struct Pass<'c, 't> {
    context: &'c Context<'t>,
    /// The ranks inside the process; empty if it is one.
    several: Vec<Inside>,
    classes: Vec<Class>,
    /// Sort, name, and the replica that its name says.
    works: Vec<(Sort, String, i64)>,
    /// Which of them are functions of the user's.
    users: BTreeSet<usize>,
    sums: HashMap<(usize, usize), (u64, Dur), FxBuildHasher>,
    ordinal: Option<StrId>,
    dims: Option<StrId>,
    sampled: HashMap<KindId, u32, FxBuildHasher>,
    rows: BTreeMap<u64, u64>,
}

struct Open {
    end: Time,
    dur: Dur,
    inside: Dur,
    /// The rank and the work, if it counts.
    work: Option<(usize, usize)>,
    /// Inside an exchange with other ranks, or one itself?
    exchanges: bool,
    /// What a function of a library does for the user's function around it is the latter's time, and no call of it.
    is_part: bool,
}

impl<'c, 't> Pass<'c, 't> {
    fn new(context: &'c Context<'t>, several: Vec<Inside>) -> Self {
        let trace = context.trace;
        let by_device = matches!(several.first(), Some(Inside::Device(_)));
        let mut pass = Pass {
            context,
            several,
            classes: Vec::with_capacity(trace.kinds().len()),
            works: Vec::new(),
            users: BTreeSet::new(),
            sums: HashMap::default(),
            ordinal: trace.strings().find("device_ordinal").filter(|_| by_device),
            dims: trace.strings().find("Input Dims"),
            sampled: HashMap::default(),
            rows: BTreeMap::new(),
        };
        let mut known: HashMap<(Sort, String, i64), usize, FxBuildHasher> = HashMap::default();
        for index in 0..trace.kinds().len() {
            let role = pass.context.vocabulary().host_role(KindId::from_index(index));
            let exchanges = matches!(role, Role::Collective | Role::HostCollective);
            let class = match pass.work_of(KindId::from_index(index)) {
                Some(_) if exchanges => Class::Exchange,
                Some(Some(work)) => {
                    let number = *known.entry(work.clone()).or_insert(pass.works.len());
                    if number == pass.works.len() {
                        pass.works.push(work);
                    }
                    if user_place(trace, KindId::from_index(index)).is_some() {
                        pass.users.insert(number);
                    }
                    Class::Work(number)
                }
                Some(None) => Class::Other,
                None => Class::Ignored,
            };
            pass.classes.push(class);
        }
        pass
    }

    /// The work of a kind; `None` if it says nothing at all.
    fn work_of(&self, kind: KindId) -> Option<Option<(Sort, String, i64)>> {
        let (trace, vocabulary) = (self.context.trace, self.context.vocabulary());
        if trace.kind(kind).form != Form::Slice {
            return None;
        }
        let name = trace.kind_name(kind);
        Some(match vocabulary.host_role(kind) {
            Role::Bookkeeping => return None,
            Role::Op if !vocabulary.signatures.keys(kind).has(Keys::HloOp) && is_around(name) => None,
            Role::Op => {
                let (name, replica) = without_replica(name);
                Some((Sort::Op, without_number(&name), replica))
            }
            Role::PythonFrame => frame_place(trace, kind).map(|place| (Sort::Python, place, 0)),
            Role::StepMarker => None,
            _ if is_range(trace, vocabulary, kind) => Some((Sort::Range, name.to_owned(), 0)),
            _ => None,
        })
    }

    fn walk(&mut self, track: &Track, windows: &Windows) {
        let trace = self.context.trace;
        // What the input pipeline computes is its stages' work.
        let in_pipeline = is_pipeline_thread(trace.str(track.name));
        let mut within = windows.of_host();
        let mut open: Vec<Open> = Vec::new();
        for (index, &kind) in track.kinds().iter().enumerate() {
            let class = &self.classes[kind.index()];
            if matches!(class, Class::Ignored) {
                continue;
            }
            let span = track.span_of(index);
            let counts = within.counts(span.start);
            let work = match class {
                Class::Work(work) if counts && !in_pipeline => Some(*work),
                _ => None,
            };
            let exchange = matches!(class, Class::Exchange);
            self.close(&mut open, span.start);
            let exchanges = exchange || open.last().is_some_and(|outer| outer.exchanges);
            let work = work.filter(|_| !exchanges);
            let work = work.and_then(|work| Some((self.rank_of(track, index, work)?, work)));
            if work.is_some() {
                self.look_at_rows(track, index, kind);
            }
            let owner = work.and_then(|(_, work)| self.owner_of(work, &open));
            let (work, is_part) = (owner.or(work), owner.is_some());
            open.push(Open { end: span.end, dur: span.dur(), inside: Dur::ZERO, work, exchanges, is_part });
        }
        self.close(&mut open, Time::MAX);
    }

    fn close(&mut self, open: &mut Vec<Open>, now: Time) {
        while let Some(ended) = open.pop_if(|open| open.end <= now) {
            if let Some(outer) = open.last_mut() {
                outer.inside += ended.dur;
            }
            if let Some(key) = ended.work {
                let sum = self.sums.entry(key).or_default();
                sum.0 += u64::from(!ended.is_part);
                sum.1 += (ended.dur - ended.inside).at_least_zero();
            }
        }
    }

    /// The user's function around a function of a library; `None` for all other work.
    fn owner_of(&self, work: usize, open: &[Open]) -> Option<(usize, usize)> {
        if self.works[work].0 != Sort::Python || self.users.contains(&work) {
            return None;
        }
        open.iter().rev().filter_map(|open| open.work).find(|(_, work)| self.users.contains(work))
    }

    /// The rank that does a piece of work; `None` if all ranks of the process share it.
    fn rank_of(&self, track: &Track, index: usize, work: usize) -> Option<usize> {
        if self.several.is_empty() {
            return Some(0);
        }
        let (sort, _, replica) = &self.works[work];
        if *sort != Sort::Op {
            return None;
        }
        let rank = match self.ordinal {
            Some(key) => Inside::Device(self.context.trace.args_at(track, index).get(key)?.as_i64()?),
            None => Inside::Replica(*replica),
        };
        self.several.iter().position(|known| *known == rank)
    }

    /// Notes the rows of ops whose first input has a batch.
    fn look_at_rows(&mut self, track: &Track, index: usize, kind: KindId) {
        let Some(key) = self.dims.filter(|_| self.several.is_empty()) else { return };
        if !takes_batches(self.context.trace, kind) {
            return;
        }
        let seen = self.sampled.entry(kind).or_default();
        *seen += 1;
        if *seen > SAMPLES {
            return;
        }
        let args = self.context.trace.args_at(track, index);
        let value = args.get(key);
        if let Some(rows) = value.as_ref().and_then(|value| value.as_str()).and_then(first_rows) {
            *self.rows.entry(rows).or_default() += 1;
        }
    }

    fn finish(self, steps: usize) -> Vec<RankWork> {
        let count = self.several.len().max(1);
        let mut ranks: Vec<RankWork> = (0..count)
            .map(|rank| RankWork {
                host: self.context.host.clone(),
                inside: self.several.get(rank).map_or(String::new(), |inside| inside.place()),
                steps,
                items: Vec::new(),
                rows: self.rows.iter().max_by_key(|(_, seen)| **seen).map(|(rows, _)| *rows),
            })
            .collect();
        for ((rank, work), (count, own)) in self.sums {
            let (sort, name, _) = &self.works[work];
            ranks[rank].items.push(Item { sort: *sort, name: name.clone(), count, own });
        }
        for rank in &mut ranks {
            rank.items
                .sort_by(|a, b| b.own.cmp(&a.own).then_with(|| (a.sort, &a.name).cmp(&(b.sort, &b.name))));
            rank.items.truncate(KEPT);
        }
        ranks
    }
}

/// Events of a runtime that run ops: they are no work of their own.
fn is_around(name: &str) -> bool {
    name.starts_with("ThunkExecutor") || name.starts_with("SlinkyThreadPool")
}

/// Ops whose first input with several dimensions is the batch.
fn takes_batches(trace: &Trace, kind: KindId) -> bool {
    const FORWARD: &[&str] = &["aten::linear", "aten::addmm", "aten::conv1d", "aten::conv2d", "aten::conv3d"];
    FORWARD.contains(&trace.kind_name(kind))
}

/// The first number of the first list with at least two: `[[512], [384, 512]]` has 384 rows.
fn first_rows(dims: &str) -> Option<u64> {
    let lists = dims.trim().strip_prefix('[')?.split('[').skip(1);
    lists.filter_map(|list| list.split(']').next()).find_map(|list| {
        let (first, _) = list.split_once(',')?;
        first.trim().parse().ok()
    })
}

/// A name without the scope of a replica, and the number of that replica.
fn without_replica(name: &str) -> (String, i64) {
    let Some((before, rest)) = name.split_once("replica_") else { return (name.to_owned(), 0) };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    match (rest[..digits].parse(), rest[digits..].strip_prefix('/')) {
        (Ok(number), Some(inner)) => (format!("{before}{inner}"), number),
        _ => (name.to_owned(), 0),
    }
}

/// A name without the number that only tells equal ops apart: `extra_2:MatMul`, `fusion.4`.
fn without_number(name: &str) -> String {
    let (scope, kind) = name.rsplit_once(':').map_or((name, None), |(scope, kind)| (scope, Some(kind)));
    let bare = scope.trim_end_matches(|c: char| c.is_ascii_digit());
    let bare = if bare.len() < scope.len() {
        bare.strip_suffix('_').or_else(|| bare.strip_suffix('.')).filter(|bare| !bare.is_empty())
    } else {
        None
    };
    let bare = bare.unwrap_or(scope);
    kind.map_or_else(|| bare.to_owned(), |kind| format!("{bare}:{kind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_work_has_equal_names_on_all_ranks() {
        assert_eq!(
            without_replica("gradient_tape/replica_2/dense/MatMul:MatMul"),
            ("gradient_tape/dense/MatMul:MatMul".into(), 2)
        );
        assert_eq!(without_replica("dense/MatMul:MatMul"), ("dense/MatMul:MatMul".into(), 0));
        assert_eq!(without_number("extra_work_2:MatMul"), "extra_work:MatMul");
        assert_eq!(without_number("ynn_fusion.12"), "ynn_fusion");
        assert_eq!(without_number("aten::conv2d"), "aten::conv2d");
    }

    #[test]
    fn rows_are_those_of_the_first_input_with_several_dimensions() {
        assert_eq!(first_rows("[[512], [384, 512], [512, 512], [], []]"), Some(384));
        assert_eq!(first_rows("[[32,3,8,8],[4]]"), Some(32));
        assert_eq!(first_rows("[[512]]"), None);
        assert_eq!(first_rows(""), None);
    }
}
