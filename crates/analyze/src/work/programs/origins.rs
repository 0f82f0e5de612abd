//! Where an op of another table comes from: views of ops and kernels know the instruction's name only.

use rustc_hash::FxHashMap;

use super::{ProgramOp, Programs};

/// What an instruction is to the user.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Origin<'p> {
    /// Scopes of the model and operation of the framework; empty if unknown.
    pub label: &'p str,
    /// Scopes of the model; empty if unknown.
    pub scope: &'p str,
    /// File and line; empty if unknown.
    pub source: &'p str,
}

impl Origin<'_> {
    /// `mlp/dot_general at model.py:32`.
    pub fn words(&self) -> String {
        match (self.label, self.source) {
            (label, "") => label.to_owned(),
            ("", source) => source.to_owned(),
            (label, source) => format!("{label} at {source}"),
        }
    }
}

/// Instructions of several programs may share a name. One of them stands for all if it has this share of their time.
const MOST_OF: f64 = 0.8;

/// The origins of instructions by name.
#[derive(Clone, Debug, Default)]
pub struct Origins<'p> {
    by_name: FxHashMap<&'p str, (&'p ProgramOp, f64, f64)>,
}

impl<'p> Origins<'p> {
    /// Of everything that ran.
    pub fn of(programs: &'p Programs) -> Self {
        let mut by_name: FxHashMap<&'p str, (&'p ProgramOp, f64, f64)> = FxHashMap::default();
        // The longest comes first.
        for op in programs.ops.iter().filter(|op| op.facts.known) {
            let time = op.totals.own.ms();
            let (first, same, all) = by_name.entry(op.op.as_str()).or_insert((op, 0.0, 0.0));
            *all += time;
            if (&first.facts.label, &first.facts.source) == (&op.facts.label, &op.facts.source) {
                *same += time;
            }
        }
        Origins { by_name }
    }

    /// Where the instruction of this name comes from; `None` if nothing says so, or if several programs disagree.
    pub fn find(&self, op: &str) -> Option<Origin<'p>> {
        let name = op.rsplit("::").next().unwrap_or(op);
        let (first, same, all) = self.by_name.get(name)?;
        let facts = &first.facts;
        let says = !(facts.label.is_empty() && facts.source.is_empty());
        let origin = Origin { label: &facts.label, scope: &facts.scope, source: &facts.source };
        (says && *same >= MOST_OF * *all).then_some(origin)
    }
}

#[cfg(test)]
mod tests {
    use stepscope_trace::Dur;

    use super::super::{OpFacts, OpTotals, ProgramKey};
    use super::*;

    fn op(program: &str, label: &str, us: i64) -> ProgramOp {
        ProgramOp {
            program: ProgramKey { name: program.to_owned(), id: None },
            op: "fusion.1".to_owned(),
            facts: OpFacts { label: label.to_owned(), known: true, ..OpFacts::default() },
            totals: OpTotals { own: Dur::from_us(us), ..OpTotals::default() },
        }
    }

    #[test]
    fn a_name_that_two_programs_share_stands_for_the_longer_one_only_if_it_is_much_longer() {
        let programs = |other| Programs {
            ops: vec![op("a", "mlp", 800), op("b", "head", other)],
            ..Programs::default()
        };
        let (clear, open) = (programs(200), programs(201));
        assert_eq!(Origins::of(&clear).find("fusion.1").map(|origin| origin.words()), Some("mlp".to_owned()));
        assert_eq!(Origins::of(&open).find("fusion.1"), None);
        assert_eq!(Origins::of(&clear).find("fusion.2"), None);
    }
}
