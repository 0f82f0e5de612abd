//! Finds all available recordings with a known truth, runs the binary on them, and judges the reports.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::entry::{Entry, Label};
use super::judge::{self, Judgement};
use super::report::{self, Report};
use super::tally::Source;

/// Names the folder of further public recordings, as `owner+name/path in the repository`.
pub(crate) const STRANGERS: &str = "STEPSCOPE_STRANGERS";

/// A recording and its truth.
struct Case {
    name: String,
    file: PathBuf,
    truth: Truth,
}

enum Truth {
    Entry(Entry),
    Label(Label),
}

/// The corpus: named by `STEPSCOPE_CORPUS`, or `shared/corpus` beside the repository; `None` if it does not
/// exist.
pub(crate) fn corpus() -> Option<PathBuf> {
    let named = std::env::var_os("STEPSCOPE_CORPUS").map(PathBuf::from);
    Some(named.unwrap_or_else(|| PathBuf::from("../shared/corpus"))).filter(|folder| folder.is_dir())
}

/// Judges the binary on all sources of the corpus; `only` selects cases by name.
pub(crate) fn judge(
    corpus: &Path,
    binary: &Path,
    only: &dyn Fn(&str) -> bool,
) -> Result<Vec<Source>, String> {
    let strangers = corpus.join("strangers");
    let mut sources = vec![("strangers", entries(&strangers.join("truth.json"), &strangers)?)];
    match std::env::var_os(STRANGERS).map(PathBuf::from) {
        Some(folder) => {
            let mut more = entries(&strangers.join("more.json"), &folder)?;
            more.extend(entries(&strangers.join("more-3.json"), &folder)?);
            sources.push(("more strangers", more));
        }
        None => println!("    {STRANGERS} is not set: further public recordings are skipped"),
    }
    let mut labelled = labels(&corpus.join("labelled"))?;
    labelled.extend(labels(&corpus.join("labelled-more"))?);
    labelled.extend(labels(&corpus.join("labelled-3"))?);
    sources.push(("labelled", labelled));
    let judged = sources.into_iter().map(|(name, cases)| {
        let cases = cases.into_iter().filter(|case| only(&case.name)).collect::<Vec<_>>();
        source(name, &cases, binary)
    });
    Ok(judged.filter(|source| source.cases > 0).collect())
}

/// All entries of a file whose recordings exist.
fn entries(file: &Path, folder: &Path) -> Result<Vec<Case>, String> {
    let Ok(text) = fs::read_to_string(file) else { return Ok(Vec::new()) };
    let entries: Vec<Entry> =
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    let all = entries.len();
    let case = |entry: Entry| {
        let path = match &entry.repository {
            Some(repository) => format!("{}/{}", repository.replace('/', "+"), entry.path),
            None => entry.path.clone(),
        };
        Case { file: folder.join(&path), name: path, truth: Truth::Entry(entry) }
    };
    let cases: Vec<Case> = entries.into_iter().map(case).filter(|case| case.file.exists()).collect();
    if cases.len() < all {
        println!("    {} of {all} recordings of {} are available", cases.len(), file.display());
    }
    Ok(cases)
}

/// All labelled runs in a folder.
fn labels(folder: &Path) -> Result<Vec<Case>, String> {
    let within = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut runs: Vec<PathBuf> = within.filter(|run| run.join("label.json").is_file()).collect();
    runs.sort();
    let case = |run: PathBuf| {
        let file = run.join("label.json");
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let label = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(Case { name: name_of(&run), file: run, truth: Truth::Label(label) })
    };
    runs.into_iter().map(case).collect()
}

fn name_of(run: &Path) -> String {
    run.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Judges the cases of a source and prints the errors.
fn source(name: &str, cases: &[Case], binary: &Path) -> Source {
    let reports = reports(cases, binary);
    let by_name: BTreeMap<&str, (&Case, &Result<Report, String>)> =
        cases.iter().zip(&reports).map(|(case, report)| (case.name.as_str(), (case, report))).collect();
    let mut source = Source::new(name);
    for (case, report) in cases.iter().zip(&reports) {
        let Ok(report) = report else {
            source.unreadable();
            println!("{}\n    {}", case.name, report.as_ref().err().map_or("", String::as_str));
            continue;
        };
        let mut judgement = match &case.truth {
            Truth::Entry(entry) => judge::by_entry(entry, report),
            Truth::Label(label) => judge::by_label(label, report),
        };
        judgement.faults.extend(promise(case, &by_name));
        judgement.faults.extend(called_slower(case, &by_name, binary));
        source.add(report, &judgement);
        tell(&case.name, &judgement);
    }
    source
}

fn tell(name: &str, judgement: &Judgement) {
    if !judgement.faults.is_empty() {
        println!("{name}\n    {}", judgement.faults.join("\n    "));
    }
}

/// Errors in the gains promised for the run that this one fixes.
fn promise(case: &Case, by_name: &BTreeMap<&str, (&Case, &Result<Report, String>)>) -> Option<String> {
    let Truth::Label(after) = &case.truth else { return None };
    let (before, report) = by_name.get(after.fixes.as_deref()?)?;
    let (Truth::Label(before), Ok(promise)) = (&before.truth, report) else { return None };
    judge::exceeded(before, promise, after)
}

/// A comparison that calls the fixed run slower although the stopwatch calls it faster.
fn called_slower(
    case: &Case,
    by_name: &BTreeMap<&str, (&Case, &Result<Report, String>)>,
    binary: &Path,
) -> Option<String> {
    let Truth::Label(after) = &case.truth else { return None };
    let (before_case, _) = by_name.get(after.fixes.as_deref()?)?;
    let Truth::Label(before) = &before_case.truth else { return None };
    let verdict = report::compare(binary, &before_case.file, &case.file);
    let faster = judge::faster(before, after)?;
    match verdict.as_deref() {
        Ok("slower") if faster => Some("compare calls the fix slower".to_owned()),
        Ok(_) => None,
        Err(error) => Some(error.clone()),
    }
}

/// The reports on all cases, in order, computed in parallel.
fn reports(cases: &[Case], binary: &Path) -> Vec<Result<Report, String>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((index, case)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, cases.get(at)?)))
        {
            done.push((index, Report::of(binary, &case.file)));
        }
        done
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let mut all: Vec<(usize, Result<Report, String>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, report)| report).collect()
}
