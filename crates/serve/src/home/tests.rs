//! The list of runs: what changed, what is kept, what is still being written.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::*;

fn seen(id: usize, bytes: u64, modified: SystemTime) -> Seen {
    let path = PathBuf::from(format!("run{id}"));
    Seen { id, bytes, modified: Some(modified), fingerprint: vec![(path, bytes, Some(modified))] }
}

fn ids(answer: &Value) -> Vec<u64> {
    let runs = answer["runs"].as_array().unwrap();
    runs.iter().map(|run| run["id"].as_u64().unwrap()).collect()
}

#[test]
fn only_what_changed_is_sent_again() {
    let now = SystemTime::now();
    let old = now - Duration::from_secs(60);
    let home = Home::with(Cache::at(None, 0));
    let first = home.answer(&[seen(0, 10, old), seen(1, 20, old)], 0, now);
    assert_eq!((ids(&first), first["done"].as_u64()), (vec![0, 1], Some(0)));
    let version = first["version"].as_u64().unwrap();
    let same = home.answer(&[seen(0, 10, old), seen(1, 20, old)], version, now);
    assert_eq!(ids(&same), [0_u64; 0]);
    let grown = home.answer(&[seen(0, 10, old), seen(1, 30, now)], version, now);
    assert_eq!((ids(&grown), &grown["runs"][0]["writing"]), (vec![1], &Value::Bool(true)));
    assert_eq!(home.next().map(|(id, _)| id), Some(0), "what is being written waits");
    let restarted = home.answer(&[seen(0, 10, old)], 1_000, now);
    assert_eq!((ids(&restarted), restarted["total"].as_u64()), (vec![0], Some(1)));
}

#[test]
fn a_huge_run_is_not_read_for_the_list() {
    let now = SystemTime::now();
    let home = Home::with(Cache::at(None, 0));
    let answer = home.answer(&[seen(0, LARGEST + 1, now - Duration::from_secs(60))], 0, now);
    assert_eq!((&answer["runs"][0]["skipped"], home.next()), (&Value::Bool(true), None));
}
