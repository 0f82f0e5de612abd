//! Waits: of the host for a device, and of one stream for another. They are on separate tracks, because they
//! are not work.
//!
//! A stream waits for an event; a separate table says who recorded the event last. The wait then names the
//! stream and the record that it waits for, as in Kineto.

use rustc_hash::FxHashMap;
use stepscope_trace::{Datum, Form, StrId};

use super::device_work::{Keys, Queue, columns, own_of, push};
use super::names::sync_name;
use super::places::Row;
use super::{Import, OddTimes, some_int};

const WAITS: &str = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
const RECORDS: &str = "CUPTI_ACTIVITY_KIND_CUDA_EVENT";

/// Where an event was recorded: the number of the call, and the stream.
type Record = (i64, i64);

/// The records of each event of each process, in call order.
type Records = FxHashMap<(i64, i64), Vec<Record>>;

pub(super) fn read(import: &mut Import, keys: &Keys) {
    if !import.has_times(WAITS) {
        return;
    }
    let records = read_records(import);
    let (on_stream, on_record) =
        (import.intern("wait_on_stream"), import.intern("wait_on_cuda_event_record_corr_id"));
    let columns = columns(["syncType", "eventId"]);
    let category = import.intern("cuda_sync");
    let mut odd = OddTimes::default();
    let outcome = import.database.rows(WAITS, &columns, |row| {
        let Some(times) = odd.take(row.int(0), row.int(1)) else { return };
        let mut queue = Queue::of(row);
        queue.device = import.places.device_in_use(queue.pid, queue.device);
        // Profilers write the largest number if there is no event.
        let event = row.int(8).map(|event| Some(event).filter(|&event| event < i64::from(u32::MAX)));
        let named = event.map(|event| event.is_some());
        let name = import.intern(sync_name(row.int(7), queue.stream.is_some(), named));
        let kind = import.kind(name, category, Form::Slice);
        let source = event.flatten().filter(|_| queue.stream.is_some());
        let source = source.and_then(|event| last_record(&records, &queue, event));
        let [on_stream, on_record] = waited_for(import, &queue, source, [on_stream, on_record]);
        let own = [own_of(import, &queue, keys), on_stream, on_record];
        push(import, &queue, own, keys, |import, args| {
            let stream = queue.stream.unwrap_or(-1);
            let place = Row::Waits { pid: queue.pid, device: queue.device, stream };
            let track = import.places.track(place, &mut import.builder);
            import.event(track, times, kind, args);
        });
    });
    odd.note(WAITS, &mut import.builder);
    import.settle(WAITS, outcome);
}

fn read_records(import: &mut Import) -> Records {
    let mut records = Records::default();
    let columns = columns(["eventId"]);
    let outcome = import.database.rows(RECORDS, &columns, |row| {
        let queue = Queue::of(row);
        if let (Some(event), Some(call), Some(stream)) = (row.int(7), queue.correlation, queue.stream) {
            records.entry((queue.pid, event)).or_default().push((call, stream));
        }
    });
    import.settle(RECORDS, outcome);
    records.values_mut().for_each(|of_event| of_event.sort_unstable());
    records
}

/// The record that a wait refers to: the last one before it. Calls are numbered in order.
fn last_record(records: &Records, queue: &Queue, event: i64) -> Option<Record> {
    let (of_event, wait) = (records.get(&(queue.pid, event))?, queue.correlation?);
    let later = of_event.partition_point(|&(call, _)| call < wait);
    of_event.get(later.checked_sub(1)?).copied()
}

fn waited_for(
    import: &mut Import,
    queue: &Queue,
    source: Option<Record>,
    [on_stream, on_record]: [StrId; 2],
) -> [Option<(StrId, Datum)>; 2] {
    let call = source.map(|(call, _)| import.places.correlation(queue.pid, call));
    [some_int(on_stream, source.map(|(_, stream)| stream)), some_int(on_record, call)]
}
