//! A Model Context Protocol server, so that coding assistants can ask about profiles: JSON-RPC messages, one per line, on
//! any pair of streams ([`serve()`]). Like the terminal and the page, it shows what `stepscope-session` and
//! `stepscope-render` build: it opens, counts and words nothing by itself.
//!
//! - `serve`, `lines` and `message`: the streams, their lines, the messages in them.
//! - `protocol`: the answers of the protocol itself, for clients that shake hands (2025-11-25 and before) and for those
//!   that do not (2026-07-28).
//! - `tools`: what a client can call, one file each. `roots` and `shelf`: which files they may read, and the profiles that
//!   stay open. `answer` and `clean`: answers of bounded size, without anything that steers the reader.
//!
//! It only reads: nothing is written, started, recorded or sent, and only files below the given folders are opened.

mod answer;
mod arguments;
mod clean;
mod failed;
mod lines;
mod message;
mod protocol;
mod roots;
mod serve;
mod server;
mod shelf;
mod tools;

pub use answer::LIMIT;
pub use lines::LONGEST;
pub use serve::serve;
pub use server::Server;
