//! Writes a simulated run to a folder, as `torch.profiler` would record it: for pictures and for trying things out.
//!
//! `cargo run -p stepscope-testkit --example scene -- requests|ranks FOLDER`
//!
//! The hosts of `ranks` have clocks that differ, and the third computes longer than the others.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a tool for developers")]

use std::path::Path;

use stepscope_testkit::stage::scenes::{self, Shape};
use stepscope_testkit::stage::{Scene, scenes_many, to_kineto};

/// How far the clocks of hosts are ahead, in nanoseconds.
const AHEAD: [i64; 4] = [0, 1_250_000, 7_400_000, 640_000];
/// Nanoseconds since 1970.
const WALL: i64 = 1_790_000_000_000_000_000;

fn main() {
    let mut args = std::env::args().skip(1);
    let (name, folder) = (args.next().unwrap_or_default(), args.next().unwrap());
    let shape = Shape { step: 20_000_000, steps: 24, kernels: 40, marked: true };
    let scene: Scene = match name.as_str() {
        "requests" => scenes::requests(Shape { steps: 60, ..shape }),
        "ranks" => scenes_many::ranks(shape, AHEAD.len() as i64, true),
        other => panic!("no scene is called {other:?}; there are requests and ranks"),
    };
    let world = scene.runs.len();
    std::fs::create_dir_all(&folder).unwrap();
    for (rank, run) in scene.runs.into_iter().enumerate() {
        let ranks = (world > 1).then_some((rank, world));
        let text = to_kineto::write_from(&run.ahead(AHEAD[rank % AHEAD.len()]), ranks, Some(WALL));
        std::fs::write(Path::new(&folder).join(format!("rank{rank}.pt.trace.json")), text).unwrap();
    }
}
