//! Steps by the outermost repeating call: user annotations, Python frames, calls of compiled functions, as they
//! nest on a thread.
//!
//! The search goes from the outside in. A level at which something repeats and covers most of the work is the
//! loop. If one call covers it, the loop may be inside, unless that call is itself a pass through a model,
//! which contains layers but no steps. The parts of one iteration (fetching a batch, a forward pass, a backward
//! pass, an update) repeat equally often, and together form one step.

use std::collections::BTreeMap;
use std::ops::Range;

use stepscope_trace::{Dur, Form, KindId, Span, Track};

use super::host_work::Workers;
use super::names::{self, has, is_part_of_step, is_pass};
use super::ranges::Ranges;
use super::warm_ups::{is_warm_up, warm_ups};
use super::work::Work;
use super::{Candidate, How};
use crate::host_trace::HostTrace;
use crate::states::{is_code, runs_python};
use crate::vocabulary::{Role, blocks, gets_from_queue, is_library_frame, is_library_function};

/// What the outermost calls show.
pub(super) enum Outer {
    /// A repeating call, or several in turn.
    Repeated(Candidate),
    /// One call that is a step by itself.
    Single(Candidate),
    /// One range with a name of the user's, in which nothing repeats.
    Named(Candidate),
    /// One call or range around the work; it is unknown whether it is a step or a loop.
    Around(Candidate),
}

/// What a scope means for a loop.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Sort {
    /// A loop may be inside it.
    Around,
    /// It contains many iterations, by its name.
    Loop,
    /// A pass through a model or a program: at most one iteration.
    Pass,
    /// What an iteration does once, by its name. Alone, it is no step.
    Part,
    /// A user-defined range; it may be either.
    Range,
}

/// What a kind of event is, if it opens a scope.
struct Family {
    /// Its key.
    key: String,
    /// What it is called.
    name: String,
    sort: Sort,
    /// True if found by a user's name instead of a call.
    annotated: bool,
    /// True if it counts on a Python thread only.
    unknown: bool,
    /// True if it does nothing but wait: what others do meanwhile is not its work.
    waits: bool,
}

/// One scope on a thread.
#[derive(Copy, Clone)]
struct Scope {
    span: Span,
    family: usize,
}

/// The outermost calls of the thread that does most of the work.
pub(super) fn find(recorded: &HostTrace, ranges: &Ranges) -> Option<Outer> {
    let (families, warm) = (families(recorded, ranges), warm_ups(recorded));
    let work = Work::of(recorded, &warm);
    if work.all().is_zero() {
        return None;
    }
    let workers = Workers::of(recorded);
    let threads = recorded.trace.tracks().iter().filter(|track| super::repetition::host_thread(track));
    let found = threads.filter_map(|track| {
        let scopes = scopes(recorded, track, &families, &warm);
        let (held, turns, sure) = Search { work: &work, families: &families.1, scopes: &scopes }.run()?;
        let python = runs_python(recorded.trace, recorded.vocabulary(), track);
        let count = turns.spans.len();
        // What others do while a thread waits for them is theirs.
        let works = workers.works(track.id, &turns.spans);
        Some(((count > 1, sure, works, python, count, held), turns, sure, track.id))
    });
    let (_, turns, sure, track) = found.max_by_key(|&(rank, ..)| rank)?;
    if work.of_ranges && !is_rhythm(&turns.spans) {
        return None;
    }
    if families.1.get(turns.family)?.sort == Sort::Around
        && is_corner(&turns.spans, recorded.trace.track(track))
    {
        return None;
    }
    let single = turns.spans.len() == 1;
    let family = families.1.get(turns.family)?;
    let name = match turns.named {
        Named::AsBegun => family.name.clone(),
        Named::Once(most) | Named::Several(most) => families.1.get(most)?.name.clone(),
    };
    // A call may only enqueue its work; a few are all there is.
    let ends_known = family.annotated && family.sort != Sort::Part || turns.spans.len() <= 2;
    let marks = turns.spans.into_iter().enumerate().map(|(number, span)| (number as i64, span)).collect();
    let how = match turns.named {
        _ if family.annotated => How::Annotations(name),
        Named::Several(_) => How::Sequence(name),
        _ => How::FunctionCalls(name),
    };
    let candidate =
        Candidate { how, marks, track: Some(track), on_host: true, ends_known, breaks: Vec::new() };
    Some(match (single, sure) {
        (false, _) => Outer::Repeated(candidate),
        (true, Sure::Yes) => Outer::Single(candidate),
        (true, Sure::ByName) => Outer::Named(candidate),
        (true, Sure::No) => Outer::Around(candidate),
    })
}

