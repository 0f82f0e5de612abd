//! Ranks that hold up the others in turn: each is slow in some steps, and all pay for all of them.

use stepscope_analyze::Category;
use stepscope_text::{duration_ms, plural};

use super::{GAIN, RULE};
use crate::facts::{Facts, Held, InTurn, OneSide};
use crate::finding::{Cause, Finding, Words};
use crate::rules::shared::{of_step, severity};
use crate::rules::straggler::missing;
use crate::words::{self, lines};

/// The finding, if ranks take turns.
pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let held = facts.get::<Held>();
    let Held::InTurn(turns) = &*held else { return None };
    let own = facts.summary.bound().and_then(|host| facts.collectives.waiting.as_ref()?.of_host(&host.host));
    // Of what it costs, the host that is looked at pays one part while it waits, and another while others wait for it.
    let waits = own.unwrap_or(0.0).min(turns.late_ms);
    let mut claims = vec![(Category::Communication, waits)];
    claims.extend(turns.most.map(|(category, _)| (category, turns.late_ms - waits)));
    claims.retain(|(_, ms)| *ms > 0.0);
    let share = of_step(facts, turns.late_ms);
    let cause = Turns { turns: turns.clone(), missing: OneSide::missing(facts) };
    let finding = Finding::new(&RULE, severity(share), cause, facts.framework());
    Some(finding.owning(claims, Some(GAIN)).sure(0.8))
}

/// Ranks that are slow in turn.
#[derive(Clone, Debug)]
pub struct Turns {
    /// How many, how often, and what they do.
    pub turns: InTurn,
    /// Ranks that were not recorded.
    pub missing: Option<OneSide>,
}

impl Cause for Turns {
    fn words(&self, _: &Finding) -> Words {
        let turns = &self.turns;
        let what = turns.most.map_or(String::new(), |(category, _)| {
            format!(", each time in `{}` ({})", category.key(), words::category(category))
        });
        let mut evidence = vec![format!(
            "In {} of {}, one of {} arrives late at the collectives, and it is not always the same one.",
            turns.steps,
            plural(turns.of_steps as u64, "step", "steps"),
            plural(turns.of as u64, "compared rank", "compared ranks")
        )];
        if let Some((category, ms)) = turns.most {
            evidence.push(format!(
                "In these steps, the late rank spends {} more in `{}` than in its other steps.",
                duration_ms(ms),
                category.key()
            ));
        }
        evidence.extend(self.missing.map(missing));
        Words {
            summary: format!(
                "Step variance: ranks take turns at being slow{what}; all wait for the one that is, {} per step.",
                duration_ms(turns.late_ms)
            ),
            evidence,
            advice: lines([
                "Let all ranks do it in the same step, or outside of the steps: what each does now and then costs all of \
                 them each time.",
                "Usual causes: logging, checkpoints and garbage collection at different times, batches of varying length, \
                 other jobs on the machines.",
                "See who is late in which step: `stepscope ranks PATH`.",
            ]),
        }
    }

    fn leads(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        let turns = InTurn {
            ranks: 2,
            of: 3,
            steps: 7,
            of_steps: 10,
            late_ms: 300.0,
            most: Some((Category::Python, 1_000.0)),
        };
        speaks(&RULE, Turns { turns: turns.clone(), missing: None });
        let missing = Some(OneSide { recorded: 2, of: Some(3) });
        speaks(&RULE, Turns { turns: InTurn { most: None, ..turns }, missing });
    }
}
