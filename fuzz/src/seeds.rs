//! Sources of inputs: the project's own small profiles, plain and inflated, one generated file per further format, the
//! hostile files, and other content.

use std::fs;
use std::path::{Path, PathBuf};

use stepscope_read::{Bytes, Input};
use stepscope_testkit::damage::{FOREIGN, Rng};
use stepscope_testkit::hostile::bombs;
use stepscope_testkit::hostile::shapes::{Content, SHAPES};
use stepscope_testkit::snapshot::{Pickler, Simulated, Writer};
use stepscope_testkit::{hlo, host, json_results, ncu, nsys, perfetto, pprof, tfevents, tfprof};

/// Event files with pictures, graphs and hyperparameters.
const LOGGED: [&[u8]; 5] = [
    include_bytes!("../../fixtures/events/tensorflow/pictures/events.out.tfevents.1767225600.trainer"),
    include_bytes!("../../fixtures/events/tensorflow/keras/train/events.out.tfevents.1767225600.trainer"),
    include_bytes!("../../fixtures/events/tensorflow1/events.out.tfevents.1767225600.trainer"),
    include_bytes!("../../fixtures/events/torch/net/events.out.tfevents.1767225600.trainer"),
    include_bytes!("../../fixtures/events/torch/sweep/trial-0/events.out.tfevents.1767225600.trainer"),
];

/// Size up to which inputs are the usual ones; larger ones leave time for few of them.
const SMALL: usize = 64 << 10;
/// Maximum size of inputs.
const LARGEST: usize = 1 << 20;
/// One input in so many is a large one.
const LARGE_SHARE: usize = 16;
/// Things in excess in a hostile file, few enough for a small input.
const EXCESS: usize = 40;

/// All inputs to start from.
#[derive(Debug)]
pub struct Seeds {
    small: Vec<Vec<u8>>,
    large: Vec<Vec<u8>>,
}

impl Seeds {
    /// All seeds, within the size limit.
    pub fn all() -> Self {
        let mut seeds = Seeds { small: Vec::new(), large: Vec::new() };
        FOREIGN.iter().for_each(|bytes| seeds.add(bytes));
        memory().iter().for_each(|bytes| seeds.add(bytes));
        classic_tensorflow().iter().for_each(|bytes| seeds.add(bytes));
        tools().iter().for_each(|bytes| seeds.add(bytes));
        seeds.add(&hlo::sample(1));
        seeds.add(&perfetto::training(20));
        [json_results::ROCPROF, json_results::TRITON].iter().for_each(|text| seeds.add(text.as_bytes()));
        for shape in SHAPES {
            seeds.add(&bytes_of((shape.build)(EXCESS)));
        }
        [bombs::shared_pages(), bombs::page_that_follows_itself()].iter().for_each(|bytes| seeds.add(bytes));
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
        stepscope_fleet::fuzzing::seeds(&fixtures.join("tf-train")).iter().for_each(|bytes| seeds.add(bytes));
        for file in files_below(&fixtures) {
            let Ok(bytes) = fs::read(&file) else { continue };
            let (inflated, _) = Input::from_bytes("seed", Bytes::held(bytes.clone())).inflated();
            seeds.add(&bytes);
            seeds.add(&inflated);
        }
        seeds
    }

    /// A prefix of a profile is already a damaged profile; its rest becomes a separate seed.
    fn add(&mut self, bytes: &[u8]) {
        self.small.push(bytes[..bytes.len().min(SMALL)].to_vec());
        if bytes.len() > SMALL {
            self.small.push(bytes[bytes.len() - SMALL..].to_vec());
            self.large.push(bytes[..bytes.len().min(LARGEST)].to_vec());
        }
    }

    /// Any of them, mostly a small one.
    pub fn any(&self, rng: &mut Rng) -> &[u8] {
        let large = rng.below(LARGE_SHARE) == 0 && !self.large.is_empty();
        let seeds = if large { &self.large } else { &self.small };
        seeds.get(rng.below(seeds.len())).map_or(&[], Vec::as_slice)
    }
}

