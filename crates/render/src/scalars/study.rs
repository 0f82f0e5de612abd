//! Trials of a study of hyperparameters: a row per trial, as text and as members of the document.

use serde_json::{Value, json};
use stepscope_analyze::curves::RunCurves;
use stepscope_analyze::curves::study::{Study, Trial};
use stepscope_results::table::{Table, columns};
use stepscope_trace::series::{Setting, TrialStatus};

use crate::format::{plural, printable, short};

/// How a trial ended.
fn status(status: TrialStatus) -> &'static str {
    match status {
        TrialStatus::Success => "success",
        TrialStatus::Failure => "failure",
        TrialStatus::Running => "running",
    }
}

/// A setting as JSON has it.
fn value(setting: &Setting) -> Value {
    match setting {
        Setting::Number(number) => json!(number),
        Setting::Text(text) => json!(text),
        Setting::Flag(flag) => json!(flag),
    }
}

fn text(setting: &Setting) -> String {
    match setting {
        // As it was set: 8 and 0.001.
        Setting::Number(number) => number.to_string(),
        Setting::Text(text) => printable(text),
        Setting::Flag(flag) => flag.to_string(),
    }
}

/// The trials of these runs.
pub fn study(runs: &[RunCurves]) -> Study {
    Study::of(&runs.iter().collect::<Vec<_>>())
}

/// All trials: names of settings and metrics once, values by their places.
pub fn study_json(study: &Study) -> Value {
    let trial = |trial: &Trial| {
        json!({
            "run": trial.run, "status": trial.status.map(status),
            "settings": trial.settings.iter().map(|it| it.as_ref().map(value)).collect::<Vec<_>>(),
            "metrics": trial.values,
        })
    };
    json!({
        "settings": study.params, "metrics": study.metrics,
        "trials": study.trials.iter().map(trial).collect::<Vec<_>>(),
    })
}

/// A row per trial, with the settings that differ; `None` without trials.
pub fn study_table(study: &Study) -> Option<Table> {
    let first = study.trials.first()?;
    let differs = |place: usize| {
        study.trials.iter().any(|trial| trial.settings.get(place) != first.settings.get(place))
    };
    let differing: Vec<bool> = (0..study.params.len()).map(differs).collect();
    let pairs = |trial: &Trial, wanted: bool| {
        let all = study.params.iter().zip(&trial.settings).zip(&differing);
        let said = all.filter(|(_, differs)| **differs == wanted).filter_map(|((name, setting), _)| {
            Some(format!("{} {}", printable(name), text(setting.as_ref()?)))
        });
        said.collect::<Vec<_>>().join(", ")
    };
    let values = |trial: &Trial| {
        let all = study.metrics.iter().zip(&trial.values);
        let said = all.filter_map(|(name, value)| Some(format!("{} {}", printable(name), short((*value)?))));
        said.collect::<Vec<_>>().join(", ")
    };
    let lines: Vec<(&Trial, String, String)> =
        study.trials.iter().map(|trial| (trial, pairs(trial, true), values(trial))).collect();
    type Line<'a> = (&'a Trial, String, String);
    let fields = columns! { line: Line<'_>;
        run: Name "trial" => line.0.run.as_str();
        settings: Text "hyperparameters" => line.1.as_str();
        metrics: Text "last values" => line.2.as_str();
        status.optional: Text "status" => line.0.status.map(status);
    };
    let mut table = Table::of("scalars", &fields, &lines);
    table.headline = Some(plural(study.trials.len() as u64, "trial", "trials"));
    let common = pairs(first, false);
    if !common.is_empty() && study.trials.len() > 1 {
        table.note(format!("The same in all trials: {common}."));
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Study {
        let trial = |run: &str, rate: f64, loss: Option<f64>| Trial {
            place: 0,
            run: run.to_owned(),
            status: Some(TrialStatus::Success),
            settings: vec![Some(Setting::Text("sgd".to_owned())), Some(Setting::Number(rate)), None],
            values: vec![loss],
        };
        Study {
            params: ["kind", "rate", "units"].map(str::to_owned).to_vec(),
            metrics: vec!["loss".to_owned()],
            trials: vec![trial("a", 0.1, Some(0.5)), trial("b", 0.01, None)],
        }
    }

    #[test]
    fn rows_show_what_differs_and_the_rest_once() {
        let table = study_table(&two()).unwrap();
        assert_eq!(table.notes(), ["The same in all trials: kind sgd."]);
        assert_eq!(table.rows().len(), 2);
        assert!(format!("{:?}", table.rows()[0]).contains("rate 0.1"), "{:?}", table.rows());
        assert!(study_table(&Study::default()).is_none());
    }

    #[test]
    fn unknown_is_null() {
        let json = study_json(&two());
        assert_eq!(json["trials"][1]["metrics"], json!([null]));
        assert_eq!(json["trials"][0]["settings"], json!(["sgd", 0.1, null]));
    }
}
