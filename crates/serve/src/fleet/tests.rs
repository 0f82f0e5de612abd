//! The fleet as the page asks for it: progress, the report, sessions of recordings, the map, and partials.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use stepscope_fleet::{Options, Workers, partial, plan};

use super::{Fleet, FleetOptions};
use crate::store::{Limits, SessionSource, Store};

/// A job with three hosts, one of which is slow, and another job.
fn logs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (job, host, fixture) in [
        ("vision", "a", "jax-plain"),
        ("vision", "b", "jax-train"),
        ("vision", "c", "jax-plain"),
        ("data", "d", "tf-input-bound"),
    ] {
        let to = folder.path().join("logs").join(job).join("plugins/profile/2026_03_01_00_00_00");
        std::fs::create_dir_all(&to).unwrap();
        std::fs::copy(profile(fixture), to.join(format!("{host}.xplane.pb"))).unwrap();
    }
    folder
}

fn profile(fixture: &str) -> PathBuf {
    let mut todo = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(fixture)];
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            todo.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.to_string_lossy().ends_with(".xplane.pb") {
            return path;
        }
    }
    panic!("no profile in {fixture}")
}

fn store(path: &Path) -> Arc<Store> {
    let limits = Limits { sessions: 4, bytes: u64::MAX, load: Duration::from_secs(600) };
    let options = FleetOptions { cache: None, ..FleetOptions::default() };
    Store::with_fleet(SessionSource::Paths(vec![path.to_owned()]), limits, options).unwrap()
}

/// Asks until there is an answer.
fn answered(fleet: &Arc<Fleet>, store: &Store) -> Value {
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        let answer = fleet.answer(store);
        if answer["state"] != "reading" || Instant::now() > until {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_log_directory_has_a_fleet_whose_recordings_lead_to_sessions_and_maps() {
    let folder = logs();
    let store = store(&folder.path().join("logs"));
    assert_eq!(store.fleet().answer(&store)["version"], 0, "nothing is read before somebody asks");
    let answer = answered(store.fleet(), &store);
    assert_eq!((&answer["state"], &answer["version"]), (&Value::from("ready"), &Value::from(1)), "{answer}");
    assert_eq!((&answer["done"], &answer["total"]), (&Value::from(4), &Value::from(4)));
    let ready = store.fleet().state().ready.clone().unwrap();
    let report: Value = serde_json::from_slice(&ready.document).unwrap();
    assert_eq!(
        (&report["schema"], &report["covered"]),
        (&Value::from("stepscope.fleet.v1"), &Value::from(4))
    );
    assert_eq!(answer["sessions"].as_object().unwrap().len(), 2);
    let vision = ready.series.iter().find(|row| row.job == "vision").unwrap();
    let session = answer["sessions"][&vision.recording].as_u64().unwrap() as usize;
    assert_eq!(store.find_of(session).unwrap().hosts, ["a", "b", "c"]);
    let map = stepscope_fleet::step_map(&ready.set, &vision.recording).unwrap().unwrap();
    assert_eq!(map.hosts, ["a", "b", "c"]);
    let mean = |row: usize| map.slow[row].iter().flatten().sum::<f64>() / map.slow[row].len() as f64;
    assert!(mean(1) > 0.05 && mean(0) < mean(1) && mean(2) < mean(1), "{:?}", map.slow);
    assert!(map.slow.iter().all(|row| row.len() == map.first.len()));
    // Nothing changed: nothing is read again.
    assert_eq!(store.fleet().answer(&store)["version"], 1);
}

#[test]
fn a_partial_serves_the_folders_that_it_was_made_of() {
    let folder = logs();
    let works = plan(&[folder.path().join("logs")], &Options::default()).unwrap();
    let file = folder.path().join("day.part");
    std::fs::write(&file, partial(&works[0], &Workers::of(1)).unwrap()).unwrap();
    let store = store(&file);
    assert_eq!((store.len(), store.fleet().has_partials()), (2, true));
    let answer = answered(store.fleet(), &store);
    assert_eq!(answer["sessions"].as_object().unwrap().len(), 2, "{answer}");
    // One that is damaged is named; the folder counts as one of partials because of the other.
    std::fs::create_dir(folder.path().join("parts")).unwrap();
    std::fs::rename(&file, folder.path().join("parts/day.part")).unwrap();
    std::fs::write(folder.path().join("parts/cut.part"), b"cut").unwrap();
    let both = self::store(&folder.path().join("parts"));
    let answer = answered(both.fleet(), &both);
    assert_eq!(answer["state"], "ready");
    assert!(answer["damage"][0].as_str().unwrap().contains("cut.part: this is not"), "{answer}");
}

#[test]
fn reading_stops_when_nobody_asks() {
    let fleet = Fleet::default();
    let local = stepscope_fleet::Local::default();
    fleet.state().asked = Instant::now().checked_sub(super::FORGOTTEN * 2);
    fleet.watch(&local);
    assert!(local.progress.is_stopped());
    // What was stopped begins again with the next question.
    fleet.take(Err(stepscope_fleet::FleetError::Stopped), Duration::ZERO);
    assert!(fleet.state().is_due(&[]));
}
