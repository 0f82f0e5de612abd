//! The files of a model that lie beside its runs.

use std::path::{Path, PathBuf};

use stepscope_read::Input;
use stepscope_read::files;
use stepscope_read::tf::{self, Kind, kind_of};

use super::ModelFiles;

/// Files of a folder that are looked at, and the size up to which.
const MOST_FILES: usize = 1_000;
const LARGEST: u64 = 1 << 30;

impl ModelFiles {
    /// The files of the model that these runs are of: graph, op log and checkpoint in the same folder, the first of each
    /// by name. Event files that carry runs carry their graph, too.
    pub fn found_near(runs: &[PathBuf]) -> Self {
        let mut files = ModelFiles { runs: runs.to_vec(), ..ModelFiles::default() };
        let Some(first) = runs.first() else { return files };
        files.graph = runs.iter().find(|path| carries_graph(path)).cloned();
        let folder = first.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        for path in candidates(folder, runs) {
            let Some(kind) = kind_of_file(&path) else { continue };
            let place = match kind {
                Kind::Graph | Kind::GraphText => &mut files.graph,
                Kind::OpLog => &mut files.op_log,
                Kind::CheckpointIndex => {
                    if files.checkpoint.is_none() {
                        files.checkpoint = Some(path.with_extension(""));
                    }
                    continue;
                }
                _ => continue,
            };
            place.get_or_insert(path);
        }
        files
    }
}

/// Files of a folder in the order of their names, without the runs.
fn candidates(folder: &Path, runs: &[PathBuf]) -> Vec<PathBuf> {
    let Ok(mut paths) = files::entries(folder) else { return Vec::new() };
    paths.truncate(MOST_FILES);
    paths.retain(|path| {
        let fits = files::data(path).is_ok_and(|data| data.is_file && data.bytes <= LARGEST);
        fits && !runs.contains(path)
    });
    paths.sort();
    paths
}

fn kind_of_file(path: &Path) -> Option<Kind> {
    let (bytes, _) = Input::open(path).ok()?.inflated();
    kind_of(&bytes)
}

fn carries_graph(path: &Path) -> bool {
    kind_of_file(path) == Some(Kind::Events)
        && tf::read_events(path).is_ok_and(|found| !found.value.graphs.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Keep;
    use stepscope_testkit::tfprof;

    #[test]
    fn graph_log_and_checkpoint_beside_a_run_belong_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let (index, data) = tfprof::checkpoint();
        let contents = [
            ("graph.pb", tfprof::graph()),
            ("graph_old.pb", tfprof::graph()),
            ("op_log.pb", tfprof::op_log()),
            ("model.ckpt.index", index),
            ("model.ckpt.data-00000-of-00001", data),
            ("notes.txt", b"nothing".to_vec()),
            ("run_meta_0.pb", tfprof::run(0, 100)),
        ];
        contents.iter().for_each(|(name, bytes)| std::fs::write(place(name), bytes).unwrap());
        let files = ModelFiles::found_near(&[place("run_meta_0.pb")]);
        assert_eq!(files.graph, Some(place("graph.pb")));
        assert_eq!(files.op_log, Some(place("op_log.pb")));
        assert_eq!(files.checkpoint, Some(place("model.ckpt")));
        let model = files.load(Keep::default()).unwrap();
        assert!(model.damage.is_empty() && model.profile.has_stacks());
        assert_eq!(model.profile.steps().collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn an_event_file_is_its_own_graph() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.out.tfevents.1.host");
        std::fs::write(&path, tfprof::events(&tfprof::graph(), &[tfprof::run(0, 100), tfprof::run(1, 100)]))
            .unwrap();
        let files = ModelFiles::found_near(std::slice::from_ref(&path));
        assert_eq!(files.graph, Some(path));
        assert_eq!(files.load(Keep::default()).unwrap().profile.steps().count(), 2);
    }
}
