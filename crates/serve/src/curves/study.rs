//! Hyperparameters of all runs, with the last value of each metric.

use std::sync::Arc;

use serde_json::{Value, json};
use stepscope_analyze::curves::RunCurves;
use stepscope_analyze::curves::study::Study;
use stepscope_diagnose::RunVerdict;
use stepscope_render::scalars::study_json;

use super::{Curves, read};

/// Trials of one answer.
const MOST_TRIALS: usize = 5_000;

/// All trials, each with the number of its run.
pub(crate) fn study(curves: &Curves) -> Value {
    let looked: Vec<(usize, Arc<(RunCurves, RunVerdict)>)> = curves
        .all()
        .iter()
        .enumerate()
        .filter_map(|(id, run)| {
            let run = read(run);
            (!run.gone).then(|| (id, run.looked()))
        })
        .collect();
    let runs: Vec<&RunCurves> = looked.iter().map(|(_, looked)| &looked.0).collect();
    let mut study = Study::of(&runs);
    let more = study.trials.len().saturating_sub(MOST_TRIALS);
    study.trials.truncate(MOST_TRIALS);
    let mut answer = study_json(&study);
    for (place, trial) in study.trials.iter().enumerate() {
        answer["trials"][place]["run_id"] = json!(looked.get(trial.place).map(|(id, _)| id));
    }
    answer["more"] = json!(more);
    answer
}
