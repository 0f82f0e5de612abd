//! The server without a network: requests in, answers out. For tests and fuzzing, which have no use for sockets; not part
//! of the public interface.

use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

use stepscope_session::Problem;

use crate::guard::Guard;
use crate::routes::{App, router};
use crate::server::DEFAULT_PORT;
use crate::store::{Limits, SessionSource, Store};

/// A server that answers on request.
#[derive(Debug)]
pub struct Offline {
    router: Router,
    runtime: Runtime,
}

impl Offline {
    /// Searches for sessions; `None` if the system provides no threads.
    pub fn new(source: SessionSource) -> Result<Option<Self>, Problem> {
        let store = Store::find(source, Limits::default())?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT));
        let router = router(App::new(store, Guard::new(address, "127.0.0.1", None)));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Ok(runtime.ok().map(|runtime| Offline { router, runtime }))
    }

    /// The status and the body of the answer to a GET request; `None` if the address is not valid.
    pub fn get(&self, address: &str) -> Option<(u16, Vec<u8>)> {
        let host = format!("127.0.0.1:{DEFAULT_PORT}");
        let request = Request::builder().uri(address).header("host", host).body(Body::empty()).ok()?;
        self.runtime.block_on(async {
            let Ok(response) = self.router.clone().oneshot(request).await;
            let status = response.status().as_u16();
            let body = to_bytes(response.into_body(), usize::MAX).await.ok()?;
            Some((status, body.to_vec()))
        })
    }

    /// The same once the session is open, as the page does it.
    pub fn get_open(&self, address: &str) -> Option<(u16, Vec<u8>)> {
        /// The answer while a session is being opened.
        const LOADING: u16 = 202;
        loop {
            match self.get(address) {
                Some((LOADING, _)) => {}
                other => return other,
            }
        }
    }
}
