//! `stepscope capture` against scripted servers: what is written, what is printed, what is left.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

#[path = "support/fake_profiler.rs"]
mod fake_profiler;
mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use fake_profiler::{Answer, FakeProfiler};
use support::{code, root, stepscope};
use tempfile::TempDir;
use tonic::Code;

const BUSY: Answer = Answer::Error(Code::Internal, "Another profiling session active.");

fn profile() -> Vec<u8> {
    fs::read(root().join("fixtures/tf-train/plugins/profile/2026_01_01_00_00_00/trainer.xplane.pb")).unwrap()
}

/// A log directory, and captures into it.
struct Logs(TempDir);

impl Logs {
    fn new() -> Self {
        Logs(tempfile::tempdir().unwrap())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = stepscope();
        command.arg("capture").args(args).arg("--logdir").arg(self.0.path());
        command
    }

    fn capture(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Every file below, hidden ones too.
    fn files(&self) -> Vec<PathBuf> {
        fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
                let path = entry.path();
                if path.is_dir() { walk(&path, files) } else { files.push(path) }
            }
        }
        let mut files = Vec::new();
        walk(self.0.path(), &mut files);
        files.sort();
        files
    }

    fn names(&self) -> Vec<String> {
        let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        self.files().into_iter().map(name).collect()
    }

    fn is_untouched(&self) -> bool {
        let profiles = self.0.path().join("plugins/profile");
        self.files().is_empty() && (!profiles.exists() || fs::read_dir(profiles).unwrap().count() == 0)
    }
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Checks that a capture ended with one error in the usual form, left nothing, and gives its words back.
#[track_caller]
fn refused(logs: &Logs, args: &[&str]) -> String {
    let output = logs.capture(args);
    let said = words(&output);
    assert_eq!(code(&output), 3, "{said}");
    let error = said.lines().find_map(|line| line.strip_prefix("error: ")).unwrap_or_default();
    assert!(error.split("; ").count() >= 3, "what; what was found; what to do: {said}");
    assert!(output.stdout.is_empty() && logs.is_untouched(), "{:?}", logs.files());
    error.to_owned()
}

fn interrupt(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn a_capture_is_written_as_it_came_and_reported_at_once() {
    let (server, logs) = (FakeProfiler::start([Answer::Profile(profile())]), Logs::new());
    let output = logs.capture(&[&server.address(), "--duration", "700ms", "--host-level", "3"]);
    assert_eq!(code(&output), 0, "{}", words(&output));
    assert_eq!(logs.names(), ["localhost.xplane.pb"]);
    assert_eq!(fs::read(&logs.files()[0]).unwrap(), profile());
    let session = logs.files()[0].parent().unwrap().to_owned();
    assert_eq!(session.parent().unwrap(), logs.0.path().join("plugins/profile"));
    assert!(words(&output).contains("note: recorded ") && words(&output).contains("steps, host only"));
    let report = stepscope().arg("report").arg(&session).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&report.stdout));
    let asked = server.asked();
    let options = asked[0].opts.clone().unwrap();
    assert!(asked[0].emit_xspace && options.version == 1 && options.start_timestamp_ns == 0);
    assert_eq!((options.duration_ms, options.host_tracer_level, options.device_tracer_level), (700, 3, 1));
}

