//! The server as seen by a browser, a script and an attacker.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use serde_json::Value;
use stepscope_testkit::chrome::{ChromeEvent, ChromeTrace};
use stepscope_testkit::damage::Rng;
use tempfile::TempDir;
use tower::ServiceExt as _;

use crate::guard::Guard;
use crate::routes::{App, router};
use crate::store::{Limits, SessionSource, Store};

const HOST: &str = "127.0.0.1:6200";

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{:?}", self.body))
    }
}

struct Client {
    router: Router,
    runtime: tokio::runtime::Runtime,
}

impl Client {
    fn new(source: SessionSource, token: Option<&str>) -> Self {
        let store =
            Store::find(source, Limits { sessions: 4, bytes: u64::MAX, load: Duration::from_secs(600) })
                .unwrap();
        let address = if token.is_some() { "0.0.0.0:6200" } else { HOST };
        let guard = Guard::new(address.parse().unwrap(), "127.0.0.1", token.map(str::to_owned));
        let router = router(App::new(store, guard));
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Client { router, runtime }
    }

    fn sample() -> Self {
        Client::new(SessionSource::Sample, None)
    }

    fn folder(path: &Path) -> Self {
        Client::new(SessionSource::Paths(vec![path.to_owned()]), None)
    }

    fn send(&self, method: Method, address: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = Request::builder().method(method).uri(address);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", HOST);
        }
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let request = request.body(Body::empty()).unwrap();
        self.runtime.block_on(async {
            let response = self.router.clone().oneshot(request).await.unwrap();
            let (parts, body) = response.into_parts();
            Answer {
                status: parts.status,
                headers: parts.headers,
                body: to_bytes(body, usize::MAX).await.unwrap(),
            }
        })
    }

    /// Requests like the page does: repeats while the session is being opened.
    fn get(&self, address: &str) -> Answer {
        loop {
            let answer = self.send(Method::GET, address, &[]);
            if answer.status != StatusCode::ACCEPTED {
                return answer;
            }
        }
    }

    fn data(&self, address: &str) -> Value {
        let answer = self.get(address);
        assert_eq!(answer.status, StatusCode::OK, "{address}: {:?}", answer.body);
        answer.json()
    }
}

/// Every address that returns JSON about a session, with a valid query.
const ADDRESSES: [&str; 22] = [
    "/api/s/0/report",
    "/api/s/0/info",
    "/api/s/0/view/steps",
    "/api/s/0/view/ops",
    "/api/s/0/view/ops?by=type",
    "/api/s/0/view/kernels",
    "/api/s/0/view/scopes",
    "/api/s/0/view/functions",
    "/api/s/0/view/input",
    "/api/s/0/view/memory",
    "/api/s/0/view/devices",
    "/api/s/0/view/inference",
    "/api/s/0/view/health",
    "/api/compare?base=0&new=0",
    "/api/s/0/timeline",
    "/api/s/0/overview?buckets=16",
    "/api/s/0/search?q=a&limit=3",
    "/api/s/0/area?start_ns=0&end_ns=1e9",
    "/api/s/0/at?track=0&row=0&t_ns=1&tolerance_ns=1000",
    "/api/s/0/event?track=0&event=0",
    "/api/s/0/neighbour?track=0&event=0&dir=next&same=row",
    "/api/sessions",
];

