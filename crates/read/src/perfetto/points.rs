//! Starts and ends as the file has them, and the slices that they make. A track may be written by several sequences, whose
//! packets are not in the order of time.

use stepscope_trace::KindId;

/// What happens at a point.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Begin,
    End,
    Instant,
    /// A slice of known length.
    Whole(i64),
    /// A state of the track, which ends with the next one.
    State,
}

/// A place in the list of all arguments.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ArgSpan {
    pub(super) from: u32,
    pub(super) to: u32,
}

/// Something at a time of a track.
#[derive(Copy, Clone, Debug)]
pub(super) struct Point {
    pub(super) node: u32,
    pub(super) ns: i64,
    pub(super) what: What,
    pub(super) kind: KindId,
    pub(super) args: ArgSpan,
}

/// A slice, or an instant of length 0.
#[derive(Copy, Clone, Debug)]
pub(super) struct Slice {
    pub(super) node: u32,
    pub(super) ns: i64,
    pub(super) length: i64,
    pub(super) kind: KindId,
    pub(super) args: ArgSpan,
    /// Arguments that only the end has.
    pub(super) end_args: ArgSpan,
}

/// Ends without a start, starts without an end, and ends before their start.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Oddities {
    pub(super) unpaired: u64,
    pub(super) negative: u64,
}

/// The points of each group of tracks, in the order of time; equal times stay in the order of the file.
pub(super) fn grouped(points: &[Point], groups: &[u32], count: usize) -> Vec<Vec<u32>> {
    let mut sizes = vec![0_usize; count];
    let group = |point: &Point| groups.get(point.node as usize).map_or(0, |&group| group as usize);
    points.iter().for_each(|point| sizes[group(point)] += 1);
    let mut all: Vec<Vec<u32>> = sizes.into_iter().map(Vec::with_capacity).collect();
    for (index, point) in points.iter().enumerate() {
        all[group(point)].push(index as u32);
    }
    for group in &mut all {
        let ns = |index: &u32| points[*index as usize].ns;
        if !group.is_sorted_by_key(ns) {
            group.sort_by_key(ns);
        }
    }
    all
}

/// The slices of one group. What is still open ends with the recording.
pub(super) fn slices(
    points: &[Point],
    group: &[u32],
    last: i64,
    oddities: &mut Oddities,
    mut add: impl FnMut(Slice),
) {
    let mut open: Vec<Point> = Vec::new();
    let mut state: Option<Point> = None;
    let mut close = |open: Point, ns: i64, end_args: ArgSpan, oddities: &mut Oddities| {
        oddities.negative += u64::from(ns < open.ns);
        let length = ns.saturating_sub(open.ns).max(0);
        add(Slice { node: open.node, ns: open.ns, length, kind: open.kind, args: open.args, end_args });
    };
    for point in group.iter().filter_map(|&index| points.get(index as usize)) {
        match point.what {
            What::Begin => open.push(*point),
            What::End => match open.pop() {
                Some(begun) => close(begun, point.ns, point.args, oddities),
                None => oddities.unpaired += 1,
            },
            What::Instant => close(*point, point.ns, ArgSpan::default(), oddities),
            What::Whole(length) => {
                close(*point, point.ns.saturating_add(length), ArgSpan::default(), oddities);
            }
            What::State => {
                if let Some(before) = state.replace(*point) {
                    close(before, point.ns, ArgSpan::default(), oddities);
                }
            }
        }
    }
    for left in open.into_iter().chain(state) {
        oddities.unpaired += u64::from(left.what == What::Begin);
        close(left, last, ArgSpan::default(), oddities);
    }
}
