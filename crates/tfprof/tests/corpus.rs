//! Views of real inputs compared with what TensorFlow's own tfprof printed, returned and wrote for them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what helps a test may fail it")]

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;
use stepscope_read::tf;
use stepscope_testkit::corpus::{corpus, files_below};
use stepscope_tfprof::{Options, Profile, Shown, View, advise};

fn cases() -> Vec<PathBuf> {
    let Some(folder) = corpus("tfprof") else { return Vec::new() };
    let folders = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<PathBuf> = folders.filter(|path| path.join("views").is_dir()).collect();
    cases.sort();
    cases
}

/// Graph, op log, and the runs as steps.
fn profile(case: &Path, runs: &[PathBuf]) -> Profile {
    let mut profile = Profile::default();
    profile.add_graph(&tf::read_graph(&case.join("graph.pb")).unwrap().value);
    profile.add_op_log(&tf::read_op_log(&case.join("op_log.pb")).unwrap().value);
    for (step, path) in (0..).zip(runs) {
        let found =
            tf::read_run(path, &mut |device, record| profile.add_record(step, device, record)).unwrap();
        assert!(found.damage.is_empty(), "{:?}", found.damage);
        profile.end_step(step, &found.value.devices);
    }
    profile
}

fn runs(case: &Path) -> Vec<PathBuf> {
    (0..3).map(|step| case.join(format!("run_meta_{step}.pb"))).collect()
}

