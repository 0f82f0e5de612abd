//! Sessions appear, change, are closed and disappear, and requests always get correct answers.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use stepscope_testkit::chrome::{ChromeEvent, ChromeTrace};
use tempfile::TempDir;

use super::found::Finder;
use super::shelf::State;
use super::{Limits, Opened, SessionSource, Store};
use crate::error::Refusal;

fn write(folder: &Path, name: &str, events: usize) {
    let mut trace = ChromeTrace::new();
    for number in 0..events {
        trace = trace.event(&ChromeEvent::slice("op", "cpu_op", 1, 1, &number.to_string(), "0.5"));
    }
    fs::write(folder.join(name), trace.text()).unwrap();
}

/// A store over a folder with these files, each a session.
fn store(files: &[&str], limits: Limits) -> (TempDir, Arc<Store>) {
    let folder = TempDir::new().unwrap();
    files.iter().for_each(|name| write(folder.path(), name, 10));
    let store = Store::find(SessionSource::Paths(vec![folder.path().to_owned()]), limits).unwrap();
    (folder, store)
}

/// Longer than any machine needs, however busy it is.
const FOR_EVER: Duration = Duration::from_secs(300);

const PLENTY: Limits = Limits { sessions: 9, bytes: u64::MAX, load: Duration::from_secs(600) };

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}

/// Retries until the session is open or cannot be opened.
async fn opened(store: &Arc<Store>, id: usize, fresh: bool) -> Result<Arc<Opened>, Refusal> {
    loop {
        match store.open(id, fresh).await {
            Err(Refusal::Loading(_)) => {}
            other => return other,
        }
    }
}

fn listed(store: &Store) -> serde_json::Value {
    serde_json::from_slice(&store.list()).unwrap()
}

fn id_of(store: &Store, name: &str) -> usize {
    let list = listed(store);
    let sessions = list["sessions"].as_array().unwrap();
    let session =
        sessions.iter().find(|session| session["name"] == name).unwrap_or_else(|| panic!("{name} in {list}"));
    session["id"].as_u64().unwrap() as usize
}

fn look_again(store: &Store) {
    store.search();
}

fn states(store: &Store) -> Vec<&'static str> {
    let name = |state: &State| match state {
        State::Unopened => "unopened",
        State::Loading(_) => "loading",
        State::Ready(_) => "ready",
        State::Failed(..) => "failed",
    };
    store.shelf().entries.iter().map(|entry| name(&entry.state)).collect()
}

#[test]
fn whoever_asks_while_a_session_is_opened_hears_how_far_it_is() {
    let (_folder, store) = store(&["a.json"], PLENTY);
    run(async {
        // Other sessions are being read until this one has been told to wait.
        let places: Vec<_> = (0..store.loads.free()).map(|_| store.loads.place()).collect();
        let refusal = store.open(0, true).await.unwrap_err();
        assert_eq!(refusal.status(), StatusCode::ACCEPTED);
        let body = refusal.body();
        assert_eq!((&body["loading"]["stage"], &body["loading"]["hosts"]), (&"queued".into(), &1.into()));
        assert!(body["loading"]["total_bytes"].as_u64().unwrap() > 0);
        drop(places);
        let opened = opened(&store, 0, true).await.unwrap();
        assert_eq!(opened.timeline().unwrap().model.trace(0).events(), 10);
    });
}

#[test]
fn those_looked_at_longest_ago_are_let_go_and_come_back() {
    let (_folder, store) = store(&["a.json", "b.json", "c.json"], Limits { sessions: 2, ..PLENTY });
    run(async {
        let [a, b, c] = ["a.json", "b.json", "c.json"].map(|name| id_of(&store, name));
        for id in [a, b, a, c] {
            opened(&store, id, true).await.unwrap();
        }
        let mut now = ["", "", ""];
        (now[a], now[b], now[c]) = ("ready", "unopened", "ready");
        assert_eq!(states(&store), now);
        opened(&store, b, true).await.unwrap();
        assert_eq!(states(&store)[a], "unopened");
    });
}

