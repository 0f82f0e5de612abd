//! `stepscope serve --record-into`: the page records from scripted servers, and nobody else does.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

#[path = "support/fake_profiler.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod fake_profiler;
mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use fake_profiler::{Answer, FakeProfiler};
use serde_json::{Value, json};
use support::{code, root, stepscope};
use tempfile::TempDir;
use tonic::Code;

fn profile() -> Vec<u8> {
    fs::read(root().join("fixtures/tf-train/plugins/profile/2026_01_01_00_00_00/trainer.xplane.pb")).unwrap()
}

/// A server that may record, and its folders.
struct Page {
    child: Child,
    address: String,
    token: String,
    shown: TempDir,
    into: TempDir,
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Page {
    fn open() -> Self {
        let (shown, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut command = stepscope();
        command.arg("serve").arg(shown.path()).args(["--port", "0", "--record-into"]).arg(into.path());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (address, token) = line.trim().strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
        let (address, token) = (address.to_owned(), token.to_owned());
        Page { child, address, token, shown, into }
    }

    fn ask(&self, what: &str, headers: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "{what} HTTP/1.1\r\nHost: {}\r\n{headers}Connection: close\r\n\r\n", self.address)
            .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }

    fn post(&self, path: &str) -> (u16, Value) {
        let (address, token) = (&self.address, &self.token);
        let headers = format!(
            "Origin: http://{address}\r\nSec-Fetch-Site: same-origin\r\nx-stepscope-action: 1\r\nx-stepscope-token: {token}\r\nContent-Length: 0\r\n"
        );
        self.ask(&format!("POST {path}"), &headers)
    }

    fn start(&self, address: &str, more: &str) -> (u16, Value) {
        self.post(&format!("/api/record/start?address={address}&duration_ms=300{more}"))
    }

    fn get(&self, path: &str) -> Value {
        self.ask(&format!("GET {path}"), &format!("x-stepscope-token: {}\r\n", self.token)).1
    }

    #[track_caller]
    fn end(&self) -> Value {
        let until = Instant::now() + Duration::from_secs(120);
        loop {
            let about = self.get("/api/record");
            if about["state"] != "running" {
                return about;
            }
            assert!(Instant::now() < until, "{about}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn the_page_records_into_the_named_folder_alone_and_the_session_opens() {
    let (page, server) = (Page::open(), FakeProfiler::start([Answer::Profile(profile())]));
    assert_eq!(page.start(&server.address(), "").0, 200);
    let end = page.end();
    assert_eq!((&end["state"], &end["session"]), (&json!("done"), &json!(0)), "{end}");
    assert_eq!(server.asked()[0].opts.as_ref().unwrap().duration_ms, 300);
    let written = files(page.into.path());
    assert_eq!(written.len(), 1, "{written:?}");
    assert_eq!(fs::read(&written[0]).unwrap(), profile());
    assert_eq!(files(page.shown.path()), Vec::<PathBuf>::new(), "nothing in what is only shown");
    let until = Instant::now() + Duration::from_secs(120);
    while page.get("/api/s/0/report")["schema"] != "stepscope.report.v1" {
        assert!(Instant::now() < until);
    }
}

#[test]
fn steady_steps_are_waited_for() {
    let (page, server) = (Page::open(), FakeProfiler::start([Answer::Profile(profile())]));
    assert_eq!(page.start(&server.address(), "&steady=1").0, 200);
    assert_eq!(page.end()["state"], "done");
    assert!(server.asked().len() >= 3, "two windows that agree, then the capture: {}", server.asked().len());
    assert_eq!(files(page.into.path()).len(), 1, "windows leave nothing");
}

#[test]
fn each_failure_says_what_happened_without_options_of_the_command_line() {
    let page = Page::open();
    let failed = |address: &str| {
        assert_eq!(page.start(address, "").0, 200);
        let end = page.end();
        assert_eq!(end["state"], "failed", "{end}");
        let error = end["error"].clone();
        let text = |key: &str| error[key].as_str().unwrap().to_owned();
        assert!(!text("found").is_empty() && !text("todo").is_empty(), "{error}");
        let options = text("todo").split("stepscope capture").next().unwrap().contains("--");
        assert!(!options, "{error}");
        text("what")
    };
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert!(failed(&format!("localhost:{}", closed.port())).starts_with("nothing is listening"));
    assert_eq!(failed("localhost"), "the address cannot be used");
    let dying = FakeProfiler::start([Answer::Die]);
    assert!(failed(&dying.address()).contains("disappeared during the capture"));
    let empty = FakeProfiler::start([Answer::Empty]);
    assert!(failed(&empty.address()).contains("recorded nothing"));
    let broken = FakeProfiler::start([Answer::Error(Code::PermissionDenied, "no")]);
    assert!(failed(&broken.address()).contains("could not record"));
    assert_eq!(files(page.into.path()), Vec::<PathBuf>::new());
}

#[test]
fn a_capture_is_cancelled_and_one_runs_at_a_time() {
    let (page, server) = (Page::open(), FakeProfiler::start([Answer::Never]));
    assert_eq!(page.start(&server.address(), "").0, 200);
    server.wait_for(1);
    assert_eq!(page.start(&server.address(), "").0, 409);
    let began = Instant::now();
    assert_eq!(page.post("/api/record/cancel").0, 200);
    assert_eq!(page.end()["state"], "cancelled");
    assert!(began.elapsed() < Duration::from_secs(20), "the server is not waited for");
    assert_eq!(files(page.into.path()), Vec::<PathBuf>::new());
}

#[test]
fn other_pages_and_requests_without_the_token_record_nothing() {
    let (page, server) = (Page::open(), FakeProfiler::start([Answer::Profile(profile())]));
    let start = format!("POST /api/record/start?address={}&duration_ms=100", server.address());
    let own = format!("Origin: http://{}\r\nx-stepscope-action: 1\r\n", page.address);
    let token = format!("x-stepscope-token: {}\r\n", page.token);
    for headers in [
        own.clone(),
        token.clone(),
        format!("Origin: http://evil.example\r\nx-stepscope-action: 1\r\n{token}"),
        format!("Origin: http://127.0.0.1:1\r\nx-stepscope-action: 1\r\n{token}"),
        format!("Sec-Fetch-Site: cross-site\r\n{own}{token}"),
    ] {
        let (status, said) = page.ask(&start, &format!("{headers}Content-Length: 0\r\n"));
        assert_eq!(status, 403, "{headers}: {said}");
    }
    assert_eq!(page.get("/api/record")["number"], 0);
    assert!(server.asked().is_empty());
}

#[test]
fn a_folder_that_cannot_be_written_and_a_page_without_token_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    let run = |more: &[&str]| {
        let mut command = stepscope();
        command.arg("serve").arg(folder.path()).args(["--port", "0", "--record-into"]).args(more);
        let output = command.output().unwrap();
        (code(&output), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, said) = run(&[file.join("below").to_str().unwrap()]);
    assert!(status == 2 && said.contains("cannot record into"), "{status} {said}");
    let (status, said) = run(&[folder.path().to_str().unwrap(), "--token=never"]);
    assert!(status == 2 && said.contains("--token=never"), "{status} {said}");
}
