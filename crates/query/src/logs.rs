//! A folder that holds event files and no profile: the tables exist, but only the logged values have rows.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use stepscope_read::tfevents::{RunReader, find_runs, is_event_file};
use stepscope_results::words::log;
use stepscope_session::{Cause, Problem, Profile};
use stepscope_trace::series::{LogFault, RunLog};

use crate::Holder;

/// What programs logged for TensorBoard, without a profile beside it.
#[derive(Debug)]
pub struct LogFiles {
    profile: Profile,
    logs: Arc<[RunLog]>,
}

impl LogFiles {
    /// Everything logged at or below a path; `None` if no record could be read there.
    pub fn below(path: &Path) -> Option<Self> {
        let read = |(name, mut files): (String, Vec<PathBuf>)| {
            files.retain(|file| file.file_name().is_some_and(|name| is_event_file(&name.to_string_lossy())));
            let mut reader = RunReader::new(name, files);
            // A file that cannot be opened leaves the others as they are.
            let _ = reader.read();
            reader.into_log()
        };
        let logs: Vec<RunLog> = find_runs(path).into_par_iter().map(read).collect();
        let profile = Profile::without_hosts(path.display().to_string());
        logs.iter().any(|log| log.records > 0).then(|| LogFiles { profile, logs: logs.into() })
    }
}

impl Holder for LogFiles {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn logs(&self) -> Arc<[RunLog]> {
        self.logs.clone()
    }

    fn problems(&self) -> Vec<Problem> {
        let damage = self.logs.iter().flat_map(|log| &log.damage);
        // A file that ends within a record is still being written.
        let damage = damage.filter(|damage| damage.what != LogFault::Cut);
        let said = damage.map(|damage| log::damage(damage).trim_end_matches('.').to_owned());
        said.map(|said| Problem::new(Cause::Damaged, said).then("all other records were read")).collect()
    }
}
