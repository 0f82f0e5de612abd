//! Findings in words: what is wrong, the numbers that show it, and what to do about it.
//!
//! `stepscope-diagnose` hands over a [`Finding`] with typed facts; here, and nowhere else, it becomes sentences.
//! Advice names the user's own thing (a stage, a function, an op, a line of Python), speaks the language of the
//! framework that wrote the trace, leaves out what is already there, and ends with how to check the fix. Names
//! from a trace stand between backticks, shortened and without control characters.

mod building;
mod compute;
mod copies;
mod counters;
mod device;
mod device_missing;
mod host;
mod input;
mod inside;
mod many;
mod memory;
mod pacing;
pub mod serve;
pub mod terms;
#[cfg(test)]
mod tests;
mod trust;

use stepscope_analyze::recurrence::Recurrence;
use stepscope_diagnose::finding::Cause;
use stepscope_diagnose::{Finding, FindingId};

use crate::format::{decimal, duration_ms, name_cut, plural, printable, short};

/// A finding as people read it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// One sentence with the numbers that matter.
    pub summary: String,
    /// What was measured, one fact a line.
    pub evidence: Vec<String>,
    /// What to do, the best first; the last says how to check it.
    pub advice: Vec<String>,
}

/// The sentence that says what is wrong.
pub fn summary(finding: &Finding) -> String {
    words(finding).summary
}

/// The facts behind it.
pub fn evidence(finding: &Finding) -> Vec<String> {
    words(finding).evidence
}

/// What to do about it.
pub fn advice(finding: &Finding) -> Vec<String> {
    words(finding).advice
}

/// All words for a finding.
pub fn words(finding: &Finding) -> Words {
    let mut words = worded(finding);
    words.evidence.extend(how_often(finding));
    words.evidence.extend(of_others(finding));
    words.evidence.extend(place(finding));
    words.advice.extend(check(finding));
    words
}

fn worded(finding: &Finding) -> Words {
    match &finding.cause {
        Cause::Damage { what, offset } => trust::damage(what, *offset),
        Cause::Dropped { count } => trust::dropped(*count, finding.framework),
        Cause::DeviceMissing { absence, complaints } => {
            device_missing::words(absence, complaints, finding.framework)
        }
        Cause::NothingRepeats => trust::nothing_repeats(finding.framework),
        Cause::Startup { steps, steady, share } => trust::startup(*steps, *steady, *share, finding.framework),
        Cause::FewSteps { count, how } => trust::few_steps(*count, how, finding.framework),
        Cause::Overhead { events_per_ms, python_frames } => {
            trust::overhead(*events_per_ms, *python_frames, finding.framework)
        }
        Cause::Input { loader, wait_ms } => input::words(finding, loader, *wait_ms),
        Cause::Compute { top, on_device } => compute::bound(finding, top, *on_device),
        Cause::Op(op) => compute::one_op(finding, op),
        Cause::Rebuilt { functions, steps } => building::words(finding, functions, *steps),
        Cause::Eager { ops_per_step, us_per_op, beside, updates_per_step, types } => {
            let each = [*ops_per_step, *us_per_op, *updates_per_step];
            host::eager(finding, each, beside.as_deref(), types)
        }
        Cause::Callback { op, function, calls_per_step, ms } => {
            inside::callback(finding, op, function.as_deref(), *calls_per_step, *ms)
        }
        Cause::SetUp { iterators_per_step, ms } => inside::set_up(finding, *iterators_per_step, *ms),
        Cause::Dispatch { ms, ops_per_step } => host::dispatch(finding, *ms, *ops_per_step),
        Cause::Python { lines } => host::python(finding, lines),
        Cause::Output { ops } => host::output(finding, ops),
        Cause::Kernels { per_step, mean_us, launch_us, replays, busy } => {
            device::kernels(finding, *per_step, *mean_us, *launch_us, *replays, *busy)
        }
        Cause::Idle { busy, meanwhile, causes, after_waits_ms, ranges } => {
            device::idle(*busy, meanwhile, causes, *after_waits_ms, ranges)
        }
        Cause::Allocation { per_step, ms } => device::allocation(finding, *per_step, *ms),
        Cause::SettingUp { ms, share, calls } => trust::setting_up(*ms, *share, calls, finding.framework),
        Cause::Copies { copies, in_ms, after_ms } => copies::words(finding, copies, *in_ms, *after_ms),
        Cause::Unfused { kernels_per_step, length, share, winnable, example } => {
            compute::unfused(finding, [*kernels_per_step, *length, *share, *winnable], example.as_deref())
        }
        Cause::Serial { streams, overlap_ms, winnable_ms, waits } => {
            device::serial(streams, *overlap_ms, *winnable_ms, *waits)
        }
        Cause::Sync { ms, after_ms } => device::sync(finding, *ms, *after_ms),
        Cause::Transfer { directions, hidden_ms, copies } => {
            copies::transfer(finding, directions, *hidden_ms, copies.as_ref())
        }
        Cause::Communication { ms, hidden_ms, waiting } => {
            many::communication(finding, *ms, *hidden_ms, waiting.as_ref())
        }
        Cause::Latecomer { name, last, waiting_ms, of } => many::latecomer(name, *last, *waiting_ms, *of),
        Cause::Slowest { name, ms, usual_ms, of } => many::slowest(name, *ms, *usual_ms, *of),
        Cause::MatrixUnits { share, kernel, speedup, only_half } => {
            compute::matrix_units(finding, *share, kernel, *speedup, *only_half)
        }
        Cause::Occupancy { kernel, occupancy, limiter, share } => {
            compute::occupancy(kernel, *occupancy, limiter.as_deref(), *share)
        }
        Cause::Counters { kernels, count } => counters::words(finding, kernels, *count),
        Cause::Growth { allocator, bytes_per_step, kept } => {
            memory::growth(finding.framework, allocator, *bytes_per_step, kept)
        }
        Cause::Pressure { allocator, peak_bytes, capacity_bytes } => {
            memory::pressure(finding.framework, allocator, *peak_bytes, *capacity_bytes)
        }
        Cause::Fragmentation { allocator, share } => {
            memory::fragmentation(finding.framework, allocator, *share)
        }
        Cause::Variance { odd: Some(odd), .. } => pacing::odd_steps(finding, odd),
        Cause::Variance { spread, tail, varies, odd: None } => pacing::variance(*spread, *tail, *varies),
        Cause::Latency { count, p50_ms, p90_ms, p99_ms, mostly } => {
            pacing::latency(finding.framework, *count, [*p50_ms, *p90_ms, *p99_ms], *mostly)
        }
    }
}

