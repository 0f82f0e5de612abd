//! Checks tiles, searches and areas against the simplest method: looking at every event.

mod ranks;

use std::collections::BTreeMap;

use serde_json::Value;
use stepscope_read::{Bytes, Input, Progress};
use stepscope_session::Profile;
use stepscope_testkit::chrome::{ChromeEvent, ChromeTrace};
use stepscope_testkit::damage::Rng;
use stepscope_trace::Dur;

use super::event::{Same, Way, at, details, neighbour};
use super::model::Model;
use super::tile::{BUCKETS, Spans, TileAddress, spans};
use super::{area, frame, overview, search};

/// A session on the clock that is shown by itself, and on the recorded one where that differs.
struct Opened {
    model: Model,
    recorded: Option<Model>,
}

impl Opened {
    fn recorded(&self) -> &Model {
        self.recorded.as_ref().unwrap_or(&self.model)
    }
}

/// A session of these traces, one per host.
fn opened(traces: &[ChromeTrace]) -> Opened {
    let input = |(number, trace): (usize, &ChromeTrace)| {
        let bytes = Bytes::held(trace.text().into_bytes());
        (format!("host{number}"), Ok(Input::from_bytes(format!("host{number}.json"), bytes)))
    };
    let inputs = traces.iter().enumerate().map(input).collect();
    let profile = Profile::read("test".into(), vec!["test".into()], inputs, &Progress::new()).unwrap();
    let (model, recorded) = Model::analysed(profile);
    Opened { model, recorded }
}

fn searched(model: &Model, text: &str) -> search::Found {
    search::Found::of(model, text, &search::pattern(text).unwrap())
}

/// A slice in whole nanoseconds.
fn slice(name: &str, thread: i64, start: usize, length: usize) -> ChromeEvent {
    let us = |ns: usize| format!("{}.{:03}", ns / 1000, ns % 1000);
    ChromeEvent::slice(name, "cpu_op", 1, thread, &us(start), &us(length))
}

/// A thread whose events nest, with bursts, pauses and zero-length events, and one whose events overlap freely.
fn random(rng: &mut Rng, events: usize) -> ChromeTrace {
    let mut trace = ChromeTrace::new();
    let mut now = 0;
    while now < events {
        let start = now * 1_000 + rng.below(500);
        let parts = 1 + rng.below(40);
        trace = trace.event(&slice("outer", 1, start, parts * 1_000));
        for part in 0..parts {
            let length = [0, 1, 7, 400, 999][rng.below(5)];
            trace = trace.event(&slice(&format!("inner{}", part % 5), 1, start + part * 1_000, length));
        }
        now += parts + 1 + rng.below(1 + events / 10);
    }
    for number in 0..events {
        let start = rng.below(events * 1_000);
        let length = if rng.below(10) == 0 { rng.below(events * 500) } else { rng.below(50) };
        trace = trace.event(&slice(&format!("free{}", number % 3), 2, start, length));
    }
    trace
}

#[test]
fn a_row_with_few_of_many_events_needs_no_node_for_each() {
    // Twelve levels, so that each row is sparse.
    let mut trace = ChromeTrace::new();
    for group in 0..400 {
        for depth in 0..12 {
            trace = trace.event(&slice("op", 1, group * 100 + depth, 50 - 2 * depth));
        }
    }
    let timeline = opened(&[trace]);
    let model = &timeline.model;
    let (_, entry) = model.tracks().find(|(_, entry)| entry.rows.len() == 12).unwrap();
    let events = entry.track(model).len();
    assert_eq!(events, 4_800);
    let each = entry.rows.heap_bytes() / events;
    assert!(each < 24, "{each} bytes per event beside the trace");
    assert_eq!(entry.rows.busy, Dur::from_ns(400 * 50));
}

