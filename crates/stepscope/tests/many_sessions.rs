//! A server over thousands of sessions: memory grows with their number and not with its square, the list comes at once,
//! and a server that nobody asks costs next to nothing.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const TRACE: &str = r#"{"traceEvents": [{"ph": "X", "name": "op", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]}"#;

/// Tiny sessions as profilers leave them.
fn sessions(folder: &Path, count: usize) {
    for number in 0..count {
        let session = folder.join(format!(
            "plugins/profile/2026_01_{:02}_{:02}_00_{number:05}",
            number % 28 + 1,
            number % 24
        ));
        fs::create_dir_all(&session).unwrap();
        fs::write(session.join("trainer.trace.json"), TRACE).unwrap();
    }
}

struct Server {
    child: Child,
    address: String,
    token: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn over(folder: &Path) -> Self {
        let mut command = support::stepscope();
        command.args(["serve", "--port", "0"]).arg(folder).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let (address, rest) = line.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
        let token = rest.strip_prefix("?token=").unwrap_or("").to_owned();
        Server { address: address.to_owned(), token, child }
    }

    fn get(&self, path: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (address, token) = (&self.address, &self.token);
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nx-stepscope-token: {token}\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    }

    fn of_process(&self, file: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).unwrap()
    }

    /// The most memory it ever had, in bytes.
    fn peak(&self) -> u64 {
        let status = self.of_process("status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().strip_suffix("kB").unwrap().trim().parse::<u64>().unwrap() * 1024
    }

    /// Time on a core, in hundredths of a second.
    fn ticks(&self) -> u64 {
        let stat = self.of_process("stat");
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }
}

#[test]
fn memory_is_linear_in_sessions() {
    let folder = tempfile::tempdir().unwrap();
    sessions(folder.path(), 2_000);
    let server = Server::over(folder.path());
    let list = server.get("/api/sessions");
    assert!(list.starts_with(b"HTTP/1.1 200") && list.len() > 2_000 * 100);
    // With a copy of the list for every session, it was 500 MB.
    assert!(server.peak() < 100 << 20, "{} MB", server.peak() >> 20);
}

/// Prints what ten thousand sessions cost: `cargo test -p stepscope --test many_sessions -- --ignored --nocapture`.
#[test]
#[ignore = "measures for a minute"]
fn ten_thousand_sessions() {
    let count = std::env::var("SESSIONS").map_or(10_000, |count| count.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    sessions(folder.path(), count);
    let began = Instant::now();
    let server = Server::over(folder.path());
    let started = began.elapsed();
    server.get("/api/s/0/report");
    std::thread::sleep(Duration::from_secs(5));
    let (mut best, mut bytes) = (Duration::MAX, 0);
    for _ in 0..5 {
        let began = Instant::now();
        bytes = server.get("/api/sessions").len();
        best = best.min(began.elapsed());
    }
    let (before, began) = (server.ticks(), Instant::now());
    std::thread::sleep(Duration::from_secs(40));
    let share = (server.ticks() - before) as f64 / 100.0 / began.elapsed().as_secs_f64();
    let line = format!(
        "{count} sessions: {started:.1?} to start, {} MB at most, list of {} kB in {best:.1?}, idle {:.2} % of a core\n",
        server.peak() >> 20,
        bytes >> 10,
        share * 100.0
    );
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    assert!(server.peak() < 100 << 20 && best < Duration::from_millis(50) && share < 0.005, "{line}");
}