#[test]
fn memory_is_bounded_and_the_one_in_use_stays() {
    let (_folder, store) = store(&["a.json", "b.json"], Limits { bytes: 1, ..PLENTY });
    run(async {
        let first = opened(&store, 0, true).await.unwrap().timeline().unwrap();
        assert_eq!(states(&store), ["ready", "unopened"]);
        opened(&store, 1, true).await.unwrap();
        assert_eq!(states(&store), ["unopened", "ready"]);
        assert_eq!(first.model.trace(0).events(), 10, "who still holds it can still look at it");
        // A comparison works although both never fit in memory together.
        let began = Instant::now();
        while began.elapsed() < FOR_EVER {
            if let (Ok(_), Ok(_)) = (store.run(0).await, store.run(1).await) {
                return;
            }
        }
        panic!("a comparison opens its sides in turn for ever");
    });
}

#[test]
fn new_sessions_appear_and_vanished_ones_go() {
    let (folder, store) = store(&["a.json", "gone.json"], PLENTY);
    run(async {
        let (a, gone) = (id_of(&store, "a.json"), id_of(&store, "gone.json"));
        opened(&store, a, true).await.unwrap();
        fs::remove_file(folder.path().join("a.json")).unwrap();
        fs::remove_file(folder.path().join("gone.json")).unwrap();
        write(folder.path(), "z.json", 3);
        look_again(&store);
        assert_eq!(store.len(), 2);
        let z = id_of(&store, "z.json");
        assert!(listed(&store)["sessions"][0]["appeared"].as_bool().unwrap());
        assert!(opened(&store, z, true).await.is_ok());
        assert!(opened(&store, a, true).await.is_ok(), "open before its file was deleted");
        assert!(matches!(opened(&store, gone, true).await, Err(Refusal::Missing(_))));
    });
}

#[test]
fn a_file_that_grew_is_read_again_by_who_comes_anew_and_by_nobody_else() {
    let (folder, store) = store(&["a.json"], PLENTY);
    run(async {
        opened(&store, 0, true).await.unwrap();
        write(folder.path(), "a.json", 25);
        look_again(&store);
        assert_eq!(opened(&store, 0, false).await.unwrap().timeline().unwrap().model.trace(0).events(), 10);
        assert_eq!(opened(&store, 0, true).await.unwrap().timeline().unwrap().model.trace(0).events(), 25);
        assert_eq!(store.len(), 1);
    });
}

#[test]
fn a_file_that_cannot_be_read_says_why_and_can_be_mended() {
    let (folder, store) = store(&["a.json"], PLENTY);
    run(async {
        fs::remove_file(folder.path().join("a.json")).unwrap();
        let refusal = opened(&store, 0, true).await.unwrap_err();
        assert_eq!(refusal.status(), StatusCode::UNPROCESSABLE_ENTITY);
        let body = refusal.body();
        for part in ["what", "found", "todo"] {
            assert!(!body["error"][part].as_str().unwrap().is_empty(), "{body}");
        }
        write(folder.path(), "a.json", 4);
        look_again(&store);
        assert_eq!(opened(&store, 0, true).await.unwrap().timeline().unwrap().model.trace(0).events(), 4);
    });
}

/// A profile that is large enough to be mapped, so that arguments are decoded from the file.
#[cfg(unix)]
fn large_profile() -> Vec<u8> {
    use stepscope_testkit::xspace::{XEvent, XEventMetadata, XLine, XPlane, XSpace};
    let events = (0..400_000).map(|i| XEvent::at(i * 2_000_000, 1_000_000, 1)).collect();
    let line =
        XLine { name: "python".into(), timestamp_ns: 1_700_000_000_000_000_000, events, ..XLine::default() };
    let metadata = vec![(1, XEventMetadata::named("op"))];
    let plane = XPlane { lines: vec![line], event_metadata: metadata, ..XPlane::named("/host:CPU") };
    XSpace { planes: vec![plane], ..XSpace::default() }.encode()
}

