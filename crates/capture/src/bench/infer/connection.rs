//! Connections to the server, kept open between requests, and one request over one of them.
//!
//! At most so many connections are open at once; whoever finds none free waits for one, and that wait is part of
//! the latency, as it would be for a client of a service.

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

/// An answer larger than this is not waited for.
const LARGEST_ANSWER: u64 = 256 << 20;
/// So much of an answer is kept: enough to say what an error was.
const KEPT: usize = 4 << 10;

/// Why a request got no answer that counts.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// Nobody listens there.
    Refused,
    /// The connection could not be made for another reason.
    Unreachable,
    /// No whole answer in time.
    Timeout,
    /// The measurement ended before the answer came.
    Unfinished,
    /// The server closed the connection before the answer was complete.
    Closed,
    /// What came is not HTTP.
    Protocol,
    /// The answer is larger than anybody wants.
    TooLarge,
    /// An answer with a status that tells of an error.
    Status(u16),
    /// A status that tells of success, and a body that tells of an error.
    Body,
    /// More requests waited than the generator keeps.
    Backlog,
}

/// An answer that counts.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Bytes of its body.
    pub bytes: u64,
    /// The first bytes of it.
    pub start: Vec<u8>,
}

/// What went wrong, with what the server or the system said about it.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The kind.
    pub failure: Failure,
    /// The words that came with it; may be empty.
    pub said: String,
}

impl Fault {
    pub(super) fn new(failure: Failure, said: impl Into<String>) -> Fault {
        Fault { failure, said: said.into() }
    }
}

/// When things happened to a request.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Times {
    /// It went out, or the connection for it was begun.
    pub(super) sent: Option<Instant>,
    /// The answer was complete.
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
    /// How many requests found all connections in use.
    pub(super) waited: AtomicU64,
    /// How many answers the server closed the connection after.
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

    /// Sends the request and reads the answer to its end; `times` are set as it goes.
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
                // The server closed the idle connection before it saw the request, as it may: ask on a fresh one.
                Err(error) if error.message().is_some() => {}
                Err(error) => return Err(broken(&error.into_error())),
            }
        }
        times.sent = Some(Instant::now());
        let mut sender = self.connect().await?;
        let response = sender.send_request(self.request()).await.map_err(|error| broken(&error))?;
        self.answer(sender, response, times).await
    }

    /// The one that was used last: a server sees as few connections as the load needs.
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
        // A request that waits for a packet to fill up would measure the system's patience.
        stream.set_nodelay(true).map_err(|error| unreachable(&error))?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
        // Its end shows in the requests that it carries.
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

/// Model servers answer with an object whose first member is `error`.
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
