//! Connections to the server, kept open between requests, and one request over one of them.
//!
//! The number of open connections is limited. A request that finds none free waits for one, and the wait is
//! part of the latency, as it would be for a client of a service.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::target::Target;

/// Larger answers are not waited for.
const LARGEST_ANSWER: u64 = 256 << 20;
/// How much of an answer is kept: enough to show an error.
const KEPT: usize = 4 << 10;

/// Why a request got no valid answer.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// Nothing is listening.
    Refused,
    /// The connection failed for another reason.
    Unreachable,
    /// No complete answer in time.
    Timeout,
    /// The measurement ended before the answer came.
    Unfinished,
    /// The server closed the connection before the answer was complete.
    Closed,
    /// What came is not HTTP.
    Protocol,
    /// The answer exceeds the size limit.
    TooLarge,
    /// An answer with an error status.
    Status(u16),
    /// An answer with a success status and a body that reports an error.
    Body,
    /// More requests were waiting than the generator keeps.
    Backlog,
}

/// A valid answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Size of its body in bytes.
    pub bytes: u64,
    /// Its first bytes.
    pub start: Vec<u8>,
}

/// What went wrong, with the message of the server or the system.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The kind.
    pub failure: Failure,
    /// The message; may be empty.
    pub said: String,
}

impl Fault {
    pub(super) fn new(failure: Failure, said: impl Into<String>) -> Fault {
        Fault { failure, said: said.into() }
    }
}

/// Timestamps of a request.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Times {
    /// When it was sent, or when its connection was opened.
    pub(super) sent: Option<Instant>,
    /// When the answer was complete.
    pub(super) done: Option<Instant>,
}

type Sender = SendRequest<Full<Bytes>>;

/// The connections.
#[derive(Debug)]
pub(super) struct Pool {
    target: Target,
    addresses: Vec<SocketAddr>,
    idle: Mutex<VecDeque<Sender>>,
    room: Semaphore,
    pub(super) opened: AtomicU64,
    /// Number of requests that found all connections in use.
    pub(super) waited: AtomicU64,
    /// Number of answers after which the server closed the connection.
    pub(super) closed: AtomicU64,
}

impl Pool {
    pub(super) fn new(target: Target, addresses: Vec<SocketAddr>, connections: usize) -> Pool {
        Pool {
            target,
            addresses,
            idle: Mutex::default(),
            room: Semaphore::new(connections),
            opened: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            closed: AtomicU64::new(0),
        }
    }

    /// Sends the request and reads the whole answer; sets `times` on the way.
    pub(super) async fn ask(&self, times: &mut Times) -> Result<Reply, Fault> {
        let _room = match self.room.try_acquire() {
            Ok(room) => room,
            Err(_) => {
                self.waited.fetch_add(1, Ordering::Relaxed);
                self.room.acquire().await.map_err(|error| Fault::new(Failure::Closed, error.to_string()))?
            }
        };
        if let Some(mut sender) = self.take_idle() {
            times.sent = Some(Instant::now());
            match sender.try_send_request(self.request()).await {
                Ok(response) => return self.answer(sender, response, times).await,
                // The server closed the idle connection before it saw the request, which is allowed: retry on a
                // new one.
                Err(error) if error.message().is_some() => {}
                Err(error) => return Err(broken(&error.into_error())),
            }
        }
        times.sent = Some(Instant::now());
        let mut sender = self.connect().await?;
        let response = sender.send_request(self.request()).await.map_err(|error| broken(&error))?;
        self.answer(sender, response, times).await
    }

    /// The connection used last, so that a server sees as few connections as the load needs.
    fn take_idle(&self) -> Option<Sender> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        std::iter::from_fn(|| idle.pop_back()).find(|sender| !sender.is_closed())
    }

    fn request(&self) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(self.target.body.clone()));
        *request.method_mut() = self.target.method.clone();
        *request.uri_mut() = self.target.path.clone();
        *request.headers_mut() = self.target.headers.clone();
        request
    }

    async fn connect(&self) -> Result<Sender, Fault> {
        let stream = TcpStream::connect(&self.addresses[..]).await.map_err(|error| unreachable(&error))?;
        // A request that waits for a packet to fill up would measure the system's delay.
        stream.set_nodelay(true).map_err(|error| unreachable(&error))?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
        // If it fails, the requests it carries show it.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(sender)
    }

    async fn answer(
        &self,
        mut sender: Sender,
        response: Response<Incoming>,
        times: &mut Times,
    ) -> Result<Reply, Fault> {
        let (status, mut body) = (response.status(), response.into_body());
        let mut reply = Reply { bytes: 0, start: Vec::new() };
        while !body.is_end_stream() {
            let Some(frame) = body.frame().await else { break };
            let frame = frame.map_err(|error| broken(&error))?;
            let data = frame.data_ref().map_or(&[][..], |data| data);
            reply.bytes += data.len() as u64;
            let kept = data.len().min(KEPT - reply.start.len());
            reply.start.extend_from_slice(data.get(..kept).unwrap_or_default());
            if reply.bytes > LARGEST_ANSWER {
                return Err(Fault::new(Failure::TooLarge, String::new()));
            }
        }
        times.done = Some(Instant::now());
        // Not ready means that the server closes the connection after each answer.
        if sender.ready().await.is_ok() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push_back(sender);
        } else {
            self.closed.fetch_add(1, Ordering::Relaxed);
        }
        match status.as_u16() {
            code if !status.is_success() => Err(Fault::new(Failure::Status(code), said(&reply.start))),
            _ if tells_of_an_error(&reply.start) => Err(Fault::new(Failure::Body, said(&reply.start))),
            _ => Ok(reply),
        }
    }
}

fn unreachable(error: &io::Error) -> Fault {
    let refused = error.kind() == io::ErrorKind::ConnectionRefused;
    Fault::new(if refused { Failure::Refused } else { Failure::Unreachable }, error.to_string())
}

fn broken(error: &hyper::Error) -> Fault {
    let failure = if error.is_parse() { Failure::Protocol } else { Failure::Closed };
    Fault::new(failure, error.to_string())
}

fn said(start: &[u8]) -> String {
    String::from_utf8_lossy(start).trim().chars().take(300).collect()
}

/// Model servers report errors as an object whose first member is `error`.
fn tells_of_an_error(start: &[u8]) -> bool {
    let after_brace = start.trim_ascii_start().strip_prefix(b"{");
    after_brace.is_some_and(|rest| rest.trim_ascii_start().starts_with(br#""error""#))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_in_bodies_are_told_from_answers() {
        assert!(tells_of_an_error(b" {\n  \"error\": \"no such model\"}"));
        assert!(!tells_of_an_error(b"{\"predictions\": [\"error\"]}"));
        assert!(!tells_of_an_error(b"\"error\""));
        assert!(!tells_of_an_error(b""));
    }
}
