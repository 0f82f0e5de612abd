//! What compiled programs do with the step's compute, in the shape that rules need.
//!
//! Times of programs are sums over threads, devices and hosts. A rule asks which share of the compute some instructions take;
//! what that is of the step follows from what compute owns of it.

use std::collections::BTreeMap;

use stepscope_analyze::Category;
use stepscope_analyze::session::Session;
use stepscope_analyze::work::ops::OpRow;
use stepscope_analyze::work::programs::ProgramOp;

use super::{Evidence, Facts};

/// Time in everything that computes, whether compiled or not.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct ProgramTime {
    /// Milliseconds in ops that compute, over all steps, threads and devices.
    pub all_ms: f64,
    /// Those in instructions of programs whose text the profile holds.
    pub compiled_ms: f64,
}

impl Evidence for ProgramTime {
    fn of(session: &Session) -> Self {
        let own = |op: &ProgramOp| op.totals.own.ms();
        let programs = &session.programs;
        let everything: f64 = programs.ops.iter().map(own).sum();
        let computing: f64 = programs.ops.iter().filter(|op| computes(op)).map(own).sum();
        let known: f64 = programs.ops.iter().filter(|op| computes(op) && op.facts.known).map(own).sum();
        let recorded: f64 = session.ops.model().map(|op: &OpRow| op.self_ms).sum();
        // Ops outside of programs compute, too.
        ProgramTime { all_ms: computing + (recorded - everything).max(0.0), compiled_ms: known }
    }
}

/// Whether an instruction counts as compute: what exchanges data with other devices or the host has categories of its own.
pub fn computes(op: &ProgramOp) -> bool {
    op.facts.exchange.is_none() && !op.facts.host_memory()
}

/// Instructions that have something in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramPart {
    /// Their share of all compute.
    pub share: f64,
    /// Milliseconds of the mean step in them.
    pub ms: f64,
    /// The part of that which a fix saves at most, 0 to 1.
    pub winnable: f64,
    /// How many instructions.
    pub count: usize,
    /// Those that a fix saves most of, at most three.
    pub largest: Vec<NamedOp>,
}

/// An instruction as findings name it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedOp {
    /// Its own name.
    pub op: String,
    /// Scopes of the model and operation of the framework, and the line of source; empty if unknown.
    pub origin: String,
    /// Milliseconds of the mean step.
    pub ms: f64,
    /// The part of that which a fix saves at most, in milliseconds.
    pub saved_ms: f64,
}

/// Instructions that are named.
const NAMED: usize = 3;

impl Facts {
    /// Instructions that compute and of which a fix saves something: `saved` says how many milliseconds of all its time, or
    /// `None` if it does not belong to them. `None` if there are none, or nothing is known about compute.
    pub(crate) fn program_part(&self, saved: impl Fn(&ProgramOp) -> Option<f64>) -> Option<ProgramPart> {
        let all = self.get::<ProgramTime>().all_ms;
        let compute = self.ms(Category::Compute);
        if all <= 0.0 || compute <= 0.0 {
            return None;
        }
        let per_step = |ms: f64| compute * ms / all;
        let mut found: Vec<(f64, f64, &ProgramOp)> = Vec::new();
        for op in self.programs.ops.iter().filter(|op| computes(op)) {
            let own = op.totals.own.ms();
            if let Some(saved) = saved(op).filter(|_| own > 0.0) {
                found.push((saved.clamp(0.0, own), own, op));
            }
        }
        let own: f64 = found.iter().map(|(_, own, _)| own).sum();
        let saved: f64 = found.iter().map(|(saved, ..)| saved).sum();
        if own <= 0.0 {
            return None;
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| b.1.total_cmp(&a.1)));
        let named = |&(saved, own, op): &(f64, f64, &ProgramOp)| NamedOp {
            op: op.op.clone(),
            origin: origin(op),
            ms: per_step(own),
            saved_ms: per_step(saved),
        };
        Some(ProgramPart {
            share: own / all,
            ms: per_step(own),
            winnable: saved / own,
            count: found.len(),
            largest: found.iter().take(NAMED).map(named).collect(),
        })
    }
}

/// A line of the user's source and what its instructions take.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceLine {
    /// File and line.
    pub place: String,
    /// The scope or operation that takes most of it; empty if unknown.
    pub label: String,
    /// Its share of all compute.
    pub share: f64,
    /// Milliseconds of the mean step.
    pub ms: f64,
}

/// Lines that are named, and the least share of one.
const LINES: usize = 3;
const LEAST_LINE: f64 = 0.05;
/// Programs must explain this share of the compute before their lines speak for it.
const EXPLAINED: f64 = 0.5;

impl Facts {
    /// The lines of source that compiled programs spend most of the compute in, the longest first. Empty if programs do not
    /// explain it.
    pub(crate) fn source_lines(&self) -> Vec<SourceLine> {
        let time = self.get::<ProgramTime>();
        if time.all_ms <= 0.0 || time.compiled_ms < EXPLAINED * time.all_ms {
            return Vec::new();
        }
        let mut lines: BTreeMap<&str, (f64, BTreeMap<&str, f64>)> = BTreeMap::new();
        for op in self.programs.ops.iter().filter(|op| computes(op) && !op.facts.source.is_empty()) {
            let own = op.totals.own.ms();
            let (all, labels) = lines.entry(&op.facts.source).or_default();
            *all += own;
            let label = if op.facts.scope.is_empty() { &op.facts.label } else { &op.facts.scope };
            *labels.entry(label).or_default() += own;
        }
        let compute = self.ms(Category::Compute);
        let line = |(place, (own, labels)): (&str, (f64, BTreeMap<&str, f64>))| {
            let label = labels.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("", |(label, _)| label);
            SourceLine {
                place: place.to_owned(),
                label: label.to_owned(),
                share: own / time.all_ms,
                ms: compute * own / time.all_ms,
            }
        };
        let mut found: Vec<SourceLine> = lines.into_iter().map(line).collect();
        found.retain(|line| line.share >= LEAST_LINE);
        found.sort_by(|a, b| b.share.total_cmp(&a.share));
        found.truncate(LINES);
        found
    }
}

/// `mlp/dot_general at model.py:32`; empty if nothing but the name is known.
fn origin(op: &ProgramOp) -> String {
    let title = op.title();
    if title == op.op { String::new() } else { title }
}
