//! `stepscope fleet gate`: a nightly check that can fail.

use std::io::Write;

use clap::Args;
use serde_json::json;
use stepscope_fleet::gate::{Limits, gate};
use stepscope_render::format::printable;

use super::options::FleetSource;
use crate::commands::compare::percent;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Terminal;

/// Check all jobs every night: exit code 1 if one became slower, or if too much is lost or missing.
///
/// A job became slower if its recordings show a change that is larger than what recordings vary by, as in the table of
/// changes of `fleet report`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope fleet gate logs/ --since 14d                       no job more than 5 % slower than before\n  \
    stepscope fleet gate store/fleet.part --max-lost 30% --json  for a dashboard")]
pub(super) struct GateArgs {
    #[command(flatten)]
    source: FleetSource,
    /// How much slower a job may become.
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "5%")]
    max_regression: f64,
    /// How much of all device time may be lost.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    max_lost: Option<f64>,
    /// How much of the hosts must be readable.
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "95%")]
    min_covered: f64,
    /// Write JSON (schema stepscope.fleet-gate.v1).
    #[arg(long)]
    json: bool,
}

impl GateArgs {
    pub(super) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        let (report, _) = self.source.report(terminal)?;
        let limits = Limits {
            max_regression: self.max_regression,
            max_lost: self.max_lost,
            min_covered: self.min_covered,
        };
        let checks = gate(&report, &limits);
        let passed = checks.iter().all(|check| check.passed);
        let mut out = terminal.stdout_as(self.json);
        if self.json {
            let document = json!({ "schema": "stepscope.fleet-gate.v1", "passed": passed, "checks": checks });
            serde_json::to_writer_pretty(&mut out, &document).map_err(std::io::Error::other)?;
            writeln!(out)?;
        } else {
            writeln!(
                out,
                "{}",
                terminal.out.bold(if passed { "The fleet passes." } else { "The fleet fails." })
            )?;
            for check in &checks {
                let mark = if check.passed { terminal.out.green("pass") } else { terminal.out.red("FAIL") };
                writeln!(out, "  {mark}  {:<10}  {}", check.check, printable(&check.message))?;
            }
        }
        out.flush()?;
        Ok(if passed { Exit::Done } else { Exit::GateFailed })
    }
}
