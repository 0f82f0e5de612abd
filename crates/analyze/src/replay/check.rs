//! Whether a replay can be trusted: it has to give the recording back if nothing changes, and to react where a resource is
//! nearly always busy. And how far: the range of an answer.

use stepscope_trace::statistics::median_duration;
use stepscope_trace::{Dur, ProcessId, Span};

use super::Recorded;
use super::chains::{Stretch, segment};
use super::change::Change;
use super::host_only::{Changed, HostOnly};
use super::pass::{Fetching, Pass, Plan, Played, scaled, thinks};
use super::plan::{Assumption, Side, planned};
use crate::breakdown::Category;

/// Device time whose call is unknown, above which nothing is predicted.
pub(super) const ORPHANS: f64 = 0.05;
/// Stated edges that recorded times contradict.
const CONTRADICTED: f64 = 0.02;
/// How far the replay without a change may be off.
const IDENTITY: f64 = 0.03;
/// A resource that is busy for this share of the time determines the step; with half of its work the step has to get shorter
/// by the second share of what is possible.
const BUSY: f64 = 0.9;
const REACTS: f64 = 0.6;
const ROOM: f64 = 0.1;
/// The same for what has this share of the path.
const ON_PATH: f64 = 0.2;
/// How far replays of loops with a real fix were off, as a share of the step after it.
const DEVIATION: f64 = 0.08;
/// The share of a gain that may rest on inferred edges if it is firm.
const INFERRED: f64 = 0.05;

/// Why a replay is not trusted.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Distrust {
    /// This share of edges contradicts the recorded times.
    Contradicted(f64),
    /// Without a change, it is off by this share.
    Identity(f64),
    /// A device is busy all the time, and half of its work would win only this share: something waits for it unseen.
    Device(f64),
    /// The same about the host.
    Host(f64),
    /// Nobody owns this share of the steps.
    Unknown(f64),
}

pub(super) fn trusted(recorded: &Recorded) -> Result<(), Distrust> {
    let contradicted = recorded.edges.contradicted as f64 / recorded.edges.stated.max(1) as f64;
    if contradicted > CONTRADICTED {
        return Err(Distrust::Contradicted(contradicted));
    }
    let whole = recorded.whole();
    let replayed = |plan: &Plan| Pass::run(recorded, plan).whole.fraction_of(whole);
    let same = Pass::run(recorded, &Plan::same(recorded));
    let off = same.whole.fraction_of(whole) - 1.0;
    if off.abs() > IDENTITY {
        return Err(Distrust::Identity(off));
    }
    reacts(recorded, &replayed)?;
    path_reacts(recorded, &same, &replayed)
}

/// A resource that is nearly always busy determines the step: with half of its work the step has to get shorter, as far as the
/// other resources let it.
fn reacts(recorded: &Recorded, replayed: &dyn Fn(&Plan) -> f64) -> Result<(), Distrust> {
    let (devices, host) = (busy_devices(recorded), busy_host(recorded));
    for &(process, busy) in devices.iter().filter(|(_, busy)| *busy > BUSY) {
        let mut plan = Plan { fetches: Fetching::Recorded, ..Plan::same(recorded) };
        let works = recorded.graph.works.iter().zip(&mut plan.works);
        works.filter(|(work, _)| work.process == process).for_each(|(_, own)| *own = 0.5);
        let won = 1.0 - replayed(&plan);
        let others = devices.iter().filter(|(other, _)| *other != process).map(|(_, busy)| *busy);
        if !enough(won, 1.0 - others.fold(host, f64::max).max(busy / 2.0)) {
            return Err(Distrust::Device(won));
        }
    }
    if host > BUSY {
        let mut plan = Plan { fetches: Fetching::Recorded, ..Plan::same(recorded) };
        plan.think(recorded, 0.5);
        let won = 1.0 - replayed(&plan);
        let others = devices.iter().map(|(_, busy)| *busy);
        if !enough(won, 1.0 - others.fold(host / 2.0, f64::max)) {
            return Err(Distrust::Host(won));
        }
    }
    Ok(())
}

/// What is on the path determines the step: with half of it the step has to get shorter, too, although something else may then
/// take longest.
fn path_reacts(recorded: &Recorded, same: &Played, replayed: &dyn Fn(&Plan) -> f64) -> Result<(), Distrust> {
    let share = |device: bool| {
        let on = same.path.iter().filter(|(category, _)| is_device(*category) == device);
        on.map(|(_, time)| *time).sum::<Dur>().fraction_of(same.whole)
    };
    let halves = |device: bool| {
        let mut plan = Plan { fetches: Fetching::Recorded, ..Plan::same(recorded) };
        match device {
            true => plan.works.fill(0.5),
            false => plan.think(recorded, 0.5),
        }
        1.0 - replayed(&plan)
    };
    for device in [true, false] {
        let (share, won) = (share(device), halves(device));
        if share > ON_PATH && won < REACTS / 2.0 * share / 2.0 {
            return Err(if device { Distrust::Device(won) } else { Distrust::Host(won) });
        }
    }
    Ok(())
}

fn is_device(category: Category) -> bool {
    use Category::{Communication, Compute, TransferDevice, TransferIn, TransferOut};
    matches!(category, Compute | Communication | TransferIn | TransferOut | TransferDevice)
}

/// Is that enough of what was possible? Where other resources leave no room, nothing can be said.
fn enough(won: f64, possible: f64) -> bool {
    possible < ROOM || won >= REACTS * possible
}

