//! Connections: accepted, bounded in number, and closed if a request does not arrive in time.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

/// How long the head of a request may take to arrive, and how long a connection may stay idle.
const HEAD: Duration = Duration::from_secs(15);
/// Maximum size of the head of a request.
const HEAD_BYTES: usize = 64 << 10;
/// Maximum number of connections; more wait to be accepted.
const MOST: usize = 512;
/// Pause after the system refused a connection, for instance because too many files are open.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers requests until `stopped`, then waits for the answers that are on their way.
pub(crate) async fn serve(listener: TcpListener, router: Router, stopped: watch::Receiver<bool>) {
    serve_within(HEAD, listener, router, stopped).await;
}

async fn serve_within(
    head: Duration,
    listener: TcpListener,
    router: Router,
    mut stopped: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(MOST));
    let given = stopped.clone();
    let mut open = JoinSet::new();
    loop {
        let accepted = async {
            // The semaphore is never closed.
            let place = places.clone().acquire_owned().await.ok();
            (place, listener.accept().await)
        };
        tokio::select! {
            () = end(&mut stopped) => break,
            Some(_) = open.join_next(), if !open.is_empty() => {}
            (place, accepted) = accepted => match accepted {
                Ok((stream, _)) => {
                    open.spawn(answer(stream, head, router.clone(), given.clone(), place));
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
        }
    }
    while open.join_next().await.is_some() {}
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
    _place: Option<OwnedSemaphorePermit>,
) {
    // Small answers must not wait for large ones.
    let _ = stream.set_nodelay(true);
    let mut connection = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(head)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
    );
    // An error ends this connection only: the other side left, sent nonsense or was too slow.
    tokio::select! {
        _ = connection.as_mut() => return,
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
            let serving = tokio::spawn(serve_within(head, listener, Router::new(), stopped));
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
}
