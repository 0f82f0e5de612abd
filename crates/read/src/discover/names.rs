//! What names say, for places where opening every file is too expensive: buckets hold checkpoints and data sets beside logs.
//! On a local disk names decide nothing; there, files are recognised by content.

use crate::input::Input;
use crate::tfevents;

use super::{COMPRESSED, RUN_FILE};

/// Folders that never hold profiles, in lower case, without the number behind them.
const NO_LOGS: &[&str] = &[
    "checkpoint",
    "checkpoints",
    "ckpt",
    "ckpts",
    "weights",
    "variables",
    "assets",
    "saved_model",
    "saved_models",
    "dataset",
    "datasets",
    "tfrecord",
    "tfrecords",
    "shards",
    "images",
    "tokenizer",
    "node_modules",
    "__pycache__",
    "site-packages",
    "venv",
    "wandb",
    "mlruns",
    "ocdbt",
    "ocdbt.process",
    "orbax",
    "hlo",
    "xla_dump",
];

/// Endings of files that may be profiles, or belong to one.
const ENDINGS: &[&str] = &[
    ".pb",
    ".json",
    ".trace",
    ".perfetto",
    ".sqlite",
    ".ncu-rep",
    ".nsys-rep",
    ".qdrep",
    ".csv",
    ".log",
    ".txt",
    ".parquet",
    ".arrow",
    ".part",
    ".pickle",
    ".pkl",
    ".prof",
    ".pftrace",
    ".perfetto-trace",
    ".db",
];

/// Only the beginning of such a file is needed to recognise it.
const SHORT_HEAD: usize = 4 << 10;
/// The largest block of Zstandard: without all of the first one, nothing can be inflated.
const ZSTD_HEAD: usize = (128 << 10) + 64;

/// Whether profiles may lie in a folder of this name, or below it.
pub fn may_hold_profiles(folder: &str) -> bool {
    let lower = folder.to_ascii_lowercase();
    let bare = lower.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '-' | '_' | '.'));
    !lower.starts_with('.') && !NO_LOGS.contains(&bare) && !NO_LOGS.contains(&lower.as_str())
}

/// Whether a file of this name may be a profile, or an event file, or belong to one.
pub fn may_be_profile(file: &str) -> bool {
    let lower = file.to_ascii_lowercase();
    let bare = COMPRESSED.iter().find_map(|ending| lower.strip_suffix(ending)).unwrap_or(&lower);
    let table = bare.ends_with(".parquet") || bare.ends_with(".arrow");
    if table {
        // Data sets consist of such files; only those of an export are tables with a name.
        return crate::folder::table_name(std::path::Path::new(file))
            .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_uppercase()));
    }
    file == RUN_FILE || tfevents::is_event_file(file) || ENDINGS.iter().any(|ending| bare.ends_with(ending))
}

/// How many bytes of the beginning of a file of this name are needed to recognise it.
pub fn head_bytes(file: &str) -> usize {
    if file.ends_with(".xplane.pb") {
        SHORT_HEAD
    } else if file.ends_with(".zst") {
        ZSTD_HEAD
    } else if file.ends_with(".part") {
        // A partial, which no reader recognises.
        0
    } else {
        Input::HEAD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_and_data_are_passed_by_and_runs_are_not() {
        for folder in ["checkpoints", "ckpt-1000", "checkpoint_12", "Datasets", ".git", "ocdbt.process_0"] {
            assert!(!may_hold_profiles(folder), "{folder}");
        }
        for folder in
            ["logs", "run-1", "plugins", "profile", "2026_11_15_19_29_44", "train", "iteration_10", "7"]
        {
            assert!(may_hold_profiles(folder), "{folder}");
        }
    }

    #[test]
    fn names_of_profiles_and_of_what_belongs_to_them_matter() {
        for file in [
            "vm-1.xplane.pb",
            "w0.1623143089861.pt.trace.json.gz",
            "rank3_trace.json.zst",
            "report1.sqlite",
            "smi.csv",
            "events.out.tfevents.1.vm",
            "run.json",
            "StringIds.parquet",
            "shard-00000-of-00004.part",
            "kernels.ncu-rep",
        ] {
            assert!(may_be_profile(file), "{file}");
        }
        for file in [
            "model.safetensors",
            "part-00001.parquet",
            "x.tfrecord",
            "a.npy",
            "weights.index",
            "img.png",
            "x.zst",
        ] {
            assert!(!may_be_profile(file), "{file}");
        }
        assert_eq!((head_bytes("a.xplane.pb"), head_bytes("a.json.gz")), (SHORT_HEAD, Input::HEAD));
    }
}