/// Devices, with the share of time in which they have something to do.
fn busy_devices(recorded: &Recorded) -> Vec<(ProcessId, f64)> {
    let mut processes: Vec<ProcessId> = recorded.graph.works.iter().map(|work| work.process).collect();
    processes.sort_unstable();
    processes.dedup();
    let window = recorded.graph.window;
    let busy = |process: ProcessId| {
        let works = recorded.graph.works.iter().filter(|work| work.process == process);
        let mut spans: Vec<Span> = works.map(|work| work.span.intersect(window)).collect();
        spans.sort_unstable_by_key(|span| span.start);
        let (mut until, mut busy) = (window.start, Dur::ZERO);
        for span in spans {
            busy += (span.end - span.start.max(until)).at_least_zero();
            until = until.max(span.end);
        }
        busy.fraction_of(window.dur())
    };
    processes.into_iter().map(|process| (process, busy(process))).collect()
}

/// The share of time in which the loop's thread does something itself.
fn busy_host(recorded: &Recorded) -> f64 {
    let Some(chain) = recorded.chains.first().filter(|_| recorded.graph.has_loop) else { return 0.0 };
    let busy = chain.stretches.iter().enumerate().filter(|(place, stretch)| {
        thinks(segment(&recorded.graph, stretch).piece) && !recorded.edges.waits.contains_key(&(0, *place))
    });
    let mut busy: Vec<&Stretch> = busy.map(|(_, stretch)| stretch).collect();
    // A loop that ran ahead of its device is done before the window is.
    while busy.pop_if(|stretch| !segment(&recorded.graph, stretch).busy).is_some() {}
    let time: Dur = busy.iter().map(|stretch| stretch.span.dur()).sum();
    time.fraction_of(recorded.graph.window.dur())
}

/// What came of a change.
pub(super) struct Found {
    /// All steps as recorded, and as expected, with a range.
    pub before: Dur,
    pub expected: Dur,
    pub low: Dur,
    pub high: Dur,
    pub assumes: Vec<Assumption>,
    pub binds: Option<(Category, f64)>,
}

/// The steps replayed with changes; `None` if there is nothing to change.
pub(super) fn replayed(recorded: &Recorded, changes: &[Change]) -> Option<Found> {
    let made = planned(recorded, changes, Side::Expected);
    if !made.applies {
        return None;
    }
    let played = Pass::run(recorded, &made.plan);
    let mut assumes = made.assumes;
    if rests_on_inferred(recorded, &made.plan, &played) {
        assumes.push(Assumption::Inferred);
    }
    let play = |side: Side, inferred: bool| {
        let mut plan = planned(recorded, changes, side).plan;
        plan.inferred = inferred;
        Pass::run(recorded, &plan).whole
    };
    let ends =
        [play(Side::Best, true), play(Side::Best, false), play(Side::Worst, true), play(Side::Worst, false)];
    let lengths: Vec<Dur> = played.marks.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let along: Dur = played.path.iter().map(|(_, time)| *time).sum();
    let binds = played.path.first().map(|&(category, time)| (category, time.fraction_of(along)));
    let (low, high) = range(recorded.whole(), played.whole, &ends, &lengths);
    Some(Found { before: recorded.whole(), expected: played.whole, low, high, assumes, binds })
}

/// The same for a host without a device.
pub(super) fn scaled_shares(host: &HostOnly, changes: &[Change]) -> Option<Found> {
    let made = host.changed(changes, Side::Expected);
    if !made.applies {
        return None;
    }
    let ends = [Side::Best, Side::Worst].map(|side| host.changed(changes, side).whole);
    // Steps vary after the change as much as before it, in proportion.
    let now = made.whole.fraction_of(host.whole());
    let lengths: Vec<Dur> = host.lengths().iter().map(|&length| scaled(length, now)).collect();
    let (low, high) = range(host.whole(), made.whole, &ends, &lengths);
    let Changed { whole, binds, assumes, .. } = made;
    Some(Found { before: host.whole(), expected: whole, low, high, assumes, binds })
}

/// The shortest and the longest that is plausible: the least and the most that the changes may do, and then as far off as
/// replays of real fixes were. A change that does nothing is not uncertain, and what wins cannot lose.
fn range(before: Dur, expected: Dur, ends: &[Dur], lengths: &[Dur]) -> (Dur, Dur) {
    let all = || ends.iter().copied().chain([expected]);
    let gain = all().map(|one| apart(one, before)).max().unwrap_or_default();
    let off =
        (scaled(expected, DEVIATION) + spread(lengths)).min(scaled(gain, 0.5)).min(scaled(expected, 0.5));
    let low = all().min().unwrap_or(expected) - off;
    let high = all().max().unwrap_or(expected) + off;
    (low.at_least_zero(), if expected <= before { high.min(before) } else { high })
}

fn apart(a: Dur, b: Dur) -> Dur {
    (a - b).max(b - a)
}

/// How much the sum of these steps may differ from that of others: two standard errors, by the spread around the median.
fn spread(lengths: &[Dur]) -> Dur {
    let median = median_duration(lengths.iter().copied());
    let deviation = median_duration(lengths.iter().map(|&length| apart(length, median)));
    // The error of a sum of n steps grows with the root of n.
    scaled(deviation, 2.0 * 1.4826 * (lengths.len() as f64).sqrt())
}

/// Does more than a small part of the gain come from edges that are guessed from times?
fn rests_on_inferred(recorded: &Recorded, plan: &Plan, expected: &Played) -> bool {
    let stated = Plan { inferred: false, ..plan.clone() };
    let difference = apart(Pass::run(recorded, &stated).whole, expected.whole);
    let (whole, gain) = (recorded.whole(), apart(recorded.whole(), expected.whole));
    difference.fraction_of(gain) > INFERRED && difference.fraction_of(whole) > INFERRED / 10.0
}
