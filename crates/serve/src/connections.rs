//! Connections: accepted, bounded in number, and closed if a request does not arrive in time.
//!
//! If all places are taken, the connection that has been idle longest gives its place to the next one. Whoever opens many
//! connections and sends nothing keeps nobody out. A connection whose request is being answered stays.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::Request;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

/// How long the head of a request may take to arrive, and how long a connection may stay idle.
const HEAD: Duration = Duration::from_secs(15);
/// Maximum size of the head of a request.
const HEAD_BYTES: usize = 64 << 10;
/// Maximum number of connections.
const MOST: usize = 512;
/// Pause after the system refused a connection, for instance because too many files are open.
const PAUSE: Duration = Duration::from_millis(100);

/// A connection as the others see it.
#[derive(Debug)]
struct Place {
    /// Requests that are being answered.
    busy: AtomicUsize,
    /// When it last did something, in the order of all.
    last: AtomicU64,
    /// Asks it to leave.
    leave: Notify,
}

impl Place {
    fn new() -> Arc<Self> {
        let place = Place { busy: AtomicUsize::new(0), last: AtomicU64::new(0), leave: Notify::new() };
        place.stir();
        Arc::new(place)
    }

    fn stir(&self) {
        static NOW: AtomicU64 = AtomicU64::new(0);
        self.last.store(NOW.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    }

    fn is_idle(&self) -> bool {
        self.busy.load(Ordering::Relaxed) == 0
    }
}

/// A request that is being answered, until the last byte of its answer is on its way.
struct Answering(Arc<Place>);

impl Answering {
    fn on(place: &Arc<Place>) -> Self {
        place.busy.fetch_add(1, Ordering::Relaxed);
        Answering(place.clone())
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.stir();
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An answer that keeps its connection's place.
struct Kept {
    body: Body,
    _answering: Answering,
}

impl hyper::body::Body for Kept {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Answers requests until `stopped`, then waits for the answers that are on their way.
pub(crate) async fn serve(listener: TcpListener, router: Router, stopped: watch::Receiver<bool>) {
    serve_within(HEAD, MOST, listener, router, stopped).await;
}

async fn serve_within(
    head: Duration,
    most: usize,
    listener: TcpListener,
    router: Router,
    mut stopped: watch::Receiver<bool>,
) {
    let given = stopped.clone();
    let mut open = JoinSet::new();
    let mut places: Vec<Arc<Place>> = Vec::new();
    loop {
        // Whoever left holds its place no more.
        places.retain(|place| Arc::strong_count(place) > 1);
        let is_full = places.len() >= most && !make_room(&mut places);
        tokio::select! {
            () = end(&mut stopped) => break,
            Some(_) = open.join_next(), if !open.is_empty() => {}
            accepted = listener.accept(), if !is_full => match accepted {
                Ok((stream, _)) => {
                    let place = Place::new();
                    places.push(place.clone());
                    open.spawn(answer(stream, head, router.clone(), given.clone(), place));
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
        }
    }
    while open.join_next().await.is_some() {}
}

/// Asks the connection that has been idle longest to leave; `false` if all are busy.
fn make_room(places: &mut Vec<Arc<Place>>) -> bool {
    let idle = (0..).zip(places.iter()).filter(|(_, place)| place.is_idle());
    let Some((oldest, _)) = idle.min_by_key(|(_, place)| place.last.load(Ordering::Relaxed)) else {
        return false;
    };
    places.swap_remove(oldest).leave.notify_one();
    true
}

async fn end(stopped: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, which also means the end.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

async fn answer(
    stream: TcpStream,
    head: Duration,
    router: Router,
    mut stopped: watch::Receiver<bool>,
    place: Arc<Place>,
) {
    // Small answers must not wait for large ones.
    let _ = stream.set_nodelay(true);
    let router = TowerToHyperService::new(router);
    let service = service_fn(|request: Request<Incoming>| {
        let answering = Answering::on(&place);
        let answered = hyper::service::Service::call(&router, request);
        async move { answered.await.map(|answer| answer.map(|body| Kept { body, _answering: answering })) }
    });
    let mut connection = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(head)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service)
    );
    // An error ends this connection only: the other side left, sent nonsense or was too slow.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = place.leave.notified() => return,
        () = end(&mut stopped) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn a_request_that_never_ends_is_cut_off() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let (stop, stopped) = watch::channel(false);
            let head = Duration::from_millis(50);
            let serving = tokio::spawn(serve_within(head, MOST, listener, Router::new(), stopped));
            let cut = tokio::task::spawn_blocking(move || {
                let mut slow = std::net::TcpStream::connect(address).unwrap();
                slow.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                slow.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ").unwrap();
                slow.read_to_end(&mut Vec::new())
            });
            assert!(cut.await.unwrap().is_ok(), "the connection is still open");
            stop.send_replace(true);
            serving.await.unwrap();
        });
    }

    #[test]
    fn half_open_requests_keep_nobody_out() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let (stop, stopped) = watch::channel(false);
            let slow = || async {
                tokio::time::sleep(Duration::from_millis(300)).await;
                "done"
            };
            let router = Router::new().route("/", axum::routing::get(slow));
            let hour = Duration::from_secs(3_600);
            let serving = tokio::spawn(serve_within(hour, 8, listener, router, stopped));
            let asked = tokio::task::spawn_blocking(move || {
                let open = |text: &[u8]| {
                    let mut stream = std::net::TcpStream::connect(address).unwrap();
                    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                    stream.write_all(text).unwrap();
                    stream
                };
                let request = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
                let answered = |mut stream: std::net::TcpStream| {
                    let mut text = String::new();
                    stream.read_to_string(&mut text).unwrap();
                    assert!(text.ends_with("done"), "{text}");
                };
                let early = open(request);
                // Until it is being answered.
                std::thread::sleep(Duration::from_millis(100));
                let held: Vec<_> = (0..40).map(|_| open(b"GET / HTTP/1.1\r\nHost: ")).collect();
                let began = std::time::Instant::now();
                answered(open(request));
                answered(early);
                assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
                drop(held);
            });
            asked.await.unwrap();
            stop.send_replace(true);
            let _ = tokio::time::timeout(Duration::from_secs(60), serving).await.unwrap();
        });
    }
}