#[test]
fn the_report_comes_in_other_forms_or_not_at_all() {
    let (server, logs) = (FakeProfiler::start([Answer::Profile(profile())]), Logs::new());
    let output = logs.capture(&[&server.address(), "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    support::schema::fits(&report);
    assert_eq!(report["schema"], "stepscope.report.v1");
    let output = logs.capture(&[&server.address(), "--no-report"]);
    let path = String::from_utf8(output.stdout).unwrap();
    assert!(Path::new(path.trim_end()).join("localhost.xplane.pb").exists());
    assert_eq!(logs.files().len(), 2, "no session takes another's place");
}

#[test]
fn several_hosts_record_the_same_window() {
    let servers = [0, 1].map(|_| FakeProfiler::start([Answer::Profile(profile())]));
    let logs = Logs::new();
    let output = logs.capture(&[&servers[0].address(), &servers[1].address(), "--delay", "100ms"]);
    assert_eq!(code(&output), 0, "{}", words(&output));
    let mut names = servers.each_ref().map(|server| format!("localhost_{}.xplane.pb", server.port));
    names.sort();
    assert_eq!(logs.names(), names);
    let starts = servers.each_ref().map(|server| server.asked()[0].opts.clone().unwrap().start_timestamp_ns);
    assert!(starts[0] > 0 && starts[0] == starts[1]);
}

#[test]
fn what_came_is_kept_and_what_failed_is_named() {
    let servers = [Answer::Profile(profile()), Answer::Empty].map(|answer| FakeProfiler::start([answer]));
    let logs = Logs::new();
    let output = logs.capture(&[&servers[0].address(), &servers[1].address()]);
    assert_eq!(code(&output), 4);
    assert_eq!(logs.names(), [format!("localhost_{}.xplane.pb", servers[0].port)]);
    assert!(!output.stdout.is_empty());
    assert!(words(&output).contains(&format!("error: {} recorded nothing", servers[1].address())));
}

#[test]
fn a_busy_server_is_waited_for() {
    let server = FakeProfiler::start([BUSY, BUSY, Answer::Profile(profile())]);
    let logs = Logs::new();
    let output = logs.capture(&[&server.address(), "--no-report"]);
    assert_eq!(code(&output), 0, "{}", words(&output));
    assert_eq!(server.asked().len(), 3);
    assert_eq!(words(&output).matches("busy with another profile").count(), 1, "said once, not each time");
}

#[test]
fn a_server_that_comes_up_late_is_waited_for() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let logs = Logs::new();
    let mut child = logs.spawn(&[&format!("localhost:{port}"), "--no-report", "--wait", "60s"]);
    let mut said = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("nothing is listening yet; retrying for 60 s"), "{said}");
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let _server = FakeProfiler::listen(listener, [Answer::Profile(profile())]);
    assert_eq!(code(&child.wait_with_output().unwrap()), 0);
    assert_eq!(logs.names(), ["localhost.xplane.pb"]);
}

#[test]
fn each_failure_has_words_of_its_own() {
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let dead = format!("localhost:{dead}");
    let error = refused(&Logs::new(), &[&dead, "--wait", "0s"]);
    assert!(
        error.starts_with(&format!("nothing is listening at {dead}; "))
            && error.contains("start_server(9999)")
    );

    let error = refused(&Logs::new(), &["no-such-host.invalid:6009", "--wait", "0s"]);
    assert!(error.starts_with("cannot find the host `no-such-host.invalid`"), "{error}");

    let answers = [
        (BUSY, "another profile is being recorded at ADDRESS; it said: Another profiling session active."),
        (Answer::Error(Code::AlreadyExists, "one is there"), "another profile is being recorded at ADDRESS"),
        (
            Answer::Error(Code::Unavailable, "starting"),
            "the server at ADDRESS is not ready; it said: starting",
        ),
        (Answer::Error(Code::Unimplemented, ""), "the gRPC server at ADDRESS cannot record profiles"),
        (
            Answer::Error(Code::Internal, "out of luck"),
            "ADDRESS could not record; it answered Internal: out of luck",
        ),
        (Answer::Empty, "ADDRESS recorded nothing; the trace of 2 s is empty"),
        (Answer::Nothing, "ADDRESS did not send its profile"),
        (Answer::Die, "ADDRESS disappeared during the capture; the connection broke"),
    ];
    for (answer, expected) in answers {
        let server = FakeProfiler::start([answer]);
        let error = refused(&Logs::new(), &[&server.address(), "--wait", "0s"]);
        let expected = expected.replace("ADDRESS", &server.address());
        assert!(error.starts_with(&expected), "{error}\nshould begin with\n{expected}");
    }
}

#[test]
fn a_server_that_never_sends_is_given_up() {
    let server = FakeProfiler::start([Answer::Never]);
    let args = [&server.address(), "--duration", "100ms", "--timeout", "300ms"];
    let error = refused(&Logs::new(), &args.map(|arg| arg as &str));
    assert!(
        error.starts_with(&format!("{} sent no profile in time; waited 400 ms", server.address())),
        "{error}"
    );
}

#[test]
fn a_profile_over_the_limit_is_not_taken() {
    let server = FakeProfiler::start([Answer::Profile(profile())]);
    let error = refused(&Logs::new(), &[&server.address(), "--max-size", "1kB"]);
    assert!(error.contains("is larger than 1.00 kB; found "), "{error}");
}

