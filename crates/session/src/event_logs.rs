//! The run that a profile belongs to: event files that lie beside it, and the profile's place on their curves.
//!
//! The motivating situation: Keras writes `train/plugins/profile/…` into the folder of the run `train`. A profile of twenty
//! steps was recorded while the machine was busy with something else; only the run's curve can say so.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use stepscope_analyze::curves::RunCurves;
use stepscope_analyze::curves::place::Placed;
use stepscope_analyze::curves::tags::{is_evaluation, is_loss};
use stepscope_analyze::curves::thin::{ChartWindow, Over, thinned};
use stepscope_diagnose::{Finding, diagnose_run};
use stepscope_read::discover::is_within;
use stepscope_read::files;
use stepscope_read::tfevents::{RunReader, is_event_file};
use stepscope_results::report::LoggedRun;
use stepscope_trace::series::{RunLog, Series};

/// Charts in a report, and their width in pixels.
const CHARTS: usize = 6;
const CHART_PIXELS: usize = 120;

/// The run beside a profile file, and what is wrong with it; `None` if no event files lie there. The window is that of
/// the profile in seconds since 1970, if it has a time of day. Only files below the roots are read, if there are any.
pub(crate) fn logged_run(
    file: &Path,
    window: Option<(f64, f64)>,
    roots: &[PathBuf],
) -> Option<(LoggedRun, Vec<Finding>)> {
    let logs = event_logs_of(file, roots);
    let mut runs: Vec<RunCurves> = logs.iter().map(RunCurves::of).collect();
    RunCurves::explain(&mut runs);
    let place = |run: &RunCurves| {
        let (from, until) = window?;
        Placed::of(&run.name, run.pace.as_ref()?, from, until)
    };
    let training = runs.iter().filter(|run| !is_evaluation(&run.name));
    let stretches = |run: &RunCurves| run.pace.as_ref().map_or(0, |pace| pace.stretches);
    // The run that was under way, and of several that which says most.
    let run = training.max_by_key(|run| (place(run).is_some(), stretches(run)))?;
    let beside = LoggedRun {
        name: run.name.clone(),
        has_pace: run.pace.is_some(),
        has_clock: window.is_some(),
        placed: place(run),
        curves: logs.iter().find(|log| log.name == run.name).map(shown).unwrap_or_default(),
    };
    Some((beside, diagnose_run(run).findings))
}

/// The values that say most about a run: losses first, then those with the most points.
fn shown(log: &RunLog) -> Vec<Series> {
    let mut series: Vec<&Series> = log.series.iter().filter(|series| series.values.len() > 1).collect();
    series.sort_by_key(|series| (!is_loss(&series.tag), Reverse(series.values.len()), series.tag.as_str()));
    let window = ChartWindow { over: Over::Step, range: None, pixels: CHART_PIXELS };
    series.into_iter().take(CHARTS).map(|series| thinned(series, window)).collect()
}

/// Folders in which the run of a profile may lie: that of the profile, or that which holds `plugins/profile`; where that
/// has no event files, those in it; and evaluations beside it.
fn folders(file: &Path) -> Vec<PathBuf> {
    let Some(parent) = file.parent() else { return Vec::new() };
    let above = parent.ancestors().find(|folder| folder.ends_with("plugins/profile"));
    let Some(base) = above.and_then(|plugins| plugins.parent()?.parent()) else {
        return vec![parent.to_owned()];
    };
    if event_files(base).is_empty() {
        return children(base);
    }
    let beside = base.parent().map(children).unwrap_or_default();
    let evaluations = beside.into_iter().filter(|folder| is_evaluation(&name_of(folder)));
    std::iter::once(base.to_owned()).chain(evaluations).collect()
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = files::entries(folder).unwrap_or_default().into_iter();
    let mut folders: Vec<PathBuf> = entries.filter(|path| files::is_folder(path)).collect();
    folders.sort();
    folders
}

fn event_files(folder: &Path) -> Vec<PathBuf> {
    let entries = files::entries(folder).unwrap_or_default().into_iter();
    let events = entries.filter(|path| is_event_file(&name_of(path)));
    let mut files: Vec<PathBuf> = events.filter(|path| files::is_file(path)).collect();
    files.sort();
    files
}

fn name_of(folder: &Path) -> String {
    folder.file_name().map_or_else(|| ".".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Everything that was logged beside a profile file. Only files below the roots are read, if there are any.
pub fn event_logs_of(file: &Path, roots: &[PathBuf]) -> Vec<RunLog> {
    folders(file).iter().filter_map(|folder| read(folder, roots)).collect()
}

/// Files that cannot be read leave the profile's report as it is.
fn read(folder: &Path, roots: &[PathBuf]) -> Option<RunLog> {
    let mut files = event_files(folder);
    files.retain(|file| is_within(file, roots));
    if files.is_empty() {
        return None;
    }
    let mut reader = RunReader::new(name_of(folder), files);
    reader.read().ok()?;
    Some(reader.into_log())
}

#[cfg(test)]
mod tests {
    use stepscope_testkit::tfevents::{record, scalar};

    use super::*;

    fn write(folder: &Path, seconds: impl Fn(u8) -> f64) {
        std::fs::create_dir_all(folder).unwrap();
        let mut at = 1_800_000_000.0;
        let mut bytes = Vec::new();
        for step in 0..100 {
            at += seconds(step);
            bytes.extend(record(&scalar(at, step, "loss", 1.0)));
        }
        std::fs::write(folder.join("events.out.tfevents.1.vm"), bytes).unwrap();
    }

    #[test]
    fn a_profile_below_a_run_is_placed_on_its_curve() {
        let folder = tempfile::tempdir().unwrap();
        let (train, validation) = (folder.path().join("train"), folder.path().join("validation"));
        write(&train, |step| if step > 80 { 2.0 } else { 1.0 });
        write(&validation, |_| 1.0);
        let profile = train.join("plugins/profile/2030_01_01/vm.xplane.pb");
        let at = |from: f64| Some((1_800_000_000.0 + from, 1_800_000_000.0 + from + 0.5));
        let (beside, _) = logged_run(&profile, at(40.3), &[]).unwrap();
        let placed = beside.placed.unwrap();
        assert_eq!(
            (beside.name.as_str(), placed.from_step, placed.step, placed.last_step),
            ("train", 39, 40, 99)
        );
        let (beside, _) = logged_run(&profile, None, &[]).unwrap();
        assert!(beside.placed.is_none() && !beside.has_clock && beside.has_pace);
        // A profile in the log directory itself, as from tf.profiler.experimental.
        let above = folder.path().join("plugins/profile/x/vm.xplane.pb");
        assert_eq!(logged_run(&above, at(40.3), &[]).unwrap().0.name, "train");
        assert!(logged_run(Path::new("/nowhere/x.json"), None, &[]).is_none());
        let elsewhere = [validation.canonicalize().unwrap()];
        assert!(logged_run(&profile, None, &elsewhere).is_none(), "the run lies outside the roots");
    }
}
