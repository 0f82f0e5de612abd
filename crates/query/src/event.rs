//! The table `event`, straight over the columns of the trace: what a query asks of time, track, step, kind and parent
//! decides which rows are walked at all.

mod kinds;
mod plan;
mod walk;

use std::sync::Arc;

use rusqlite::Result;
use rusqlite::vtab::IndexInfo;

use crate::running::RunningQuery;
use crate::schema::declaration;
use crate::tables::recorded::EVENT;
use crate::vtab::Source;

pub(crate) use walk::{EventWalk, whole};

/// The columns, by place.
pub(crate) mod column {
    pub(crate) const ID: usize = 0;
    pub(crate) const TS: usize = 1;
    pub(crate) const DUR: usize = 2;
    pub(crate) const NAME: usize = 3;
    pub(crate) const CATEGORY: usize = 4;
    pub(crate) const TRACK: usize = 5;
    pub(crate) const DEPTH: usize = 6;
    pub(crate) const PARENT: usize = 7;
    pub(crate) const STEP: usize = 8;
    pub(crate) const STATE: usize = 9;
    pub(crate) const SELF: usize = 10;
    pub(crate) const OP: usize = 11;
    pub(crate) const HOST: usize = 12;
    pub(crate) const ARGS: usize = 13;
    pub(crate) const TS_PS: usize = 14;
    pub(crate) const DUR_PS: usize = 15;
    pub(crate) const NAME_ID: usize = 16;
    pub(crate) const FORM: usize = 17;
    pub(crate) const ROLE: usize = 18;
}

/// The table.
pub(crate) struct EventTable(pub(crate) Arc<RunningQuery>);

impl Source for EventTable {
    type Walk = EventWalk;

    fn declaration(&self) -> String {
        declaration(&EVENT)
    }

    fn plan(&self, info: &mut IndexInfo) -> Result<()> {
        plan::plan(&self.0.recording, info)
    }

    fn query(&self) -> &Arc<RunningQuery> {
        &self.0
    }

    fn walk(&self) -> EventWalk {
        EventWalk::new(self.0.clone())
    }
}