#[test]
fn every_address_answers_about_the_sample() {
    let client = Client::sample();
    for address in ADDRESSES {
        let answer = client.data(address);
        assert!(answer.as_object().is_some_and(|members| !members.is_empty()), "{address}");
    }
    let report = client.data("/api/s/0/report");
    assert_eq!(report["schema"], "stepscope.report.v1");
    assert_eq!((&report["session"], &report["step_host"]), (&"sample".into(), &"trainer".into()));
    assert_eq!(report["findings"][0]["summary"], report["verdict"]["headline"]);
    assert!(report["breakdown"][0]["title"].is_string() && report["breakdown"][0]["about"].is_string());
    let place =
        report["findings"].as_array().unwrap().iter().find_map(|finding| finding["place"].as_object());
    assert!(place.is_some_and(|place| place["start_ns"].as_f64() < place["end_ns"].as_f64()));
    let ops = client.data("/api/s/0/view/ops");
    let rows = ops["rows"].as_u64().unwrap() as usize;
    assert!(
        rows > 0
            && ops["columns"]
                .as_array()
                .unwrap()
                .iter()
                .all(|c| c["values"].as_array().unwrap().len() == rows)
    );
    assert_eq!(ops["ways"], serde_json::json!(["name", "type"]));
    let timeline = client.data("/api/s/0/timeline");
    assert!(
        !timeline["tracks"].as_array().unwrap().is_empty()
            && !timeline["steps"].as_array().unwrap().is_empty()
    );
    let csv = client.get("/api/s/0/csv/ops");
    assert!(csv.body.starts_with(b"name,"));
    assert_eq!(csv.headers["content-disposition"], "attachment; filename=\"ops.csv\"");
    let tile = client.get("/api/s/0/tiles?level=30&tile=0&tracks=0");
    assert_eq!((tile.status, &tile.body[..4]), (StatusCode::OK, &b"SST1"[..]));
    assert_eq!(client.data("/api/categories").as_array().unwrap().len(), 15);
    let memory = client.data("/api/s/0/memory_at?allocator=0&t_ns=300000000");
    let sum: i64 = memory["rows"].as_array().unwrap().iter().map(|row| row["bytes"].as_i64().unwrap()).sum();
    assert!(sum > 0 && sum <= memory["in_use"].as_i64().unwrap());
}

#[test]
fn the_memory_of_a_snapshot_is_drawn_as_it_was() {
    use stepscope_testkit::snapshot::{Pickler, Simulated, Writer};
    let program = Simulated::random(&mut Rng::new(7), 600);
    let folder = TempDir::new().unwrap();
    let bytes = Pickler::dump(Writer::Python(4), &program.snapshot(usize::MAX));
    fs::write(folder.path().join("snapshot.pickle"), bytes).unwrap();
    let client = Client::folder(folder.path());
    let curve = client.data("/api/s/0/memory_over?allocator=0");
    let times = curve["t_ns"].as_array().unwrap();
    let in_use: Vec<i64> = (0..times.len())
        .map(|at| {
            curve["roles"].as_array().unwrap().iter().map(|role| role["bytes"][at].as_i64().unwrap()).sum()
        })
        .collect();
    assert_eq!(in_use.iter().copied().max(), i64::try_from(program.peak.0).ok());
    let peak = in_use.iter().position(|&bytes| bytes as u64 == program.peak.0).unwrap();
    let live = client.data(&format!("/api/s/0/memory_at?allocator=0&t_ns={}", times[peak]));
    assert_eq!(live["in_use"].as_u64(), Some(program.peak.0));
    let calls = live["calls"].as_array().unwrap();
    let roots = calls.iter().filter(|call| call["parent"].is_null());
    assert_eq!(roots.map(|call| call["bytes"].as_u64().unwrap()).sum::<u64>(), program.peak.0);
    let map = client.data("/api/s/0/memory_map?allocator=0");
    let sizes = map["ranges"].as_array().unwrap().iter().map(|range| range["bytes"].as_u64().unwrap());
    assert_eq!(
        sizes.sum::<u64>() as i64,
        curve["reserved"].as_array().unwrap().last().unwrap().as_i64().unwrap()
    );
    assert!(map["blocks"].as_array().unwrap().len() > 100 && map["omitted"] == 0);
}