#[cfg(unix)]
#[test]
fn a_profile_that_is_overwritten_shows_a_message_and_is_read_again_once_it_is_complete() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.xplane.pb");
    let bytes = large_profile();
    assert!(bytes.len() > 4 << 20);
    fs::write(&path, &bytes).unwrap();
    let store = Store::find(SessionSource::Paths(vec![folder.path().to_owned()]), PLENTY).unwrap();
    run(async {
        let before = opened(&store, 0, true).await.unwrap();
        // As `cp` does: the file is emptied, then written.
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(100).unwrap();
        let refused = opened(&store, 0, false).await.unwrap_err();
        assert!(
            matches!(&refused, Refusal::Unreadable(problem) if problem.to_string().contains("changed while"))
        );
        let timeline = before.timeline().unwrap();
        let trace = &timeline.model.profile.hosts[0].trace;
        let tracks = trace.tracks();
        tracks.iter().for_each(|track| trace.args_at(track, track.len() - 1).visit(|_, _| {}));
        fs::write(&path, &bytes[..bytes.len() - 40]).unwrap();
        look_again(&store);
        look_again(&store);
        assert!(opened(&store, 0, false).await.is_ok(), "the server lives, and reads the new file");
    });
}

#[test]
fn a_half_written_file_is_read_again_once_it_is_complete() {
    let (folder, store) = store(&["a.json"], PLENTY);
    let file = folder.path().join("a.json");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() * 2 / 3]).unwrap();
    look_again(&store);
    let revision = |store: &Store| listed(store)["sessions"][0]["revision"].as_u64().unwrap();
    run(async {
        assert!(opened(&store, 0, true).await.unwrap().is_damaged());
        look_again(&store);
        assert_eq!((states(&store), revision(&store)), (vec!["ready"], 0), "nothing changed");
        fs::write(&file, &whole).unwrap();
        look_again(&store);
        assert_eq!(revision(&store), 0, "it may still be growing");
        look_again(&store);
        assert_eq!((states(&store), revision(&store)), (vec!["unopened"], 1));
        assert!(!opened(&store, 0, false).await.unwrap().is_damaged());
        look_again(&store);
        assert_eq!((states(&store), revision(&store)), (vec!["ready"], 1), "healed once");
    });
}

#[test]
fn several_paths_are_listed_as_given_whatever_their_file_times() {
    let (one, two) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    write(one.path(), "before.json", 5);
    write(two.path(), "after.json", 6);
    let early = std::time::SystemTime::UNIX_EPOCH;
    let order = |paths: [&TempDir; 2]| -> Vec<(String, u64)> {
        let paths = paths.map(|path| path.path().to_owned()).to_vec();
        let list = Store::find(SessionSource::Paths(paths), PLENTY).unwrap();
        let list = listed(&list);
        let sessions = list["sessions"].as_array().unwrap().iter();
        let told = |one: &serde_json::Value| {
            (one["name"].as_str().unwrap().to_owned(), one["place"].as_u64().unwrap())
        };
        sessions.map(told).collect()
    };
    for older in [one.path().join("before.json"), two.path().join("after.json")] {
        fs::File::options().write(true).open(older).unwrap().set_modified(early).unwrap();
        let (before, after) = ("before.json".to_owned(), "after.json".to_owned());
        assert_eq!(order([&one, &two]), [(before.clone(), 0), (after.clone(), 1)]);
        assert_eq!(order([&two, &one]), [(after, 0), (before, 1)]);
    }
}

#[test]
fn an_answer_that_panics_fails_alone_and_every_time() {
    let (_folder, store) = store(&["a.json"], PLENTY);
    run(async {
        let opened = opened(&store, 0, true).await.unwrap();
        for _ in 0..2 {
            let broken = opened.answer("broken", |_| panic!("meant to"));
            assert_eq!(broken.unwrap_err().status(), StatusCode::INTERNAL_SERVER_ERROR);
        }
        let mut times = 0;
        for _ in 0..2 {
            let fine = opened.answer("fine", |_| {
                times += 1;
                Ok(b"yes".to_vec())
            });
            assert_eq!(&fine.unwrap()[..], b"yes");
        }
        assert_eq!(times, 1, "worked out once");
    });
}

