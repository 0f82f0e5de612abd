//! The replay itself: one pass over everything in the order of recorded time, in which each piece begins when all that it
//! depends on is over. A wait is visited at its recorded end, everything else at its start; so whatever a piece depends on has
//! been visited before.

use stepscope_trace::{Dur, Span, Time};

use super::Recorded;
use super::chains::segment;
use super::edges::{Held, Target, Wait};
use crate::breakdown::Category;
use crate::time::critical::Piece;

/// What is different from the recording.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// By chain and stretch: its new length as a share of the old one.
    pub stretches: Vec<Vec<f64>>,
    /// By work.
    pub works: Vec<f64>,
    /// Calls do not wait for work.
    pub no_waits: bool,
    /// Edges that are guessed from times count.
    pub inferred: bool,
    /// Pieces of work on a stream are at least this far apart.
    pub apart: Dur,
    /// By work: does nothing of another stream wait for it?
    pub unordered: Vec<bool>,
    /// Where batches come from.
    pub fetches: Fetching,
}

/// How batches come.
#[derive(Clone, Debug, Default)]
pub(super) enum Fetching {
    /// As recorded: a fetch takes as long as it did.
    #[default]
    Recorded,
    /// Producers work ahead.
    Ahead {
        /// How many at once.
        producers: usize,
        /// How many batches wait at most.
        buffer: usize,
        /// From a batch that is ready to the loop that has it.
        hand_over: Dur,
    },
    /// The producer that already works ahead delivers at its recorded pace, and not faster.
    Paced,
}

/// What became of the recording.
#[derive(Debug)]
pub(super) struct Played {
    /// The new moments at which steps end; the first is where the first counted step begins.
    pub marks: Vec<Time>,
    /// How long the steps take, by the slower of loop and device.
    pub whole: Dur,
    /// The new time along the path, by category.
    pub path: Vec<(Category, Dur)>,
}

/// Why something began when it did.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Bound {
    Nothing,
    /// The work before it on the stream, or another work.
    Work(usize),
    /// Its call.
    Call(usize, Time),
    /// What came before it on its chain.
    Chain,
    /// A moment of another chain.
    Host(usize, Time),
    /// The producer of its batch.
    Producer,
}

/// A piece in the order of recorded time.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Node {
    WaitEnds(usize, usize),
    Stretch(usize, usize),
    Work(usize),
}

/// The order in which everything is visited.
pub(super) fn order(recorded: &Recorded) -> Vec<Node> {
    let mut all: Vec<(Time, Node)> = Vec::new();
    for (number, chain) in recorded.chains.iter().enumerate() {
        for (place, stretch) in chain.stretches.iter().enumerate() {
            let waits = recorded.edges.waits.contains_key(&(number, place));
            all.push(match waits {
                true => (stretch.span.end, Node::WaitEnds(number, place)),
                false => (stretch.span.start, Node::Stretch(number, place)),
            });
        }
    }
    all.extend(recorded.graph.works.iter().enumerate().map(|(work, one)| (one.span.start, Node::Work(work))));
    all.sort_unstable();
    all.into_iter().map(|(_, node)| node).collect()
}

pub(super) struct Pass<'r, 'c, 't> {
    recorded: &'r Recorded<'c, 't>,
    plan: &'r Plan,
    /// By chain, the new end of each stretch visited so far.
    ends: Vec<Vec<Time>>,
    held: Vec<Vec<Bound>>,
    works: Vec<Span>,
    bounds: Vec<Bound>,
    /// When batches were ready and taken.
    ready: Vec<Time>,
    taken: Vec<Time>,
}

impl<'r, 'c, 't> Pass<'r, 'c, 't> {
    pub fn run(recorded: &'r Recorded<'c, 't>, plan: &'r Plan) -> Played {
        let lengths = || recorded.chains.iter().map(|chain| chain.stretches.len());
        let mut pass = Pass {
            recorded,
            plan,
            ends: lengths().map(Vec::with_capacity).collect(),
            held: lengths().map(Vec::with_capacity).collect(),
            works: recorded.graph.works.iter().map(|work| work.span).collect(),
            bounds: vec![Bound::Nothing; recorded.graph.works.len()],
            ready: Vec::new(),
            taken: Vec::new(),
        };
        for &node in &recorded.order {
            match node {
                Node::Work(work) => pass.work(work),
                Node::Stretch(chain, place) | Node::WaitEnds(chain, place) => pass.stretch(chain, place),
            }
        }
        let marks: Vec<Time> = recorded.marks.iter().map(|mark| pass.mark(*mark)).collect();
        let path = pass.path(&marks);
        let whole = pass.whole(&marks);
        Played { marks, whole, path }
    }