/// Fewer iterations have no rhythm.
const LEAST_TURNS: usize = 3;

/// Whether iterations follow one another at about equal distances and cover most of the time in between. If nothing
/// but ranges was recorded, only that distinguishes a loop from ranges around something that happens now and then.
fn is_rhythm(turns: &[Span]) -> bool {
    let (Some(first), Some(last)) = (turns.first(), turns.last()) else { return false };
    let covered: Dur = turns.iter().map(|turn| turn.dur()).sum();
    let mut apart: Vec<Dur> = turns.windows(2).map(|pair| pair[1].start - pair[0].start).collect();
    apart.sort_unstable();
    let at = |share: usize| apart.get(apart.len() * share / 4).copied().unwrap_or_default();
    turns.len() >= LEAST_TURNS
        && covered.ps() >= (last.end - first.start).ps() / 2
        && at(3).ps() <= at(1).ps().saturating_mul(2)
}

/// Two calls that take less than one part in this many of what was recorded of their thread may be anything that a program
/// does twice.
const CORNER: i64 = 10;

/// Whether they are two calls in a corner of what was recorded of their thread.
fn is_corner(turns: &[Span], track: &Track) -> bool {
    let (&[first, last], Some(recorded)) = (turns, track.span()) else { return false };
    (last.end - first.start).ps() < recorded.dur().ps() / CORNER
}

/// The family of each kind, and the families.
type Families = (Vec<Option<usize>>, Vec<Family>);

fn families(recorded: &HostTrace, ranges: &Ranges) -> Families {
    let trace = recorded.trace;
    let mut known: BTreeMap<(String, bool), usize> = BTreeMap::new();
    let mut all: Vec<Family> = Vec::new();
    let of_kind = (0..trace.kinds().len()).map(|index| {
        let family = family(recorded, ranges, KindId::from_index(index))?;
        let key = (family.key.clone(), family.annotated);
        Some(*known.entry(key).or_insert_with(|| {
            all.push(family);
            all.len() - 1
        }))
    });
    let of_kind = of_kind.collect();
    (of_kind, all)
}

/// Words for ranges with many iterations.
const LOOPS: &[&str] = &["epoch", "epochs", "loop", "benchmark", "bench"];
/// Functions that are a pass through a model, by framework name.
const FORWARD: &[&str] = &["forward", "__call__", "_call_impl", "_wrapped_call_impl", "call", "apply"];

/// Functions that are the whole program, or say nothing about what they call.
const PROGRAMS: &[&str] =
    &["main", "<module>", "_run_code", "_run_module_as_main", "wrapper", "inner", "decorate_context"];

fn family(recorded: &HostTrace, ranges: &Ranges, kind: KindId) -> Option<Family> {
    let (trace, name) = (recorded.trace, recorded.trace.kind_name(kind));
    if trace.kind(kind).form != Form::Slice || name.is_empty() {
        return None;
    }
    let call = |name: String, sort| Family {
        key: name.clone(),
        name,
        sort,
        annotated: false,
        unknown: false,
        waits: false,
    };
    match recorded.vocabulary().role(kind) {
        Role::FunctionCall if is_library_function(name) => None,
        Role::FunctionCall => Some(call(super::called_function(name), Sort::Pass)),
        Role::InputWait => Some(call(name.to_owned(), Sort::Around)),
        Role::PythonFrame if is_library_frame(name) => None,
        Role::PythonFrame => Some(frame(name)),
        Role::Annotation if trace.str(trace.kind(kind).category) == "cuda_sync" => None,
        Role::Annotation => range(ranges, ranges.names.family(kind)?, name),
        Role::Unknown if !is_code(name) => {
            let family = range(ranges, ranges.names.family(kind)?, name)?;
            Some(Family { unknown: true, ..family })
        }
        _ => None,
    }
}

