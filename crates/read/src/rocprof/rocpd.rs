//! rocpd databases. Tables have the number of the recording in their names. In newer versions, records refer to tracks and
//! times by number; in older ones they hold process, thread, queue and times themselves.

use rustc_hash::FxHashMap;
use stepscope_trace::{NoteKind, StrId};

use super::sink::{Agent, Launch, Place, Record, Sink, Sort, copy_name};
use crate::nsys::database::{Database, Fields, Outcome};

/// Where a record ran: process, thread, agent, queue, stream.
#[derive(Copy, Clone, Debug, Default)]
struct Track {
    pid: i64,
    tid: i64,
    agent: i64,
    queue: i64,
    stream: Option<i64>,
}

/// What is known about a kernel.
#[derive(Copy, Clone, Debug, Default)]
struct Symbol {
    name: StrId,
    registers: Option<i64>,
}

/// One recording of a database.
struct Import<'d, 's> {
    database: &'d Database,
    sink: &'s mut Sink,
    /// What stands behind the names of its tables.
    suffix: String,
    strings: FxHashMap<i64, StrId>,
    times: FxHashMap<i64, i64>,
    tracks: FxHashMap<i64, Track>,
    pids: FxHashMap<i64, i64>,
    tids: FxHashMap<i64, i64>,
    symbols: FxHashMap<i64, Symbol>,
    /// Correlation and category of an event.
    events: FxHashMap<i64, (Option<i64>, StrId)>,
}

/// Columns that say where a record ran and how long, in both versions.
const WHERE: [&str; 11] = [
    "track_id",
    "pid",
    "tid",
    "agent_id",
    "queue_id",
    "stream_id",
    "start_id",
    "end_id",
    "start",
    "end",
    "event_id",
];

/// Reads all recordings of a database.
pub(super) fn read(database: &Database, sink: &mut Sink) {
    const FIRST: &str = "rocpd_string";
    let suffixes: Vec<String> = database
        .tables()
        .into_iter()
        .filter_map(|name| name.strip_prefix(FIRST))
        .map(str::to_owned)
        .collect();
    for suffix in suffixes {
        let mut import = Import {
            database,
            sink,
            suffix,
            strings: FxHashMap::default(),
            times: FxHashMap::default(),
            tracks: FxHashMap::default(),
            pids: FxHashMap::default(),
            tids: FxHashMap::default(),
            symbols: FxHashMap::default(),
            events: FxHashMap::default(),
        };
        import.names();
        import.agents();
        import.records();
    }
}

impl Import<'_, '_> {
    fn rows(&mut self, table: &str, columns: &[&str], mut each: impl FnMut(&mut Self, &Fields)) {
        let name = format!("{table}{}", self.suffix);
        let database = self.database;
        let Outcome { broken, .. } = database.rows(&name, columns, |fields| each(self, fields));
        if let Some(broken) = broken {
            self.sink.builder.note(broken.kind, &format!("{table}: {}", broken.what), 1, None);
        }
    }

