//! Which files belong together, and which are not profiles.

use std::fs;

use super::recognise::lookalike;
use super::*;

fn file(path: &str, format: &str) -> ProfileFile {
    let format = READERS.iter().map(|reader| reader.format()).find(|known| known.name == format).unwrap();
    let path = PathBuf::from(path);
    let host = host_of(&path);
    let is_folder = path.extension().is_none();
    ProfileFile {
        path,
        is_folder,
        format,
        bytes: 1,
        host,
        parts: Vec::new(),
        modified: SystemTime::UNIX_EPOCH,
    }
}

fn hosts(sessions: &[SessionFiles]) -> Vec<Vec<&str>> {
    sessions.iter().map(|s| s.files.iter().map(|f| f.host.as_str()).collect()).collect()
}

#[test]
fn hosts_of_a_session_folder_belong_together() {
    let folder = "logs/plugins/profile/2026_01_02_03_04_05";
    let sessions = sessions_of(vec![
        file(&format!("{folder}/a.xplane.pb"), "xplane"),
        file(&format!("{folder}/b.xplane.pb"), "xplane"),
        file(&format!("{folder}/a.trace.json.gz"), "chrome"),
    ]);
    assert_eq!(hosts(&sessions), [["a", "b"]]);
    assert_eq!(sessions[0].duplicates.len(), 1, "the Chrome trace repeats host a");
}

#[test]
fn unrelated_files_of_one_folder_are_sessions_of_their_own_and_ranks_are_not() {
    let sessions = sessions_of(vec![
        file("x/rank0.json.gz", "chrome"),
        file("x/rank1.json.gz", "chrome"),
        file("x/resnet.json", "chrome"),
    ]);
    assert_eq!(hosts(&sessions), [vec!["rank0", "rank1"], vec!["resnet"]]);
}

#[test]
fn a_report_beside_its_export_is_read_once_and_numbered_reports_are_runs() {
    let sessions = sessions_of(vec![
        file("x/report1.nsys-rep", "nsys-rep"),
        file("x/report1.sqlite", "nsys"),
        file("x/report2.nsys-rep", "nsys-rep"),
    ]);
    assert_eq!(hosts(&sessions), [["report1"], ["report2"]]);
    assert_eq!(sessions[0].files[0].format.name, "nsys");
    assert_eq!(sessions[0].duplicates.len(), 1);
}

#[test]
fn a_folder_of_tables_beside_its_database_is_read_once() {
    let folder = |name| file(name, "nsys");
    let sessions = sessions_of(vec![folder("x/run_pqtdir"), file("x/run.sqlite", "nsys"), folder("x/other")]);
    assert_eq!(hosts(&sessions), [["other"], ["run"]]);
    assert_eq!(sessions[1].duplicates, [PathBuf::from("x/run_pqtdir")]);
    assert_eq!(sessions[0].name, "other");
}

#[test]
fn a_folder_of_tables_is_one_profile_and_data_sets_are_none() {
    let logs = tempfile::tempdir().unwrap();
    let export = logs.path().join("run_pqtdir");
    let data = logs.path().join("data");
    for folder in [&export, &data] {
        fs::create_dir(folder).unwrap();
    }
    fs::write(export.join("StringIds.parquet"), b"PAR1 and so on").unwrap();
    fs::write(export.join("OSRT_API.parquet"), b"PAR1").unwrap();
    fs::write(data.join("part-0.parquet"), b"PAR1").unwrap();
    fs::write(data.join("part-1.parquet"), b"PAR1").unwrap();
    for path in [logs.path().to_owned(), export.clone(), export.join("OSRT_API.parquet")] {
        let found = discover(std::slice::from_ref(&path)).unwrap();
        assert_eq!(hosts(&found.sessions), [["run"]], "{}", path.display());
        assert_eq!(found.sessions[0].name, "run_pqtdir");
        assert_eq!(found.sessions[0].files[0].path, export);
        assert_eq!(found.sessions[0].files[0].bytes, 18);
        assert_eq!(found.others.contains_key(&Lookalike::Table), path == logs.path());
    }
    let found = discover(&[data.join("part-0.parquet")]).unwrap();
    assert!(found.sessions.is_empty() && found.others.contains_key(&Lookalike::Table));
}

