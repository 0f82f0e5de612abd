//! From events to records: one per allocation or release, by allocator, in time order.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use stepscope_trace::{DeviceKind, EventId, KindId, KindSet, StrId, Time, Track, Value};

use crate::context::Context;
use crate::vocabulary::Role;

/// An allocation or release. Small, because there may be millions; everything else is read again from the event
/// when needed.
#[derive(Copy, Clone, Debug)]
pub(super) struct Record {
    pub(super) time: Time,
    pub(super) event: EventId,
    pub(super) address: u64,
    /// The block's size; negative if it was freed.
    pub(super) change: i64,
    /// Memory in use afterwards, with what programs reserve.
    pub(super) in_use: i64,
    /// The part of it that loaded programs reserve for their temporaries.
    pub(super) reserved: i64,
    /// The outermost op around it.
    pub(super) op: Option<KindId>,
}

/// The records of one allocator, in time order.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: String,
    /// The number of the device, if that is all that names the allocator.
    pub(super) chip: Option<i64>,
    pub(super) records: Vec<Record>,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Class {
    Other,
    Take,
    GiveBack,
    /// The sign of the size decides.
    Either,
    Op,
}

struct Keys {
    allocator: Option<StrId>,
    in_use: Option<StrId>,
    stack: Option<StrId>,
    size: Option<StrId>,
    address: Option<StrId>,
    bytes: Option<StrId>,
    total: Option<StrId>,
    device_kind: Option<StrId>,
    device: Option<StrId>,
    chip: [Option<StrId>; 2],
    torch_address: Option<StrId>,
}

/// The allocator of an event.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Owner {
    Named(String),
    /// The number of an accelerator, by a runtime that does not name its allocators.
    Chip(i64),
    /// PyTorch's type and number of a device.
    Device(i64, i64),
}

pub(super) fn collect(context: &Context) -> Vec<Group> {
    let trace = context.trace;
    let classes: Vec<Class> =
        (0..trace.kinds().len()).map(|index| class_of(context, KindId::from_index(index))).collect();
    if classes.iter().all(|class| matches!(class, Class::Other | Class::Op)) {
        return Vec::new();
    }
    let wanted = trace.kinds_where(|kind| classes[kind.index()] != Class::Other);
    let find = |name: &str| trace.strings().find(name);
    let keys = Keys {
        allocator: find("allocator_name"),
        in_use: find("bytes_allocated"),
        stack: find("bytes_reserved"),
        size: find("allocation_bytes"),
        address: find("addr"),
        bytes: find("Bytes"),
        total: find("Total Allocated"),
        device_kind: find("Device Type"),
        device: find("Device Id"),
        chip: [find("index_on_host"), find("device_ordinal")],
        torch_address: find("Addr"),
    };
    let mut groups: Vec<(Owner, Vec<Record>)> = Vec::new();
    let mut places: HashMap<Owner, usize, FxBuildHasher> = HashMap::default();
    for track in trace.tracks() {
        walk(context, track, (&classes, &wanted), &keys, &mut groups, &mut places);
    }
    groups
        .into_iter()
        .map(|(owner, mut records)| {
            in_order(&mut records);
            fill_sizes(&mut records);
            fill_amounts(&mut records);
            if matches!(owner, Owner::Device(..)) {
                count_from_start(&mut records);
            }
            let chip = if let Owner::Chip(number) = owner { Some(number) } else { None };
            Group { name: owner_name(context, owner), chip, records }
        })
        .collect()
}

/// For profilers that do not report the memory in use.
const UNSAID: i64 = i64::MIN;
/// For a free whose size is not reported.
const FREED: i64 = i64::MIN;
/// For an allocation whose size is not reported.
const TAKEN: i64 = i64::MAX;
/// Records of one time that are put in order: clocks are fine enough for fewer.
const MOST_AT_ONCE: usize = 64;

/// Sorts by time. Threads report in any order at one time: the one that continues the memory in use comes first.
fn in_order(records: &mut [Record]) {
    records.sort_by_key(|record| record.time);
    let mut begin = 0;
    while let Some(first) = records.get(begin).copied() {
        let len = records[begin..].iter().take_while(|record| record.time == first.time).count();
        let before = begin.checked_sub(1).map(|at| records[at].heap());
        if (2..=MOST_AT_ONCE).contains(&len) {
            chain(&mut records[begin..begin + len], before);
        }
        begin += len;
    }
}