    fn names(&mut self) {
        self.rows("rocpd_string", &["id", "string"], |import, row| {
            if let (Some(id), Some(text)) = (row.int(0), row.text(1)) {
                let text = import.sink.text(&text);
                import.strings.insert(id, text);
            }
        });
        self.rows("rocpd_timestamp", &["id", "value"], |import, row| {
            if let (Some(id), Some(value)) = (row.int(0), row.int(1)) {
                import.times.insert(id, value);
            }
        });
        self.rows("rocpd_info_process", &["id", "pid", "command"], |import, row| {
            if let (Some(id), Some(pid)) = (row.int(0), row.int(1)) {
                import.pids.insert(id, pid);
            }
            if let Some(command) = row.text(2).filter(|_| import.sink.process_name == StrId::default()) {
                let program = command.split_ascii_whitespace().next().unwrap_or_default();
                let program = program.rsplit('/').next().unwrap_or(program).to_owned();
                import.sink.process_name = import.sink.text(&program);
            }
        });
        self.rows("rocpd_info_node", &["hostname"], |import, row| {
            let host = row.text(0).map(|host| import.sink.text(&host));
            import.sink.builder.environment.host = host.or(import.sink.builder.environment.host);
        });
        self.rows("rocpd_info_thread", &["id", "tid", "name"], |import, row| {
            let (Some(id), Some(tid)) = (row.int(0), row.int(1)) else { return };
            import.tids.insert(id, tid);
            if let Some(name) = row.text(2).filter(|name| !name.is_empty()) {
                let name = import.sink.text(&name);
                import.sink.thread_names.insert(tid, name);
            }
        });
        let columns = ["id", "pid", "tid", "agent_id", "queue_id", "stream_id"];
        self.rows("rocpd_track", &columns, |import, row| {
            let Some(id) = row.int(0) else { return };
            let track = import.track(|at| row.int(at + 1));
            import.tracks.insert(id, track);
        });
        let columns = ["id", "display_name", "kernel_name", "arch_vgpr_count"];
        self.rows("rocpd_info_kernel_symbol", &columns, |import, row| {
            let Some(id) = row.int(0) else { return };
            let name =
                row.text(1).filter(|name| !name.is_empty()).or_else(|| row.text(2)).unwrap_or_default();
            let name = import.sink.text(&name);
            import.symbols.insert(id, Symbol { name, registers: row.int(3) });
        });
        self.rows("rocpd_event", &["id", "correlation_id", "stack_id", "category_id"], |import, row| {
            let Some(id) = row.int(0) else { return };
            // A launch and its work share the stack; the correlation is the caller's own and often 0.
            let link = row.int(2).filter(|&id| id > 0).or(row.int(1).filter(|&id| id > 0));
            let category = row.int(3).and_then(|id| import.strings.get(&id)).copied().unwrap_or_default();
            import.events.insert(id, (link, category));
        });
    }

    /// Process, thread, agent, queue and stream from five columns.
    fn track(&self, column: impl Fn(usize) -> Option<i64>) -> Track {
        let of = |map: &FxHashMap<i64, i64>, id: i64| map.get(&id).copied().unwrap_or(id);
        Track {
            pid: column(0).map_or(0, |id| of(&self.pids, id)),
            tid: column(1).map_or(0, |id| of(&self.tids, id)),
            agent: column(2).unwrap_or(0),
            queue: column(3).unwrap_or(0),
            stream: column(4),
        }
    }

    fn agents(&mut self) {
        let columns = ["id", "type", "type_index", "product_name", "name", "extdata"];
        self.rows("rocpd_info_agent", &columns, |import, row| {
            let Some(id) = row.int(0).filter(|_| row.text(1).is_some_and(|kind| kind == "GPU")) else {
                return;
            };
            let name =
                row.text(3).filter(|name| !name.is_empty()).or_else(|| row.text(4)).unwrap_or_default();
            let number = row.int(2).unwrap_or(import.sink.agents.len() as i64);
            let mut agent = Agent { number, name: name.into_owned(), ..Agent::default() };
            let details = row.text(5).unwrap_or_default();
            let details = crate::json::Json::root(details.as_bytes());
            let figure = |key: &str| details.int_at(&[key]).and_then(|value| u32::try_from(value).ok());
            agent.units = figure("cu_count");
            agent.wave = figure("wave_front_size");
            agent.waves_per_unit = figure("max_waves_per_cu");
            agent.clock_mhz = figure("max_engine_clk_fcompute").map(u64::from);
            agent.local_bytes = figure("lds_size_in_kb").map(|kb| u64::from(kb) << 10);
            import.sink.agents.insert(id, agent);
        });
    }

    /// What all records have: where, when, and their event.
    fn common(&self, row: &Fields) -> (Track, i64, i64, Option<i64>, StrId) {
        let track = row.int(0).and_then(|id| self.tracks.get(&id)).copied();
        let track = track.unwrap_or_else(|| self.track(|at| row.int(at + 1)));
        let time = |id: usize, plain: usize| {
            row.int(id).and_then(|id| self.times.get(&id)).copied().or_else(|| row.int(plain)).unwrap_or(0)
        };
        let event = row.int(10).and_then(|id| self.events.get(&id)).copied().unwrap_or_default();
        (track, time(6, 8), time(7, 9), event.0, event.1)
    }