fn frame(name: &str) -> Family {
    let function = name.rsplit([' ', ':']).next().unwrap_or(name);
    let module = name.starts_with("nn.Module: ");
    let sort = if module || FORWARD.contains(&function) { Sort::Pass } else { Sort::Around };
    let shown = if module { name } else { function };
    // Functions with one name in two files are not the same.
    Family {
        key: name.to_owned(),
        name: shown.to_owned(),
        sort,
        annotated: false,
        unknown: false,
        waits: blocks(name) || gets_from_queue(name),
    }
}

/// A range of a family; `shown` is its own name. Requests and tasks of a pool, which several threads run at once, are not a
/// loop of one of them.
fn range(ranges: &Ranges, family: &str, shown: &str) -> Option<Family> {
    if is_warm_up(shown) || ranges.is_concurrent(family) {
        return None;
    }
    let sort = if has(shown, LOOPS) {
        Sort::Loop
    } else if is_part_of_step(names::shown(shown)) {
        Sort::Part
    } else if is_pass(shown) {
        Sort::Pass
    } else {
        Sort::Range
    };
    let name = names::shown(family).to_owned();
    Some(Family { key: family.to_owned(), name, sort, annotated: true, unknown: false, waits: false })
}

fn scopes(recorded: &HostTrace, track: &Track, families: &Families, left_out: &[Span]) -> Vec<Scope> {
    let python = runs_python(recorded.trace, recorded.vocabulary(), track);
    let wanted = recorded.trace.kinds_where(|kind| families.0[kind.index()].is_some());
    let scope = |(index, kind): (usize, KindId)| {
        let family = families.0[kind.index()]?;
        let span = track.span_of(index);
        let fits = !span.is_empty()
            && (python || !families.1[family].unknown)
            && !crate::states::timeline::is_inside(left_out, span.start);
        fits.then_some(Scope { span, family })
    };
    let mut scopes: Vec<Scope> = track.events_of(&wanted).filter_map(scope).collect();
    scopes.sort_by_key(|scope| (scope.span.start, std::cmp::Reverse(scope.span.end)));
    scopes
}

/// The iterations found.
#[derive(Clone)]
struct Turns {
    family: usize,
    spans: Vec<Span>,
    /// What does most of the work in them, if that is not the family that begins them.
    named: Named,
}

/// What iterations are called.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Named {
    /// As what begins them.
    AsBegun,
    /// As a call that occurs once in each.
    Once(usize),
    /// As a call that occurs several times in each.
    Several(usize),
}

/// Whether what was found certainly are iterations.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Sure {
    No,
    /// A range around frames in which nothing repeats.
    ByName,
    Yes,
}

struct Search<'s> {
    work: &'s Work,
    families: &'s [Family],
    scopes: &'s [Scope],
}

/// A scope at the current level, and what is inside.
struct Child {
    scope: Scope,
    inside: Range<usize>,
}

/// Maximum nesting depth.
const DEEPEST: usize = 200;
/// Maximum number of times that something is done per iteration.
const MOST_PER_TURN: usize = 4;
/// A part of an iteration with less than this share of the work does not show the number of iterations.
const LEAST_PART: i64 = 20;

