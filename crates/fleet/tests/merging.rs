//! Partials merge to the same bytes in any order, any tree and with any repetition, and their report is that of the
//! hosts themselves.
#![expect(clippy::unwrap_used, clippy::panic, reason = "what helps a test may fail it")]

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use proptest::prelude::*;
use stepscope_fleet::{Options, Set, Shard, Work, Workers, finish, merge, partial, plan, step_map};

/// A folder with three jobs of real, small profiles: one with four hosts, one with two recordings, one that cannot be
/// read in part.
fn logs() -> &'static Path {
    static LOGS: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = LOGS.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let fixture =
            |name: &str| profile(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name));
        let place = |job: &str, session: &str, host: &str, from: &Path| {
            let to = folder.path().join(job).join("plugins/profile").join(session);
            std::fs::create_dir_all(&to).unwrap();
            std::fs::copy(from, to.join(format!("{host}.xplane.pb"))).unwrap();
        };
        let (train, slow) = (fixture("tf-train"), fixture("tf-input-bound"));
        for host in ["a", "b", "c"] {
            place("even", "2026_11_01_00_00_00", host, &train);
        }
        place("even", "2026_11_01_00_00_00", "d", &slow);
        place("daily", "2026_11_01_00_00_00", "a", &slow);
        place("daily", "2026_11_02_00_00_00", "a", &slow);
        place("broken", "2026_11_01_00_00_00", "a", &train);
        place("broken", "2026_11_01_00_00_00", "b", &train);
        let broken = folder.path().join("broken/plugins/profile/2026_11_01_00_00_00");
        std::fs::write(broken.join("b.xplane.pb"), b"").unwrap();
        folder
    });
    folder.path()
}

fn profile(fixture: &Path) -> PathBuf {
    let mut todo = vec![fixture.to_owned()];
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            todo.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.to_string_lossy().ends_with(".xplane.pb") {
            return path;
        }
    }
    panic!("no profile in {}", fixture.display())
}

/// One piece of work per file, and the partial of each.
fn parts() -> &'static (Vec<Work>, Vec<Vec<u8>>) {
    static PARTS: OnceLock<(Vec<Work>, Vec<Vec<u8>>)> = OnceLock::new();
    PARTS.get_or_init(|| {
        let works = plan(&[logs().to_owned()], &Options { group_bytes: 1, ..Options::default() }).unwrap();
        let parts = works.iter().map(|work| partial(work, &Workers::of(1)).unwrap()).collect();
        (works, parts)
    })
}

#[test]
fn every_host_is_covered_once_and_what_is_broken_is_named() {
    let (works, parts) = parts();
    assert_eq!(works.iter().flat_map(|work| &work.pieces).map(|piece| piece.inputs.len()).sum::<usize>(), 8);
    let report = finish(&merge(parts).unwrap()).unwrap();
    assert_eq!((report.covered, report.planned, report.failed.len()), (7, 8, 1));
    assert!(report.failed[0].path.ends_with("broken/plugins/profile/2026_11_01_00_00_00/b.xplane.pb"));
    assert!(report.failed[0].reason.contains("empty"), "{}", report.failed[0].reason);
    let jobs: Vec<(&str, u64, u64)> =
        report.jobs.iter().map(|job| (job.job.as_str(), job.hosts, job.recordings)).collect();
    assert!(
        jobs.contains(&("even", 4, 1)) && jobs.contains(&("daily", 1, 2)) && jobs.contains(&("broken", 2, 1))
    );
    let daily = report.jobs.iter().find(|job| job.job == "daily").unwrap();
    assert_eq!(daily.finding.as_deref(), Some("input-bound"));
    assert!(daily.lost_fraction.unwrap() > 0.3 && daily.fix.is_some());
    assert_eq!(report.hosts[0].host, "d", "its steps are longer than those of its peers");
}

#[test]
fn the_map_of_hosts_and_steps_shows_the_slow_host() {
    let (_, parts) = parts();
    let set = Set::read(&merge(parts).unwrap()).unwrap();
    let report = finish(&set.write().unwrap()).unwrap();
    let even = report.series.iter().find(|row| row.job == "even").unwrap();
    assert!(even.step_map && report.series.iter().any(|row| row.job == "daily" && !row.step_map));
    let map = step_map(&set, &even.recording).unwrap().unwrap();
    assert_eq!((map.job.as_str(), map.hosts.join("")), ("even", "abcd".to_owned()));
    let known = |row: usize| map.slow[row].iter().flatten().copied().collect::<Vec<f64>>();
    assert!(known(0).iter().all(|slow| slow.abs() < 0.02), "as its peers: {:?}", known(0));
    assert!(!known(3).is_empty() && known(3).iter().all(|slow| *slow > 0.1), "{:?}", known(3));
    assert_eq!(step_map(&set, "none").unwrap(), None);
}

