//! A saved run: the parts of `run.json` (schema `stepscope.run.v1`) that a comparison needs. Its samples, and
//! possibly a profile, are in the same folder and are read like any others.

use std::io::BufReader;
use std::path::Path;

use serde::Deserialize;
use stepscope_diagnose::compare::Machine;
use stepscope_read::discover::RUN_FILE;
use stepscope_read::files;

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
    /// What else the machine did meanwhile.
    pub machine: Machine,
}

#[derive(Deserialize)]
struct Document {
    schema: String,
    batch_size: Option<u64>,
    steps: Option<Steps>,
    usage: Option<Usage>,
    steady_usage: Option<SteadyUsage>,
}

#[derive(Deserialize)]
struct Usage {
    cores: Option<f64>,
    cpu_cores: Option<Spread>,
    machine_cpu_fraction: Option<Spread>,
    steal_fraction: Option<Spread>,
    throttled_fraction: Option<Spread>,
    #[serde(default)]
    gpus: Vec<GpuUsage>,
}

#[derive(Deserialize)]
struct GpuUsage {
    throttled_fraction: Option<f64>,
}

#[derive(Copy, Clone, Deserialize)]
struct Spread {
    mean: f64,
}

#[derive(Deserialize)]
struct SteadyUsage {
    cpu_cores: Option<f64>,
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
        let path = folder.join(RUN_FILE);
        if files::data(&path).ok()?.bytes > LARGEST {
            return None;
        }
        let file = files::open(&path).ok()?;
        let document: Document = serde_json::from_reader(BufReader::new(file)).ok()?;
        if document.schema != SCHEMA {
            return None;
        }
        // The time of a single example is not the time of a step.
        let steps = document.steps.filter(|steps| steps.unit == "step");
        let counts = |one: &Observed| !one.warm_up && one.ms.is_finite() && one.ms > 0.0;
        let observed = steps.map(|steps| steps.observed).unwrap_or_default();
        let steps_ms: Vec<f64> = observed.iter().filter(|one| counts(one)).map(|one| one.ms).collect();
        let machine = machine(document.usage.as_ref(), document.steady_usage.as_ref(), &steps_ms);
        Some(SavedRun { steps_ms, batch_size: document.batch_size, machine })
    }
}

/// What the run's samples say about the machine.
fn machine(usage: Option<&Usage>, steady: Option<&SteadyUsage>, steps_ms: &[f64]) -> Machine {
    let mean = |of: fn(&Usage) -> Option<Spread>| usage.and_then(of).map(|spread| spread.mean);
    let cores = usage.and_then(|usage| usage.cores).filter(|cores| *cores > 0.0);
    let own = mean(|usage| usage.cpu_cores).zip(cores).map(|(busy, cores)| busy / cores);
    let others = mean(|usage| usage.machine_cpu_fraction).zip(own).map(|(all, own)| (all - own).max(0.0));
    let gpus = usage.into_iter().flat_map(|usage| &usage.gpus).filter_map(|gpu| gpu.throttled_fraction);
    let step = steps_ms.iter().sum::<f64>() / steps_ms.len() as f64;
    let busy = steady.and_then(|steady| steady.cpu_cores);
    Machine {
        others,
        stolen: mean(|usage| usage.steal_fraction),
        throttled: mean(|usage| usage.throttled_fraction),
        gpu_throttled: gpus.max_by(f64::total_cmp),
        cpu_ms_per_step: busy.map(|cores| cores * step).filter(|ms| ms.is_finite()),
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
        assert_eq!(run, SavedRun { steps_ms: vec![10.5], batch_size: Some(8), machine: Machine::default() });
        write(r#"{"schema":"stepscope.run.v1","batch_size":null,"steps":null}"#);
        assert_eq!(SavedRun::in_folder(folder.path()).unwrap().steps_ms, Vec::<f64>::new());
        write(
            r#"{"schema":"stepscope.run.v1","steps":{"unit":"step","observed":[{"ms":20.0,"warm_up":false}]},
                "usage":{"cores":4,"cpu_cores":{"mean":1.0,"max":2.0},"machine_cpu_fraction":{"mean":0.75,"max":1.0},
                "gpus":[{"throttled_fraction":0.5}]},"steady_usage":{"cpu_cores":1.5}}"#,
        );
        let machine = SavedRun::in_folder(folder.path()).unwrap().machine;
        assert_eq!((machine.others, machine.cpu_ms_per_step), (Some(0.5), Some(30.0)));
        assert_eq!((machine.gpu_throttled, machine.stolen), (Some(0.5), None));
        write(r#"{"schema":"another"}"#);
        assert_eq!(SavedRun::in_folder(folder.path()), None);
    }
}