impl<'s> Search<'s> {
    /// The covered work, the iterations, and whether they certainly are iterations.
    fn run(&self) -> Option<(Dur, Turns, Sure)> {
        let mut level: Vec<Range<usize>> = std::iter::once(0..self.scopes.len()).collect();
        let mut fallback: Option<(Dur, Turns, Sure)> = None;
        let mut named: Option<(Dur, Turns)> = None;
        for _ in 0..DEEPEST {
            let children: Vec<Child> = level.iter().flat_map(|range| self.children(range.clone())).collect();
            let by_family = self.by_family(&children);
            if let Some((held, turns)) = self.cycle(&children, &by_family) {
                // Two calls of a function may be a trial run and the loop itself.
                let sort = self.families[turns.family].sort;
                if turns.spans.len() > 2 || matches!(sort, Sort::Pass | Sort::Range) {
                    return Some((held, turns, Sure::Yes));
                }
                fallback = Some((held, turns, Sure::Yes)).filter(|_| sort != Sort::Part);
            }
            let around = by_family
                .iter()
                .filter(|(family, (count, _))| {
                    let sort = self.families[**family].sort;
                    sort != Sort::Part && (*count <= 2 || sort == Sort::Loop)
                })
                .max_by_key(|(_, (_, held))| *held)
                .map(|(&family, &(_, held))| (family, held))
                .filter(|(_, held)| self.work.is_most(*held));
            let Some((family, held)) = around else { return fallback };
            let sort = self.families[family].sort;
            let inside: Vec<Child> =
                children.into_iter().filter(|child| child.scope.family == family).collect();
            let spans: Vec<Span> = inside.iter().map(|child| child.scope.span).collect();
            let turns = Turns { family, spans, named: Named::AsBegun };
            match sort {
                Sort::Pass => {
                    let several = fallback.filter(|(_, turns, _)| turns.spans.len() > 1);
                    // A user's name for the only pass says more than the call inside.
                    let single = named.filter(|_| turns.spans.len() == 1).unwrap_or((held, turns));
                    return several.or(Some((single.0, single.1, Sure::Yes)));
                }
                // The innermost scope that still covers nearly everything describes the work best.
                Sort::Around | Sort::Range
                    if turns.spans.len() == 1
                        && self.is_nearly_all(held)
                        && !PROGRAMS.contains(&self.families[family].name.as_str()) =>
                {
                    let known = fallback.as_ref().is_some_and(|(_, turns, _)| turns.spans.len() > 1);
                    if sort == Sort::Range && named.is_none() {
                        named = Some((held, turns.clone()));
                    }
                    if !known {
                        // Frames inside a named range show that nothing repeats there.
                        fallback = match &named {
                            Some((held, named)) if sort == Sort::Around => {
                                Some((*held, named.clone(), Sure::ByName))
                            }
                            _ => Some((held, turns, Sure::No)),
                        };
                    }
                }
                // The scope around a loop is not a step.
                Sort::Loop => (fallback, named) = (None, None),
                _ => {}
            }
            level = inside.into_iter().map(|child| child.inside).collect();
        }
        fallback
    }

    fn is_nearly_all(&self, held: Dur) -> bool {
        held.ps() >= self.work.all().ps() / 10 * 9
    }

    /// The outermost scopes of a range.
    fn children(&self, range: Range<usize>) -> Vec<Child> {
        let mut found = Vec::new();
        let mut at = range.start;
        while let Some(&scope) = self.scopes.get(at).filter(|_| at < range.end) {
            let rest = &self.scopes[at + 1..range.end];
            let next = at + 1 + rest.partition_point(|other| other.span.start < scope.span.end);
            found.push(Child { scope, inside: at + 1..next });
            at = next;
        }
        found
    }

    /// How often each family occurs, and the work it covers.
    fn by_family(&self, children: &[Child]) -> BTreeMap<usize, (usize, Dur)> {
        let mut all: BTreeMap<usize, (usize, Dur)> = BTreeMap::new();
        for child in children {
            let (count, held) = all.entry(child.scope.family).or_default();
            *count += 1;
            if !self.families[child.scope.family].waits {
                *held += self.work.within(child.scope.span);
            }
        }
        all
    }