#[test]
fn exports_in_forms_that_are_not_read_are_told_apart() {
    let of = |name: &str, head: &[u8]| lookalike(Path::new(name), head);
    let line = br#"{"table":"StringIds","id":1,"value":"cudaLaunchKernel"}"#;
    assert_eq!(of("run.jsonl", line), Lookalike::NsightSystemsExport);
    assert_eq!(of("run.h5", b"\x89HDF\r\n\x1a\n ... TARGET_INFO_GPU"), Lookalike::NsightSystemsExport);
    assert_eq!(of("weights.h5", b"\x89HDF\r\n\x1a\n ... kernel:0"), Lookalike::Other);
    assert_eq!(of("chat.jsonl", br#"{"table": "menu", "text": "StringIds"}"#), Lookalike::Other);
}

#[test]
fn counters_of_kernels_go_with_the_only_timeline_beside_them() {
    let joined = sessions_of(vec![file("x/run.sqlite", "nsys"), file("x/kernels.ncu-rep", "ncu")]);
    assert_eq!(hosts(&joined), [["run", "kernels.ncu-rep"]]);
    let three =
        vec![file("x/run.sqlite", "nsys"), file("x/kernels.ncu-rep", "ncu"), file("x/gpu.csv", "nvidia-smi")];
    assert_eq!(hosts(&sessions_of(three)), [["run", "gpu.csv", "kernels.ncu-rep"]]);
    let two = [file("x/a.sqlite", "nsys"), file("x/b.sqlite", "nsys"), file("x/kernels.ncu-rep", "ncu")];
    assert_eq!(sessions_of(two.to_vec()).len(), 3, "it may belong to either");
    let apart = [file("x/run.sqlite", "nsys"), file("y/kernels.ncu-rep", "ncu")];
    assert_eq!(sessions_of(apart.to_vec()).len(), 2);
}

#[test]
fn one_report_on_kernels_in_three_forms_is_one_run() {
    let forms =
        ["x/a.ncu-rep", "x/a.raw.csv", "x/a.details.csv", "x/b.details.csv", "x/b.raw.csv", "y/a.raw.csv"];
    let sessions = sessions_of(forms.iter().map(|path| file(path, "ncu")).collect());
    let mut paths: Vec<&Path> =
        sessions.iter().flat_map(|it| &it.files).map(|file| file.path.as_path()).collect();
    paths.sort();
    assert_eq!(paths, [Path::new("x/a.ncu-rep"), Path::new("x/b.raw.csv"), Path::new("y/a.raw.csv")]);
    let others = vec![file("x/run.sqlite", "nsys"), file("x/run.csv", "ncu"), file("x/run.ncu-rep", "ncu")];
    assert_eq!(hosts(&sessions_of(others)), [["run", "run.ncu-rep"]], "beside its timeline");
}

#[test]
fn a_worker_recorded_twice_makes_two_sessions() {
    let sessions = sessions_of(vec![
        file("x/w0.1623143089861.pt.trace.json", "chrome"),
        file("x/w0.1623143099999.pt.trace.json", "chrome"),
    ]);
    assert_eq!(hosts(&sessions), [["w0"], ["w0"]]);
}

#[test]
fn sessions_are_ordered_by_the_time_in_their_names() {
    let sessions = newest_first(sessions_of(vec![
        file("l/plugins/profile/2026_01_02_03_04_05/a.xplane.pb", "xplane"),
        file("l/plugins/profile/2026_01_02_13_04_05/a.xplane.pb", "xplane"),
        file("l/plugins/profile/notes/a.xplane.pb", "xplane"),
    ]));
    let names: Vec<_> = sessions.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["2026_01_02_13_04_05", "2026_01_02_03_04_05", "notes"]);
}

#[test]
fn samples_of_a_saved_run_go_with_the_profiles_below_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(RUN_FILE), "{}").unwrap();
    let below = |name: &str, format| file(folder.path().join(name).to_str().unwrap(), format);
    let samples = || below("samples.csv", "stepscope-samples");
    let sessions = sessions_of(vec![samples(), below("plugins/profile/a/h.xplane.pb", "xplane")]);
    assert_eq!(hosts(&sessions), [["h", "samples.csv"]]);
    assert_eq!(sessions[0].name, "a");
    assert_eq!(hosts(&sessions_of(vec![samples()])), [["samples.csv"]]);
    let elsewhere =
        sessions_of(vec![file("x/samples.csv", "stepscope-samples"), file("x/p/h.xplane.pb", "xplane")]);
    assert_eq!(elsewhere.len(), 2, "without a run they are just two files");
}