/// Puts records of one time in the order in which each one's memory in use follows from the one before.
fn chain(records: &mut [Record], mut before: Option<i64>) {
    for at in 0..records.len() {
        let follows = |record: &Record| {
            let known = !matches!(record.change, FREED | TAKEN) && record.in_use != UNSAID;
            known && before.is_some_and(|before| before.saturating_add(record.change) == record.heap())
        };
        if let Some(next) = records[at..].iter().position(follows) {
            records[at..=at + next].rotate_right(1);
        }
        before = Some(records[at].heap());
    }
}

/// Sizes that nobody reports: a free is as large as the block at its address, else as what the memory in use loses.
fn fill_sizes(records: &mut [Record]) {
    if records.iter().all(|record| !matches!(record.change, FREED | TAKEN)) {
        return;
    }
    let mut live: HashMap<u64, i64, FxBuildHasher> = HashMap::default();
    let mut before: Option<i64> = None;
    for record in records {
        let heap = record.heap();
        let changed = before.filter(|_| record.in_use != UNSAID).map(|before| heap.saturating_sub(before));
        match record.change {
            FREED => {
                let known = live.get(&record.address).copied().or(changed.map(i64::saturating_neg));
                record.change = -known.unwrap_or(0).max(1);
            }
            TAKEN => record.change = changed.unwrap_or(0).max(0),
            _ => {}
        }
        if record.change < 0 {
            live.remove(&record.address);
        } else {
            live.insert(record.address, record.change);
        }
        before = (record.in_use != UNSAID).then_some(heap).or(before);
    }
}

/// Where a profiler counts from its own start, blocks that are older make the count too small when they are freed. Adds the
/// least that lets all known blocks be in use.
fn count_from_start(records: &mut [Record]) {
    let mut live: HashMap<u64, i64, FxBuildHasher> = HashMap::default();
    let (mut known, mut missing) = (0_i64, 0_i64);
    for record in records.iter().filter(|record| record.address != super::blocks::UNKNOWN) {
        let gone = live.remove(&record.address).unwrap_or(0);
        known = known.saturating_sub(gone);
        if record.change > 0 {
            live.insert(record.address, record.change);
            known = known.saturating_add(record.change);
        }
        missing = missing.max(known.saturating_sub(record.in_use));
    }
    records.iter_mut().for_each(|record| record.in_use = record.in_use.saturating_add(missing));
}

/// Old profilers only write the blocks. The memory in use then follows from them: as little as possible at the
/// start, so that nothing is freed that did not exist.
fn fill_amounts(records: &mut [Record]) {
    if records.iter().all(|record| record.in_use != UNSAID) {
        return;
    }
    let (mut sum, mut least) = (0_i64, 0_i64);
    for record in records.iter_mut() {
        sum = sum.saturating_add(record.change);
        least = least.min(sum);
        record.in_use = sum;
    }
    records.iter_mut().for_each(|record| record.in_use = record.in_use.saturating_sub(least));
}

fn class_of(context: &Context, kind: KindId) -> Class {
    match context.trace.kind_name(kind) {
        "MemoryAllocation" => Class::Take,
        "MemoryDeallocation" => Class::GiveBack,
        "[memory]" => Class::Either,
        _ if context.vocabulary().role(kind) == Role::Op => Class::Op,
        _ => Class::Other,
    }
}

fn walk(
    context: &Context,
    track: &Track,
    (classes, wanted): (&[Class], &KindSet),
    keys: &Keys,
    groups: &mut Vec<(Owner, Vec<Record>)>,
    places: &mut HashMap<Owner, usize, FxBuildHasher>,
) {
    let mut op: Option<(Time, KindId)> = None;
    for (index, kind) in track.events_of(wanted) {
        let class = classes[kind.index()];
        let span = track.span_of(index);
        op = op.filter(|(end, _)| span.start < *end);
        if class == Class::Op {
            op = op.or((!span.is_empty()).then_some((span.end, kind)));
            continue;
        }
        let Some((owner, read)) = read(context, track, index, class, keys) else { continue };
        let place = match places.get(&owner) {
            Some(&place) => place,
            None => {
                places.insert(owner.clone(), groups.len());
                groups.push((owner, Vec::new()));
                groups.len() - 1
            }
        };
        let op = op.map(|(_, kind)| kind);
        let event = track.event_id(index);
        groups[place].1.push(Record { time: span.start, event, op, ..read });
    }
}