/// The content of a tile, row by row, by looking at every event: (start, end, index).
fn truth(model: &Model, id: u32, place: TileAddress) -> BTreeMap<usize, Vec<(i64, i64, u32)>> {
    let entry = model.track(id).unwrap();
    let track = entry.track(model);
    let (start, end, _) = place.bounds().unwrap();
    let shift = model.host(entry.host).shift;
    let mut rows: BTreeMap<usize, Vec<(i64, i64, u32)>> = BTreeMap::new();
    for index in 0..track.len() {
        let (from, to) = ((track.start(index) + shift).ps(), (track.end(index) + shift).ps());
        if from < end && (to > start || from >= start) {
            rows.entry(entry.layout.row_of(track, index)).or_default().push((from, to, index as u32));
        }
    }
    rows
}

fn part(all: &Spans, row: usize) -> Vec<usize> {
    (0..all.start.len()).filter(|&at| usize::from(all.row[at]) == row).collect()
}

fn check_tile(model: &Model, id: u32, place: TileAddress) {
    let (start, end, width) = place.bounds().unwrap();
    let all = spans(model, place, &[id]);
    let truth = truth(model, id, place);
    let sorted =
        (1..all.start.len()).all(|at| (all.row[at - 1], all.start[at - 1]) <= (all.row[at], all.start[at]));
    assert!(sorted, "by row and start");
    assert_eq!(
        all.count.iter().sum::<u32>() as usize,
        truth.values().map(Vec::len).sum::<usize>(),
        "{place:?}"
    );
    for (row, events) in &truth {
        let overlaps = events.windows(2).any(|two| two[0].1 > two[1].0);
        let mut rest = &events[..];
        for at in part(&all, *row) {
            let wide = f64::from(all.end[at] - all.start[at]);
            assert!(all.count[at] == 1 || wide <= 2.001 || overlaps, "{wide} buckets for {}", all.count[at]);
            if overlaps {
                continue;
            }
            let (mine, others) = rest.split_at(all.count[at] as usize);
            rest = others;
            let seen = |time: i64| {
                (time.clamp(start.saturating_sub(width), end.saturating_add(width)) - start) as f64
                    / width as f64
            };
            let (first, last) = (mine[0], mine[mine.len() - 1]);
            assert_eq!(all.event[at], first.2, "the first event's index");
            assert!((f64::from(all.start[at]) - seen(first.0)).abs() < 1e-3);
            assert!((f64::from(all.end[at]) - seen(last.1)).abs() < 1e-3);
            let busy: f64 = mine.iter().map(|&(from, to, _)| seen(to) - seen(from)).sum();
            assert!((f64::from(all.busy[at]) - busy).abs() < 1e-3 * busy.max(1.0), "busy {busy}");
            assert_eq!(all.flags[at] & 1 != 0, first.0 < start);
            assert_eq!(all.flags[at] & 2 != 0, last.1 > end);
            let track = model.track(id).unwrap().track(model);
            let longest = mine.iter().map(|&(from, to, _)| to - from).max().unwrap();
            let named = |&(from, to, index): &(i64, i64, u32)| {
                let (name, category) = model.host(0).look_of(track.kind_of(index as usize));
                to - from == longest && name == all.name[at] && category == all.category[at]
            };
            assert!(mine.iter().any(named), "the longest event's name");
        }
        assert!(overlaps || rest.is_empty());
    }
}

#[test]
fn tiles_hold_every_event_exactly_once_at_every_zoom() {
    for (seed, events) in [(1, 3), (2, 40), (3, 700), (4, 6_000)] {
        let mut rng = Rng::new(seed);
        let opened = opened(&[random(&mut rng, events)]);
        let model = &opened.model;
        for &id in &model.order {
            for level in 8..40 {
                let tiles = (model.end >> (10 + level)) as usize + 1;
                let tile = rng.below(tiles) as u64;
                check_tile(model, id, TileAddress { level, tile });
                check_tile(model, id, TileAddress { level, tile: tiles as u64 });
            }
            check_tile(model, id, TileAddress { level: 62, tile: 0 });
        }
    }
}

