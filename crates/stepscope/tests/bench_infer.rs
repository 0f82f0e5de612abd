//! `stepscope bench infer` against servers with known delays. The results are compared with the server's own
//! log of the same run, because this machine may be busy with other things.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{code, retried, stepscope};

/// What a server does with a request, once it has read it.
type Answer = dyn Fn(usize, &mut TcpStream) -> bool + Send + Sync;

/// An HTTP server with a thread for each connection, which logs how long each request took from read to answered.
struct Server {
    url: String,
    served: Arc<Mutex<Vec<Duration>>>,
}

impl Server {
    /// `answer` gets the request's number and the connection; `false` closes it.
    fn new(answer: impl Fn(usize, &mut TcpStream) -> bool + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1/models/m:predict", listener.local_addr().unwrap());
        let (served, answer): (Arc<Mutex<Vec<Duration>>>, Arc<Answer>) = (Arc::default(), Arc::new(answer));
        let log = Arc::clone(&served);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                thread::spawn(move || serve(stream.unwrap(), &log, &*answer));
            }
        });
        Server { url, served }
    }

    /// The log, shortest first.
    fn served_ms(&self) -> Vec<f64> {
        let mut served: Vec<f64> =
            self.served.lock().unwrap().iter().map(|time| time.as_secs_f64() * 1e3).collect();
        served.sort_by(f64::total_cmp);
        served
    }
}

fn serve(mut stream: TcpStream, log: &Mutex<Vec<Duration>>, answer: &Answer) {
    stream.set_nodelay(true).unwrap();
    let mut from = BufReader::new(stream.try_clone().unwrap());
    while read_request(&mut from) {
        let begun = Instant::now();
        let number = {
            let mut log = log.lock().unwrap();
            log.push(Duration::ZERO);
            log.len() - 1
        };
        let again = answer(number, &mut stream);
        log.lock().unwrap()[number] = begun.elapsed();
        if !again {
            return;
        }
    }
}

fn read_request(from: &mut impl BufRead) -> bool {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if from.read_line(&mut line).unwrap_or(0) == 0 {
            return false;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            return from.read_exact(&mut vec![0; length]).is_ok();
        }
    }
}

fn reply(to: &mut TcpStream, status: &str, body: &str) -> bool {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
    to.write_all(format!("{head}{body}").as_bytes()).is_ok()
}

