//! The server itself: where it listens, how it starts and how it ends.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use crate::words;
use stepscope_session::{Cause, Problem};

use crate::connections;
use crate::error::problem;
use crate::fleet::FleetOptions;
use crate::guard::{Guard, host_text, new_token, others_are_here};
use crate::record::Record;
use crate::routes::{App, router};
use crate::store::{Limits, SessionSource, Store};

/// The default port, not commonly used by others.
pub const DEFAULT_PORT: u16 = 6200;
/// Ports tried after it if it is taken: several servers are common on a shared machine.
const NEXT_PORTS: u16 = 10;
/// Maximum number of threads for requests. Few run at a time; those that were given up may linger.
const BLOCKING: usize = 512;
/// How long open connections may take to close.
const FAREWELL: Duration = Duration::from_millis(300);

/// When requests for data need a token.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum TokenUse {
    /// If other machines or other users of this one can reach the server.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never; not possible if other machines can reach the server.
    Never,
}

/// What to serve, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// What to serve.
    pub source: SessionSource,
    /// The address to listen on.
    pub listen: String,
    /// The port; `None` uses the default or the next free one, 0 any free one.
    pub port: Option<u16>,
    /// What it may use.
    pub limits: Limits,
    /// When requests for data need a token.
    pub token: TokenUse,
    /// What the page of the fleet needs.
    pub fleet: FleetOptions,
    /// What records when the page asks for it; `None` if it may not. Requests then always need the token.
    pub record: Option<Arc<dyn Record>>,
}

impl Options {
    /// Serves `source` on this machine only.
    pub fn new(source: SessionSource) -> Self {
        Options {
            source,
            listen: "127.0.0.1".to_owned(),
            port: None,
            limits: Limits::default(),
            token: TokenUse::Auto,
            fleet: FleetOptions::default(),
            record: None,
        }
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
        let store = Store::with_fleet(options.source, options.limits, options.fleet)?;
        let (listener, address) = listen(&options.listen, options.port)?;
        let far = !address.ip().is_loopback();
        let token = match options.token {
            TokenUse::Never if far => {
                return Err(problem(Cause::Usage, words::token_needed(&options.listen)));
            }
            TokenUse::Never if options.record.is_some() => {
                return Err(problem(Cause::Usage, words::recording_needs_token()));
            }
            TokenUse::Never => None,
            TokenUse::Auto if options.record.is_none() && !far && !others_are_here() => None,
            TokenUse::Auto | TokenUse::Always => Some(token()?),
        };
        let guard = Guard::new(address, &options.listen, token.clone());
        Ok(Server { listener, address, token, app: App::new(store, guard).recording(options.record) })
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

    /// Whether requests for data need the token in [`Server::url`].
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Number of sessions found.
    pub fn sessions(&self) -> usize {
        self.app.store.len()
    }

    /// Whether partials of a fleet are served.
    pub fn has_fleet(&self) -> bool {
        self.app.store.fleet().has_partials()
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
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let serving = tokio::spawn(connections::serve(listener, router(self.app), stopped));
        tokio::signal::ctrl_c().await?;
        stop.send_replace(true);
        // Connections held open by a browser do not delay the end.
        let _ = tokio::time::timeout(FAREWELL, serving).await;
        Ok(())
    }
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