#[test]
fn several_paths_are_several_places_and_a_missing_one_is_an_error() {
    let (one, two) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    write(one.path(), "run.json", 5);
    write(two.path(), "run.json", 6);
    let paths = vec![one.path().to_owned(), two.path().to_owned(), one.path().join("run.json")];
    let store = Store::find(SessionSource::Paths(paths), PLENTY).unwrap();
    assert_eq!(store.len(), 2, "the file named twice is there once");
    let list = listed(&store);
    let names: Vec<&str> =
        list["sessions"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert!(names.iter().all(|name| name.ends_with("run.json")) && names[0] != names[1], "{names:?}");
    let missing = Store::find(SessionSource::Paths(vec![one.path().join("nowhere")]), PLENTY).unwrap_err();
    assert!(missing.to_string().contains("nowhere"));
}

#[test]
fn a_folder_without_profiles_is_watched_all_the_same() {
    let (folder, store) = store(&[], PLENTY);
    assert_eq!(listed(&store)["current"], serde_json::Value::Null);
    write(folder.path(), "first.json", 2);
    look_again(&store);
    assert_eq!((store.len(), &listed(&store)["current"]), (1, &0.into()));
}

#[test]
fn runs_that_are_named_file_by_file_are_one_session() {
    let folder = TempDir::new().unwrap();
    let file = |name: &str| folder.path().join(name);
    let names = ["run_meta_0.pb", "run_meta_1.pb", "after.pb"];
    for (step, name) in (0..).zip(names) {
        fs::write(file(name), stepscope_testkit::tfprof::run(step, 40)).unwrap();
    }
    let source = SessionSource::Paths(names.iter().map(|name| file(name)).collect());
    let found = Finder::new(&source).look().unwrap().unwrap();
    let mut runs: Vec<usize> = found.iter().map(|find| find.runs().len()).collect();
    runs.sort_unstable();
    assert_eq!(runs, [1, 2], "a file of another name is another session");
    let joined = found.iter().find(|find| find.runs().len() == 2).unwrap();
    assert_eq!(joined.fingerprint.len(), 2, "a change of any of the files is noticed");
}

#[test]
fn a_load_beyond_its_time_fails_and_its_place_is_free() {
    let (_folder, store) = store(&["a.json", "b.json"], PLENTY);
    let loading = Arc::new(super::Loading::new(1, 1));
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let free = store.loads.free();
    let limits = Limits { load: Duration::from_millis(60), ..PLENTY };
    let hung = store.loads.run(&loading, limits, move |_| {
        // Not even the thread that reads sees that it should stop.
        let _ = ended.recv();
        Ok(())
    });
    assert!(
        matches!(&hung, super::Ended::Failed(problem) if problem.to_string().contains("too long")),
        "{hung:?}"
    );
    assert!(loading.progress.is_stopped());
    assert_eq!(store.loads.free(), free);
    run(async { opened(&store, 0, true).await.unwrap() });
    drop(end);
}

#[test]
fn a_load_beyond_its_memory_is_stopped() {
    let (_folder, store) = store(&["a.json"], PLENTY);
    let loading = Arc::new(super::Loading::new(1, 1));
    let limits = Limits { bytes: 64 << 20, ..PLENTY };
    let grown = store.loads.run(&loading, limits, |loading| {
        let mut held: Vec<Vec<u8>> = Vec::new();
        while held.len() < 4_096 {
            loading.progress.check();
            held.push(vec![1; 1 << 20]);
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(held.len())
    });
    if cfg!(target_os = "linux") {
        assert!(
            matches!(&grown, super::Ended::Failed(problem) if problem.to_string().contains("memory")),
            "{grown:?}"
        );
    }
}

#[test]
fn hosts_are_read_one_by_one_and_opened_together_for_the_timeline_alone() {
    let (_folder, store) = store(&["rank0.json", "rank1.json", "rank2.json"], PLENTY);
    run(async {
        let session = opened(&store, 0, true).await.unwrap();
        assert_eq!(session.find.hosts.len(), 3);
        crate::answers::report(&session).unwrap();
        crate::answers::view(&session, "ops", None, None, false).unwrap();
        crate::answers::information(&session).unwrap();
        assert!(session.timeline().is_none(), "neither a report nor a view needs the traces");
        let timeline = loop {
            match store.timeline(0, false).await {
                Err(Refusal::Loading(_)) => {}
                other => break other.unwrap(),
            }
        };
        assert_eq!(timeline.model.hosts().len(), 3);
        assert!(session.close_traces().is_some());
        assert!(session.timeline().is_none());
        crate::answers::view(&session, "steps", None, None, false).unwrap();
    });
}