#[test]
fn every_view_that_is_described_is_answered() {
    let client = Client::sample();
    let views = client.data("/api/views");
    let views = views.as_array().unwrap();
    assert!(views.len() >= 10);
    for view in views {
        let name = view["name"].as_str().unwrap();
        for part in ["title", "group", "question", "about"] {
            assert!(!view[part].as_str().unwrap().is_empty(), "{name}: {part}");
        }
        let answer = client.data(&format!("/api/s/0/view/{name}"));
        assert_eq!((&answer["view"], &answer["ways"]), (&view["name"], &view["ways"]));
        for way in view["ways"].as_array().unwrap() {
            client.data(&format!("/api/s/0/view/{name}?by={}", way.as_str().unwrap()));
        }
        let keys: Vec<&Value> =
            answer["columns"].as_array().unwrap().iter().map(|column| &column["key"]).collect();
        assert!(view["events"].is_null() || keys.contains(&&view["events"]), "{name}: {keys:?}");
    }
}

#[test]
fn the_page_is_served_with_its_guards_and_only_once() {
    let client = Client::sample();
    let page = client.get("/");
    assert_eq!(
        (page.status, &page.headers["content-type"]),
        (StatusCode::OK, &"text/html; charset=utf-8".parse().unwrap())
    );
    let etag = page.headers["etag"].to_str().unwrap();
    let again = client.send(Method::GET, "/", &[("if-none-match", etag)]);
    assert_eq!((again.status, again.body.len()), (StatusCode::NOT_MODIFIED, 0));
    let packed = client.send(Method::GET, "/", &[("accept-encoding", "gzip, br")]);
    assert_eq!(packed.headers["content-encoding"], "gzip");
    let head = client.send(Method::HEAD, "/", &[]);
    assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0));
    assert_eq!(head.headers["content-length"], page.body.len().to_string());
    assert_eq!(client.get("/api/sessions").headers["cache-control"], "no-store");
}

#[test]
fn every_answer_forbids_what_the_page_does_not_need() {
    let client = Client::sample();
    let foreign = client.send(Method::GET, "/", &[("host", "evil.example:6200")]);
    let posted = client.send(Method::POST, "/api/sessions", &[]);
    for answer in [
        client.get("/"),
        client.get("/nowhere"),
        client.get("/api/sessions"),
        client.get("/api/s/9/report"),
        foreign,
        posted,
    ] {
        let csp = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(
            csp.starts_with("default-src 'none'; script-src 'self';")
                && csp.contains("frame-ancestors 'none'")
        );
        assert!(!csp.contains("unsafe-eval") && !csp.contains("script-src 'self' 'unsafe-inline'"));
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
        assert_eq!(answer.headers["referrer-policy"], "no-referrer");
        assert_eq!(answer.headers["cross-origin-resource-policy"], "same-origin");
    }
}

#[test]
fn other_names_other_sites_and_other_methods_are_refused() {
    let client = Client::sample();
    let refused = |headers: &[(&str, &str)]| client.send(Method::GET, "/api/sessions", headers).status;
    assert_eq!(refused(&[("host", "evil.example:6200")]), StatusCode::FORBIDDEN);
    assert_eq!(refused(&[("host", "")]), StatusCode::FORBIDDEN);
    assert_eq!(refused(&[("origin", "http://evil.example")]), StatusCode::FORBIDDEN);
    assert_eq!(refused(&[("origin", "null")]), StatusCode::FORBIDDEN);
    assert_eq!(refused(&[("sec-fetch-site", "cross-site")]), StatusCode::FORBIDDEN);
    assert_eq!(refused(&[("origin", "http://127.0.0.1:6200")]), StatusCode::OK);
    let body = client.send(Method::GET, "/api/sessions", &[("host", "evil.example")]).json();
    assert!(body["error"]["todo"].as_str().unwrap().contains("stepscope serve"));
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS, Method::TRACE] {
        let answer = client.send(method, "/api/sessions", &[]);
        assert_eq!(
            (answer.status, &answer.headers["allow"]),
            (StatusCode::METHOD_NOT_ALLOWED, &"GET, HEAD".parse().unwrap())
        );
    }
}