    /// The new moment of a recorded one on a chain.
    fn on_chain(&self, chain: usize, at: Time) -> Time {
        let begin = self.recorded.graph.window.start;
        if at <= begin {
            return at;
        }
        let Some(place) = self.recorded.chains[chain].place(at) else { return at };
        let stretch = &self.recorded.chains[chain].stretches[place];
        let from =
            place.checked_sub(1).and_then(|before| self.ends[chain].get(before)).copied().unwrap_or(begin);
        match self.ends[chain].get(place) {
            Some(&end) if at == stretch.span.end => end,
            Some(&end) => {
                (from + scaled(at - stretch.span.start, self.plan.stretches[chain][place])).min(end)
            }
            None => from,
        }
    }

    /// A loop that no longer waits for its device cannot be faster than the device for long.
    fn whole(&self, marks: &[Time]) -> Dur {
        let (Some(&first), Some(&last)) = (marks.first(), marks.last()) else { return Dur::ZERO };
        let works = &self.recorded.graph.works;
        let device = self.recorded.device.map(|(early, last, count)| {
            let now = self.works[last].end - self.works[early].end;
            let then = works[last].span.end - works[early].span.end;
            let steps = marks.len().saturating_sub(1);
            self.recorded.whole() + scaled(now - then, steps as f64 / count as f64)
        });
        device.map_or(last - first, |device| device.max(last - first))
    }

    fn mark(&self, mark: Mark) -> Time {
        match mark {
            Mark::Host(at) => self.on_chain(0, at),
            Mark::Work(work) => self.works[work].end,
        }
    }

    fn stretch(&mut self, chain: usize, place: usize) {
        let stretch = &self.recorded.chains[chain].stretches[place];
        let begin = self.ends[chain].last().copied().unwrap_or(self.recorded.graph.window.start);
        let length = scaled(stretch.span.dur(), self.plan.stretches[chain][place]);
        let wait = self.recorded.edges.waits.get(&(chain, place));
        let (end, bound) = match wait {
            Some(wait) => self.waited(wait, begin, length),
            None => self.fetched(chain, place, begin, begin + length),
        };
        self.ends[chain].push(end);
        self.held[chain].push(bound);
    }

    fn waited(&self, wait: &Wait, begin: Time, length: Dur) -> (Time, Bound) {
        if wait.inferred && !self.plan.inferred {
            return (begin + length, Bound::Chain);
        }
        let alone = (begin + wait.floor.min(length), Bound::Chain);
        if self.plan.no_waits && !wait.inferred {
            return alone;
        }
        let until = |target: &Target| match *target {
            Target::End(work) => (self.works[work].end + wait.wake, Bound::Work(work)),
            Target::Start(work) => (self.works[work].start + wait.wake, Bound::Work(work)),
            Target::Host(chain, at) => (self.on_chain(chain, at) + wait.wake, Bound::Host(chain, at)),
        };
        let last = wait.targets.iter().map(until).max_by_key(|(at, _)| *at);
        last.filter(|(at, _)| *at > alone.0).unwrap_or(alone)
    }

    /// A stretch that is no wait; if it ends a fetch, its batch has to be there.
    fn fetched(&mut self, chain: usize, place: usize, begin: Time, end: Time) -> (Time, Bound) {
        let Some(fetch) = self.recorded.fetches.ending_at(chain, place) else { return (end, Bound::Chain) };
        let number = self.taken.len();
        let start = self.recorded.graph.window.start;
        let known =
            |times: &[Time], back: usize| number.checked_sub(back).and_then(|at| times.get(at).copied());
        let (ready, hand_over) = match self.plan.fetches {
            Fetching::Recorded => return (end, Bound::Chain),
            Fetching::Ahead { producers, buffer, hand_over } => {
                let free = known(&self.ready, producers).unwrap_or(start);
                let room = known(&self.taken, producers + buffer).unwrap_or(start);
                (free.max(room) + fetch.made_in, hand_over)
            }
            Fetching::Paced => match known(&self.ready, 1) {
                Some(last) => (last + fetch.pace.unwrap_or_default(), Dur::ZERO),
                None => (end, Dur::ZERO),
            },
        };
        let got = ready.max(begin) + hand_over;
        self.ready.push(ready);
        self.taken.push(got);
        if ready > begin { (got, Bound::Producer) } else { (got, Bound::Chain) }
    }

    fn work(&mut self, place: usize) {
        let work = &self.recorded.graph.works[place];
        let held = &self.recorded.edges.held[place];
        let (start, bound) = self.start(held).unwrap_or((work.span.start, Bound::Nothing));
        self.works[place] = Span::new(start, start + scaled(work.span.dur(), self.plan.works[place]));
        self.bounds[place] = bound;
    }

