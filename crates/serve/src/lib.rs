//! The web page and what it asks for: HTTP on this machine, a store of opened sessions, timeline tiles.
//!
//! A request comes through [`routes`], where the guard looks at who asks, and is answered from the [`store`]: sessions
//! are found, watched and opened there, and each keeps its [`timeline`] and every answer that was worked out once
//! ([`answers`], and [`tfprof`] for the model behind runs of classic TensorFlow). The page itself is part of the binary ([`assets`]). `API.md` beside this crate is the border to `ui/`.
//!
//! The figures are the same that the command line prints: both come from `stepscope-session`. Nothing is ever written,
//! and no path of a request reaches the file system: sessions go by number, files of the page by a fixed table.

mod answers;
mod assets;
mod error;
mod guard;
mod query;
mod routes;
mod server;
mod store;
#[cfg(test)]
mod tests;
mod tfprof;
mod timeline;

pub use server::{DEFAULT_PORT, Options, Server};
pub use store::{Limits, Source};
