//! Instructions of compiled programs in words, and facts for the tests of rules about them.

use stepscope_text::{duration_ms, quoted};

use crate::facts::NamedOp;

/// `ynn_fusion.21`, `mlp/dot_general at model.py:32`: 1.2 ms per step.
pub(in crate::rules) fn named(op: &NamedOp) -> String {
    let origin = if op.origin.is_empty() { String::new() } else { format!(" ({})", quoted(&op.origin)) };
    format!("{}{origin}: {} per step.", quoted(&op.op), duration_ms(op.ms))
}

/// One line per instruction.
pub(in crate::rules) fn lines_of(ops: &[NamedOp]) -> Vec<String> {
    ops.iter().map(named).collect()
}

/// A part as tests of words need it.
#[cfg(test)]
pub(in crate::rules) fn sample() -> crate::facts::ProgramPart {
    crate::facts::ProgramPart {
        share: 0.4,
        ms: 12.0,
        winnable: 0.5,
        count: 5,
        largest: vec![NamedOp {
            op: "fusion.21".to_owned(),
            origin: "mlp/dot_general at model.py:32".to_owned(),
            ms: 4.0,
            saved_ms: 2.0,
        }],
    }
}

/// Facts about a step of 100 ms that only computes, with instructions that take these shares of it.
#[cfg(test)]
pub(in crate::rules) mod testing {
    use stepscope_analyze::Category;
    use stepscope_analyze::window::Window;
    use stepscope_analyze::work::programs::{Matched, OpFacts, OpTotals, ProgramKey, ProgramOp, Programs};
    use stepscope_trace::Dur;

    use crate::facts::Facts;

    /// An instruction with this share of the time, executed once per step.
    pub fn op(name: &str, share: f64, facts: OpFacts) -> ProgramOp {
        let own = Dur::from_us((share * STEPS as f64 * 100_000.0).round() as i64);
        ProgramOp {
            program: ProgramKey { name: "jit_step".to_owned(), id: Some(1) },
            op: name.to_owned(),
            facts: OpFacts { known: true, ..facts },
            totals: OpTotals {
                executions: STEPS,
                events: STEPS,
                total: own,
                own,
                background: Dur::ZERO,
                matched: Matched::Recorded,
            },
        }
    }

    /// What is left of the time goes to one product of matrices of unknown cost.
    pub fn facts(mut programs: Programs) -> Facts {
        facts_of(&[(Category::Compute, 100)], {
            let used: f64 = programs.ops.iter().map(|op| op.totals.own.ms()).sum();
            let left = 1.0 - used / (STEPS as f64 * 100.0);
            if left > 0.0 {
                programs.ops.push(op("dot.0", left, OpFacts::default()));
            }
            programs.window = Window::Steps(STEPS as usize);
            programs
        })
    }

    /// Facts about ten equal steps.
    pub(crate) fn facts_of(owned: &[(Category, u16)], programs: Programs) -> Facts {
        let mut facts = crate::engine::sketched(owned);
        facts.session.results.programs = programs;
        facts
    }

    const STEPS: u64 = 10;
}