    fn start(&self, held: &Held) -> Option<(Time, Bound)> {
        let before = held
            .before
            .map(|(work, gap)| (self.works[work].end, gap.max(self.plan.apart), Bound::Work(work)));
        let released = held.released.map(|(chain, at, gap)| match chain {
            Some(chain) => (self.on_chain(chain, at), gap, Bound::Call(chain, at)),
            None => (at, gap, Bound::Nothing),
        });
        let own = before.into_iter().chain(released);
        match held.other {
            None => own.map(|(at, gap, bound)| (at + gap, bound)).max_by_key(|(at, _)| *at),
            Some(_) if !self.plan.inferred => {
                let last = own.max_by_key(|(at, ..)| *at)?;
                Some((last.0 + held.without_other, last.2))
            }
            Some((other, gap)) => {
                let ordered = !self.plan.unordered[other];
                let other = (self.works[other].end + gap, Bound::Work(other));
                let all = own.map(|(at, gap, bound)| (at + gap, bound)).chain(ordered.then_some(other));
                all.max_by_key(|(at, _)| *at)
            }
        }
    }

    /// Walks back from the last mark to the first, along what held each piece back.
    fn path(&self, marks: &[Time]) -> Vec<(Category, Dur)> {
        let mut sums = [Dur::ZERO; Category::COUNT];
        let (Some(&until), Some(&from)) = (marks.last(), marks.first()) else { return Vec::new() };
        let mut now = until;
        let mut at = match self.recorded.marks.last() {
            Some(Mark::Work(work)) => At::Work(*work),
            Some(Mark::Host(time)) => At::Host(0, *time),
            None => return Vec::new(),
        };
        let mut explain = |now: &mut Time, to: Time, category: Category| {
            let to = to.max(from);
            if to < *now {
                sums[category as usize] += *now - to;
                *now = to;
            }
        };
        let stretches: usize = self.recorded.chains.iter().map(|chain| chain.stretches.len()).sum();
        let mut turns = 2 * (self.works.len() + stretches) + 16;
        while now > from && turns > 0 {
            turns -= 1;
            let Some((to, category, next)) = self.back(at) else { break };
            for (to, category) in to.into_iter().zip(category) {
                explain(&mut now, to, category);
            }
            at = next;
        }
        explain(&mut now, from, Category::Unknown);
        let mut path: Vec<(Category, Dur)> =
            Category::ALL.into_iter().map(|category| (category, sums[category as usize])).collect();
        path.retain(|(_, time)| !time.is_zero());
        path.sort_by_key(|&(category, time)| (std::cmp::Reverse(time), category as usize));
        path
    }

    /// One step back: the moments to which what is here explains time, with their categories, and where to go on.
    fn back(&self, at: At) -> Option<([Time; 2], [Category; 2], At)> {
        match at {
            At::Work(work) => {
                let (one, span) = (&self.recorded.graph.works[work], self.works[work]);
                let (to, gap, next) = match self.bounds[work] {
                    Bound::Work(before) => (self.works[before].end, Category::Idle, At::Work(before)),
                    Bound::Call(chain, at) => {
                        (self.on_chain(chain, at), Category::Launch, At::Host(chain, at))
                    }
                    _ => return None,
                };
                Some(([span.start, to], [one.category, gap], next))
            }
            At::Host(chain, time) => {
                let place = self.recorded.chains[chain].place(time)?;
                let stretch = &self.recorded.chains[chain].stretches[place];
                let begin = place.checked_sub(1).map_or(self.recorded.graph.window.start, |before| {
                    self.ends[chain].get(before).copied().unwrap_or(self.recorded.graph.window.start)
                });
                let category = segment(&self.recorded.graph, stretch).category;
                let before = At::Host(chain, stretch.span.start);
                // A moment inside of a wait is before it ends.
                let inside = time < stretch.span.end;
                Some(match self.held[chain].get(place).filter(|_| !inside) {
                    Some(Bound::Work(work)) => {
                        let end = self.works[*work].end;
                        ([end, end], [Category::Sync, Category::Sync], At::Work(*work))
                    }
                    Some(Bound::Host(other, at)) => {
                        let moment = self.on_chain(*other, *at);
                        ([moment, moment], [category, category], At::Host(*other, *at))
                    }
                    Some(Bound::Producer) => ([begin, begin], [Category::Input, Category::Input], before),
                    _ => ([begin, begin], [category, category], before),
                })
            }
        }
    }
}

/// Where the walk is.
#[derive(Copy, Clone, Debug)]
enum At {
    Work(usize),
    Host(usize, Time),
}

/// The end of a step.
#[derive(Copy, Clone, Debug)]
pub(super) enum Mark {
    /// A moment of the loop's thread.
    Host(Time),
    /// The end of work, for devices that lag behind.
    Work(usize),
}

pub(super) fn scaled(time: Dur, factor: f64) -> Dur {
    if factor == 1.0 { time } else { Dur::from_ps((time.ps() as f64 * factor) as i64) }
}

/// Is it time in which the host itself does something?
pub(super) fn thinks(piece: Piece) -> bool {
    matches!(piece, Piece::Host | Piece::Launch | Piece::Between)
}