#[test]
fn tiles_stay_small_where_everything_overlaps() {
    let mut trace = ChromeTrace::new();
    for number in 0..3_000 {
        trace = trace.event(&slice("long", 1, number, 1_000_000));
    }
    let opened = opened(&[trace]);
    let all = spans(&opened.model, TileAddress { level: 20, tile: 0 }, &opened.model.order);
    assert_eq!(all.count.iter().sum::<u32>(), 3_000);
    let rows: std::collections::BTreeSet<u16> = all.row.iter().copied().collect();
    assert!(all.start.len() <= rows.len() * 9 * 4, "{} spans in {} rows", all.start.len(), rows.len());
}

#[test]
fn tiles_beyond_the_end_of_time_are_empty() {
    let opened = opened(&[random(&mut Rng::new(1), 10)]);
    for place in [
        TileAddress { level: 62, tile: 1 },
        TileAddress { level: 62, tile: u64::MAX },
        TileAddress { level: 0, tile: u64::MAX },
    ] {
        let all = spans(&opened.model, place, &opened.model.order);
        assert_eq!((all.start.len(), all.parts.len()), (0, opened.model.order.len()), "{place:?}");
    }
}

/// Reads a frame as API.md describes it.
fn read_frame(bytes: &[u8]) -> (Value, Spans) {
    assert_eq!(&bytes[..4], b"SST1");
    let length = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    assert_eq!(length % 8, 0);
    let (n, m) = (header["spans"].as_u64().unwrap() as usize, header["samples"].as_u64().unwrap() as usize);
    let mut at = 8 + length;
    let mut column = |width: usize, count: usize| -> Vec<Vec<u8>> {
        let column = bytes[at..at + width * count].chunks(width).map(<[u8]>::to_vec).collect();
        at = (at + width * count).next_multiple_of(8);
        column
    };
    let f32s =
        |column: Vec<Vec<u8>>| column.iter().map(|b| f32::from_le_bytes(b[..].try_into().unwrap())).collect();
    let f64s =
        |column: Vec<Vec<u8>>| column.iter().map(|b| f64::from_le_bytes(b[..].try_into().unwrap())).collect();
    let u32s =
        |column: Vec<Vec<u8>>| column.iter().map(|b| u32::from_le_bytes(b[..].try_into().unwrap())).collect();
    let u16s =
        |column: Vec<Vec<u8>>| column.iter().map(|b| u16::from_le_bytes(b[..].try_into().unwrap())).collect();
    let spans = Spans {
        parts: Vec::new(),
        start: f32s(column(4, n)),
        end: f32s(column(4, n)),
        busy: f32s(column(4, n)),
        name: u32s(column(4, n)),
        event: u32s(column(4, n)),
        count: u32s(column(4, n)),
        row: u16s(column(2, n)),
        category: column(1, n).concat(),
        flags: column(1, n).concat(),
        minimum: f64s(column(8, m)),
        maximum: f64s(column(8, m)),
        at: f32s(column(4, m)),
    };
    assert_eq!(at, bytes.len(), "nothing is left over");
    (header, spans)
}

fn counter(name: &str, ns: usize, value: usize) -> ChromeEvent {
    ChromeEvent::new("C", name)
        .at(1, 1, &format!("{}.{:03}", ns / 1000, ns % 1000))
        .arg("value", &value.to_string())
}

