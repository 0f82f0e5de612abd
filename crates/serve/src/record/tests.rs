//! Recording as the page and as others ask for it.

use std::fs;
use std::sync::mpsc::{Receiver, Sender, channel};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use stepscope_session::Cause;
use tempfile::TempDir;
use tower::ServiceExt as _;

use super::*;
use crate::guard::Guard;
use crate::routes::{App, router};
use crate::store::{Limits, SessionSource};

const HOST: &str = "127.0.0.1:6200";
const TOKEN: &str = "secret";
const START: &str = "/api/record/start?address=localhost:6009&duration_ms=50";
/// What the page sends along.
const OURS: [(&str, &str); 4] = [
    ("origin", "http://127.0.0.1:6200"),
    ("sec-fetch-site", "same-origin"),
    ("x-stepscope-action", "1"),
    ("x-stepscope-token", TOKEN),
];

/// Writes the sample when it is told to, unless it is cancelled first.
#[derive(Debug)]
struct Fake {
    folder: PathBuf,
    go: Mutex<Receiver<Result<(), Problem>>>,
}

impl Record for Fake {
    fn folder(&self) -> &Path {
        &self.folder
    }

    fn record(&self, wish: &RecordWish, listener: &RecordListener) -> Result<PathBuf, Problem> {
        listener.window(Duration::ZERO, wish.duration);
        listener.remark(format!("recording {}", wish.address));
        let go = self.go.lock().unwrap();
        let until = Instant::now() + Duration::from_secs(30);
        while Instant::now() < until && !listener.is_cancelled() {
            if let Ok(told) = go.recv_timeout(Duration::from_millis(5)) {
                told?;
                let session = self.folder.join("plugins/profile/2026_01_01_00_00_00");
                fs::create_dir_all(&session).unwrap();
                fs::write(session.join("here.xplane.pb"), &**stepscope_session::sample().raw()).unwrap();
                return Ok(session);
            }
        }
        Err(Problem::new(Cause::Nothing, "interrupted"))
    }
}

struct Page {
    router: Router,
    runtime: tokio::runtime::Runtime,
    go: Sender<Result<(), Problem>>,
    folder: TempDir,
}

impl Page {
    fn new(records: bool) -> Self {
        let folder = TempDir::new().unwrap();
        let (go, told) = channel();
        let fake = Fake { folder: folder.path().to_owned(), go: Mutex::new(told) };
        let paths = SessionSource::Paths(vec![folder.path().to_owned()]);
        let store = Store::find(paths, Limits::default()).unwrap();
        let guard = Guard::new(HOST.parse().unwrap(), "127.0.0.1", Some(TOKEN.to_owned()));
        let with: Option<Arc<dyn Record>> = if records { Some(Arc::new(fake)) } else { None };
        let router = router(App::new(store, guard).recording(with));
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Page { router, runtime, go, folder }
    }

