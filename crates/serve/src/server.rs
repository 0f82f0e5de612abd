//! The server itself: where it listens, how it starts and how it ends.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use stepscope_render::words::serve as words;
use stepscope_session::{Cause, Problem};

use crate::error::problem;
use crate::guard::{Guard, host_text, new_token};
use crate::routes::{App, router};
use crate::store::{Limits, Source, Store};

/// The default port, not commonly used by others.
pub const DEFAULT_PORT: u16 = 6200;
/// Ports tried after it if it is taken: several servers are common on a shared machine.
const NEXT_PORTS: u16 = 10;
/// Maximum number of requests processed at a time; more wait in line.
const BLOCKING: usize = 32;
/// How long open connections may take to close.
const FAREWELL: Duration = Duration::from_millis(300);

/// What to serve, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// What to serve.
    pub source: Source,
    /// The address to listen on.
    pub listen: String,
    /// The port; `None` uses the default or the next free one, 0 any free one.
    pub port: Option<u16>,
    /// How much may be open at a time.
    pub limits: Limits,
}

impl Options {
    /// Serves `source` on this machine only.
    pub fn new(source: Source) -> Self {
        Options { source, listen: "127.0.0.1".to_owned(), port: None, limits: Limits::default() }
    }
}

/// A server that is already listening, and answers once it runs.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    token: Option<String>,
    app: App,
}

impl Server {
    /// Searches for sessions and starts listening.
    pub fn start(options: Options) -> Result<Self, Problem> {
        let store = Store::find(options.source, options.limits)?;
        let (listener, address) = listen(&options.listen, options.port)?;
        let token = if address.ip().is_loopback() { None } else { Some(token()?) };
        let guard = Guard::new(address, &options.listen, token.clone());
        Ok(Server { listener, address, token, app: App { store, guard } })
    }

    /// The address to open in a browser.
    pub fn url(&self) -> String {
        let host = match self.address.ip() {
            // Listening on every address: this one reaches it from here.
            ip if ip.is_unspecified() => "127.0.0.1".to_owned(),
            ip => host_text(ip),
        };
        let token = self.token.as_ref().map_or_else(String::new, |token| format!("?token={token}"));
        format!("http://{host}:{}/{token}", self.address.port())
    }

    /// Number of sessions found.
    pub fn sessions(&self) -> usize {
        self.app.store.len()
    }

    /// Serves until the user presses Ctrl-C.
    pub fn run(self) -> Result<(), Problem> {
        let failed = |error: std::io::Error| problem(Cause::Nothing, words::cannot_run(&error.to_string()));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(BLOCKING)
            .thread_name("serve")
            .enable_all()
            .build()
            .map_err(failed)?;
        let ended = runtime.block_on(self.answer());
        // Unfinished work is abandoned.
        runtime.shutdown_background();
        ended.map_err(failed)
    }

    async fn answer(self) -> std::io::Result<()> {
        self.listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let store = self.app.store.clone();
        if store.len() > 0 {
            store.preload(0);
        }
        tokio::spawn(Arc::clone(&store).watch());
        let router = router(self.app);
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let serving = axum::serve(listener, router).with_graceful_shutdown(until(stopped.clone()));
        let serving = tokio::spawn(async move { serving.await });
        tokio::signal::ctrl_c().await?;
        stop.send_replace(true);
        // Connections held open by a browser do not delay the end.
        let _ = tokio::time::timeout(FAREWELL, serving).await;
        Ok(())
    }
}

async fn until(mut stopped: tokio::sync::watch::Receiver<bool>) {
    // An error means that the sender is gone, which also means the end.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

fn token() -> Result<String, Problem> {
    new_token().map_err(|error| problem(Cause::Nothing, words::no_random(&error.to_string())))
}

fn listen(address: &str, port: Option<u16>) -> Result<(TcpListener, SocketAddr), Problem> {
    let wanted = port.unwrap_or(DEFAULT_PORT);
    let bare = address.trim_start_matches('[').trim_end_matches(']');
    let resolved = (bare, wanted).to_socket_addrs().ok().and_then(|mut all| all.next());
    let first = resolved.ok_or_else(|| problem(Cause::Usage, words::not_an_address(address)))?;
    let last = if port.is_some() { wanted } else { wanted + NEXT_PORTS };
    let mut why = None;
    for port in wanted..=last {
        let bound = TcpListener::bind(SocketAddr::new(first.ip(), port));
        match bound.and_then(|listener| Ok((listener.local_addr()?, listener))) {
            Ok((address, listener)) => return Ok((listener, address)),
            Err(error) => why = Some(error),
        }
    }
    let why = why.filter(|error| error.kind() != ErrorKind::AddrInUse).map(|error| error.to_string());
    Err(problem(Cause::Nothing, words::cannot_listen(address, wanted, last, why.as_deref())))
}