#[test]
fn frames_come_back_as_they_were() {
    let mut trace = random(&mut Rng::new(5), 301).event(&slice(&"ö".repeat(300), 1, 5, 1));
    for sample in 0..50 {
        trace = trace.event(&counter("memory", sample * 1_000, sample * sample));
    }
    let opened = opened(&[trace]);
    let place = TileAddress { level: 18, tile: 0 };
    let mut all = spans(&opened.model, place, &opened.model.order);
    let (header, read) = read_frame(&frame::write(&opened.model, place, &all));
    assert!(!all.at.is_empty() && !all.start.is_empty());
    let first = &header["tracks"][0];
    assert_eq!(
        (first["id"].as_u64(), first["first"].as_u64()),
        (Some(u64::from(opened.model.order[0])), Some(0))
    );
    for name in &all.name {
        let shown = header["names"][name.to_string()].as_str().unwrap();
        let whole = opened.model.name(*name);
        assert!(shown == whole || whole.starts_with(shown.trim_end_matches('…')));
    }
    all.parts.clear();
    assert_eq!(read, all);
}

#[test]
fn samples_of_a_bucket_are_one_and_lines_reach_the_tile_s_edges() {
    let mut trace = ChromeTrace::new().event(&slice("a", 1, 0, 100_000_000));
    for sample in 0..100_usize {
        trace = trace.event(&counter("memory", sample * 1_000_000, (sample * 7) % 100));
    }
    let opened = opened(&[trace]);
    let id = *opened.model.order.last().unwrap();
    // A bucket of 2^31 ps holds two samples or three; the tile holds all of them.
    let all = spans(&opened.model, TileAddress { level: 31, tile: 0 }, &[id]);
    let low = all.minimum.iter().copied().fold(f64::MAX, f64::min);
    let high = all.maximum.iter().copied().fold(f64::MIN, f64::max);
    assert_eq!((low, high), (0.0, 99.0));
    assert!((46..=50).contains(&all.at.len()), "{}", all.at.len());
    // A tile in the middle starts with the sample before it and ends with the one after it.
    let all = spans(&opened.model, TileAddress { level: 20, tile: 20 }, &[id]);
    assert_eq!((all.at[0], *all.at.last().unwrap()), (-1.0, (BUCKETS + 1) as f32));
    assert!(all.at.windows(2).all(|two| two[0] < two[1]));
}

#[test]
fn searches_find_every_event_in_time_order_page_by_page() {
    let mut rng = Rng::new(9);
    let opened = opened(&[random(&mut rng, 900), random(&mut rng, 300)]);
    let model = &opened.model;
    for text in ["NNER", "/^inner[23]$/", "free", "o", "/./", "nothing like it"] {
        let pattern = search::pattern(text).unwrap();
        let mut truth: Vec<(i64, u32, usize)> = Vec::new();
        for (id, entry) in model.tracks() {
            let track = entry.track(model);
            let (host, trace) = (model.host(entry.host), model.trace(entry.host));
            let matching =
                (0..track.len()).filter(|&at| pattern.is_match(trace.kind_name(track.kind_of(at))));
            truth.extend(matching.map(|at| ((track.start(at) + host.shift).ps(), id, at)));
        }
        truth.sort_unstable();
        let found = searched(model, text);
        let mut pages: Vec<(i64, u32, usize)> = Vec::new();
        for offset in (0..truth.len() + 70).step_by(70) {
            let page = found.page(model, offset, 70);
            assert_eq!(page["total"], truth.len());
            let counts = page["density"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap());
            assert_eq!(counts.sum::<u64>(), truth.len() as u64);
            for hit in page["hits"].as_array().unwrap() {
                let ps = (hit["start_ns"].as_f64().unwrap() * 1e3).round() as i64;
                pages.push((
                    ps,
                    hit["track"].as_u64().unwrap() as u32,
                    hit["event"].as_u64().unwrap() as usize,
                ));
            }
        }
        assert!(pages.windows(2).all(|two| two[0].0 <= two[1].0), "in time order");
        pages.sort_unstable();
        assert_eq!(pages, truth, "{text}");
    }
    assert!(search::pattern("/(/").is_err() && search::pattern("/(a{1000}){1000}/").is_err());
    assert!(search::pattern("(").is_ok(), "plain text needs no escaping");
}

