//! An analysis that takes longer than a query may: the query ends in time, the analysis goes on and its result is kept.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use stepscope_query::{Database, Failed, Holder, Limits, Value};
use stepscope_read::Progress;
use stepscope_session::{Profile, SAMPLE_HOST, sample};
use stepscope_trace::series::RunLog;

/// A recording whose table `scalar` takes until somebody opens the gate.
struct Slow {
    profile: Profile,
    computed: AtomicUsize,
    is_open: Mutex<bool>,
    gate: Condvar,
}

impl Slow {
    fn new() -> Arc<Self> {
        let inputs = vec![(SAMPLE_HOST.to_owned(), Ok(sample()))];
        let profile = Profile::read("sample".to_owned(), Vec::new(), inputs, &Progress::new()).unwrap();
        let (computed, is_open, gate) = (AtomicUsize::new(0), Mutex::new(false), Condvar::new());
        Arc::new(Slow { profile, computed, is_open, gate })
    }

    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.gate.notify_all();
    }
}

impl Holder for Slow {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn logs(&self) -> Arc<[RunLog]> {
        self.computed.fetch_add(1, Ordering::Relaxed);
        drop(self.gate.wait_while(self.is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
        Arc::default()
    }
}

const COUNT: &str = "SELECT count(*) FROM scalar";
const SOON: Limits = Limits { time: Duration::from_millis(100), ..Limits::TERMINAL };
/// Nothing here takes so long, on any machine.
const LATE: Duration = Duration::from_secs(30);

#[test]
fn a_query_ends_in_time_and_the_next_gets_what_it_waited_for() {
    let slow = Slow::new();
    let database = Database::new(slow.clone(), Limits::TERMINAL);
    for _ in 0..3 {
        let start = Instant::now();
        let error = database.limited(SOON).query(COUNT).unwrap_err();
        assert_eq!(error.failed, Failed::TooLong, "{error}");
        assert!(error.to_string().contains("analysis"), "{error}");
        assert!(start.elapsed() < LATE);
    }
    let tracks = database.query("SELECT count(*) FROM track").unwrap();
    assert_ne!(tracks.rows, [[Value::Int(0)]], "others do not wait for it");
    slow.open();
    assert_eq!(database.query(COUNT).unwrap().rows, [[Value::Int(0)]]);
    assert_eq!(slow.computed.load(Ordering::Relaxed), 1, "it is computed once");
}

#[test]
fn a_cancelled_query_does_not_wait_for_an_analysis() {
    let slow = Slow::new();
    let database = Database::new(slow.clone(), Limits { time: Duration::MAX, ..Limits::TERMINAL });
    let (progress, start) = (Arc::new(Progress::new()), Instant::now());
    std::thread::scope(|scope| {
        let answer = scope.spawn(|| database.query_until(COUNT, &progress));
        while slow.computed.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        progress.stop();
        assert_eq!(answer.join().unwrap().unwrap_err().failed, Failed::Stopped);
    });
    assert!(start.elapsed() < LATE);
    slow.open();
}

#[test]
fn nothing_is_left_once_the_analysis_ends() {
    let slow = Slow::new();
    let database = Database::new(slow.clone(), SOON);
    assert!(database.query(COUNT).is_err());
    drop(database);
    assert!(Arc::strong_count(&slow) > 1, "the analysis still reads the recording");
    slow.open();
    let start = Instant::now();
    while Arc::strong_count(&slow) > 1 && start.elapsed() < LATE {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(Arc::strong_count(&slow), 1);
}
