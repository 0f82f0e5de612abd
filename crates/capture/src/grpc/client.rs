//! One connection to one profiler server: the handshake, the call, and the meaning of their failures.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use prost::Message;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use super::address::Address;
use super::error::CaptureError;
use super::messages::{Nothing, ProfileRequest, ProfileResponse};
use super::probe;

/// Any gRPC server answers this call at once, even if it does not know it. This distinguishes a silent port
/// from one that is recording.
const HELLO: &str = "/grpc.health.v1.Health/Check";
const PROFILE: &str = "/tensorflow.ProfilerService/Profile";

/// Maximum size of the answer to it, which holds one number.
const HELLO_BYTES: usize = 64 << 10;

/// Maximum time for a connection and its first answer.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// A profile is one message of many megabytes: small windows would wait for every round trip. The windows are
/// fixed, because finding the best size needs pings, and gRPC servers disconnect clients that ping.
const WINDOW: u32 = 16 << 20;

/// A connection to a server that has answered.
#[derive(Debug)]
pub(super) struct Client {
    address: Address,
    channel: Channel,
}

impl Client {
    /// Connects, and waits until the server has answered once.
    pub(super) async fn connect(address: &Address) -> Result<Self, CaptureError> {
        reach(address).await?;
        // The URI is well-formed, because an address contains nothing else.
        let endpoint = Endpoint::from_shared(format!("http://{address}"))
            .map_err(|error| CaptureError::Unreachable { detail: error.to_string() })?
            .connect_timeout(HANDSHAKE)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW);
        let channel = endpoint
            .connect()
            .await
            .map_err(|error| CaptureError::Unreachable { detail: innermost(&error) })?;
        let client = Client { address: address.clone(), channel };
        client.hello().await?;
        Ok(client)
    }

    async fn hello(&self) -> Result<(), CaptureError> {
        let call = self.call::<_, Nothing>(HELLO, Nothing {}, HELLO_BYTES);
        let Ok(answer) = timeout(HANDSHAKE, call).await else {
            return Err(CaptureError::Silent { after: HANDSHAKE });
        };
        match answer {
            Err(status) if !is_from_server(&status) => {
                Err(CaptureError::NotGrpc { said: probe::first_line(&self.address).await })
            }
            Err(status) if status.code() == Code::Unavailable => {
                Err(CaptureError::Unavailable { said: status.message().to_owned() })
            }
            // Whatever it answers, it is a gRPC server.
            _ => Ok(()),
        }
    }

    /// Makes the server record; waits at most `patience` in total.
    pub(super) async fn profile(
        &self,
        request: ProfileRequest,
        limit: u64,
        patience: Duration,
    ) -> Result<ProfileResponse, CaptureError> {
        let began = Instant::now();
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let Ok(answer) = timeout(patience, self.call(PROFILE, request, most)).await else {
            return Err(CaptureError::TimedOut { after: patience });
        };
        answer.map_err(|status| meaning(&status, limit, began.elapsed()))
    }

    async fn call<Q, A>(&self, path: &'static str, request: Q, limit: usize) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = Grpc::new(self.channel.clone()).max_decoding_message_size(limit);
        grpc.ready().await.map_err(|error| Status::from_error(error.into()))?;
        let codec = ProstCodec::<Q, A>::default();
        let answer = grpc.unary(Request::new(request), PathAndQuery::from_static(path), codec).await?;
        Ok(answer.into_inner())
    }
}

/// Resolves the name and connects once, because the system's own errors are the clearest.
async fn reach(address: &Address) -> Result<(), CaptureError> {
    let resolved = tokio::net::lookup_host((address.host.as_str(), address.port)).await;
    let found: Vec<_> =
        resolved.map_err(|error| CaptureError::NoSuchHost { detail: error.to_string() })?.collect();
    let Ok(connected) = timeout(HANDSHAKE, TcpStream::connect(&found[..])).await else {
        return Err(CaptureError::Unreachable { detail: format!("no answer within {HANDSHAKE:?}") });
    };
    match connected {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Err(CaptureError::Refused),
        Err(error) => Err(CaptureError::Unreachable { detail: error.to_string() }),
    }
}

/// Whether the server sent this status, instead of the transport creating it.
fn is_from_server(status: &Status) -> bool {
    let made_up = ["grpc-status header missing", "protocol error:"];
    status.source().is_none() && !made_up.iter().any(|start| status.message().starts_with(start))
}

/// What a failed call means.
fn meaning(status: &Status, limit: u64, after: Duration) -> CaptureError {
    let said = || status.message().to_owned();
    if let Some(found) = too_large(status) {
        return CaptureError::TooLarge { found, limit };
    }
    if !is_from_server(status) {
        let detail = status.source().map_or_else(said, innermost);
        return CaptureError::Died { after, detail };
    }
    match status.code() {
        Code::Unimplemented => CaptureError::NoProfiler,
        Code::AlreadyExists => CaptureError::Busy { said: said() },
        _ if names_another_session(status.message()) => CaptureError::Busy { said: said() },
        Code::Unavailable => CaptureError::Unavailable { said: said() },
        code => CaptureError::Server { code: format!("{code:?}"), said: said() },
    }
}

/// `Another profiling session active.` (2.9 and later), `Only one profiler session can be active.` (before).
fn names_another_session(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    let one = said.contains("another") || said.contains("only one") || said.contains("already");
    one && said.contains("session")
}

/// The size of a message over the limit, from the transport's error message.
fn too_large(status: &Status) -> Option<Option<u64>> {
    let message = status.message();
    if status.code() != Code::OutOfRange || !message.contains("message length too large") {
        return None;
    }
    let found = message.split("found ").nth(1)?.split(' ').next()?.parse().ok();
    Some(found)
}

/// The innermost cause: the outer ones only say that something failed.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut deepest = error;
    while let Some(cause) = deepest.source() {
        deepest = cause;
    }
    deepest.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_server_is_told_from_a_broken_one_in_old_and_new_words() {
        let after = Duration::from_secs(1);
        for said in ["Another profiling session active.", "Only one profiler session can be active"] {
            let met = meaning(&Status::internal(said), 1, after);
            assert_eq!(met, CaptureError::Busy { said: said.to_owned() });
        }
        let met = meaning(&Status::internal("no such session"), 1, after);
        assert_eq!(
            met,
            CaptureError::Server { code: "Internal".to_owned(), said: "no such session".to_owned() }
        );
        assert_eq!(meaning(&Status::unimplemented(""), 1, after), CaptureError::NoProfiler);
    }
}