#[test]
fn a_greeting_without_end_is_not_waited_for() {
    let (server, logs) = (FakeProfiler::start([Answer::HugeHello(profile())]), Logs::new());
    let output = logs.capture(&[&server.address(), "--no-report"]);
    assert_eq!(code(&output), 0, "{}", words(&output));
    assert!(fs::read(&logs.files()[0]).unwrap() == profile());
}

#[test]
fn large_profiles_come_whole() {
    // An unknown field of 40 MB behind the profile: ten times what gRPC clients take unless told otherwise.
    let mut large = profile();
    let padding = vec![0; 40 << 20];
    let mut message = stepscope_testkit::xspace::Message(std::mem::take(&mut large));
    message.bytes(1000, &padding);
    let (server, logs) = (FakeProfiler::start([Answer::Profile(message.0.clone())]), Logs::new());
    assert_eq!(code(&logs.capture(&[&server.address(), "--no-report"])), 0);
    assert!(fs::read(&logs.files()[0]).unwrap() == message.0);
}

#[test]
fn a_web_server_and_a_silent_port_are_no_profilers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("localhost:{}", listener.local_addr().unwrap().port());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1000]);
            let _ = stream.write_all(b"HTTP/1.0 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let error = refused(&Logs::new(), &[&address]);
    assert!(error.contains("found a web server that answered `HTTP/1.0 400 Bad Request`"), "{error}");

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("localhost:{}", silent.local_addr().unwrap().port());
    let error = refused(&Logs::new(), &[&address]);
    assert!(error.starts_with(&format!("{address} accepts connections but does not answer")), "{error}");
}

#[test]
fn a_profile_that_an_older_server_wrote_to_a_shared_disk_is_taken() {
    let (server, logs) = (FakeProfiler::start([Answer::ToDisk(profile())]), Logs::new());
    let output = logs.capture(&[&server.address(), "--no-report"]);
    assert_eq!(code(&output), 0, "{}", words(&output));
    assert_eq!(logs.names(), ["localhost.xplane.pb"]);
    assert_eq!(
        fs::read_dir(logs.0.path().join("plugins/profile")).unwrap().count(),
        1,
        "no hidden folder stays"
    );
}

#[test]
fn a_loop_is_waited_for_until_it_is_steady() {
    let server = FakeProfiler::start([Answer::Empty, Answer::Profile(profile())]);
    let logs = Logs::new();
    let output = logs.capture(&[&server.address(), "--until-steady", "--no-report", "--duration", "1s"]);
    assert_eq!(code(&output), 0, "{}", words(&output));
    assert!(words(&output).contains("waiting for a steady state: no activity yet"), "{}", words(&output));
    assert!(words(&output).contains("note: steady at "), "{}", words(&output));
    let lengths: Vec<u64> =
        server.asked().iter().map(|asked| asked.opts.clone().unwrap().duration_ms).collect();
    assert_eq!(lengths, [400, 800, 800, 1000], "nothing, two equal windows, the capture itself");
    assert_eq!(logs.files().len(), 1, "windows leave nothing on the disk");
}

#[test]
fn patience_ends_the_wait_and_the_capture_is_made_all_the_same() {
    let server = FakeProfiler::start([Answer::Empty]);
    let error = refused(&Logs::new(), &[&server.address(), "--until-steady", "--patience", "1s"]);
    assert!(error.contains("recorded nothing"), "{error}");
}