#[test]
fn beyond_this_machine_every_request_for_data_wants_the_token() {
    let client = Client::new(SessionSource::Sample, Some("0123456789abcdef"));
    assert_eq!(client.get("/").status, StatusCode::OK, "the page itself holds nothing");
    for address in
        ADDRESSES.iter().chain(&["/api/categories", "/api/views", "/api/nowhere", "/api/s/0/csv/ops", "/api"])
    {
        assert_eq!(client.send(Method::GET, address, &[]).status, StatusCode::FORBIDDEN, "{address}");
    }
    let ask = |address: &str, headers: &[(&str, &str)]| client.send(Method::GET, address, headers).status;
    assert_eq!(ask("/api/sessions", &[("x-stepscope-token", "0123456789abcdef")]), StatusCode::OK);
    assert_eq!(ask("/api/sessions?token=0123456789abcdef", &[]), StatusCode::OK);
    assert_eq!(ask("/api/sessions?token=0123456789abcdeX", &[]), StatusCode::FORBIDDEN);
    assert_eq!(ask("/api/sessions?token=", &[]), StatusCode::FORBIDDEN);
}

#[test]
fn no_path_leads_out_of_the_page() {
    let client = Client::sample();
    for path in [
        "/../Cargo.toml",
        "/..%2fCargo.toml",
        "/%2e%2e/Cargo.toml",
        "/%2e%2e%2f%2e%2e%2fetc/passwd",
        "//etc/passwd",
        "/etc/passwd",
        "/assets/../../Cargo.toml",
        "/assets/..%5c..%5cCargo.toml",
        "/index.html%00.js",
        "/.",
        "/assets/",
        "/api",
        "/api/",
        "/api/s",
        "/api/s/0",
        "/api/s/0/../1/report",
        "/api/s/0/view/..%2f..%2fetc",
        "/api/s/-1/report",
        "/api/s/99999999999999999999999/report",
        "/api/s/0/view/nothing",
        "/api/s/0/view/ops?by=..",
        "/api/s/0/csv/%2e%2e",
        "/api/s/0/report/more",
        "/API/sessions",
    ] {
        let answer = client.get(path);
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
        assert!(answer.json()["error"]["what"].is_string(), "{path}");
    }
}

#[test]
fn what_cannot_be_meant_is_refused_in_words() {
    let client = Client::sample();
    client.data("/api/s/0/timeline");
    let tracks = "1,".repeat(2_000);
    for query in [
        "tiles?level=63&tile=0&tracks=0",
        "tiles?level=-1&tile=0",
        "tiles?level=1",
        "tiles?level=x&tile=0&tracks=0",
        "tiles?level=3&tile=1e9&tracks=0",
        "tiles?level=3&tile=0&tracks=a",
        "at?track=0&row=0&t_ns=NaN",
        "at?track=0&row=0&t_ns=inf",
        "at?track=0&row=-1&t_ns=0",
        "area?start_ns=0",
        "area?start_ns=0&end_ns=1e99",
        "search?q=",
        "search",
        "search?q=/(/",
        "search?q=a&limit=many",
        "event?track=0",
        "event?track=&event=0",
        "neighbour?track=0&event=0",
        "neighbour?track=0&event=0&dir=up",
        "overview?buckets=-3",
        "memory_at?allocator=0",
        "memory_over",
        "memory_map?allocator=x",
    ] {
        let answer = client.get(&format!("/api/s/0/{query}"));
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}");
        assert!(answer.json()["error"]["what"].is_string());
    }
    assert_eq!(
        client.get(&format!("/api/s/0/tiles?level=3&tile=0&tracks={tracks}")).status,
        StatusCode::BAD_REQUEST
    );
    let long = format!("/api/s/0/search?q={}", "a".repeat(20_000));
    assert_eq!(client.get(&long).status, StatusCode::URI_TOO_LONG);
    for query in [
        "tiles?level=3&tile=0&tracks=9999",
        "event?track=0&event=4000000000",
        "memory_at?allocator=99&t_ns=0",
        "memory_over?allocator=99",
        "memory_map?allocator=99",
    ] {
        assert_eq!(client.get(&format!("/api/s/0/{query}")).status, StatusCode::NOT_FOUND, "{query}");
    }
}

