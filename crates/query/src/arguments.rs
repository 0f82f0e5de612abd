//! The table `arg`: arguments of events, one row each, decoded when the walk gets there.

use std::sync::Arc;

use rusqlite::Result;
use rusqlite::vtab::{Filters, IndexConstraintOp, IndexInfo};
use stepscope_trace::StrId;

use crate::cell::Cell;
use crate::event::whole;
use crate::recording::id;
use crate::running::RunningQuery;
use crate::schema::{ARG, declaration};
use crate::vtab::{Source, Walk};

/// Arguments per event when the costs of a query are estimated.
const USUAL: i64 = 8;

/// The table.
pub(crate) struct ArgTable(pub(crate) Arc<RunningQuery>);

impl Source for ArgTable {
    type Walk = ArgWalk;

    fn declaration(&self) -> String {
        declaration(&ARG)
    }

    fn plan(&self, info: &mut IndexInfo) -> Result<()> {
        let equal = info.constraints().position(|constraint| {
            let of_event = constraint.column() == 0 && constraint.is_usable();
            of_event && constraint.operator() == IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ
        });
        let all = i64::try_from(self.0.recording.events).unwrap_or(i64::MAX).saturating_mul(USUAL);
        let rows = if equal.is_some() { USUAL } else { all };
        if let Some(place) = equal {
            info.constraint_usage(place).set_argv_index(1);
            info.set_idx_str("event");
        }
        info.set_estimated_rows(rows);
        // Arguments must be decoded first.
        info.set_estimated_cost(rows as f64 * 20.0);
        Ok(())
    }

    fn query(&self) -> &Arc<RunningQuery> {
        &self.0
    }

    fn walk(&self) -> ArgWalk {
        ArgWalk { query: self.0.clone(), track: 0, index: 0, only: false, decoded: Vec::new(), at: 0 }
    }
}

/// A walk over the arguments of one event or of all.
pub(crate) struct ArgWalk {
    query: Arc<RunningQuery>,
    track: u32,
    index: usize,
    /// Only the event that it starts with.
    only: bool,
    decoded: Vec<(StrId, Cell<'static>)>,
    at: usize,
}

impl ArgWalk {
    /// Decodes the arguments of the event; `false` if it does not exist.
    fn decode(&mut self) -> bool {
        (self.at, self.decoded) = (0, Vec::new());
        let query = self.query.clone();
        let Some(place) = query.recording.place(self.track).filter(|place| self.index < place.track.len())
        else {
            return false;
        };
        place.trace().args_at(place.track, self.index).visit(|key, value| {
            let value = match Cell::of_argument(value) {
                Cell::Text(text) => Cell::from(text.into_owned()),
                Cell::Int(value) => Cell::Int(value),
                Cell::Real(value) => Cell::Real(value),
                Cell::Null => Cell::Null,
            };
            self.decoded.push((key, value));
        });
        true
    }

    /// Goes on to the next event that has arguments.
    fn seek(&mut self) {
        while self.at >= self.decoded.len() && !self.only {
            self.index += 1;
            while self.query.recording.place(self.track).is_some_and(|place| self.index >= place.track.len())
            {
                (self.track, self.index) = (self.track.saturating_add(1), 0);
            }
            if !self.decode() {
                self.only = true;
            }
        }
    }
}

impl Walk for ArgWalk {
    fn filter(&mut self, plan: &str, values: &Filters<'_>) -> Result<()> {
        (self.track, self.index, self.at, self.only) = (0, 0, 0, false);
        self.decoded.clear();
        if plan == "event" {
            let wanted = values.iter().next().and_then(|value| whole(&value));
            let event = wanted.and_then(|id| self.query.recording.event(id));
            self.only = true;
            let Some((track, index)) = event else { return Ok(()) };
            (self.track, self.index) = (track, index);
            self.decode();
            return Ok(());
        }
        while self.query.recording.place(self.track).is_some_and(|place| place.track.is_empty()) {
            self.track += 1;
        }
        if !self.decode() {
            self.only = true;
        }
        self.seek();
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.at += 1;
        self.seek();
        Ok(())
    }

    fn eof(&self) -> bool {
        self.at >= self.decoded.len()
    }

    fn cell<'w>(&self, query: &'w RunningQuery, column: usize) -> Result<Cell<'w>> {
        let Some((key, value)) = self.decoded.get(self.at) else { return Ok(Cell::Null) };
        Ok(match column {
            0 => Cell::Int(id(self.track, self.index)),
            1 => Cell::from(query.recording.place(self.track).map(|place| place.trace().str(*key))),
            _ => value.clone(),
        })
    }

    fn rowid(&self) -> i64 {
        id(self.track, self.index)
    }
}
