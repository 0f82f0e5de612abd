//! Trials of a study of hyperparameters: one row per run with settings, beside the last value of each metric.
//!
//! A program names the metrics of its study, each as a tag in the folder of the trial or in one below it (`validation`). If none
//! does, every curve of the trial and of the folders below it is one.

use std::collections::{BTreeMap, BTreeSet};

use stepscope_trace::series::{Setting, StudyMetric, TrialStatus};

use super::RunCurves;

/// Metrics of a study without any by name: the first ones by tag.
const MOST_METRICS: usize = 200;

/// A trial: a run with settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Its place among the runs given.
    pub place: usize,
    /// The run.
    pub run: String,
    /// How it ended.
    pub status: Option<TrialStatus>,
    /// Its settings, in the order of [`Study::params`].
    pub settings: Vec<Option<Setting>>,
    /// The last finite value of each metric, in the order of [`Study::metrics`].
    pub values: Vec<Option<f64>>,
}

/// All trials, with the names of what they have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Study {
    /// Hyperparameters, by name.
    pub params: Vec<String>,
    /// Metrics, as `tag` or `folder/tag`.
    pub metrics: Vec<String>,
    /// One per run with settings.
    pub trials: Vec<Trial>,
}

impl Study {
    /// Of these runs.
    pub fn of(runs: &[&RunCurves]) -> Self {
        let settings = |run: &'_ &&RunCurves| run.hparams.as_ref().is_some_and(|it| !it.settings.is_empty());
        let trials: Vec<(usize, &RunCurves)> = runs
            .iter()
            .enumerate()
            .filter(|(_, run)| settings(run))
            .map(|(place, run)| (place, *run))
            .collect();
        if trials.is_empty() {
            return Study::default();
        }
        let by_name: BTreeMap<&str, &RunCurves> = runs.iter().map(|run| (run.name.as_str(), *run)).collect();
        let of_trial =
            |run: &'_ RunCurves| run.hparams.as_ref().map_or(&[][..], |it| &it.settings[..]).to_vec();
        let params: BTreeSet<String> =
            trials.iter().flat_map(|(_, run)| of_trial(run).into_iter().map(|(name, _)| name)).collect();
        let metrics = metrics(runs, &trials, &by_name);
        let trial = |(place, run): &(usize, &RunCurves)| {
            let own: BTreeMap<String, Setting> = of_trial(run).into_iter().collect();
            Trial {
                place: *place,
                run: run.name.clone(),
                status: run.hparams.as_ref().and_then(|it| it.status),
                settings: params.iter().map(|name| own.get(name).cloned()).collect(),
                values: metrics.iter().map(|metric| value(run, metric, &by_name)).collect(),
            }
        };
        Study {
            trials: trials.iter().map(trial).collect(),
            metrics: metrics.iter().map(called).collect(),
            params: params.into_iter().collect(),
        }
    }
}

/// A metric's name for people.
fn called(metric: &StudyMetric) -> String {
    if metric.group.is_empty() { metric.tag.clone() } else { format!("{}/{}", metric.group, metric.tag) }
}

/// What runs name; where that is nothing, or nothing that was logged, what they logged.
fn metrics(
    runs: &[&RunCurves],
    trials: &[(usize, &RunCurves)],
    by_name: &BTreeMap<&str, &RunCurves>,
) -> Vec<StudyMetric> {
    let mut named: Vec<StudyMetric> = Vec::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for metric in runs.iter().filter_map(|run| run.hparams.as_ref()).flat_map(|it| &it.metrics) {
        let logged = || trials.iter().any(|(_, run)| value(run, metric, by_name).is_some());
        if seen.insert(called(metric)) && logged() {
            named.push(metric.clone());
        }
    }
    if !named.is_empty() {
        return named;
    }
    let mut logged: BTreeSet<(String, String)> = BTreeSet::new();
    for (_, trial) in trials {
        let own = trial.curves.iter().map(|curve| (String::new(), curve.tag.clone()));
        logged.extend(own);
        let prefix = format!("{}/", trial.name);
        let below = by_name.range(prefix.as_str()..).take_while(|(name, _)| name.starts_with(&prefix));
        for (name, run) in below.filter(|(_, run)| run.hparams.is_none()) {
            let group = name.get(prefix.len()..).unwrap_or_default();
            logged.extend(run.curves.iter().map(|curve| (group.to_owned(), curve.tag.clone())));
        }
        if logged.len() > MOST_METRICS {
            break;
        }
    }
    let metric = |(group, tag)| StudyMetric { group, tag };
    logged.into_iter().take(MOST_METRICS).map(metric).collect()
}