#[test]
fn hosts_are_read_off_file_names() {
    assert_eq!(host_of(Path::new("vm.xplane.pb.gz")), "vm");
    assert_eq!(host_of(Path::new("10.0.0.1_6009.xplane.pb")), "10.0.0.1_6009");
    assert_eq!(host_of(Path::new("w0.1623143089861.pt.trace.json.gz")), "w0");
    assert_eq!(host_of(Path::new(".json")), ".json");
}

#[test]
fn what_ncu_prints_while_it_works_is_no_profile_but_known() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("run.log");
    let text =
        "loading\n==PROF== Connected to process 7 (/usr/bin/python3)\n==PROF== Report: /tmp/k.ncu-rep\n";
    fs::write(&log, text).unwrap();
    let found = discover(&[log]).unwrap();
    assert!(found.sessions.is_empty());
    assert_eq!(found.others.keys().collect::<Vec<_>>(), [&Lookalike::NsightComputeProgress]);
}

const TRACE: &str = r#"{"traceEvents": [{"ph": "X", "name": "op", "pid": 1, "tid": 1, "ts": 1, "dur": 2}"#;

#[test]
fn a_search_that_finds_nothing_new_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("run");
    fs::create_dir(&inside).unwrap();
    fs::write(inside.join("a.json"), format!("{TRACE}]}}")).unwrap();
    let paths = [folder.path().to_owned()];
    let mut known = Known::default();
    let names = |found: Option<Discovery>| {
        found.map(|found| found.sessions.into_iter().map(|session| session.name).collect::<Vec<_>>())
    };
    let again = |known: &mut Known| names(discover_again(&paths, known, false).unwrap());
    assert_eq!(again(&mut known).unwrap(), ["a.json"]);
    assert_eq!(again(&mut known), None);
    assert_eq!(names(discover_again(&paths, &mut known, true).unwrap()).unwrap(), ["a.json"]);
    fs::write(inside.join("b.json"), format!("{TRACE}]}}")).unwrap();
    assert_eq!(again(&mut known).unwrap().len(), 2, "a new file in a folder that was listed just now");
    fs::write(inside.join("b.json"), format!("{TRACE}, 1]}}")).unwrap();
    assert!(again(&mut known).is_some(), "a file that grew");
    fs::remove_file(inside.join("a.json")).unwrap();
    assert_eq!(again(&mut known).unwrap(), ["b.json"]);
    assert_eq!(again(&mut known), None);
}

#[cfg(target_os = "linux")]
#[test]
fn a_search_reads_the_head_of_a_file_alone() {
    // Counted by the system for this thread.
    let read = || {
        let text = fs::read_to_string("/proc/thread-self/io").unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap();
        line.parse::<u64>().unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.json");
    fs::write(&path, format!("{TRACE}, {}]}}", " ".repeat(3 << 20))).unwrap();
    let before = read();
    assert_eq!(discover(&[path]).unwrap().sessions.len(), 1);
    let bytes = read() - before;
    assert!(bytes < 72 << 10, "{bytes} bytes of which a few are this test's own");
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_are_refused_before_they_are_opened() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [pipe.as_path(), Path::new("/dev/zero")] {
        let refused = discover(&[path.to_owned()]);
        assert!(matches!(refused, Err(ReadError::NotAFile { .. })), "{}", path.display());
        assert!(matches!(Input::open(path), Err(ReadError::NotAFile { .. })), "{}", path.display());
    }
    // One that lies in a folder is passed by.
    assert_eq!(discover(&[folder.path().to_owned()]).unwrap().files, 0);
}
