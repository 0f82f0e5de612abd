//! Names that people give to ranges of their loop (`record_function("data_loading")`): what such a range does, as
//! far as its words say. A name that fits nothing stays an annotation.

use super::{Role, words};

/// The role of a user's range.
pub(super) fn role(name: &str) -> Role {
    let words = words(name);
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    let copies = has(COPIES);
    if has(DATA_LOADER) && !copies {
        return Role::InputWait;
    }
    if copies || has(ELSEWHERE) {
        return Role::Annotation;
    }
    let only_data = words == ["data"];
    if only_data || has(LOADERS) || (has(BATCHES) && has(FETCHING)) {
        Role::InputWait
    } else if has(LOGGERS) || (has(RESULTS) && has(WRITING)) {
        Role::Output
    } else {
        Role::Annotation
    }
}

/// Words of ranges around copies between host and device.
const COPIES: &[&str] = &["to", "cuda", "gpu", "device", "h2d", "d2h", "transfer", "copy", "move"];
/// Words that name a loader whatever stands beside them, as in `train_dataloader_next`.
const DATA_LOADER: &[&str] = &["dataloader", "dataloading", "dataload"];
/// Words of ranges that do more, or something else: the model's work, collectives, loading of weights.
const ELSEWHERE: &[&str] = &[
    "forward",
    "backward",
    "fwd",
    "bwd",
    "train",
    "training",
    "step",
    "optimizer",
    "loss",
    "inference",
    "infer",
    "predict",
    "generate",
    "eval",
    "evaluate",
    "validation",
    "norm",
    "parallel",
    "reduce",
    "gather",
    "scatter",
];
/// Words that name a loader by themselves.
const LOADERS: &[&str] = &[
    "collate",
    "preprocess",
    "preprocessing",
    "tokenize",
    "tokenise",
    "tokenization",
    "tokenisation",
    "augmentation",
];
/// What is loaded …
const BATCHES: &[&str] = &["data", "batch", "batches", "sample", "samples", "dataset", "minibatch"];
/// … and how people say that it is.
const FETCHING: &[&str] = &[
    "load",
    "loading",
    "loader",
    "get",
    "fetch",
    "fetching",
    "next",
    "read",
    "reading",
    "prepare",
    "preparing",
    "preparation",
    "iter",
    "generator",
];
/// Words that name writing by themselves.
const LOGGERS: &[&str] = &["logging", "tensorboard", "wandb", "mlflow"];
/// What is written …
const RESULTS: &[&str] = &[
    "checkpoint",
    "checkpoints",
    "ckpt",
    "model",
    "weights",
    "state",
    "metrics",
    "scalars",
    "results",
    "summary",
    "summaries",
    "images",
    "logs",
];
/// … and how people say that it is. Recomputing activations is called `checkpoint` alone.
const WRITING: &[&str] = &["save", "saving", "write", "writing", "dump", "dumping", "log", "export"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_around_loading_and_writing_say_so() {
        for name in [
            "data_loading",
            "get_batch",
            "## load data ##",
            "DataLoader",
            "fetchBatch",
            "data",
            "tokenize",
            "[pl][profile][_TrainingEpochLoop].train_dataloader_next",
        ] {
            assert_eq!(role(name), Role::InputWait, "{name}");
        }
        for name in ["save_checkpoint", "checkpoint.save", "log_metrics", "Logging", "write results"] {
            assert_eq!(role(name), Role::Output, "{name}");
        }
    }

    #[test]
    fn other_ranges_stay_annotations() {
        for name in [
            "forward",
            "model_inference",
            "batch_to_device",
            "data transfer",
            "load_model",
            "checkpoint",
            "batch",
            "train_batch",
            "copy data to cuda",
            "get_logits",
            "DataParallel.forward",
            "batch_norm",
            "log_softmax",
            "data_parallel_reduce",
            "metrics",
            "save_for_backward",
            "## wait_sparse_data_dist ##",
            "state",
        ] {
            assert_eq!(role(name), Role::Annotation, "{name}");
        }
    }
}