/// The last finite value of a metric of a trial.
fn value(trial: &RunCurves, metric: &StudyMetric, by_name: &BTreeMap<&str, &RunCurves>) -> Option<f64> {
    let run = if metric.group.is_empty() {
        trial
    } else {
        by_name.get(format!("{}/{}", trial.name, metric.group).as_str()).copied()?
    };
    let curve = run.curves.iter().find(|curve| curve.tag == metric.tag)?;
    curve.curve.last_finite.map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use stepscope_trace::series::{Hparams, RunLog, Series};

    use super::*;

    fn run(name: &str, settings: &[(&str, f64)], values: &[(&str, f64)]) -> RunCurves {
        let series = |(tag, value): &(&str, f64)| Series {
            tag: (*tag).to_owned(),
            steps: vec![0, 1],
            wall_s: vec![0.0, 1.0],
            values: vec![*value, f64::NAN],
            ..Series::default()
        };
        let settings: Vec<(String, Setting)> =
            settings.iter().map(|(name, value)| ((*name).to_owned(), Setting::Number(*value))).collect();
        let hparams = (!settings.is_empty()).then(|| Hparams { settings, ..Hparams::default() });
        let series = values.iter().map(series).collect();
        RunCurves::of(&RunLog { name: name.to_owned(), series, hparams, ..RunLog::default() })
    }

    #[test]
    fn trials_have_their_settings_and_what_lies_in_folders_below() {
        let runs = [
            run("a", &[("rate", 0.1)], &[("loss", 2.0)]),
            run("a/validation", &[], &[("loss", 3.0)]),
            run("b", &[("rate", 0.2), ("units", 8.0)], &[("loss", 1.0)]),
            run("other", &[], &[("speed", 1.0)]),
        ];
        let study = Study::of(&runs.iter().collect::<Vec<_>>());
        assert_eq!(
            (study.params, study.metrics),
            (vec!["rate".into(), "units".into()], vec!["loss".to_owned(), "validation/loss".into()])
        );
        let [a, b] = &study.trials[..] else { unreachable!() };
        assert_eq!((a.place, &a.values), (0, &vec![Some(2.0), Some(3.0)]), "the last finite value");
        assert_eq!((b.place, &b.values), (2, &vec![Some(1.0), None]));
        assert_eq!(a.settings, [Some(Setting::Number(0.1)), None]);
    }

    #[test]
    fn the_metrics_that_a_study_names_come_first_unless_nobody_logged_them() {
        let mut root = run(".", &[], &[]);
        let metric = |tag: &str| StudyMetric { group: String::new(), tag: tag.to_owned() };
        root.hparams =
            Some(Hparams { metrics: vec![metric("accuracy"), metric("missing")], ..Hparams::default() });
        let trial = run("t", &[("rate", 0.1)], &[("accuracy", 0.5), ("loss", 2.0)]);
        assert_eq!(Study::of(&[&root, &trial]).metrics, ["accuracy"]);
        root.hparams = Some(Hparams { metrics: vec![metric("missing")], ..Hparams::default() });
        assert_eq!(Study::of(&[&root, &trial]).metrics, ["accuracy", "loss"]);
        assert_eq!(Study::of(&[&root]), Study::default());
    }
}