fn classic_tensorflow() -> Vec<Vec<u8>> {
    let (graph, run) = (tfprof::graph(), tfprof::run(0, 5));
    vec![
        tfprof::events(&graph, std::slice::from_ref(&run)),
        graph,
        run,
        tfprof::op_log(),
        tfprof::saved(),
        tfprof::checkpoint().0,
        tfprof::graph_text().into_bytes(),
        tfprof::timeline(&["/cpu:0", "/gpu:0"], &[(0, "_SOURCE", "NoOp", 0, 5), (1, "a", "MatMul", 9, 70)])
            .into_bytes(),
    ]
}

/// Memory snapshots of both writers, a profile of live memory, and both forms of a timeline by role.
fn memory() -> Vec<Vec<u8>> {
    let program = Simulated::random(&mut Rng::new(3), 60);
    let writers = [Writer::Python(2), Writer::Python(4), Writer::Cpp];
    let mut all: Vec<Vec<u8>> =
        writers.iter().map(|&writer| Pickler::dump(writer, &program.snapshot(50))).collect();
    let mut file = pprof::PprofFile::memory();
    let place = file.location("train", "train.py", 16);
    file.sample(&pprof::sample(&[place], 2, 2_048).label("kind", "buffer").label("device", "cpu:0"));
    all.push(file.bytes());
    all.push(b"[[-1, 1, 100, 0], [-1, 1, 50, 1], [7000, 2, 30, 4], [9000, 4, -30, 4]]".to_vec());
    all.push(b"[[5, 8], [[0, 100, 50, 0, 0, 0, 0, 0, 0], [0, 100, 50, 0, 0, 30, 0, 0, 9]]]".to_vec());
    all
}

/// What other tools write: Nsight Compute, Nsight Systems, nvidia-smi, stepscope's own samples and logs, event files.
fn tools() -> Vec<Vec<u8>> {
    let mut report = ncu::Report::new();
    report.session(1_700_000_000, "GPU", &[("device__attribute_warp_size", 32), ("clock_rate", 1_000)]);
    let metrics = [("gpu__time_duration.sum", 1_000.0), ("launch__registers_per_thread", 64.0)];
    report.launch("gemm", [32, 1, 1], [128, 1, 1], &metrics).launch("add", [1, 1, 1], [32, 1, 1], &metrics);
    let events = (0..20).flat_map(|step| {
        let both = [("loss", 1.0 / (1.0 + f32::from(step))), ("steps_per_second", 10.0)];
        both.map(|(tag, value)| {
            tfevents::record(&tfevents::scalar(1.7e9 + f64::from(step), step, tag, value))
        })
    });
    let texts = [
        "timestamp, index, name, utilization.gpu [%], memory.used [MiB]\n\
         2026/04/25 16:06:06.780, 0, Tesla T4, 45 %, 300 MiB\n2026/04/25 16:06:07.780, 0, Tesla T4, 55 %, 300 MiB\n",
        "# gpu    pwr  gtemp  mtemp     sm    mem\n# Idx      W      C      C      %      %\n    0     74     33      -      0      0\n",
        "time_unix_s,elapsed_s,machine_cpu_percent,tree_rss_bytes,gpu0_busy_percent,core0_percent\n\
         1800000000.1,0.1,12.5,1000,50.0,50.0\n1800000000.2,0.2,25.0,2000,64.0,100.0\n",
        "\"ID\",\"Kernel Name\",\"Context\",\"Stream\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n\
         \"0\",\"gemm\",\"1\",\"7\",\"GPU Speed Of Light Throughput\",\"Duration\",\"usecond\",\"12.5\"\n",
    ];
    let mut all = vec![report.bytes(), database(nsys::sample().script()), events.flatten().collect()];
    all.extend(texts.map(|text| text.as_bytes().to_vec()));
    all.extend(LOGGED.map(<[u8]>::to_vec));
    all.push(host::log().into_bytes());
    all
}

fn bytes_of(content: Content) -> Vec<u8> {
    match content {
        Content::Bytes(bytes) => bytes,
        Content::Sql(script) => database(&script),
    }
}

/// The database that a script makes.
fn database(script: &str) -> Vec<u8> {
    let made = rusqlite::Connection::open_in_memory().and_then(|mut connection| {
        connection.execute_batch(script)?;
        Ok(connection.serialize(rusqlite::MAIN_DB)?.to_vec())
    });
    made.unwrap_or_default()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.into_iter().flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}
