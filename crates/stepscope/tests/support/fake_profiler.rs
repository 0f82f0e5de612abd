//! A scripted profiler server inside the test: it records the requests and answers from a script.
#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use prost::Message;
use tokio::runtime::Runtime;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::codegen::{BoxFuture, Context, Poll, Service};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Status};
use tonic_prost::ProstCodec;

/// What it answers to a request for a profile.
#[derive(Clone)]
pub enum Answer {
    /// This profile.
    Profile(Vec<u8>),
    /// An empty trace.
    Empty,
    /// Nothing, as servers that keep the profile to themselves.
    Nothing,
    /// Nothing, and this profile on the disk.
    ToDisk(Vec<u8>),
    /// An error.
    Error(Code, &'static str),
    /// No answer, ever.
    Never,
    /// The process ends.
    Die,
    /// This profile, from a server that answers the first call, a greeting, with a message that claims a gigabyte and
    /// never comes.
    HugeHello(Vec<u8>),
}

/// `tensorflow.ProfileRequest`, as a server reads it.
#[derive(Clone, PartialEq, Message)]
pub struct Asked {
    #[prost(message, optional, tag = "4")]
    pub opts: Option<Options>,
    #[prost(string, tag = "5")]
    pub repository_root: String,
    #[prost(string, tag = "6")]
    pub session_id: String,
    #[prost(string, tag = "7")]
    pub host_name: String,
    #[prost(bool, tag = "9")]
    pub emit_xspace: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct Options {
    #[prost(uint32, tag = "2")]
    pub host_tracer_level: u32,
    #[prost(uint32, tag = "3")]
    pub device_tracer_level: u32,
    #[prost(uint32, tag = "4")]
    pub python_tracer_level: u32,
    #[prost(uint32, tag = "5")]
    pub version: u32,
    #[prost(uint64, tag = "8")]
    pub start_timestamp_ns: u64,
    #[prost(uint64, tag = "9")]
    pub duration_ms: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Answered {
    #[prost(bool, tag = "7")]
    empty_trace: bool,
    #[prost(bytes, optional, tag = "8")]
    xspace: Option<Vec<u8>>,
}

/// The server; gone when dropped.
pub struct FakeProfiler {
    pub port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    /// The last one is given again and again.
    script: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<Asked>>,
    heard: Condvar,
    runtime: Mutex<Option<Runtime>>,
}

impl Shared {
    fn die(&self) {
        if let Some(runtime) = self.runtime.lock().unwrap().take() {
            runtime.shutdown_background();
        }
    }
}

impl FakeProfiler {
    /// On a port of its own.
    pub fn start(script: impl IntoIterator<Item = Answer>) -> Self {
        Self::listen(TcpListener::bind("127.0.0.1:0").unwrap(), script)
    }

    /// On the port of a listener.
    pub fn listen(listener: TcpListener, script: impl IntoIterator<Item = Answer>) -> Self {
        let port = listener.local_addr().unwrap().port();
        listener.set_nonblocking(true).unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let shared = Arc::new(Shared {
            script: Mutex::new(script.into_iter().collect()),
            asked: Mutex::default(),
            heard: Condvar::new(),
            runtime: Mutex::default(),
        });
        let service = Profiler(shared.clone());
        runtime.spawn(async move {
            let incoming = TcpIncoming::from(tokio::net::TcpListener::from_std(listener).unwrap());
            let _ = tonic::transport::Server::builder().serve_with_incoming(service, incoming).await;
        });
        *shared.runtime.lock().unwrap() = Some(runtime);
        FakeProfiler { port, shared }
    }

    /// Where it listens.
    pub fn address(&self) -> String {
        format!("localhost:{}", self.port)
    }

    /// All that it was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// Waits until it was asked this many times.
    pub fn wait_for(&self, times: usize) {
        let until = Instant::now() + Duration::from_secs(60);
        let mut asked = self.shared.asked.lock().unwrap();
        while asked.len() < times {
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "asked {} times", asked.len());
            asked = self.shared.heard.wait_timeout(asked, left).unwrap().0;
        }
    }
}

impl Drop for FakeProfiler {
    fn drop(&mut self) {
        self.shared.die();
    }
}

#[derive(Clone)]
struct Profiler(Arc<Shared>);

impl NamedService for Profiler {
    const NAME: &'static str = "tensorflow.ProfilerService";
}

impl Service<Request<Body>> for Profiler {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Response<Body>, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let method = Profile(self.0.clone());
        let hello = matches!(self.0.script.lock().unwrap().front(), Some(Answer::HugeHello(_)));
        Box::pin(async move {
            if request.uri().path() != "/tensorflow.ProfilerService/Profile" && hello {
                return Ok(huge());
            }
            if request.uri().path() != "/tensorflow.ProfilerService/Profile" {
                return Ok(Status::unimplemented("").into_http());
            }
            Ok(Grpc::new(ProstCodec::default()).unary(method, request).await)
        })
    }
}

/// An answer whose message claims a gigabyte, of which nothing comes.
fn huge() -> Response<Body> {
    struct Claim(bool);
    impl tonic::codegen::Body for Claim {
        type Data = tonic::codegen::Bytes;
        type Error = Status;

        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<http_body::Frame<Self::Data>, Status>>> {
            if std::mem::replace(&mut self.0, true) {
                return Poll::Pending;
            }
            let head = [0, 0x40, 0, 0, 0];
            Poll::Ready(Some(Ok(http_body::Frame::data(head.to_vec().into()))))
        }
    }
    let answer = Response::builder().header("content-type", "application/grpc");
    answer.body(Body::new(Claim(false))).unwrap()
}

struct Profile(Arc<Shared>);

impl UnaryService<Asked> for Profile {
    type Response = Answered;
    type Future = BoxFuture<tonic::Response<Answered>, Status>;

    fn call(&mut self, request: tonic::Request<Asked>) -> Self::Future {
        let shared = self.0.clone();
        Box::pin(async move { answer(&shared, request.into_inner()).await.map(tonic::Response::new) })
    }
}

async fn answer(shared: &Arc<Shared>, asked: Asked) -> Result<Answered, Status> {
    shared.asked.lock().unwrap().push(asked.clone());
    shared.heard.notify_all();
    let next = {
        let mut script = shared.script.lock().unwrap();
        if script.len() > 1 { script.pop_front().unwrap() } else { script.front().cloned().unwrap() }
    };
    match next {
        Answer::Profile(profile) | Answer::HugeHello(profile) => {
            Ok(Answered { empty_trace: false, xspace: Some(profile) })
        }
        Answer::Empty => Ok(Answered { empty_trace: true, xspace: None }),
        Answer::Nothing => Ok(Answered::default()),
        Answer::ToDisk(profile) => {
            let folder = std::path::Path::new(&asked.repository_root).join(&asked.session_id);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(format!("{}.xplane.pb", asked.host_name)), profile).unwrap();
            Ok(Answered::default())
        }
        Answer::Error(code, said) => Err(Status::new(code, said)),
        Answer::Never => std::future::pending().await,
        Answer::Die => {
            let shared = shared.clone();
            std::thread::spawn(move || shared.die());
            std::future::pending().await
        }
    }
}
