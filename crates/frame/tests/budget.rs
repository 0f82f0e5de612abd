//! What a frame costs: about 22 bytes per event while it is built, and nothing more to pass it on.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;

use stepscope_frame::stream::{ArrowArrayStream, ArrowSchema};
use stepscope_frame::{Values, events};
use stepscope_read::{Bytes, Input, Progress};
use stepscope_session::Profile;
use stepscope_testkit::memory::{self, Counting};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `work` makes, and the most memory that it held at once beyond what was there before.
fn counted<T>(work: impl FnOnce() -> T) -> (T, usize) {
    memory::restart();
    let made = work();
    (made, memory::most())
}

const EVENTS: usize = 300_000;
/// Bytes of each name: a frame that repeated them would need hundreds of megabytes.
const NAME: usize = 2_000;
/// Two times of 8 bytes, five codes of at most two bytes; and what does not grow with the events.
const BYTES_PER_EVENT: usize = 26;
const FIXED: usize = 4 << 20;

/// Many events with few, long names.
fn profile() -> Profile {
    let names: Vec<String> = (0..200).map(|number| format!("{number}{}", "x".repeat(NAME))).collect();
    let mut text = String::from("{\"traceEvents\":[");
    for index in 0..EVENTS {
        // The first events carry the long names; the others are short in the file.
        let name = if index < names.len() { &names[index] } else { "op" };
        let comma = if index > 0 { "," } else { "" };
        text.push_str(&format!(
            "{comma}{{\"ph\":\"X\",\"name\":\"{name}\",\"cat\":\"cpu_op\",\"pid\":1,\"tid\":1,\"ts\":{index},\"dur\":1}}"
        ));
    }
    text.push_str("]}");
    let input = Input::from_bytes("trace.json", Bytes::held(text.into_bytes()));
    Profile::read("huge".to_owned(), Vec::new(), vec![("host".to_owned(), Ok(input))], &Progress::new())
        .unwrap()
}

#[test]
fn a_huge_frame_stays_within_its_bytes_per_event_and_is_passed_on_without_a_copy() {
    let profile = profile();
    let (frame, most) = counted(|| events::frame(&profile));
    assert_eq!(frame.rows(), EVENTS);
    assert!(frame.columns().iter().any(|column| matches!(&column.values, Values::Code { .. })));
    assert!(most < EVENTS * BYTES_PER_EVENT + FIXED, "{most} bytes for {EVENTS} events");
    let frame = Arc::new(frame);
    let (passed, more) = counted(|| (ArrowSchema::of(&frame), ArrowArrayStream::of(Arc::clone(&frame))));
    assert!(more < 64 << 10, "{more} bytes to pass on {EVENTS} events");
    drop(passed);
}