    fn records(&mut self) {
        let kernels = [
            "kernel_id",
            "grid_size_x",
            "grid_size_y",
            "grid_size_z",
            "workgroup_size_x",
            "workgroup_size_y",
            "workgroup_size_z",
            "group_segment_size",
        ];
        self.rows("rocpd_kernel_dispatch", &[&WHERE[..], &kernels[..]].concat(), |import, row| {
            let (track, start, end, correlation, _) = import.common(row);
            let symbol = row.int(11).and_then(|id| import.symbols.get(&id)).copied().unwrap_or_default();
            let side = |at: usize| row.int(at).unwrap_or(1);
            let launch = Launch {
                grid: [side(12), side(13), side(14)],
                group: [side(15), side(16), side(17)],
                registers: symbol.registers,
                local_bytes: row.int(18),
            };
            let place = Place::Queue { agent: track.agent, queue: track.queue };
            let stream = track.stream;
            let (sort, bytes, launch) = (Sort::Kernel, None, Some(launch));
            let name = symbol.name;
            import.sink.add(&Record { sort, place, name, start, end, correlation, stream, bytes, launch });
        });
        let copies = ["name_id", "size", "src_agent_id", "dst_agent_id"];
        self.rows("rocpd_memory_copy", &[&WHERE[..], &copies[..]].concat(), |import, row| {
            let (track, start, end, correlation, _) = import.common(row);
            let name = row.int(11).and_then(|id| import.strings.get(&id)).copied().unwrap_or_default();
            let name = copy_name(import.sink.builder.strings.get(name));
            let sides = [row.int(13), row.int(14)];
            let gpu = sides.iter().flatten().find(|agent| import.sink.agents.contains_key(agent)).copied();
            let place = Place::Copies { agent: gpu.unwrap_or(track.agent) };
            let name = import.sink.text(name);
            let (sort, stream, launch, bytes) = (Sort::Copy, track.stream, None, row.int(12));
            import.sink.add(&Record { sort, place, name, start, end, correlation, stream, bytes, launch });
        });
        self.rows("rocpd_region", &[&WHERE[..], &["name_id", "extdata"][..]].concat(), |import, row| {
            let (track, start, end, correlation, category) = import.common(row);
            let name = row.int(11).and_then(|id| import.strings.get(&id)).copied().unwrap_or_default();
            let sort = region_sort(import.sink.builder.strings.get(category));
            let name = marker_text(import, sort, row).unwrap_or(name);
            let place = Place::Thread { pid: track.pid, tid: track.tid };
            let (stream, bytes, launch) = (None, None, None);
            import.sink.add(&Record { sort, place, name, start, end, correlation, stream, bytes, launch });
        });
        if self.sink.records == 0 {
            self.sink.builder.note(NoteKind::Unknown, "rocpd tables", 1, None);
        }
    }
}

/// roctx ranges have the call as their name and the text beside it.
fn marker_text(import: &mut Import<'_, '_>, sort: Sort, row: &Fields) -> Option<StrId> {
    let details = row.text(12).filter(|_| sort == Sort::Marker)?;
    let mut text = None;
    crate::json::Json::root(details.as_bytes()).members(|key, value| {
        if key == b"message" {
            text = Some(value.string());
        }
    });
    text.filter(|text| !text.is_empty()).map(|text| import.sink.text(&text))
}

fn region_sort(category: &str) -> Sort {
    if category.starts_with("HIP_") {
        Sort::Hip
    } else if category.starts_with("HSA_") {
        Sort::Hsa
    } else if category.starts_with("MARKER_") {
        Sort::Marker
    } else if category.starts_with("RCCL_") {
        Sort::Rccl
    } else {
        Sort::Other
    }
}
