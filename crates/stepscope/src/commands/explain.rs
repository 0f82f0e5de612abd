//! `stepscope explain`: what a finding means, how it is detected, how to fix it and how to check the fix.

use std::io::Write;

use clap::Args;
use stepscope_diagnose::Rule;
use stepscope_diagnose::rules::{RULES, find};
use stepscope_render::explain;
use stepscope_session::{Cause, Problem};

use crate::exit::Exit;

use crate::failure::Failure;
use crate::near::near;
use crate::output::Terminal;

/// Explain a finding: what it means, how it is detected, how to fix it and how to check the fix.
///
/// Without ID, list all findings with one line each.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope explain               all findings, one line each\n  \
    stepscope explain input-bound   one finding\n  \
    stepscope explain --json        all of them, for programs")]
pub(crate) struct ExplainArgs {
    /// A finding's id, as in the report.
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Write JSON (schema stepscope.explain.v1).
    #[arg(long)]
    json: bool,
}

impl ExplainArgs {
    pub(crate) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        let one = self.id.as_deref().map(known).transpose()?;
        let mut out = terminal.stdout_as(self.json);
        match one {
            _ if self.json => {
                let rules = one.map_or_else(explain::in_order, |rule| vec![rule]);
                explain::write_json(&rules, &mut out)?;
            }
            Some(rule) => explain::write_text(rule, terminal.out, &mut out)?,
            None => explain::write_list(terminal.out, &mut out)?,
        }
        out.flush()?;
        Ok(Exit::Done)
    }
}

fn known(id: &str) -> Result<&'static Rule, Problem> {
    find(id).ok_or_else(|| {
        let near = near(id, RULES.iter().map(|rule| rule.id));
        let found = match &near[..] {
            [] => "no id is similar".to_owned(),
            near => format!("similar: {}", near.join(", ")),
        };
        Problem::new(Cause::Usage, format!("there is no finding `{id}`"))
            .then(found)
            .then("run `stepscope explain` for all ids")
    })
}