#[test]
fn work_of_any_size_gives_the_same_bytes() {
    let (_, parts) = parts();
    let all = merge(parts).unwrap();
    let works = plan(&[logs().to_owned()], &Options::default()).unwrap();
    assert_eq!(works.len(), 1);
    assert_eq!(merge(&[partial(&works[0], &Workers::default()).unwrap()]).unwrap(), all);
    assert_eq!(partial(&works[0], &Workers::of(2)).unwrap(), all, "a partial is merged already");
}

#[test]
fn nothing_and_one_merge_to_themselves() {
    let none = merge::<Vec<u8>>(&[]).unwrap();
    assert!(Set::read(&none).unwrap().is_empty());
    assert_eq!(finish(&none).unwrap().planned, 0);
    let (_, parts) = parts();
    assert_eq!(merge(&parts[..1]).unwrap(), parts[0]);
    assert_eq!(merge(&[&none, &parts[0]]).unwrap(), parts[0]);
}

#[test]
fn hosts_that_never_arrive_and_missing_shards_are_named() {
    let (works, parts) = parts();
    let report = finish(&merge(&parts[..parts.len() - 1]).unwrap()).unwrap();
    assert!(report.covered < report.planned);
    assert!(report.failed.iter().any(|file| file.reason.contains("did not arrive")), "{:?}", report.failed);
    let mut set = Set::new();
    set.note_shard(&Work::plan_id(works), Shard { index: 1, of: 3 });
    assert_eq!(finish(&set.write().unwrap()).unwrap().missing_shards, ["0 of 3", "2 of 3"]);
}

#[test]
fn a_second_attempt_replaces_a_failure() {
    let (_, parts) = parts();
    let all = merge(parts).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let missing = Work {
        pieces: parts_work("daily")
            .pieces
            .iter()
            .cloned()
            .map(|mut piece| {
                piece
                    .inputs
                    .iter_mut()
                    .for_each(|input| input.path = folder.path().join("gone").display().to_string());
                piece
            })
            .collect(),
        ..parts_work("daily")
    };
    let failed = partial(&missing, &Workers::of(1)).unwrap();
    assert_eq!(finish(&failed).unwrap().failed.len(), 1);
    assert_eq!(merge(&[failed.clone(), all.clone()]).unwrap(), all);
    assert_eq!(merge(&[all.clone(), failed]).unwrap(), all);
}

fn parts_work(job: &str) -> Work {
    let (works, _) = parts();
    works.iter().find(|work| work.pieces[0].recording.job == job).unwrap().clone()
}

/// Merges in the order and tree that the numbers say.
fn tree(parts: &[Vec<u8>], shape: &[prop::sample::Index]) -> Vec<u8> {
    let mut all = parts.to_vec();
    for choice in shape {
        if all.len() < 2 {
            break;
        }
        let one = all.swap_remove(choice.index(all.len()));
        let other = all.swap_remove(choice.index(all.len()));
        all.push(merge(&[other, one]).unwrap());
    }
    all.reverse();
    merge(&all).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_tree_any_order_and_any_repetition_give_the_same_bytes(
        order in Just((0..8_usize).collect::<Vec<_>>()).prop_shuffle(),
        repeated in prop::collection::vec(0..8_usize, 0..4),
        shape in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let (_, parts) = parts();
        let expected = merge(parts).unwrap();
        let chosen: Vec<Vec<u8>> = order.iter().chain(&repeated).filter_map(|at| parts.get(*at).cloned()).collect();
        prop_assert_eq!(&tree(&chosen, &shape), &expected);
        prop_assert_eq!(merge(&[expected.clone(), chosen[0].clone()]).unwrap(), expected);
    }

    #[test]
    fn damage_is_an_error_and_never_another_answer(at in any::<prop::sample::Index>(), bit in 0..8_u8, cut in any::<bool>()) {
        let (_, parts) = parts();
        let mut bytes = merge(parts).unwrap();
        let place = at.index(bytes.len());
        if cut { bytes.truncate(place.max(1)); } else { bytes[place] ^= 1 << bit; }
        prop_assert!(merge(&[bytes]).is_err());
    }
}