/// The allocator and the record of an event.
fn read(
    context: &Context,
    track: &Track,
    index: usize,
    class: Class,
    keys: &Keys,
) -> Option<(Owner, Record)> {
    let (mut name, mut address, mut size, mut in_use, mut stack) = (None, None, None, None, 0);
    let (mut device_kind, mut device, mut chip) = (0, -1, None);
    context.trace.args_at(track, index).visit(|key, value| {
        let key = Some(key);
        if key == keys.allocator {
            name = value.as_str().filter(|name| !name.is_empty()).map(str::to_owned);
        } else if key == keys.address || key == keys.torch_address {
            address = value.as_u64();
        } else if key == keys.size || key == keys.bytes {
            size = value.as_i64();
        } else if key == keys.in_use || key == keys.total {
            in_use = value.as_i64();
        } else if key == keys.stack {
            stack = value.as_i64().unwrap_or(0);
        } else if key == keys.device_kind {
            device_kind = value.as_i64().unwrap_or(0);
        } else if key == keys.device {
            device = value.as_i64().unwrap_or(-1);
        } else if keys.chip.contains(&key) {
            chip = value.as_i64().or(chip);
        }
    });
    let change = match (class, size) {
        (Class::Take, Some(size)) => size.saturating_abs(),
        (Class::GiveBack, Some(size)) => -size.saturating_abs().max(1),
        (_, Some(size)) => size,
        (Class::Take, None) if in_use.is_some() => TAKEN,
        (Class::GiveBack, None) => FREED,
        (_, None) => return None,
    };
    let owner =
        name.map(Owner::Named).or(chip.map(Owner::Chip)).unwrap_or(Owner::Device(device_kind, device));
    let reserved = stack.max(0);
    let in_use = in_use.map_or(UNSAID, |in_use: i64| in_use.saturating_add(reserved));
    let reserved = if in_use == UNSAID { 0 } else { reserved };
    let event = track.event_id(index);
    let record =
        Record { time: Time::ZERO, event, address: address.unwrap_or(0), change, in_use, reserved, op: None };
    Some((owner, record))
}

/// What an accelerator without a named allocator is called: by its kind, if the recording has one of that number.
fn chip_name(context: &Context, number: i64) -> String {
    let device = context
        .trace
        .devices()
        .iter()
        .find(|device| device.number == number && device.kind != DeviceKind::Cpu);
    match device.map(|device| device.kind) {
        Some(DeviceKind::Tpu) => format!("TPU:{number} HBM"),
        Some(DeviceKind::Gpu) => format!("GPU:{number}"),
        _ => format!("device {number}"),
    }
}

/// PyTorch's numbers of device types.
fn owner_name(context: &Context, owner: Owner) -> String {
    let (kind, device) = match owner {
        Owner::Named(name) => return name,
        Owner::Chip(number) => return chip_name(context, number),
        Owner::Device(kind, device) => (kind, device),
    };
    let kind = match kind {
        0 => "CPU".to_owned(),
        1 => "CUDA".to_owned(),
        6 => "HIP".to_owned(),
        9 => "XLA".to_owned(),
        12 => "XPU".to_owned(),
        13 => "MPS".to_owned(),
        15 => "HPU".to_owned(),
        18 => "MTIA".to_owned(),
        20 => "PrivateUse1".to_owned(),
        other => format!("device type {other}"),
    };
    if device < 0 { kind } else { format!("{kind}:{device}") }
}

/// What an event says besides its record.
#[derive(Clone, Debug, Default)]
pub(super) struct Details {
    pub(super) op: Option<String>,
    pub(super) shape: Option<String>,
    pub(super) data_type: Option<String>,
    pub(super) region: Option<String>,
    pub(super) requested: Option<i64>,
    pub(super) reserved: Option<u64>,
    pub(super) fragmentation: Option<f64>,
    pub(super) lifetime_peak: Option<u64>,
    allocated: Option<u64>,
    stack: Option<u64>,
    available: Option<u64>,
}

impl Record {
    /// What blocks take.
    pub(super) fn heap(&self) -> i64 {
        self.in_use.saturating_sub(self.reserved)
    }
}

impl Details {
    /// The capacity of the allocator.
    pub(super) fn capacity(&self) -> Option<u64> {
        Some(self.allocated?.saturating_add(self.stack.unwrap_or(0)).saturating_add(self.available?))
    }
}

