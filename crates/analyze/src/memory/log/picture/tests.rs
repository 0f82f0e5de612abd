use super::*;
use stepscope_trace::memory::{Held, OwnerBuilder, Segment, StackTableBuilder};
use stepscope_trace::{Trace, TraceBuilder};

fn us(at: i64) -> Time {
    Time::from_ns(at * 1_000)
}

/// Two lines of `train` hold memory; one block is older than the history. Segments: one from before, one taken at 2 µs.
fn recorded() -> Trace {
    let mut builder = TraceBuilder::new();
    let mut stacks = StackTableBuilder::new();
    let file = builder.strings.intern("train.py");
    let mut call = |function: &str, line| {
        let function = builder.strings.intern(function);
        stacks.frame(Frame { file, function, line })
    };
    let (main, step, save) = (call("main", 9), call("step", 4), call("save", 6));
    let (in_step, in_save) = (stacks.stack(&[step, main]), stacks.stack(&[save, main]));
    let mut owner = OwnerBuilder::new("CUDA:0".to_owned(), true);
    let segment = |address, size| Segment { address, size, private: false, expandable: false };
    owner.allocated(us(1), 0x1200, 512, in_step, Some(Role::Activation));
    owner.segment(us(2), segment(0x9000, 4096), true);
    owner.allocated(us(3), 0x9000, 2048, in_save, Some(Role::Kept));
    owner.freed(us(4), 0x1200, 512);
    owner.freed(us(5), 0x1000, 512);
    let held = Held {
        address: 0x9000,
        size: 2048,
        requested: 2000,
        stack: in_save,
        role: Some(Role::Kept),
        pending: false,
    };
    let owner = owner.finish_with(&[held], vec![segment(0x1000, 1024), segment(0x9000, 4096)]);
    let log = MemoryLog { owners: vec![owner], stacks: stacks.finish(), ..MemoryLog::default() };
    builder.memory = Some(Box::new(log));
    builder.finish()
}

#[test]
fn the_tree_of_calls_sums_what_is_held_from_the_outside_in() {
    let trace = recorded();
    let context = Context::new(&trace, "host");
    let nodes = calls_at(&context, "CUDA:0", None).unwrap();
    let shown: Vec<_> = nodes.iter().map(|node| (node.parent, node.name.as_str(), node.bytes)).collect();
    assert_eq!(
        shown,
        [
            (None, "train.py:9 main", 2560),
            (Some(0), "train.py:6 save", 2048),
            (None, "allocated before the capture", 512),
            (Some(0), "train.py:4 step", 512),
        ]
    );
    let later = calls_at(&context, "CUDA:0", Some(us(5))).unwrap();
    assert_eq!(later.iter().map(|node| node.bytes).collect::<Vec<_>>(), [2048, 2048]);
    assert!(calls_at(&context, "CUDA:1", None).is_none(), "no such allocator");
}

#[test]
fn the_curve_sums_to_what_is_in_use_and_knows_the_segments() {
    let trace = recorded();
    let context = Context::new(&trace, "host");
    let curve = role_curve(&context, "CUDA:0").unwrap();
    assert_eq!(curve.times, [us(1), us(2), us(3), us(4), us(5)]);
    assert_eq!(
        curve.roles,
        [
            (Some(Role::Kept), vec![0, 0, 2048, 2048, 2048]),
            (None, vec![512, 512, 512, 512, 0]),
            (Some(Role::Activation), vec![512, 512, 512, 0, 0]),
        ]
    );
    assert_eq!(curve.reserved, [1024, 5120, 5120, 5120, 5120]);
}

#[test]
fn of_each_piece_of_time_the_highest_moment_is_kept() {
    let times: Vec<Time> = (0..100_000).map(Time::from_ns).collect();
    let chosen = highest(&times, |place| if place == 77_777 { 9 } else { 1 });
    assert!(chosen.len() <= MOST_MOMENTS + 1 && chosen.contains(&77_777), "{}", chosen.len());
    assert!(highest(&[], |_| 0).is_empty());
}

#[test]
fn the_map_has_segments_and_blocks_where_and_when_they_were() {
    let trace = recorded();
    let map = address_map(&Context::new(&trace, "host"), "CUDA:0").unwrap();
    assert_eq!(map.ranges, [(0x1000, 1024), (0x9000, 4096)]);
    let [old, new] = &map.segments[..] else { panic!("two segments, not {}", map.segments.len()) };
    assert_eq!((old.from, old.to, new.from, new.to), (None, None, Some(us(2)), None));
    let blocks: Vec<_> = map.blocks.iter().map(|block| (block.address, block.from, block.to)).collect();
    assert_eq!(
        blocks,
        [(0x9000, Some(us(3)), None), (0x1000, None, Some(us(5))), (0x1200, Some(us(1)), Some(us(4)))]
    );
    assert_eq!((map.blocks[0].line.as_deref(), map.omitted), (Some("train.py:6 save"), 0));
}
