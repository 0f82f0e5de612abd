//! `stepscope serve` and `stepscope demo --serve` as a user starts, uses and stops them.
#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn stepscope(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stepscope"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A server that runs.
struct Server {
    child: Child,
    url: String,
    said: String,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        Server::of(stepscope(arguments).spawn().unwrap())
    }

    fn of(mut child: Child) -> Self {
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut line = || lines.next().unwrap_or_else(|| Ok(String::new())).unwrap();
        let (url, said) = (line(), line());
        Server { child, url, said }
    }

    /// `host:port` and what follows it.
    fn address(&self) -> (&str, &str) {
        self.url.strip_prefix("http://").unwrap().split_once('/').unwrap()
    }

    /// What it answers to somebody who has the token, if there is one: other users of the machine may be logged in.
    fn get(&self, path: &str) -> String {
        let token =
            self.address().1.split('#').next().and_then(|rest| rest.strip_prefix("?token=")).unwrap_or("");
        self.ask(path, &format!("x-stepscope-token: {token}\r\n"))
    }

    fn ask(&self, path: &str, headers: &str) -> String {
        let (address, _) = self.address();
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n{headers}Connection: close\r\n\r\n")
            .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Interrupts it as Ctrl-C does; how long it took to end, and with which code.
    fn stop(mut self) -> (Duration, Option<i32>) {
        let began = Instant::now();
        Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        let status = self.child.wait().unwrap();
        (began.elapsed(), status.code())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn failed(arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = stepscope(arguments).output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

/// The JSON of an answer.
fn json_of(answer: &str) -> serde_json::Value {
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

fn fixtures() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").display().to_string()
}

#[test]
fn the_sample_is_on_the_page_and_an_interrupt_ends_it() {
    let server = Server::start(&["demo", "--serve", "--port", "0"]);
    assert!(server.url.starts_with("http://127.0.0.1:"), "{}", server.url);
    assert!(server.said.contains("the sample") && server.said.contains("stop"), "{}", server.said);
    assert!(server.get("/").starts_with("HTTP/1.1 200 OK"));
    assert!(server.get("/api/sessions").contains("\"name\":\"sample\""));
    // A connection that stays open, as a browser's does, does not hold up the end.
    let (address, _) = server.address();
    let mut idle = TcpStream::connect(address).unwrap();
    write!(idle, "GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    idle.read_exact(&mut [0; 12]).unwrap();
    let (took, code) = server.stop();
    assert_eq!(code, Some(0));
    assert!(took < Duration::from_secs(60), "{took:?}");
}

#[test]
fn a_folder_is_served_with_all_its_sessions() {
    let server = Server::start(&["serve", &fixtures(), "--port", "0"]);
    assert!(server.said.contains("sessions in"), "{}", server.said);
    let answer = server.get("/api/sessions");
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    let list: serde_json::Value = serde_json::from_str(body).unwrap();
    assert!(list["sessions"].as_array().unwrap().len() > 1);
    assert_eq!(list["watching"], true);
    let give_up = Instant::now() + Duration::from_secs(60);
    let report = loop {
        let answer = server.get("/api/s/0/report");
        if !answer.starts_with("HTTP/1.1 202") || Instant::now() > give_up {
            break answer;
        }
    };
    assert!(report.starts_with("HTTP/1.1 200") && report.contains("stepscope.report.v1"), "{report}");
}

#[test]
fn a_port_that_is_taken_is_named_and_another_is_found_where_none_was_wanted() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (code, said) = failed(&["serve", &fixtures(), "--port", &port]);
    assert_eq!(code, Some(3));
    assert!(
        said.starts_with("error: cannot listen on") && said.contains(&port) && said.contains("--port"),
        "{said}"
    );
    // Whoever has the usual port, we or somebody else: the next one is taken.
    let usual = TcpListener::bind("127.0.0.1:6200");
    let server = Server::start(&["demo", "--serve"]);
    let number: u16 = server.address().0.rsplit_once(':').unwrap().1.parse().unwrap();
    assert!((6201..=6210).contains(&number), "{number}");
    drop(usual);
}

#[test]
fn beyond_this_machine_the_address_has_a_token_and_data_wants_it() {
    let server = Server::start(&["demo", "--serve", "--port", "0", "--listen", "0.0.0.0"]);
    let (_, token) = server.address();
    let token = token.strip_prefix("?token=").expect("a token in the address");
    assert_eq!(token.len(), 32);
    assert!(server.ask("/api/sessions", "").starts_with("HTTP/1.1 403"));
    assert!(server.ask(&format!("/api/sessions?token={token}"), "").starts_with("HTTP/1.1 200"));
    assert!(server.ask("/", "").starts_with("HTTP/1.1 200"));
    let (code, said) = failed(&["demo", "--serve", "--port", "0", "--listen", "0.0.0.0", "--token=never"]);
    assert_eq!(code, Some(2), "{said}");
}

#[test]
fn a_token_can_be_asked_for_and_a_cookie_takes_its_place() {
    let server = Server::start(&["demo", "--serve", "--port", "0", "--token"]);
    let (_, rest) = server.address();
    assert!(server.ask("/api/sessions", "").starts_with("HTTP/1.1 403"));
    let page = server.ask(&format!("/{rest}"), "");
    let cookie = page.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
    let cookie = format!("Cookie: {}\r\n", cookie.split(';').next().unwrap());
    assert!(server.ask("/api/sessions", &cookie).starts_with("HTTP/1.1 200"));
    assert!(!server.ask("/", &cookie).contains("set-cookie"), "once is enough");
    assert!(!server.ask("/?token=0123", "").contains("set-cookie"), "not to somebody who guesses");
    let open = Server::start(&["demo", "--serve", "--port", "0", "--token=never"]);
    assert!(open.ask("/api/sessions", "").starts_with("HTTP/1.1 200"));
}

/// A session whose loading never ends: the tool that it needs hangs.
#[cfg(unix)]
#[test]
fn a_session_that_hangs_holds_up_no_other() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let tool = folder.path().join("nsys");
    std::fs::write(&tool, "#!/bin/sh\nexec sleep 600\n").unwrap();
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    let logs = folder.path().join("logs");
    std::fs::create_dir(&logs).unwrap();
    for name in ["a.nsys-rep", "b.nsys-rep", "c.nsys-rep", "d.nsys-rep"] {
        std::fs::write(logs.join(name), b"NVIDIA Tegra Profiler Report 2026.1.3.\0").unwrap();
    }
    let event = r#"{"ph": "X", "name": "op", "pid": 1, "tid": 1, "ts": 1, "dur": 2}"#;
    std::fs::write(logs.join("fine.json"), format!("{{\"traceEvents\": [{event}]}}")).unwrap();
    let mut command = stepscope(&["serve", logs.to_str().unwrap(), "--port", "0", "--load-time", "3s"]);
    command.env("NSYS_PATH", folder.path()).env("XDG_CACHE_HOME", folder.path().join("cache"));
    let server = Server::of(command.spawn().unwrap());
    let list = server.get("/api/sessions");
    let list: serde_json::Value = serde_json::from_str(list.split_once("\r\n\r\n").unwrap().1).unwrap();
    let sessions = list["sessions"].as_array().unwrap();
    let (fine, hung): (Vec<_>, Vec<_>) = sessions.iter().partition(|session| session["name"] == "fine.json");
    let report = |session: &serde_json::Value| server.get(&format!("/api/s/{}/report", session["id"]));
    for session in &hung {
        assert!(report(session).starts_with("HTTP/1.1 202"), "it is being loaded");
    }
    let give_up = Instant::now() + Duration::from_secs(120);
    let until_done = |session: &serde_json::Value| loop {
        let answer = report(session);
        if !answer.starts_with("HTTP/1.1 202") || Instant::now() > give_up {
            break answer;
        }
    };
    assert!(until_done(fine[0]).starts_with("HTTP/1.1 200"));
    let failed = until_done(hung[0]);
    assert!(failed.starts_with("HTTP/1.1 422") && failed.contains("too long"), "{failed}");
    assert!(report(fine[0]).starts_with("HTTP/1.1 200"));
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [pipe.to_str().unwrap(), "/dev/zero"] {
        for command in ["report", "ops", "serve", "info"] {
            let (code, said) = failed(&[command, path]);
            assert_eq!(code, Some(2), "{command} {path}: {said}");
            assert!(said.contains("is not a file or folder; found a pipe"), "{said}");
        }
    }
}

#[test]
fn what_is_not_there_is_an_error_and_an_empty_folder_is_waited_on() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing").display().to_string();
    let (code, said) = failed(&["serve", &missing, "--port", "0"]);
    assert_eq!(code, Some(3));
    assert!(said.contains("missing"), "{said}");
    let notes = folder.path().join("notes.txt");
    std::fs::write(&notes, "not a profile").unwrap();
    let (code, said) = failed(&["serve", &notes.display().to_string(), "--port", "0"]);
    assert_eq!(code, Some(3));
    assert!(said.contains("no profile in"), "{said}");
    let server = Server::start(&["serve", &folder.path().display().to_string(), "--port", "0"]);
    assert!(server.said.contains("0 sessions"), "{}", server.said);
    assert!(server.get("/api/sessions").contains("\"current\":null"));
    let (code, _) = failed(&["demo", "--serve", "--json"]);
    assert_eq!(code, Some(2), "one or the other");
}

#[test]
fn the_fleet_of_a_folder_is_on_the_page_and_fits_its_schemas() {
    let fleet = support::fleet::Fleet::planted();
    let mut command = stepscope(&["fleet", "serve", &fleet.text("logs"), "--port", "0"]);
    let server = Server::of(command.env("XDG_CACHE_HOME", fleet.path("cache")).spawn().unwrap());
    assert!(server.url.ends_with("#//fleet"), "{}", server.url);
    let give_up = Instant::now() + Duration::from_secs(120);
    let state = loop {
        let state = json_of(&server.get("/api/fleet"));
        if state["state"] != "reading" || Instant::now() > give_up {
            break state;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    support::schema::fits(&state);
    assert_eq!(state["state"], "ready", "{state}");
    let report = json_of(&server.get("/api/fleet/report"));
    support::schema::fits(&report);
    let rows = report["series"].as_array().unwrap();
    let mapped = rows.iter().find(|row| row["step_map"] == true && row["job"] == "vision/a").unwrap();
    let id = mapped["recording"].as_str().unwrap();
    let map = json_of(&server.get(&format!("/api/fleet/steps?recording={id}")));
    support::schema::fits(&map);
    assert_eq!(map["hosts"].as_array().unwrap().len(), 5);
    assert!(state["sessions"][id].is_number(), "{state}");
    assert!(server.get("/api/fleet/steps?recording=none").starts_with("HTTP/1.1 404"));
}