fn good(to: &mut TcpStream) -> bool {
    reply(to, "200 OK", r#"{"predictions": [1]}"#)
}

const BODY: [&str; 2] = ["--body", r#"{"instances": [[1.0], [2.0], [3.0], [4.0]]}"#];

fn bench(url: &str, args: &[&str]) -> Output {
    stepscope().args(["bench", "infer", url]).args(BODY).args(args).output().unwrap()
}

fn json(output: &Output) -> Value {
    assert_eq!(code(output), 0, "{}", String::from_utf8_lossy(&output.stderr));
    let result = serde_json::from_slice(&output.stdout).unwrap();
    support::schema::fits(&result);
    result
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().ok_or_else(|| format!("no {key} in {row}")).unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The nearest rank.
fn percentile(sorted: &[f64], q: f64) -> f64 {
    sorted[((q * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len()) - 1]
}

const RATE: [&str; 7] = ["--rate", "100", "--duration", "6s", "--warmup", "0s", "--json"];

/// Delays of 20 to 120 ms: what the way there and back takes on a busy machine is little beside them.
fn delayed() -> Server {
    Server::new(|number, to| {
        thread::sleep(Duration::from_millis(20 + number as u64 * 37 % 101));
        good(to)
    })
}

/// The percentiles that are more than 2 % from those that the server saw; 6 ms more are the other tests' that run.
fn too_far(row: &Value, served: &[f64]) -> Vec<String> {
    let all = [("p50_ms", 0.5), ("p90_ms", 0.9), ("p95_ms", 0.95), ("p99_ms", 0.99)];
    let far = all.into_iter().filter_map(|(key, q)| {
        let (truth, measured) = (percentile(served, q), number(row, &format!("service_{key}")));
        let near = measured >= truth * 0.98 && measured <= truth * 1.02 + 6.0;
        (!near).then(|| format!("{key}: {measured}, truly {truth}"))
    });
    far.collect()
}

#[test]
fn percentiles_are_those_of_the_server() {
    retried(|| {
        let server = delayed();
        let result = json(&bench(&server.url, &RATE));
        let row = &result["rows"][0];
        let served = server.served_ms();
        // The very first request is the server's, and not in the figures; with 600 others it moves no percentile by much.
        assert_eq!(served.len() as f64, number(row, "requests") + 1.0);
        assert_eq!(too_far(row, &served), Vec::<String>::new());
        assert_eq!(result["schema"], "stepscope.bench.v1");
        assert_eq!(result["protocol"], "tensorflow-serving");
        assert_eq!(result["batch"], 4);
        assert!((number(row, "examples_per_s") / number(row, "throughput") - 4.0).abs() < 1e-9);
        assert!((number(row, "throughput") - 100.0).abs() < 5.0, "{row}");
        assert_eq!(row["failed_fraction"], 0.0);
        assert_eq!(row["p999_ms"], Value::Null, "600 requests say nothing about p99.9");
        let bins = result["histogram"].as_array().unwrap();
        let counted: f64 = bins.iter().map(|bin| number(bin, "count")).sum();
        assert_eq!(counted, number(row, "requests"));
    });
}

/// Answers at once, one request at a time, and stalls for a second once.
fn stalling() -> Server {
    let (stalled, busy) = (AtomicBool::new(false), Mutex::new(()));
    Server::new(move |number, to| {
        let _one_at_a_time = busy.lock().unwrap();
        if number > 1_000 && !stalled.swap(true, Ordering::Relaxed) {
            thread::sleep(Duration::from_secs(1));
        }
        good(to)
    })
}

#[test]
fn a_stall_shows_in_the_open_loop_and_hides_in_the_closed_one() {
    retried(|| {
        let server = stalling();
        let result =
            json(&bench(&server.url, &["--rate", "800", "--duration", "5s", "--warmup", "0s", "--json"]));
        let open = &result["rows"][0];
        let longest = *server.served_ms().last().unwrap();
        assert!(number(open, "p999_ms") > 0.9 * longest, "{open}");
        // 800 requests were due during the second: a fifth of all.
        assert!(number(open, "p90_ms") > 0.25 * longest, "{open}");

        let server = stalling();
        let args = ["--concurrency", "1", "--duration", "5s", "--warmup", "0s", "--json"];
        let result = json(&bench(&server.url, &args));
        let closed = &result["rows"][0];
        assert!(number(closed, "requests") > 2_995.0, "too few for p99.9: {closed}");
        assert!(number(closed, "max_ms") > 900.0, "{closed}");
        assert!(number(closed, "p99_ms") < 300.0, "{closed}");
        assert!(number(closed, "p999_ms") < 900.0, "{closed}");
    });
}

#[test]
fn clients_of_a_closed_loop_wait_for_their_answers() {
    retried(|| {
        let server = Server::new(|_, to| {
            thread::sleep(Duration::from_millis(20));
            good(to)
        });
        let args = ["--concurrency", "4", "--duration", "2s", "--warmup", "200ms", "--json"];
        let result = json(&bench(&server.url, &args));
        let row = &result["rows"][0];
        let mean = number(row, "mean_ms");
        // Little's law: clients = throughput × time.
        let clients = number(row, "throughput") * mean / 1e3;
        assert!((clients - 4.0).abs() < 0.25, "{clients} clients by {row}");
        assert!(number(row, "warmup_requests") > 0.0);
        assert!(number(row, "connections") <= 4.0);
    });
}

/// Four of ten requests fail, each in another way.
fn failing() -> Server {
    Server::new(|number, to| match number % 10 {
        1 => reply(to, "503 Service Unavailable", "overloaded"),
        2 => reply(to, "200 OK", r#"{ "error": "no such input" }"#),
        // Promises more than it sends, and closes.
        3 => {
            let _ = to.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf");
            false
        }
        4 => {
            let _ = to.write_all(b"this is not HTTP\r\n\r\n");
            false
        }
        _ => good(to),
    })
}

#[test]
fn errors_are_counted_by_kind() {
    retried(|| {
        let args = ["--rate", "100", "--duration", "3s", "--warmup", "0s", "--json"];
        let result = json(&bench(&failing().url, &args));
        let row = &result["rows"][0];
        let errors = row["errors"].as_object().unwrap();
        let keys: Vec<&str> = errors.keys().map(String::as_str).collect();
        assert_eq!(keys, ["body", "closed", "protocol", "status-503"]);
        assert!(errors.values().all(|count| (29.0..=31.0).contains(&count.as_f64().unwrap())), "{errors:?}");
        assert!((number(row, "failed_fraction") - 0.4).abs() < 0.02, "{row}");
        let text = String::from_utf8(bench(&failing().url, &args[..args.len() - 1]).stdout).unwrap();
        assert!(text.contains("HTTP status 503: overloaded"), "{text}");
        assert!(text.contains("the answer reports an error"), "{text}");
    });
}

#[test]
fn a_dripping_answer_times_out_and_counts_as_slow() {
    retried(|| {
        let server = Server::new(|number, to| {
            if number % 4 != 3 {
                return good(to);
            }
            let _ = to.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n");
            // A byte now and then, until the client has enough of it.
            while to.write_all(b"x").is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
            false
        });
        let args = ["--rate", "50", "--duration", "2s", "--warmup", "0s", "--timeout", "300ms", "--json"];
        let result = json(&bench(&server.url, &args));
        let row = &result["rows"][0];
        let timeouts = number(&row["errors"], "timeout");
        assert!((23.0..=27.0).contains(&timeouts), "{row}");
        assert!(number(row, "p90_ms") >= 299.0, "a quarter waited for the whole timeout: {row}");
        assert!(number(row, "p50_ms") < 299.0, "{row}");
    });
}

#[test]
fn nothing_but_errors_is_an_error_with_advice() {
    retried(|| {
        let refused = {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            format!("http://{}/", listener.local_addr().unwrap())
        };
        let output = bench(&refused, &[]);
        assert_eq!(code(&output), 3);
        assert!(told(&output).contains("connection refused"), "{}", told(&output));
        assert!(told(&output).contains("start the server"), "{}", told(&output));

        let broken = Server::new(|_, to| reply(to, "500 Internal Server Error", "out of memory"));
        let output = bench(&broken.url, &[]);
        assert_eq!(code(&output), 3);
        assert!(told(&output).contains("HTTP status 500: out of memory"), "{}", told(&output));

        // Well at first, then never again.
        let dying = Server::new(|number, to| if number == 0 { good(to) } else { reply(to, "500 Oh", "no") });
        let output = bench(&dying.url, &["--rate", "50", "--duration", "300ms", "--warmup", "0s"]);
        assert_eq!(code(&output), 3);
        assert!(told(&output).contains("15 × HTTP status 500"), "{}", told(&output));
        assert!(output.stdout.is_empty());
    });
}

#[test]
fn wrong_usage_is_told_from_a_server_that_is_not_there() {
    for (url, words) in [
        ("localhost:8501", "not a URL"),
        ("http://host:port/", "not a URL"),
        ("https://localhost/", "https is not supported"),
    ] {
        let output = bench(url, &[]);
        assert_eq!(code(&output), 2, "{url}");
        assert!(told(&output).contains(words), "{}", told(&output));
    }
    let missing = stepscope()
        .args(["bench", "infer", "http://localhost:1/", "--body", "missing.json"])
        .output()
        .unwrap();
    assert_eq!(code(&missing), 3);
    assert_eq!(code(&bench("http://localhost:1/", &["--rate", "0"])), 2);
    assert_eq!(code(&bench("http://localhost:1/", &["--rate", "5", "--concurrency", "5"])), 2);
}

#[test]
fn huge_answers_are_counted_and_not_kept() {
    // Answers of 64 MB each, dozens of them.
    let server = Server::new(|_, to| {
        let (size, piece) = (64 << 20, vec![b' '; 1 << 20]);
        let _ = to.write_all(format!("HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n").as_bytes());
        (0..64).all(|_| to.write_all(&piece).is_ok())
    });
    let result =
        json(&bench(&server.url, &["--concurrency", "4", "--duration", "2s", "--warmup", "0s", "--json"]));
    let row = &result["rows"][0];
    assert_eq!(number(row, "bytes_in"), number(row, "answered") * f64::from(64 << 20));
    // An answer without end is given up at the limit.
    let endless = Server::new(|number, to| {
        if number % 2 == 0 {
            return good(to);
        }
        let _ = to.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
        let piece = [&b"100000\r\n"[..], &vec![b' '; 1 << 20], b"\r\n"].concat();
        while to.write_all(&piece).is_ok() {}
        false
    });
    let args = ["--concurrency", "1", "--duration", "1s", "--warmup", "0s", "--timeout", "60s", "--json"];
    let result = json(&bench(&endless.url, &args));
    assert!(number(&result["rows"][0]["errors"], "too-large") >= 1.0, "{result}");
}

#[test]
fn a_sweep_finds_what_the_server_can_do() {
    retried(|| {
        // One at a time, at least 5 ms each: never more than 200 a second.
        let busy = Mutex::new(());
        let server = Server::new(move |_, to| {
            let _one_at_a_time = busy.lock().unwrap();
            thread::sleep(Duration::from_millis(5));
            good(to)
        });
        let args = [
            "--sweep",
            "--rate",
            "30",
            "--duration",
            "1500ms",
            "--warmup",
            "200ms",
            "--timeout",
            "2s",
            "--json",
        ];
        let result = json(&bench(&server.url, &args));
        let rows = result["rows"].as_array().unwrap();
        let highest = &rows[result["highest_row"].as_u64().unwrap() as usize];
        let best = rows.iter().map(|row| number(row, "throughput")).fold(0.0, f64::max);
        assert!(best <= 205.0, "no server is faster than it can be: {best}");
        assert!(
            highest["broken"].is_null() && number(highest, "rate") <= 1.06 * best,
            "{highest}, best {best}"
        );
        assert!(number(highest, "rate") >= 0.5 * best, "{highest}, best {best}");
        let last = rows.iter().max_by(|a, b| number(a, "rate").total_cmp(&number(b, "rate"))).unwrap();
        assert!(last["broken"].is_string(), "it was driven until it broke: {last}");
        assert!(result["knee_row"].is_u64());
        // The rates that one asks for, and no others.
        let asked = bench(
            &server.url,
            &["--sweep=20,40", "--duration", "500ms", "--warmup", "0s", "--slo", "p50=1s", "--csv"],
        );
        let text = String::from_utf8(asked.stdout).unwrap();
        let first: Vec<&str> = text.lines().skip(1).map(|line| line.split(',').next().unwrap()).collect();
        assert_eq!(first, ["20.0", "40.0"]);
    });
}

#[test]
fn an_interrupt_shows_what_was_measured_so_far() {
    retried(|| {
        let (reached, wait) = std::sync::mpsc::channel();
        let reached = Mutex::new(reached);
        let server = Server::new(move |number, to| {
            if number == 100 {
                reached.lock().unwrap().send(()).unwrap();
            }
            good(to)
        });
        let mut command = stepscope();
        command.args([
            "bench",
            "infer",
            &server.url,
            "--rate",
            "200",
            "--duration",
            "10m",
            "--warmup",
            "0s",
            "--json",
        ]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait.recv().unwrap();
        let killed =
            std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let result = json(&child.wait_with_output().unwrap());
        assert_eq!(result["stopped_early"], true);
        let row = &result["rows"][0];
        assert!(number(row, "requests") >= 90.0, "{row}");
        assert_eq!(row["failed_fraction"], 0.0, "requests under way are no failures");
        assert!((number(row, "throughput") - 200.0).abs() < 40.0, "{row}");
    });
}

#[test]
fn a_server_that_closes_after_each_answer_is_told_to_keep_alive() {
    let server = Server::new(|_, to| {
        let _ = to.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok");
        false
    });
    let output = bench(&server.url, &["--rate", "50", "--duration", "1s", "--warmup", "0s"]);
    assert_eq!(code(&output), 0);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Turn keep-alive on"), "{text}");
    assert!(text.contains("no errors"), "{text}");
}
