//! The web page and its API: local HTTP, a store of open sessions.
//!
//! A request arrives in [`routes`], where the guard checks who is asking, and is answered from the [`store`]:
//! it finds, watches and opens sessions, and each keeps its [`stepscope_timeline`] and every answer that was computed
//! once ([`answers`], [`curves`] for what runs logged, [`home`] for the list of all runs, [`fleet`](mod@fleet) for all jobs and hosts, and [`tfprof`] for the model behind runs of classic TensorFlow). The page itself is part of the binary ([`assets`]). `API.md` beside this crate defines
//! the interface with `ui/`.
//!
//! The figures are the same as on the command line: both come from `stepscope-session`. Only verdicts
//! for the list of runs and results of hosts are written, to the user's cache, and what the page records ([`mod@record`]), to the
//! folder that the user named for that. No request path reaches the file system: sessions are addressed by number, files of
//! the page by a fixed table.

mod answers;
mod assets;
mod connections;
mod curves;
mod error;
mod evidence;
mod fleet;
mod guard;
mod home;
mod memory;
mod offline;
mod programs;
mod query;
mod record;
mod routes;
mod server;
mod sql;
mod store;
#[cfg(test)]
mod tests;
mod tfprof;
mod words;

pub use fleet::FleetOptions;
#[doc(hidden)]
pub use offline::Offline;
pub use record::{Record, RecordListener, RecordStage, RecordWish};
pub use server::{DEFAULT_PORT, Options, Server, TokenUse};
pub use store::{Limits, SessionSource};
