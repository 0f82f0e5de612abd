//! Views: other names for events and what surrounds them, so that queries written for Perfetto run on any format.

use crate::schema::View;

/// The columns of `slice`.
macro_rules! slice {
    () => {
        "SELECT id, ts, dur, name, category, track_id, depth, parent_id, step, state, self_dur, op, host, args, \
         id AS arg_set_id FROM event"
    };
}

/// All views.
pub const VIEWS: &[View] = &[
    View {
        name: "slice",
        about: "Events, under Perfetto's name. EXTRACT_ARG takes its arg_set_id.",
        query: slice!(),
    },
    View { name: "slices", about: "The same as `slice`.", query: slice!() },
    View {
        name: "thread",
        about: "Tracks that are threads.",
        query: "SELECT t.id AS id, t.name AS name, t.number AS tid, p.pid AS pid, t.process_id AS process_id, \
                t.events AS events, t.host AS host, t.id AS utid, t.process_id AS upid \
                FROM track t LEFT JOIN process p ON p.id = t.process_id WHERE t.kind = 'thread'",
    },
    View {
        name: "thread_track",
        about: "Tracks that are threads, under Perfetto's name; utid is the id in `thread`.",
        query: "SELECT id, name, id AS utid, 'thread_track' AS type, process_id AS upid, host \
                FROM track WHERE kind = 'thread'",
    },
    View {
        name: "thread_slice",
        about: "Events on threads, with their thread and process, under Perfetto's name.",
        query: "SELECT e.id AS id, e.ts AS ts, e.dur AS dur, e.category AS category, e.name AS name, \
                e.track_id AS track_id, t.name AS thread_name, t.id AS utid, t.number AS tid, p.name AS process_name, \
                t.process_id AS upid, p.pid AS pid, e.depth AS depth, e.parent_id AS parent_id, e.id AS arg_set_id, \
                e.host AS host \
                FROM event e JOIN track t ON t.id = e.track_id LEFT JOIN process p ON p.id = t.process_id \
                WHERE t.kind = 'thread'",
    },
    View {
        name: "trace_bounds",
        about: "When the recording starts and ends, ns since the session's origin, under Perfetto's name.",
        query: "SELECT min(ts) AS start_ts, max(ts + dur) AS end_ts FROM host GROUP BY NULL",
    },
];
