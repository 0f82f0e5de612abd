//! explorer
use rusqlite::Connection;
use stepscope_read::{Bytes, Input, Progress};
use stepscope_render::report::Report;
use stepscope_session::Profile;
use stepscope_session::report::report;
use stepscope_testkit::stage::scenes::{self, Shape};
use stepscope_testkit::stage::to_nsys::Ranges;
use stepscope_testkit::stage::{Scene, scenes_many, to_kineto, to_nsys, to_xplane};

#[derive(Copy, Clone, Debug, PartialEq)]
enum Recorder { Kineto, Nsys, NsysOps, Xplane }

fn inputs(scene: &Scene, recorder: Recorder) -> Vec<(String, Input)> {
    let world = scene.runs.len();
    let nsys = |ranges| {
        let mut c = Connection::open_in_memory().unwrap();
        c.execute_batch(&format!("BEGIN;{}COMMIT;", to_nsys::write(&scene.runs, ranges).script())).unwrap();
        let bytes = c.serialize("main").unwrap().to_vec();
        vec![("host".to_owned(), Input::from_bytes("export.sqlite", Bytes::held(bytes)))]
    };
    let each = |name: &str, write: &dyn Fn(usize) -> Vec<u8>| {
        (0..world).map(|rank| (format!("rank{rank}"), Input::from_bytes(format!("rank{rank}.{name}"), Bytes::held(write(rank))))).collect()
    };
    match recorder {
        Recorder::Nsys => nsys(Ranges::Marks),
        Recorder::NsysOps => nsys(Ranges::Ops),
        Recorder::Kineto => each("pt.trace.json", &|rank| to_kineto::write(&scene.runs[rank], (world > 1).then_some((rank, world))).into_bytes()),
        Recorder::Xplane => each("xplane.pb", &|rank| to_xplane::write(&scene.runs[rank])),
    }
}

fn told(scene: &Scene, recorder: Recorder) -> Report {
    let inputs = inputs(scene, recorder).into_iter().map(|(h, i)| (h, Ok(i))).collect();
    let profile = Profile::read("s".into(), vec![], inputs, &Progress::new()).unwrap();
    report(&profile, "x".into()).unwrap()
}

fn show(scene: &Scene) {
    if std::env::var("ONLY").is_ok_and(|only| !scene.name.contains(&only)) { return; }
    println!("== {} step {:.3}ms share {:.3}", scene.name, scene.step as f64 / 1e6, scene.share);
    for recorder in [Recorder::Kineto, Recorder::Nsys, Recorder::NsysOps, Recorder::Xplane] {
        let r = told(scene, recorder);
        let ids: Vec<String> = r.findings.iter().map(|f| format!("{}{}{:.2}", f.id.key(), &format!("{:?}", f.severity)[..1], f.fraction.unwrap_or(f64::NAN))).collect();
        let len = r.summary.length_ms();
        let shares: Vec<String> = r.summary.breakdown_ms.iter().filter(|(_, ms)| ms / len > 0.005).map(|(c, ms)| format!("{} {:.3}", c.key(), ms / len)).collect();
        let sum: f64 = r.summary.breakdown_ms.iter().map(|(_, ms)| ms).sum();
        let med = r.summary.step_ms.map_or(f64::NAN, |m| m.median);
        let how = r.summary.bound().map(|h| format!("{:?}", h.how)).unwrap_or_default();
        println!("  {recorder:?}: n{} med {:.3} ({:+.1}%) sum/len {:.3} {how} {} | {}", r.summary.count, med, 100.0 * (med / (scene.step as f64 / 1e6) - 1.0), sum / len, shares.join(", "), ids.join(", "));
    }
}

#[test]
fn explore() {
    let s = |step_us: i64, steps, kernels, marked| Shape { step: step_us * 1000, steps, kernels, marked };
    for marked in [true, false] {
        for shape in [s(2_000, 40, 12, marked), s(50_000, 12, 120, marked), s(400_000, 6, 40, marked)] {
            show(&scenes::healthy(shape));
            show(&scenes::healthy_with_loss(shape));
            show(&scenes::healthy_collectives(shape));
            show(&scenes::healthy_graph(shape, false));
            show(&scenes::healthy_graph(shape, true));
            show(&scenes::input(shape, false));
            show(&scenes::input(shape, true));
            show(&scenes::launching(s(1_200, 20, 100, marked)));
            show(&scenes::small_kernels(s(1_000, 20, 200, marked)));
            show(&scenes::python(shape, false));
            show(&scenes::python(shape, true));
            show(&scenes::pageable_copies(shape));
            show(&scenes::pinned_copies(shape));
            show(&scenes::waiting(shape, true));
            show(&scenes::waiting(shape, false));
            show(&scenes::allocation(shape));
            show(&scenes::communication(shape));
            show(&scenes::single_precision(shape));
            show(&scenes::serial_streams(shape));
            show(&scenes::variance(shape));
            show(&scenes::startup(shape));
            show(&scenes::requests(shape));
            show(&scenes_many::ranks(shape, 4, true));
            show(&scenes_many::ranks(shape, 4, false));
            show(&scenes_many::two_devices(shape));
            show(&scenes_many::tail(shape));
            show(&scenes_many::calls_alone(scenes::input(shape, true)));
        }
    }
}
