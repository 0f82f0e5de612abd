//! Sentences that every finding has: how often it happens, what it shares with others, where to look, how to verify.

use stepscope_analyze::Category;
use stepscope_text::{decimal, duration_ms, listed, quoted, share};

use super::Finding;
use crate::words::in_steps;

/// In which steps it happens, unless in nearly all.
pub(super) fn how_often(finding: &Finding) -> Option<String> {
    let often = finding.recurrence.filter(|often| !often.is_usual())?;
    let verb = if often.steps == 1 { "This happened once," } else { "This happens" };
    Some(format!("{verb} in {}.", in_steps(&often)))
}

/// A share of what a finding is about that is too small to say whose it is.
const NEGLIGIBLE: f64 = 0.02;

/// How much of what it is about is counted under other findings: no millisecond is promised twice.
pub(super) fn of_others(finding: &Finding) -> Option<String> {
    let about = finding.about_ms?;
    let others = about - finding.claimed_ms();
    (others > about * NEGLIGIBLE)
        .then(|| format!("Of these {}, other findings own {}.", duration_ms(about), duration_ms(others)))
}

/// What it owns by category, where one row of the breakdown does not show exactly that: there are several, or the row is
/// larger because something else has a part of it.
pub(super) fn by_category(finding: &Finding) -> Option<String> {
    let all = finding.claimed_ms();
    let mut claims: Vec<_> = finding.claims.iter().filter(|(_, ms)| *ms > all * NEGLIGIBLE).collect();
    claims.sort_by(|a, b| b.1.total_cmp(&a.1));
    let whole =
        |category: Category| finding.whole_ms.iter().find(|(of, _)| *of == category).map(|(_, ms)| *ms);
    let mut partly = false;
    let parts: Vec<String> = claims
        .iter()
        .map(|&&(category, ms)| match whole(category).filter(|_| all > 0.0).map(duration_ms) {
            Some(row) if row != duration_ms(ms) => {
                partly = true;
                format!("`{}` {} of {row}", category.key(), duration_ms(ms))
            }
            _ => format!("`{}` {}", category.key(), duration_ms(ms)),
        })
        .collect();
    (parts.len() > 1 || partly).then(|| format!("By category: {}.", listed(&parts)))
}

/// Large shares of the step that no finding owns, and why.
pub(super) fn unowned(finding: &Finding) -> impl Iterator<Item = String> {
    let whole = if finding.stepless { "capture" } else { "step" };
    finding.unowned.iter().map(move |rest| {
        format!(
            "No finding owns {} of `{}` ({} of the {whole}): {}.",
            duration_ms(rest.ms),
            rest.category.key(),
            share(rest.fraction),
            rest.reason.words()
        )
    })
}

/// Where to look, as a time in the trace.
pub(super) fn place(finding: &Finding) -> Option<String> {
    let place = finding.place.as_ref()?;
    let (from, to) = (place.span.start.ms(), place.span.end.ms());
    Some(format!("Evidence: {}–{} ms on {}.", decimal(from, 3), decimal(to, 3), quoted(&place.host)))
}

/// How to verify that the fix helped.
pub(super) fn verify(finding: &Finding) -> Option<String> {
    match finding.gain_ms {
        Some(gain) if gain > 0.0 => Some(format!(
            "To verify: record again, then run `stepscope compare BEFORE AFTER`. Expect {} to drop by up to {} per step.",
            what_falls(finding, gain),
            duration_ms(gain)
        )),
        _ if finding.is_about_trust() => None,
        _ => finding.cause.verify().map(|how| format!("To verify: {how}.")),
    }
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
    match named.len() {
        0 => "the step".to_owned(),
        1 => listed(&named),
        _ => format!("{} together", listed(&named)),
    }
}

/// See [`Finding::owned`].
pub(super) fn owned(finding: &Finding, fallback_ms: f64) -> String {
    match (finding.about_ms, finding.fraction) {
        (Some(about), Some(fraction)) if about > 0.0 && fraction > 0.0 => {
            format!("{} of {} ({})", duration_ms(about), duration_ms(about / fraction), share(fraction))
        }
        _ => format!("{} per step", duration_ms(fallback_ms)),
    }
}