/// In which steps it happens, where those are not nearly all.
fn how_often(finding: &Finding) -> Option<String> {
    let often = finding.recurrence.filter(|often| !often.is_usual())?;
    let times = if often.steps == 1 { "This happened once" } else { "This happens" };
    Some(format!("{times}, in {}.", in_steps(&often)))
}

/// `6 of 24 steps, every 4 steps`.
fn in_steps(often: &Recurrence) -> String {
    let steps = plural(often.of as u64, "step", "steps");
    let period = often.every.filter(|every| *every > 1).map(|every| format!(", every {every} steps"));
    format!("{} of {steps}{}", often.steps, period.unwrap_or_default())
}

/// A share of what a finding is about that is too small to tell whose it is.
const NOT_WORTH_TELLING: f64 = 0.02;

/// How much of what it is about is counted under other findings: no millisecond is promised twice.
fn of_others(finding: &Finding) -> Option<String> {
    let about = finding.about_ms?;
    let others = about - finding.claimed_ms();
    (others > about * NOT_WORTH_TELLING)
        .then(|| format!("{} of these {} belong to other findings.", duration_ms(others), duration_ms(about)))
}

/// Where to look, as a time in the trace.
fn place(finding: &Finding) -> Option<String> {
    let place = finding.place.as_ref()?;
    let (from, to) = (place.span.start.ms(), place.span.end.ms());
    Some(format!("See {} to {} ms on {}.", decimal(from, 3), decimal(to, 3), quoted(&place.host)))
}

/// The categories that a gain is taken from: no more of them than it needs.
fn what_falls(finding: &Finding, gain: f64) -> String {
    let mut claims = finding.claims.clone();
    claims.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut named: Vec<String> = Vec::new();
    let mut held = 0.0;
    for (category, ms) in claims {
        // Sums of many parts may miss the gain by a rounding.
        if held < gain * 0.999 {
            named.push(format!("`{}`", category.key()));
            held += ms;
        }
    }
    match named.split_last() {
        None => "the step".to_owned(),
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} and {last} together", others.join(", ")),
    }
}

/// How to check that mending it paid.
fn check(finding: &Finding) -> Option<String> {
    let checked = "Check it: record again and run `stepscope compare BEFORE AFTER`";
    match finding.gain_ms {
        Some(gain) if gain > 0.0 => Some(format!(
            "{checked}; {} can fall by up to {} a step.",
            what_falls(finding, gain),
            duration_ms(gain)
        )),
        // Kernels that were profiled one by one have no steps to compare.
        _ if matches!(finding.cause, Cause::Counters { .. }) => Some(
            "Check it: profile the kernel again and see its counters with `stepscope kernels PATH`."
                .to_owned(),
        ),
        _ if finding.id == FindingId::ComputeBound || finding.id.is_about_trust() => None,
        _ => Some(format!("{checked}.")),
    }
}

/// A name from the trace inside a sentence: short, printable, between backticks.
pub(crate) fn quoted(name: &str) -> String {
    let clean: String = printable(name).chars().map(|c| if c == '`' { '\'' } else { c }).collect();
    format!("`{}`", name_cut(clean.trim(), 70))
}

/// A share inside a sentence: `88 %`, `4.5 %`.
pub(crate) fn share(fraction: f64) -> String {
    let per_cent = fraction * 100.0;
    format!("{} %", decimal(per_cent, usize::from(per_cent.abs() < 9.95)))
}

/// What a finding is about, of the step: `34.9 ms of 39.8 ms (88 %)`; `fallback_ms` where it owns nothing.
fn owned(finding: &Finding, fallback_ms: f64) -> String {
    match (finding.about_ms, finding.fraction) {
        (Some(about), Some(fraction)) if about > 0.0 && fraction > 0.0 => {
            format!("{} of {} ({})", duration_ms(about), duration_ms(about / fraction), share(fraction))
        }
        _ => format!("{} a step", duration_ms(fallback_ms)),
    }
}

/// How many, a step: whole where it is, else with the digits that matter.
fn number(count: f64) -> String {
    if count.fract() == 0.0 || count >= 100.0 { decimal(count, 0) } else { short(count) }
}

/// A list in a sentence: `a, b and c`.
fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

/// The same text as an owned list.
fn lines<const N: usize>(all: [&str; N]) -> Vec<String> {
    all.map(str::to_owned).to_vec()
}