#[test]
fn areas_count_only_what_lies_inside() {
    let mut rng = Rng::new(11);
    let opened = opened(&[random(&mut rng, 400)]);
    let model = &opened.model;
    let id = model.order.iter().copied().find(|&id| model.track(id).unwrap().layout.rows() == 2).unwrap();
    let entry = model.track(id).unwrap();
    let track = entry.track(model);
    for _ in 0..30 {
        let from = rng.below(model.end as usize) as i64;
        let to = from + rng.below((model.end - from) as usize + 1) as i64;
        // From every event and everything directly inside it.
        let mut truth: BTreeMap<&str, (u64, i64, i64)> = BTreeMap::new();
        let clipped = |at: usize| {
            let (start, end) = (track.start(at).ps(), track.end(at).ps());
            ((start < to && (end > from || start >= from)), (end.min(to) - start.max(from)).max(0))
        };
        let shift = model.host(0).shift;
        assert_eq!(shift, Dur::ZERO);
        for at in (0..track.len()).filter(|&at| clipped(at).0) {
            let depth = track.nesting().depth(at);
            let inside: i64 = (at + 1..track.len())
                .take_while(|&other| track.nesting().depth(other) > depth)
                .filter(|&other| track.nesting().depth(other) == depth + 1)
                .map(|other| clipped(other).1)
                .sum();
            let sum = truth.entry(model.trace(0).kind_name(track.kind_of(at))).or_default();
            *sum = (sum.0 + 1, sum.1 + clipped(at).1, sum.2 + clipped(at).1 - inside);
        }
        let answer = area::answer(model, from, to, Some(&[id]));
        assert_eq!(answer["events"].as_u64().unwrap(), truth.values().map(|sum| sum.0).sum::<u64>());
        let rows = answer["rows"].as_array().unwrap();
        assert_eq!(rows.len(), truth.len());
        for row in rows {
            let (count, total, own) = truth[row["name"].as_str().unwrap()];
            let ps = |key: &str| (row[key].as_f64().unwrap() * 1e3).round() as i64;
            assert_eq!((row["count"].as_u64().unwrap(), ps("total_ns"), ps("self_ns")), (count, total, own));
            assert!(ps("min_ns") <= ps("average_ns") && ps("average_ns") <= ps("max_ns"));
        }
        check_flame(answer["flame"].as_array().unwrap());
    }
}

/// Boxes lie inside their parents, side by side, in depth-first order.
fn check_flame(boxes: &[Value]) {
    let mut open: Vec<(f64, f64)> = Vec::new();
    for one in boxes {
        let depth = one["depth"].as_u64().unwrap() as usize;
        let (start, total) = (one["start"].as_f64().unwrap(), one["total_ns"].as_f64().unwrap());
        assert!(depth <= open.len(), "no depth is left out");
        open.truncate(depth + 1);
        if let Some(before) = open.get(depth) {
            assert!(start >= before.1 - 1e-6);
            open.pop();
        }
        if let Some(parent) = depth.checked_sub(1).map(|above| open[above]) {
            assert!(start >= parent.0 - 1e-6 && start + total <= parent.1 + 1e-6);
        }
        open.push((start, start + total));
    }
}