#[test]
fn no_query_whatsoever_breaks_or_stalls_the_server() {
    let client = Client::sample();
    client.data("/api/s/0/timeline");
    let mut rng = Rng::new(42);
    let addresses: Vec<&str> =
        "tiles event neighbour at search area overview memory_at memory_over memory_map view/ops csv/steps"
            .split(' ')
            .collect();
    let keys: Vec<&str> =
        "level tile tracks track event dir same row t_ns tolerance_ns q offset limit start_ns end_ns \
        buckets allocator by token"
            .split(' ')
            .collect();
    let values: Vec<&str> =
        "0 1 2 62 63 -1 1e18 -9.3e18 NaN 18446744073709551615 9223372036854775807 4294967295 0,1,2 \
        ,,, next previous name row type a /.*/ /(a|b)*c/ %00 %ff  1e15 -1e15 0.5 560962146 \
        %F0%9F%92%A9"
            .split(' ')
            .collect();
    for _ in 0..3_000 {
        let parts: Vec<String> = (0..rng.below(7))
            .map(|_| format!("{}={}", keys[rng.below(keys.len())], values[rng.below(values.len())]))
            .collect();
        let address = format!("/api/s/0/{}?{}", addresses[rng.below(addresses.len())], parts.join("&"));
        let began = Instant::now();
        let answer = client.get(&address);
        assert!(answer.status.as_u16() < 500, "{address}: {:?}", answer.body);
        assert!(!answer.body.is_empty(), "{address}");
        assert!(began.elapsed() < Duration::from_secs(20), "{address}");
    }
}

#[test]
fn damaged_and_empty_profiles_are_shown_as_far_as_they_go() {
    let whole = fs::read(sample_path()).unwrap();
    let mut slices = ChromeTrace::new();
    for number in 0..100 {
        slices = slices.event(&ChromeEvent::slice("op", "cpu_op", 1, 1, &number.to_string(), "0.5"));
    }
    let text = slices.text().into_bytes();
    let inputs: [(&str, &[u8]); 5] = [
        ("half.xplane.pb", &whole[..whole.len() / 2]),
        ("short.xplane.pb", &whole[..2_000]),
        ("cut.json", &text[..text.len() * 2 / 3]),
        ("none.json", b"{\"traceEvents\": []}"),
        (
            "one.json",
            b"{\"traceEvents\": [{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":5,\"dur\":0}]}",
        ),
    ];
    for (name, bytes) in inputs {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join(name), bytes).unwrap();
        let client = Client::folder(folder.path());
        assert_eq!(client.data("/api/sessions")["sessions"].as_array().unwrap().len(), 1, "{name}");
        for address in ADDRESSES {
            let answer = client.get(address);
            let expected = [StatusCode::OK, StatusCode::UNPROCESSABLE_ENTITY, StatusCode::NOT_FOUND];
            assert!(expected.contains(&answer.status), "{name} {address}: {:?}", answer.body);
            assert!(answer.body.len() > 2, "{name} {address}");
        }
        let report = client.get("/api/s/0/report");
        if name == "half.xplane.pb" {
            assert!(!report.json()["damage"][0]["what"].as_str().unwrap().is_empty());
        }
    }
}

#[test]
fn a_file_that_holds_nothing_readable_says_why() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("a.json"), ChromeTrace::new().text()).unwrap();
    let client = Client::folder(folder.path());
    fs::remove_file(folder.path().join("a.json")).unwrap();
    let answer = client.get("/api/s/0/report");
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    let error = &answer.json()["error"];
    assert!(
        ["what", "found", "todo"].iter().all(|part| !error[*part].as_str().unwrap().is_empty()),
        "{error}"
    );
    assert_eq!(client.data("/api/sessions")["sessions"][0]["state"], "failed");
}