    /// What repeats at this level and covers most of the work together.
    fn cycle(&self, children: &[Child], by_family: &BTreeMap<usize, (usize, Dur)>) -> Option<(Dur, Turns)> {
        let repeats = || {
            let sort = |family: &usize| self.families[*family].sort;
            by_family.iter().filter(move |(family, (count, _))| *count >= 2 && sort(family) != Sort::Loop)
        };
        let (_, &(most, _)) = repeats().max_by_key(|(_, (_, held))| *held)?;
        let heavy = |held: Dur| held.ps() >= self.work.all().ps() / LEAST_PART;
        let whole = |count: usize| most.is_multiple_of(count) && most / count <= MOST_PER_TURN;
        let turns = repeats()
            .filter(|(_, (count, held))| heavy(*held) && whole(*count))
            .map(|(_, (count, _))| *count)
            .min()
            .unwrap_or(most);
        // What is done once per iteration, or several times; the recording may have cut one off.
        let is_part = |count: usize| {
            let off = if turns > 2 { 1 } else { 0 };
            (1..=MOST_PER_TURN).any(|times| count.abs_diff(turns * times) <= off)
        };
        let parts: Vec<usize> =
            repeats().filter(|(_, (count, _))| is_part(*count)).map(|(family, _)| *family).collect();
        let held: Dur = parts.iter().filter_map(|part| by_family.get(part)).map(|(_, held)| *held).sum();
        if !self.work.is_most(held) {
            return None;
        }
        let in_turn: Vec<&Child> =
            children.iter().filter(|child| parts.binary_search(&child.scope.family).is_ok()).collect();
        // The first of them starts an iteration, if work follows it each time.
        let once =
            |family: &usize| by_family.get(family).is_some_and(|(count, _)| count.abs_diff(turns) <= 1);
        let mut leaders: Vec<usize> = Vec::new();
        for family in in_turn.iter().map(|child| child.scope.family).filter(once) {
            if !leaders.contains(&family) {
                leaders.push(family);
            }
        }
        let led = |leader: usize| {
            let spans = turns_from(&in_turn, leader);
            let working = spans.iter().filter(|span| !self.work.within(**span).is_zero()).count();
            (spans.len() >= 2 && working * 5 >= spans.len() * 4).then(|| Turns {
                family: leader,
                spans,
                named: self.name_of(leader, &parts, by_family, turns),
            })
        };
        leaders.into_iter().find_map(led).map(|turns| (held, turns))
    }
}

impl Search<'_> {
    /// A helper that a loop happens to call first says nothing about its iterations: then they are called after the part that
    /// does most of the work.
    fn name_of(
        &self,
        leader: usize,
        parts: &[usize],
        by_family: &BTreeMap<usize, (usize, Dur)>,
        turns: usize,
    ) -> Named {
        let of = |family: usize| by_family.get(&family).copied().unwrap_or_default();
        let light = |family: usize| of(family).1.ps() < self.work.all().ps() / LEAST_PART;
        if self.families[leader].annotated || !light(leader) {
            return Named::AsBegun;
        }
        let speaks = |family: &&usize| {
            let family = &self.families[**family];
            !family.annotated && !PROGRAMS.contains(&family.name.as_str())
        };
        let most = parts.iter().filter(speaks).copied().max_by_key(|&family| of(family).1);
        match most.filter(|&family| family != leader && !light(family)) {
            Some(family) if of(family).0.abs_diff(turns) <= 1 => Named::Once(family),
            Some(family) => Named::Several(family),
            None => Named::AsBegun,
        }
    }
}

/// Iterations that each start with `leader`, and end with the last scope that follows it.
fn turns_from(in_turn: &[&Child], leader: usize) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for child in in_turn {
        let span = child.scope.span;
        match spans.last_mut() {
            _ if child.scope.family == leader => spans.push(span),
            Some(last) => last.end = last.end.max(span.end),
            None => {}
        }
    }
    spans
}

#[cfg(test)]
mod tests;
