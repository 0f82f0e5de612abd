//! Sources of inputs: the project's own small profiles, plain and inflated, and other content.

use std::fs;
use std::path::{Path, PathBuf};

use stepscope_read::{Bytes, Input};
use stepscope_testkit::damage::FOREIGN;
use stepscope_testkit::tfprof;

/// Maximum size of inputs; larger ones would leave time for too few of them.
const LARGEST: usize = 64 << 10;

/// All seeds, within the size limit.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = FOREIGN.iter().map(|bytes| bytes.to_vec()).collect();
    let (graph, run) = (tfprof::graph(), tfprof::run(0, 5));
    seeds.extend([
        tfprof::events(&graph, std::slice::from_ref(&run)),
        graph,
        run,
        tfprof::op_log(),
        tfprof::saved(),
    ]);
    seeds.extend([tfprof::checkpoint().0, tfprof::graph_text().into_bytes()]);
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
    seeds.extend(stepscope_fleet::fuzzing::seeds(&fixtures.join("tf-train")));
    for file in files_below(&fixtures) {
        let Ok(bytes) = fs::read(&file) else { continue };
        let (inflated, _) = Input::from_bytes("seed", Bytes::held(bytes.clone())).inflated();
        // A prefix of a profile is already a damaged profile; its rest becomes a separate seed.
        for part in [&bytes[..], &inflated[..]] {
            let tail = part.len().saturating_sub(LARGEST);
            seeds.push(part[..part.len().min(LARGEST)].to_vec());
            seeds.push(part[tail..].to_vec());
        }
    }
    seeds
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.into_iter().flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}
