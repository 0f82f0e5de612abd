//! A saved run: the parts of `run.json` (schema `stepscope.run.v1`) that a comparison needs. Its samples, and
//! possibly a profile, are in the same folder and are read like any others.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use serde::Deserialize;
use stepscope_read::discover::RUN_FILE;

const SCHEMA: &str = "stepscope.run.v1";
/// Larger than any real file: a run keeps at most 65,536 observations.
const LARGEST: u64 = 256 << 20;

/// A saved run.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedRun {
    /// Milliseconds per step of the counted steps, in order. An observation of several steps is one value.
    pub steps_ms: Vec<f64>,
    /// Examples per batch, if known.
    pub batch_size: Option<u64>,
}

#[derive(Deserialize)]
struct Document {
    schema: String,
    batch_size: Option<u64>,
    steps: Option<Steps>,
}

#[derive(Deserialize)]
struct Steps {
    unit: String,
    observed: Vec<Observed>,
}

#[derive(Deserialize)]
struct Observed {
    ms: f64,
    warm_up: bool,
}

impl SavedRun {
    /// Reads the run saved in `folder`; `None` if there is none, or if the file is something else.
    pub fn in_folder(folder: &Path) -> Option<Self> {
        let file = File::open(folder.join(RUN_FILE)).ok()?;
        if file.metadata().ok()?.len() > LARGEST {
            return None;
        }
        let document: Document = serde_json::from_reader(BufReader::new(file)).ok()?;
        if document.schema != SCHEMA {
            return None;
        }
        // The time of a single example is not the time of a step.
        let steps = document.steps.filter(|steps| steps.unit == "step");
        let counts = |one: &Observed| !one.warm_up && one.ms.is_finite() && one.ms > 0.0;
        let observed = steps.map(|steps| steps.observed).unwrap_or_default();
        let steps_ms = observed.iter().filter(|one| counts(one)).map(|one| one.ms).collect();
        Some(SavedRun { steps_ms, batch_size: document.batch_size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_steps_that_count_are_taken() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(SavedRun::in_folder(folder.path()), None);
        let write = |text: &str| std::fs::write(folder.path().join(RUN_FILE), text).unwrap();
        write(
            r#"{"schema":"stepscope.run.v1","batch_size":8,"steps":{"unit":"step","observed":[
                {"step":1,"ms":90.0,"warm_up":true},{"step":2,"ms":10.5,"warm_up":false}]}}"#,
        );
        let run = SavedRun::in_folder(folder.path()).unwrap();
        assert_eq!(run, SavedRun { steps_ms: vec![10.5], batch_size: Some(8) });
        write(r#"{"schema":"stepscope.run.v1","batch_size":null,"steps":null}"#);
        assert_eq!(SavedRun::in_folder(folder.path()).unwrap().steps_ms, Vec::<f64>::new());
        write(r#"{"schema":"another"}"#);
        assert_eq!(SavedRun::in_folder(folder.path()), None);
    }
}