    fn ask(&self, method: Method, address: &str, headers: &[(&str, &str)]) -> (StatusCode, Value) {
        let request = Request::builder().method(method).uri(address);
        let host = headers.iter().any(|(name, _)| *name == "host");
        let request = if host { request } else { request.header("host", HOST) };
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        self.runtime.block_on(async {
            let response = self.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
            let status = response.status();
            let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
            (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
        })
    }

    fn post(&self, address: &str) -> (StatusCode, Value) {
        self.ask(Method::POST, address, &OURS)
    }

    fn about(&self) -> Value {
        self.ask(Method::GET, "/api/record", &[("x-stepscope-token", TOKEN)]).1
    }

    /// What came of it, once it is over.
    fn end(&self) -> Value {
        loop {
            let about = self.about();
            if about["state"] != "running" {
                return about;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_capture_is_recorded_shown_and_opened() {
    let page = Page::new(true);
    assert_eq!(page.about()["state"], "idle");
    assert_eq!(page.about()["into"], page.folder.path().display().to_string());
    let (status, about) = page.post(START);
    assert_eq!((status, &about["state"]), (StatusCode::OK, &json!("running")), "{about}");
    let (status, second) = page.post(START);
    assert_eq!(status, StatusCode::CONFLICT, "one at a time: {second}");
    while page.about()["stage"] != "recording" || page.about()["said"] == "" {
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(page.about()["window"]["lasts_ms"], 50.0);
    assert_eq!(page.about()["said"], "recording localhost:6009");
    page.go.send(Ok(())).unwrap();
    let end = page.end();
    assert_eq!((&end["state"], &end["session"]), (&json!("done"), &json!(0)), "{end}");
    let sessions = page.ask(Method::GET, "/api/sessions", &[("x-stepscope-token", TOKEN)]).1;
    assert_eq!(sessions["sessions"][0]["name"], "2026_01_01_00_00_00");
    assert_eq!(page.post(START).0, StatusCode::OK, "and then the next one");
}

#[test]
fn a_failure_and_a_cancelled_capture_are_told_and_leave_room_for_the_next() {
    let page = Page::new(true);
    page.post(START);
    let why = Problem::new(Cause::Nothing, "nothing is listening at localhost:6009")
        .then("refused")
        .then("start it");
    page.go.send(Err(why)).unwrap();
    let end = page.end();
    assert_eq!(end["state"], "failed");
    assert_eq!(end["error"]["what"], "nothing is listening at localhost:6009");
    assert_eq!(end["error"]["todo"], "start it");
    page.post(START);
    assert_eq!(page.post("/api/record/cancel").0, StatusCode::OK);
    assert_eq!(page.end()["state"], "cancelled");
    assert_eq!(page.post(START).0, StatusCode::OK);
    assert_eq!(fs::read_dir(page.folder.path()).unwrap().count(), 0, "nothing was written");
}

#[test]
fn nobody_but_the_page_itself_can_record() {
    let page = Page::new(true);
    let without = |name: &str| OURS.into_iter().filter(|(key, _)| *key != name).collect::<Vec<_>>();
    let with = |name: &'static str, value: &'static str| [without(name), vec![(name, value)]].concat();
    let mut refused = vec![
        ("no origin", without("origin")),
        ("no header of actions", without("x-stepscope-action")),
        ("no token", without("x-stepscope-token")),
        ("a wrong token", with("x-stepscope-token", "other")),
        ("our site, another port", with("sec-fetch-site", "same-site")),
        ("another site", with("sec-fetch-site", "cross-site")),
        ("a link", with("sec-fetch-site", "none")),
        ("another name of this machine", with("origin", "http://localhost:6200")),
        ("another name leads here", with("host", "evil.example:6200")),
    ];
    for origin in [
        "http://evil.example",
        "null",
        "http://127.0.0.1:3000",
        "https://127.0.0.1:6200",
        "http://127.0.0.1:6200.evil.example",
        "",
    ] {
        refused.push(("a foreign origin", with("origin", origin)));
    }
    for action in [START, "/api/record/cancel"] {
        for (what, headers) in &refused {
            let (status, said) = page.ask(Method::POST, action, headers);
            assert_eq!(status, StatusCode::FORBIDDEN, "{what}: {headers:?} {said}");
        }
        let in_address = format!("{action}{}token={TOKEN}", if action.contains('?') { "&" } else { "?" });
        let (status, _) = page.ask(Method::POST, &in_address, &without("x-stepscope-token"));
        assert_eq!(status, StatusCode::FORBIDDEN, "a token in a link");
        let cookie = [without("x-stepscope-token"), vec![("cookie", "stepscope-6200=secret")]].concat();
        assert_eq!(page.ask(Method::POST, action, &cookie).0, StatusCode::OK, "the page with its cookie");
        assert_eq!(page.ask(Method::GET, action, &OURS).0, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(page.ask(Method::OPTIONS, action, &OURS).0, StatusCode::METHOD_NOT_ALLOWED, "a preflight");
    }
    assert_eq!(page.ask(Method::POST, "/api/sessions", &OURS).0, StatusCode::METHOD_NOT_ALLOWED);
}

#[test]
fn what_cannot_be_recorded_is_refused() {
    let page = Page::new(true);
    for query in [
        "",
        "?address=a:1",
        "?address=a:1&duration_ms=0",
        "?address=a:1&duration_ms=-5",
        "?address=a:1&duration_ms=600001",
        "?address=a:1&duration_ms=1e3",
        "?duration_ms=5",
        "?address=%20&duration_ms=5",
    ] {
        assert_eq!(page.post(&format!("/api/record/start{query}")).0, StatusCode::BAD_REQUEST, "{query}");
    }
    let long = format!("/api/record/start?duration_ms=5&address={}", "a".repeat(2_000));
    assert_eq!(page.post(&long).0, StatusCode::BAD_REQUEST);
    assert_eq!((page.about()["state"].clone(), page.about()["number"].clone()), (json!("idle"), json!(0)));
}

#[test]
fn without_a_folder_to_write_to_nothing_is_recorded() {
    let page = Page::new(false);
    assert_eq!((&page.about()["state"], &page.about()["into"]), (&json!("off"), &Value::Null));
    for action in [START, "/api/record/cancel"] {
        let (status, said) = page.post(action);
        assert_eq!(status, StatusCode::FORBIDDEN);
        assert!(said["error"]["todo"].as_str().unwrap().contains("--record-into"), "{said}");
    }
}
