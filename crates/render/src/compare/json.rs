//! A comparison for programs: schema `stepscope.compare.v1`.

use std::io::{self, Write};

use serde_json::{Value, json};
use stepscope_diagnose::compare::{Comparison, Estimate, FindingKey, Measured, SideFigures, Unit};

use super::words;

/// Writes the comparison.
pub fn write_json(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &compare_json(comparison))?;
    writeln!(out)
}

/// The comparison as a value. `ratio` is NEW over BASE: `median` the estimate, `low` and `high` its interval.
pub fn compare_json(comparison: &Comparison) -> Value {
    let ratio = comparison.median.and_then(|median| median.ratio);
    let findings = &comparison.findings;
    json!({
        "schema": "stepscope.compare.v1",
        "verdict": comparison.verdict.key(),
        "verdict_by_steps": comparison.by_steps.key(),
        "unit": match comparison.unit {
            Unit::Step => "step",
            Unit::Launch => "launch",
        },
        "summary": words::headline(comparison),
        "ratio": {
            "median": ratio.map(|ratio| ratio.value),
            "low": ratio.and_then(|ratio| ratio.low),
            "high": ratio.and_then(|ratio| ratio.high),
        },
        "base": side(&comparison.base, comparison.median.map(|median| median.base_ms)),
        "new": side(&comparison.new, comparison.median.map(|median| median.new_ms)),
        "delta_ms": comparison.median.map(|median| estimate(&median.delta_ms)),
        "rank_test": comparison.ranks.map(|ranks| json!({
            "u": ranks.u, "p": ranks.p, "cliffs_delta": ranks.delta, "exact": ranks.exact,
        })),
        "noise": {
            "run_to_run": comparison.run_to_run,
            "from_runs": comparison.median.map(|median| median.from_runs),
            "from_steps": comparison.median.and_then(|median| median.from_steps),
        },
        "margins": {
            "practical": comparison.margins.practical,
            "same": comparison.margins.same,
            "significance": comparison.margins.significance,
        },
        "needed": comparison.needed.map(|needed| json!({"steps": needed.steps, "runs": needed.runs})),
        "breakdown": comparison.breakdown.iter().map(|delta| {
            let mut row = measured(&delta.measured);
            row["category"] = delta.category.key().into();
            row["proven"] = delta.proven().into();
            row
        }).collect::<Vec<_>>(),
        "scopes": comparison.scopes.iter().map(|scope| json!({
            "name": scope.name,
            "base_ms": scope.base_ms,
            "new_ms": scope.new_ms,
            "delta_ms": scope.delta_ms(),
        })).collect::<Vec<_>>(),
        "ops": comparison.ops.iter().map(|op| json!({
            "name": op.name, "type": op.op_type, "where": if op.on_device { "device" } else { "host" },
            "matched": words::matched(op.matched), "base_ms": op.base_ms, "new_ms": op.new_ms,
            "delta_ms": op.delta_ms(), "base_count": op.base_count, "new_count": op.new_count,
        })).collect::<Vec<_>>(),
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

fn side(side: &SideFigures, median_ms: Option<f64>) -> Value {
    json!({"runs": side.runs, "steps": side.steps, "median_ms": median_ms})
}

/// One figure on both sides.
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
