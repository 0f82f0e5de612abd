//! Table functions that start from one event: `ancestor_slice(id)` and `descendant_slice(id)` under Perfetto's names, and
//! `overlapping_slice(id)`, which joins spans of time as Perfetto's SPAN_JOIN does.

use std::sync::Arc;

use rusqlite::Result;
use rusqlite::vtab::{Filters, IndexConstraintOp, IndexInfo};
use stepscope_trace::Time;

use crate::cell::Cell;
use crate::event::whole;
use crate::recording::{Place, id, ns, ns_of_length};
use crate::running::RunningQuery;
use crate::vtab::{Source, Walk};

/// Which events are related.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// Around it, the innermost first.
    Ancestors,
    /// Inside it.
    Descendants,
    /// At the same time on any track of its host, without itself; `ts` and `dur` are what both have in common.
    Overlapping,
}

/// Names, relations and what they are for.
pub(crate) const RELATIONS: [(&str, Relation); 3] = [
    ("ancestor_slice", Relation::Ancestors),
    ("descendant_slice", Relation::Descendants),
    ("overlapping_slice", Relation::Overlapping),
];

/// Rows between two looks at the clock.
const ROWS: usize = 4_096;

/// The table.
pub(crate) struct RelatedTable {
    pub(crate) query: Arc<RunningQuery>,
    pub(crate) relation: Relation,
}

const START: i32 = 9;

impl Source for RelatedTable {
    type Walk = RelatedWalk;

    fn declaration(&self) -> String {
        "CREATE TABLE x(id INTEGER, ts INTEGER, dur INTEGER, name TEXT, category TEXT, track_id INTEGER, depth INTEGER, \
         parent_id INTEGER, host TEXT, start_id INTEGER HIDDEN)"
            .to_owned()
    }

    fn plan(&self, info: &mut IndexInfo) -> Result<()> {
        let start = info.constraints().position(|constraint| {
            constraint.column() == START
                && constraint.is_usable()
                && constraint.operator() == IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ
        });
        match start {
            Some(place) => {
                info.constraint_usage(place).set_argv_index(1);
                info.constraint_usage(place).set_omit(true);
                info.set_idx_str("start");
                info.set_estimated_rows(10);
                info.set_estimated_cost(20.0);
            }
            // Without an event there are no rows; any plan with one is better.
            None => {
                info.set_estimated_rows(i64::MAX / 4);
                info.set_estimated_cost(1e18);
            }
        }
        Ok(())
    }

    fn query(&self) -> &Arc<RunningQuery> {
        &self.query
    }

    fn walk(&self) -> RelatedWalk {
        RelatedWalk {
            query: self.query.clone(),
            relation: self.relation,
            start: 0,
            span: None,
            found: Vec::new(),
            at: 0,
        }
    }
}

/// A walk over related events.
pub(crate) struct RelatedWalk {
    query: Arc<RunningQuery>,
    relation: Relation,
    start: i64,
    /// The time of the event itself, if what is in common is asked for.
    span: Option<(Time, Time)>,
    found: Vec<(u32, usize)>,
    at: usize,
}

impl RelatedWalk {
    fn find(&mut self, track: u32, index: usize) -> Result<()> {
        let query = self.query.clone();
        let Some(place) = query.recording.place(track) else { return Ok(()) };
        match self.relation {
            Relation::Ancestors => {
                let Some(family) = query.family(track)? else { return Ok(()) };
                let around = std::iter::successors(family.parent(index), |index| family.parent(*index));
                self.found.extend(around.map(|index| (track, index)));
            }
            Relation::Descendants => {
                let Some(family) = query.family(track)? else { return Ok(()) };
                let end = place.track.end(index);
                // Events are in the order of their starts, so that what is inside follows.
                let mut inside = vec![index];
                for next in index + 1..place.track.len() {
                    if place.track.start(next) > end || (next % ROWS == 0 && query.is_over()) {
                        break;
                    }
                    // Sorted: parents come before their children.
                    if family.parent(next).is_some_and(|parent| inside.binary_search(&parent).is_ok()) {
                        inside.push(next);
                        self.found.push((track, next));
                    }
                }
            }
            Relation::Overlapping => {
                let (start, end) = (place.track.start(index), place.track.end(index));
                self.span = Some((start, end));
                self.overlapping(&place, (track, index), (start, end));
            }
        }
        Ok(())
    }

    fn overlapping(&mut self, place: &Place<'_>, own: (u32, usize), (start, end): (Time, Time)) {
        let query = self.query.clone();
        for (number, track) in (place.host.first_track..).zip(place.trace().tracks()) {
            for index in 0..track.first_from(end) {
                if index % ROWS == 0 && query.is_over() {
                    return;
                }
                if track.end(index) > start && (number, index) != own {
                    self.found.push((number, index));
                }
            }
        }
    }
}

impl Walk for RelatedWalk {
    fn filter(&mut self, plan: &str, values: &Filters<'_>) -> Result<()> {
        (self.found, self.at, self.span) = (Vec::new(), 0, None);
        let wanted = values.iter().next().filter(|_| plan == "start").and_then(|value| whole(&value));
        let Some(start) = wanted else { return Ok(()) };
        self.start = start;
        match self.query.recording.event(start) {
            Some((track, index)) => self.find(track, index),
            None => Ok(()),
        }
    }

    fn next(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }

    fn eof(&self) -> bool {
        self.at >= self.found.len()
    }

    fn cell<'w>(&self, query: &'w RunningQuery, column: usize) -> Result<Cell<'w>> {
        let Some(&(track, index)) = self.found.get(self.at) else { return Ok(Cell::Null) };
        let Some(place) = query.recording.place(track) else { return Ok(Cell::Null) };
        let (own, own_end) = (place.track.start(index), place.track.end(index));
        let (start, end) = self.span.map_or((own, own_end), |(from, to)| (own.max(from), own_end.min(to)));
        let kind = || place.track.kind_of(index);
        Ok(match column {
            0 => id(track, index).into(),
            1 => ns(start.ps().saturating_add(place.host.shift_ps)).into(),
            2 => ns_of_length((end - start).ps()).into(),
            3 => place.trace().kind_name(kind()).into(),
            4 => Cell::known(place.trace().str(place.trace().kind(kind()).category)),
            5 => track.into(),
            6 => place.track.nesting().depth(index).into(),
            7 => query
                .family(track)?
                .and_then(|family| family.parent(index))
                .map(|parent| id(track, parent))
                .into(),
            8 => place.loaded.host.as_str().into(),
            _ => self.start.into(),
        })
    }

    fn rowid(&self) -> i64 {
        i64::try_from(self.at).unwrap_or(i64::MAX)
    }
}