fn options(recorded: &Value) -> Options {
    let mut options = Options::default();
    for (name, value) in recorded["options"].as_object().unwrap() {
        let values = match value {
            Value::Array(values) => values.iter().map(|it| it.as_str().unwrap().to_owned()).collect(),
            Value::String(text) => vec![text.clone()],
            other => vec![other.to_string()],
        };
        options.set(name, &values).unwrap();
    }
    options
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The op view is a deeply nested list of rows, too deep for the parser's default.
fn deep(text: &str) -> Value {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.disable_recursion_limit();
    Value::deserialize(&mut deserializer).unwrap()
}

/// Whether all numbers of the expected tree occur in ours. Its zeros are omitted, and its numbers are texts.
fn same(ours: &Value, theirs: &Value, place: &str) {
    match theirs {
        Value::Object(map) => {
            for (key, value) in map {
                same(&ours[key], value, &format!("{place}.{key}"));
            }
            for (key, value) in ours.as_object().unwrap() {
                let empty = value.as_i64() == Some(0) || value.as_array().is_some_and(Vec::is_empty);
                assert!(map.contains_key(key) || empty, "{place}.{key}: {value} is too much");
            }
        }
        Value::Array(list) => {
            assert_eq!(ours.as_array().unwrap().len(), list.len(), "{place}");
            list.iter().enumerate().for_each(|(at, value)| same(&ours[at], value, &format!("{place}[{at}]")));
        }
        Value::String(text) if ours.is_number() => assert_eq!(&ours.to_string(), text, "{place}"),
        _ => assert_eq!(ours, theirs, "{place}"),
    }
}

#[test]
fn views_print_and_return_what_tfprof_does() {
    let mut views = 0;
    for case in cases() {
        let with_runs = profile(&case, &runs(&case));
        let without = profile(&case, &[]);
        let saved = Profile::of_saved(&tf::read_saved(&case.join("profile.pb")).unwrap().value);
        for path in files_below(&case.join("views")).iter().filter(|path| path.ends_with_json()) {
            let recorded = json(path);
            let uses_runs = recorded["uses_run_meta"].as_bool().unwrap();
            let view = View::named(recorded["view"].as_str().unwrap()).unwrap();
            let options = options(&recorded);
            let expected = fs::read_to_string(path.with_extension("txt")).unwrap();
            let mut profiles = vec![if uses_runs { &with_runs } else { &without }];
            profiles.extend(uses_runs.then_some(&saved));
            for profile in profiles {
                views += 1;
                let shown = match Shown::new(profile, view, &options) {
                    Ok(shown) => shown,
                    Err(error) => {
                        assert!(error.to_string().contains("step 77"), "{error}");
                        assert_eq!(options.empty_report(), expected);
                        continue;
                    }
                };
                if shown.report() != expected {
                    let at = shown.report().lines().zip(expected.lines()).position(|(a, b)| a != b);
                    let line = |text: &str| at.and_then(|at| text.lines().nth(at)).map(str::to_owned);
                    panic!("{}:\n{:?}\n{:?}", path.display(), line(&shown.report()), line(&expected));
                }
                let mut text = String::new();
                let result = fs::File::open(path.with_extension("result.json.gz")).unwrap();
                GzDecoder::new(result).read_to_string(&mut text).unwrap();
                same(&deep(&shown.json()), &deep(&text), &path.display().to_string());
            }
        }
    }
    assert!(cases().is_empty() || views >= 231, "{views}");
}

trait EndsWithJson {
    fn ends_with_json(&self) -> bool;
}

impl EndsWithJson for &PathBuf {
    fn ends_with_json(&self) -> bool {
        let name = self.file_name().unwrap().to_string_lossy();
        name.ends_with(".json") && !name.starts_with("advise")
    }
}

#[test]
fn missing_streams_are_said() {
    for case in cases().iter().filter(|case| case.join("run_meta_nostream.pb").exists()) {
        let profile = profile(case, &[case.join("run_meta_nostream.pb")]);
        let options = Options { max_depth: 3, ..Options::default() };
        let report = Shown::new(&profile, View::Op, &options).unwrap().report();
        assert_eq!(report, fs::read_to_string(case.join("views/nostream_op.txt")).unwrap());
    }
}

#[test]
fn advice_is_that_of_tfprof() {
    for case in cases() {
        let advice = advise(&profile(&case, &runs(&case)));
        let theirs = json(&case.join("views/advise.result.json"));
        for checker in &advice.checkers {
            let reports = &theirs["checkers"][checker.name]["reports"];
            let reports: Vec<&str> =
                reports.as_array().into_iter().flatten().map(|report| report.as_str().unwrap()).collect();
            assert_eq!(checker.reports, reports, "{}: {}", case.display(), checker.name);
        }
        let mut ours: Vec<String> = advice.text().split("\n\n").map(|part| part.trim().to_owned()).collect();
        let text = fs::read_to_string(case.join("views/advise.txt")).unwrap();
        let mut printed: Vec<String> = text.split("\n\n").map(|part| part.trim().to_owned()).collect();
        ours.sort();
        printed.sort();
        assert_eq!(ours, printed);
    }
}

#[test]
fn timelines_hold_the_same_events() {
    for case in cases() {
        let profile = profile(&case, &runs(&case));
        for (view, file) in [(View::Scope, "scope_-1"), (View::Graph, "graph_1"), (View::Code, "code_-1")] {
            let options = options(&json(&case.join(format!("timeline/{}.options.json", view.name()))));
            let (ours, words) = Shown::new(&profile, view, &options).unwrap().timeline().unwrap();
            let theirs = fs::read_to_string(case.join("timeline").join(file)).unwrap();
            assert!(ours == theirs, "{} {file}", case.display());
            let stdout = json(&case.join(format!("timeline/{}.options.json", view.name())));
            words.iter().for_each(|word| assert!(stdout["stdout"].as_str().unwrap().contains(word)));
        }
    }
}

#[test]
fn pprof_files_hold_the_same_samples() {
    let inflated = |bytes: &[u8]| {
        let mut out = Vec::new();
        GzDecoder::new(bytes).read_to_end(&mut out).unwrap();
        out
    };
    for case in cases() {
        let profile = profile(&case, &runs(&case));
        for path in files_below(&case.join("timeline")) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let Some(stem) = name.strip_suffix(".pb.gz") else { continue };
            let options = options(&json(&path.with_file_name(format!("{stem}.options.json"))));
            let ours = Shown::new(&profile, View::Code, &options).unwrap().pprof().unwrap();
            assert!(inflated(&ours) == inflated(&fs::read(&path).unwrap()), "{}", path.display());
        }
    }
}