#[test]
fn an_event_knows_its_parents_its_neighbours_and_its_own_time() {
    let trace = ChromeTrace::new()
        .event(&slice("step", 1, 0, 1_000))
        .event(&slice("op", 1, 100, 300))
        .event(&slice("kernel", 1, 150, 50))
        .event(&slice("op", 1, 500, 400))
        .event(&slice("mark", 1, 950, 0))
        .event(&slice("step", 1, 2_000, 1_000));
    let opened = opened(&[trace]);
    let model = &opened.model;
    let kernel = details(model, 0, 2).unwrap();
    let names: Vec<&str> =
        kernel["parents"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["op", "step"], "the innermost first");
    assert_eq!((&kernel["self_ns"], &kernel["row"]), (&50.0.into(), &2.into()));
    assert_eq!(details(model, 0, 0).unwrap()["self_ns"], 300.0);
    assert_eq!(details(model, 0, 1).unwrap()["self_ns"], 250.0);
    assert!(details(model, 0, 6).is_none() && details(model, 9, 0).is_none());
    let event = |found: Option<Value>| found.map(|found| found["event"].as_u64().unwrap());
    assert_eq!(event(neighbour(model, 0, 1, Way::Next, Same::Name)), Some(3));
    assert_eq!(event(neighbour(model, 0, 3, Way::Next, Same::Name)), None);
    assert_eq!(event(neighbour(model, 0, 3, Way::Previous, Same::Row)), Some(1));
    assert_eq!(event(neighbour(model, 0, 3, Way::Next, Same::Row)), Some(4));
    assert_eq!(event(neighbour(model, 0, 0, Way::Previous, Same::Row)), None);
    assert_eq!(event(at(model, 0, 1, 200_000, 0)), Some(1));
    assert_eq!(event(at(model, 0, 1, 450_000, 0)), None);
    assert_eq!(event(at(model, 0, 1, 450_000, 60_000)), Some(3), "the longest within reach");
    assert_eq!(event(at(model, 0, 1, 950_000, 0)), Some(4), "an event of no length");
    assert_eq!(event(at(model, 0, 70, 0, 1 << 60)), None, "no such row");
}

#[test]
fn arrows_lead_both_ways() {
    let flow = |phase: &str, thread: i64, ts: &str| {
        ChromeEvent::new(phase, "ac2g").text_field("cat", "ac2g").at(1, thread, ts).field("id", "7")
    };
    let trace = ChromeTrace::new()
        .event(&slice("outer", 1, 0, 5_000))
        .event(&slice("launch", 1, 1_000, 500))
        .event(&slice("kernel", 2, 4_000, 900))
        .event(&flow("s", 1, "1"))
        .event(&flow("f", 2, "4").field("bp", "\"e\""));
    let opened = opened(&[trace]);
    let model = &opened.model;
    let flows = |event: u32, track: u32| details(model, track, event).unwrap()["flows"].clone();
    let launch = flows(1, 0);
    assert_eq!(
        (&launch[0]["name"], &launch[0]["direction"], &launch[0]["track"]),
        (&"kernel".into(), &"out".into(), &1.into())
    );
    let kernel = flows(0, 1);
    assert_eq!(
        (&kernel[0]["name"], &kernel[0]["direction"], &kernel[0]["event"]),
        (&"launch".into(), &"in".into(), &1.into())
    );
    assert_eq!(flows(0, 0), Value::Array(Vec::new()), "what encloses the launch did not launch");
}

#[test]
fn the_overview_is_whole_where_a_host_ran() {
    let opened = opened(&[random(&mut Rng::new(3), 200)]);
    for buckets in [1, 7, 64, 1024, 4096] {
        let answer = overview::answer(&opened.model, buckets);
        let mut sums = vec![0.0; buckets];
        for shares in answer["categories"].as_object().unwrap().values() {
            let shares = shares.as_array().unwrap();
            assert_eq!(shares.len(), buckets);
            sums.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share.as_f64().unwrap());
        }
        assert!(sums.iter().all(|sum| (sum - 1.0_f64).abs() < 0.01), "{buckets}");
    }
}

#[test]
fn hosts_without_a_common_clock_each_begin_at_zero() {
    let early = ChromeTrace::new().event(&slice("a", 1, 5_000, 1_000));
    let late = ChromeTrace::new().event(&slice("b", 1, 9_000_000, 1_000));
    let opened = opened(&[early, late]);
    let model = &opened.model;
    assert_eq!((model.origin_unix_ns, model.end), (None, 1_000_000));
    let starts = model.order.iter().map(|&id| at(model, id, 0, 0, 0).unwrap()["start_ns"].as_f64().unwrap());
    assert_eq!(starts.collect::<Vec<f64>>(), [0.0, 0.0]);
}