fn sample_path() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/tf-input-bound/plugins/profile/2026_01_01_00_00_00/trainer.xplane.pb")
}

/// A folder with graph, op log and two runs of classic TensorFlow.
fn tensorflow() -> TempDir {
    use stepscope_testkit::tfprof;
    let folder = TempDir::new().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write("graph.pb", &tfprof::graph());
    write("op_log.pb", &tfprof::op_log());
    write("run_meta_0.pb", &tfprof::run(0, 40));
    write("run_meta_1.pb", &tfprof::run(1, 42));
    folder
}

#[test]
fn the_model_behind_runs_is_shown_with_what_lies_beside_them() {
    let folder = tensorflow();
    let client = Client::folder(folder.path());
    let about = client.data("/api/s/0/model");
    assert!(about["files"]["graph"].as_str().unwrap().ends_with("graph.pb"));
    assert_eq!((&about["steps"], &about["has_stacks"]), (&serde_json::json!([0, 1]), &true.into()));
    let view = client.data("/api/s/0/model/view?view=scope&show=dense.*");
    assert_eq!(view["names"][0], "dense");
    assert_eq!(view["above"][1], 0);
    assert_eq!(view["total"]["params"][0], 6);
    let command = view["command"].as_str().unwrap();
    assert!(command.starts_with("stepscope tfprof scope --graph_path "), "{command}");
    assert!(command.ends_with("--max_depth 10000 --show_name_regexes 'dense.*'"), "{command}");
    let ops = client.data("/api/s/0/model/view?view=op&fix=1&step=1");
    assert!(ops["names"].as_array().unwrap().contains(&"_FusedMatMul".into()));
    assert!(ops["command"].as_str().unwrap().ends_with("--step 1 --fix"));
}

#[test]
fn the_graph_is_walked_node_by_node() {
    let folder = tensorflow();
    let client = Client::folder(folder.path());
    let ends = client.data("/api/s/0/model/node");
    let end = ends["ends"].as_array().unwrap().iter().find(|it| it["op"] == "MatMul").unwrap();
    let node = client.data(&format!("/api/s/0/model/node?name={}", end["name"].as_str().unwrap()));
    let links: Vec<_> =
        node["inputs"].as_array().unwrap().iter().map(|it| (&it["name"], &it["port"])).collect();
    assert_eq!(links, [(&"dense/Relu".into(), &0.into()), (&"x".into(), &Value::Null)]);
    let found = client.data("/api/s/0/model/find?q=relu%24");
    assert_eq!((&found["total"], &found["nodes"][0]["own"]["micros"][0]), (&1.into(), &41.into()));
    let variables = client.data("/api/s/0/model/variables");
    assert_eq!(variables["rows"][0]["name"], "dense/kernel");
    assert_eq!(variables["rows"][0]["parameters"], 6);
}

#[test]
fn questions_about_a_model_that_make_no_sense_are_refused() {
    let folder = tensorflow();
    let client = Client::folder(folder.path());
    let status = |address: &str| client.get(address).status;
    assert_eq!(status("/api/s/0/model/view?view=treemap"), StatusCode::BAD_REQUEST);
    assert_eq!(status("/api/s/0/model/view?show=%28"), StatusCode::BAD_REQUEST);
    assert_eq!(status("/api/s/0/model/view?step=7"), StatusCode::BAD_REQUEST);
    assert_eq!(status("/api/s/0/model/find?q=%28"), StatusCode::BAD_REQUEST);
    assert_eq!(status("/api/s/0/model/node?name=nowhere"), StatusCode::NOT_FOUND);
    assert_eq!(status("/api/s/0/model/elsewhere"), StatusCode::NOT_FOUND);
    let other = Client::sample();
    assert_eq!(other.data("/api/s/0/model")["files"], Value::Null);
    assert_eq!(other.get("/api/s/0/model/view").status, StatusCode::NOT_FOUND);
}