pub(super) fn details(context: &Context, event: EventId) -> Details {
    let mut found = Details::default();
    let text = |value: &Value<'_>| {
        value.as_str().filter(|text| !text.is_empty() && *text != "(null)").map(str::to_owned)
    };
    context.trace.args(event).visit(|key, value| {
        let whole = || value.as_i64().and_then(|number| u64::try_from(number).ok());
        match context.trace.str(key) {
            "tf_op" => found.op = text(&value),
            "shape" => found.shape = text(&value),
            "region_type" => found.region = text(&value),
            "data_type" => found.data_type = data_type(&value),
            "requested_bytes" => found.requested = value.as_i64(),
            // 0/0 where the pool is full.
            "fragmentation" => found.fragmentation = value.as_f64().filter(|share| share.is_finite()),
            "peak_bytes_in_use" => found.lifetime_peak = whole(),
            "bytes_allocated" => found.allocated = whole(),
            "bytes_reserved" => found.stack = whole(),
            "bytes_available" => found.available = whole(),
            "Total Reserved" => found.reserved = whole().filter(|&bytes| bytes > 0),
            _ => {}
        }
    });
    found
}

/// TensorFlow's numbers of data types; those above 100 are references to the type 100 below.
fn data_type(value: &Value<'_>) -> Option<String> {
    const NAMES: &[&str] = &[
        "float",
        "double",
        "int32",
        "uint8",
        "int16",
        "int8",
        "string",
        "complex64",
        "int64",
        "bool",
        "qint8",
        "quint8",
        "qint32",
        "bfloat16",
        "qint16",
        "quint16",
        "uint16",
        "complex128",
        "half",
        "resource",
        "variant",
        "uint32",
        "uint64",
        "float8_e5m2",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e4m3b11fnuz",
        "float8_e5m2fnuz",
        "int4",
        "uint4",
        "int2",
        "uint2",
    ];
    let Some(number) = value.as_i64() else { return value.as_str().map(str::to_owned) };
    let number = if number > 100 { number - 100 } else { number };
    let place = usize::try_from(number).ok()?.checked_sub(1)?;
    NAMES.get(place).map(|name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::TrackId;

    #[test]
    fn amounts_that_nobody_wrote_follow_from_the_blocks() {
        let event = EventId { track: TrackId(0), index: 0 };
        let record = |change| Record {
            time: Time::ZERO,
            event,
            address: 0,
            change,
            in_use: UNSAID,
            reserved: 0,
            op: None,
        };
        let mut records = [record(10), record(-30), record(5)];
        fill_amounts(&mut records);
        assert_eq!(records.map(|record| record.in_use), [30, 0, 5], "20 were there before");
    }

    fn record(at: i64, address: u64, change: i64, in_use: i64) -> Record {
        let event = EventId { track: TrackId(0), index: 0 };
        Record { time: Time::from_ns(at), event, address, change, in_use, reserved: 0, op: None }
    }

    #[test]
    fn a_free_without_a_size_takes_that_of_its_block() {
        let mut records = [record(1, 7, 100, 150), record(2, 7, FREED, 50), record(3, 8, FREED, 20)];
        fill_sizes(&mut records);
        assert_eq!(
            records.map(|record| record.change),
            [100, -100, -30],
            "the last one is older than the capture"
        );
    }

    #[test]
    fn records_of_one_time_follow_the_memory_in_use() {
        let mut records = [record(1, 1, 10, 10), record(2, 3, 7, 37), record(2, 2, 20, 30)];
        in_order(&mut records);
        assert_eq!(records.map(|record| record.in_use), [10, 30, 37]);
    }

    #[test]
    fn a_count_that_starts_with_the_profiler_is_raised_to_what_is_known() {
        let mut records = [record(1, 1, 100, 100), record(2, 9, -60, 40), record(3, 2, 10, 50)];
        count_from_start(&mut records);
        assert_eq!(records.map(|record| record.in_use), [160, 100, 110]);
    }

    #[test]
    fn data_types_have_names() {
        assert_eq!(data_type(&Value::Int(1)).as_deref(), Some("float"));
        assert_eq!(data_type(&Value::Int(114)).as_deref(), Some("bfloat16"));
        assert_eq!(data_type(&Value::Int(0)), None);
        assert_eq!(data_type(&Value::Int(-7)), None);
    }
}