#[test]
fn a_watch_keeps_to_its_budget_and_to_its_own_sessions() {
    let (server, logs) = (FakeProfiler::start([Answer::Profile(profile())]), Logs::new());
    let foreign = logs.0.path().join("plugins/profile/1999_01_01_00_00_00");
    fs::create_dir_all(&foreign).unwrap();
    fs::write(foreign.join("a.xplane.pb"), profile()).unwrap();
    let args = [&server.address(), "--every", "10ms", "--samples", "4", "--keep", "2"];
    let output = logs.capture(&args.map(|arg| arg as &str));
    assert_eq!(code(&output), 0, "{}", words(&output));
    let lines = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(lines.lines().filter(|line| line.contains(" per step (")).count(), 4, "{lines}");
    assert!(words(&output).contains("4 samples taken, 2 sessions kept"), "{}", words(&output));
    assert_eq!(logs.files().len(), 3);
    assert!(foreign.join("a.xplane.pb").exists());

    let args = [&server.address(), "--every", "10ms", "--samples", "3", "--budget", "1B", "--json"];
    let output = logs.capture(&args.map(|arg| arg as &str));
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let sample: serde_json::Value = serde_json::from_str(line).unwrap();
        support::schema::fits(&sample);
        assert_eq!(sample["schema"], "stepscope.capture.v1");
        assert!(sample["median_ms"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(logs.files().len(), 4, "the newest stays, whatever its size");
}

#[test]
fn a_watch_ends_with_the_job() {
    let logs = Logs::new();
    let server = FakeProfiler::start([Answer::Profile(profile()), Answer::Die]);
    let output = logs.capture(&[&server.address(), "--every", "10ms", "--wait", "0s"]);
    assert_eq!(code(&output), 0, "{}", words(&output));
    assert!(words(&output).contains("the job has ended") && logs.files().len() == 1);
}

#[test]
fn an_interrupted_watch_ends_well() {
    let (server, logs) = (FakeProfiler::start([Answer::Profile(profile())]), Logs::new());
    let mut child = logs.spawn(&[&server.address(), "--every", "1h"]);
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains(" per step ("), "{line}");
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 0, "{}", words(&output));
    assert!(words(&output).contains("1 sample taken") && logs.files().len() == 1);
}

#[test]
fn an_interrupted_capture_leaves_nothing() {
    let (server, logs) = (FakeProfiler::start([Answer::Never]), Logs::new());
    let child = logs.spawn(&[&server.address()]);
    server.wait_for(1);
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 3);
    assert!(words(&output).contains("error: the capture was interrupted; nothing was kept"));
    assert!(logs.is_untouched());
}

#[test]
fn wrong_usage_is_told_before_anything_is_asked() {
    let logs = Logs::new();
    let wrong: [&[&str]; 7] = [
        &["localhost"],
        &["localhost:x"],
        &["a:1", "--duration", "2"],
        &["a:1", "--duration", "0s"],
        &["a:1", "--max-size", "much"],
        &["a:1", "--keep", "3"],
        &["a:1", "--every", "1m", "--no-report"],
    ];
    for args in wrong {
        let output = logs.capture(args);
        assert_eq!(code(&output), 2, "{args:?}");
        assert!(output.stdout.is_empty() && words(&output).starts_with("error: "), "{args:?}");
    }
    assert!(logs.is_untouched());
}

#[test]
fn a_directory_that_cannot_be_written_to_is_told() {
    let server = FakeProfiler::start([Answer::Profile(profile())]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let output = stepscope().args(["capture", &server.address(), "--logdir"]).arg(&file).output().unwrap();
    assert_eq!(code(&output), 3);
    assert!(words(&output).starts_with("error: cannot write the session below "), "{}", words(&output));
}

#[test]
fn a_program_that_ended_while_waiting_for_steady_steps_is_not_told_to_start_a_server() {
    let logs = Logs::new();
    let server = FakeProfiler::start([Answer::Empty, Answer::Die]);
    let said =
        refused(&logs, &[&server.address(), "--until-steady", "--duration", "200ms", "--wait", "300ms"]);
    assert!(said.contains("ended before its steps were steady"), "{said}");
    assert!(!said.contains("start a profiler server"), "{said}");
}

#[test]
fn a_server_that_comes_up_late_is_still_recorded_by_run() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let late = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_secs(8));
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let server = FakeProfiler::listen(listener, [Answer::Profile(profile())]);
        std::thread::sleep(std::time::Duration::from_secs(5));
        server.asked().len()
    });
    let logs = tempfile::tempdir().unwrap();
    let script = "import time\nfor i in range(110):\n    print('step', i, flush=True); time.sleep(0.1)";
    let mut command = stepscope();
    command.arg("run").args(["--profiler-port", &port.to_string(), "--profile-duration", "200ms", "--save"]);
    let output = command.arg(logs.path()).args(["--", "python3", "-c", script]).output().unwrap();
    let said = words(&output);
    assert!(late.join().unwrap() >= 1, "{said}");
    assert!(said.contains("verdict"), "{said}");
}
