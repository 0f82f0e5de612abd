//! A comparison as JSON: schema `stepscope.compare.v1`.

use std::io::{self, Write};

use serde_json::{Value, json};
use stepscope_diagnose::compare::{
    Basis, CategoryDelta, Comparison, Estimate, FindingKey, Measured, Next, OpDelta, PartCost, PartDelta,
    ScopeDelta, SideFigures, Unit, Verdict, WorkDelta,
};

use super::headline::headline;
use super::words;

/// Writes the comparison.
pub fn write_json(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &compare_json(comparison))?;
    writeln!(out)
}

/// The comparison as a value. `ratio` is NEW over BASE for the figure that decided (`decided_by`): `median` is
/// the estimate, `low` and `high` are its interval.
pub fn compare_json(comparison: &Comparison) -> Value {
    let deciding = comparison.deciding();
    let ratio = deciding.and_then(|figure| figure.ratio);
    let findings = &comparison.findings;
    json!({
        "schema": "stepscope.compare.v1",
        "verdict": comparison.verdict.key(),
        "verdict_by_steps": comparison.by_steps.key(),
        "unit": match comparison.unit {
            Unit::Step => "step",
            Unit::Launch => "launch",
        },
        "summary": headline(comparison),
        "ratio": {
            "median": ratio.map(|ratio| ratio.value),
            "low": ratio.and_then(|ratio| ratio.low),
            "high": ratio.and_then(|ratio| ratio.high),
        },
        "decided_by": decided_by(comparison.decided_by),
        "beyond_load": comparison.beyond.as_ref().map(measured),
        "machine_explains": comparison.machine_explains,
        "mean": comparison.mean.as_ref().map(measured),
        "p90": comparison.p90.as_ref().map(measured),
        "base": side(&comparison.base, comparison.median.map(|it| it.base_ms), comparison.mean.map(|it| it.base_ms)),
        "new": side(&comparison.new, comparison.median.map(|it| it.new_ms), comparison.mean.map(|it| it.new_ms)),
        "delta_ms": deciding.map(|figure| estimate(&figure.delta_ms)),
        "median": comparison.median.as_ref().map(measured),
        "rank_test": comparison.ranks.map(|ranks| json!({
            "u": ranks.u, "p": ranks.p, "cliffs_delta": ranks.delta, "exact": ranks.exact,
        })),
        "noise": {
            "run_to_run": comparison.run_to_run.deviation(),
            "from_runs": deciding.map(|figure| figure.from_runs),
            "from_steps": deciding.and_then(|figure| figure.from_steps),
        },
        "margins": {
            "practical": comparison.margins.practical,
            "same": comparison.margins.same,
            "significance": comparison.margins.confidence.error(),
        },
        "load": comparison.load.map(|load| json!({"factor": load.factor, "spread": load.spread, "ops": load.ops})),
        "needed": comparison.next.map(|next| match next {
            Next::LongerRuns(steps) => json!({"steps": steps, "runs": null}),
            Next::MoreRuns(runs) => json!({"steps": null, "runs": runs}),
            Next::QuieterMachine => json!({"steps": null, "runs": null}),
        }),
        "remarks": words::remarks(comparison),
        "pairs": comparison.pairs,
        "work": comparison.work.iter().map(work).collect::<Vec<_>>(),
        "breakdown": comparison.breakdown.iter().map(category).collect::<Vec<_>>(),
        "scopes": comparison.scopes.iter().map(scope).collect::<Vec<_>>(),
        "ops": comparison.ops.iter().map(op).collect::<Vec<_>>(),
        "programs": comparison.parts.iter().map(part).collect::<Vec<_>>(),
        "findings": {
            "solved": keys(&findings.solved), "new": keys(&findings.new), "left": keys(&findings.left),
        },
        "comparability": {
            "similarity": comparison.comparability.similarity,
            "several_changes": comparison.comparability.several_changes(),
            "differences": comparison.comparability.differences.iter().map(|difference| json!({
                "id": words::difference_id(difference), "blocks": difference.blocks(),
                "message": words::difference(difference),
            })).collect::<Vec<_>>(),
        },
    })
}

fn decided_by(basis: Basis) -> &'static str {
    match basis {
        Basis::Mean => "mean",
        Basis::Median => "median",
        Basis::BeyondLoad => "beyond_load",
        Basis::Pairs => "pairs",
    }
}

fn work(delta: &WorkDelta) -> Value {
    let WorkDelta { work, measured, verdict } = delta;
    json!({
        "metric": work.key(), "base": measured.base_ms, "new": measured.new_ms,
        "ratio": measured.ratio.as_ref().map(estimate),
        "change": match verdict {
            Verdict::Slower => "more",
            Verdict::Faster => "less",
            Verdict::Same => "same",
            Verdict::Unclear | Verdict::NotComparable => "unclear",
        },
    })
}

fn category(delta: &CategoryDelta) -> Value {
    let mut row = measured(&delta.measured);
    row["category"] = delta.category.key().into();
    row["proven"] = delta.proven().into();
    row
}

fn scope(scope: &ScopeDelta) -> Value {
    json!({
        "name": scope.name,
        "base_ms": scope.base_ms,
        "new_ms": scope.new_ms,
        "delta_ms": scope.delta_ms(),
    })
}

fn part(part: &PartDelta) -> Value {
    let cost = |side: &Option<PartCost>, of: fn(&PartCost) -> Option<f64>| side.as_ref().and_then(of);
    let (base_ms, new_ms) = part.ms();
    json!({
        "name": part.name(), "phase": part.phase(), "source": part.source(), "base_ms": base_ms, "new_ms": new_ms,
        "delta_ms": part.delta_ms(), "base_flops": cost(&part.base, |cost| cost.flops),
        "new_flops": cost(&part.new, |cost| cost.flops), "base_bytes": cost(&part.base, |cost| cost.bytes),
        "new_bytes": cost(&part.new, |cost| cost.bytes), "why": words::part_change(part.change()),
    })
}

fn op(op: &OpDelta) -> Value {
    json!({
        "name": op.name, "type": op.op_type, "where": if op.on_device { "device" } else { "host" },
        "matched": words::matched(op.matched), "base_ms": op.base_ms, "new_ms": op.new_ms,
        "delta_ms": op.delta_ms(), "base_count": op.base_count, "new_count": op.new_count,
    })
}

fn side(side: &SideFigures, median_ms: Option<f64>, mean_ms: Option<f64>) -> Value {
    let slow_steps = side.rhythm.map(
        |rhythm| json!({"typical_ms": rhythm.typical_ms, "every": rhythm.every, "extra_ms": rhythm.extra_ms}),
    );
    json!({
        "runs": side.runs, "steps": side.steps, "median_ms": median_ms, "mean_ms": mean_ms, "slow_steps": slow_steps,
    })
}

/// One figure of both sides.
pub(crate) fn measured(measured: &Measured) -> Value {
    json!({
        "base_ms": measured.base_ms, "new_ms": measured.new_ms, "delta_ms": measured.delta_ms.value,
        "delta_low_ms": measured.delta_ms.low, "delta_high_ms": measured.delta_ms.high,
        "ratio": measured.ratio.as_ref().map(estimate),
    })
}

fn estimate(estimate: &Estimate) -> Value {
    json!({"value": estimate.value, "low": estimate.low, "high": estimate.high})
}

fn keys(findings: &[FindingKey]) -> Vec<Value> {
    findings.iter().map(|finding| json!({"id": finding.id, "subject": finding.subject})).collect()
}
