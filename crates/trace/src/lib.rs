//! The trace: what happened, when, on which track, in columns of integers.
//!
//! A profile with nine million events must fit in about the size of its file, and every analysis walks it in
//! time order. Therefore a [`Trace`] has no object per event: each [`Track`] is a handful of parallel columns
//! sorted by start time, names are interned as [`Kind`]s (name, category and form, a few thousand per trace),
//! and arguments stay where they are cheapest: in the reader's own bytes or in a compact arena, decoded on
//! demand.
//!
//! A trace is filled through [`TraceBuilder`] and never changes afterwards. No recorded event is dropped:
//! events that overlap on one track are kept, and [`Track::nesting`] spreads them over lanes.
//!
//! This crate knows nothing about files, frameworks, or what an event means for performance.

mod args;
mod block;
mod builder;
mod columns;
mod device;
mod durations;
mod flow;
mod format;
mod huge_pages;
mod ids;
mod kind;
mod kind_set;
pub mod memory;
mod near;
mod nesting;
mod note;
pub mod series;
pub mod statistics;
mod strings;
mod time;
mod trace;
mod track;
mod zeros;

pub use args::{ArgArena, ArgRef, ArgSource, Datum, Value};
pub use block::Block;
pub use builder::TraceBuilder;
pub use columns::{ChunkRest, ColumnsChunk, EventColumns};
pub use device::{Device, DeviceKind, Environment, Property};
pub use flow::{FlowDirection, FlowPoint};
pub use format::{Delivers, Format};
pub use huge_pages::prefer_huge_pages;
pub use ids::{ArgSourceId, DeviceId, EventId, KindId, ProcessId, StrId, TrackId};
pub use kind::{Form, Kind, LIBRARY_SAMPLE, LOCK_WAIT, USER_SAMPLE};
pub use kind_set::{FirstEvents, KindSet};
pub use nesting::{Nesting, overlapping};
pub use note::{Note, NoteKind};
pub use strings::{StringTable, StringTableBuilder};
pub use time::{Clock, Dur, Span, Time};
pub use trace::{Args, Process, ProcessKind, Trace};
pub use track::{CounterSamples, Track, TrackKind};
