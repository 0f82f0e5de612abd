//! What frameworks' own warnings on a program's output mean for its speed, and what to do about them. A warning is proof:
//! the framework has seen the trouble itself.

/// A warning whose meaning is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Public id: that of the finding that a profile would show, where there is one.
    pub id: &'static str,
    /// Its place among all warnings: those about every step come first.
    pub rank: usize,
    /// What it is about: a function, a worker.
    pub subject: Option<String>,
    /// What it means.
    pub meaning: String,
    /// What to do about it.
    pub fix: &'static str,
}

/// One kind of warning.
struct Known {
    id: &'static str,
    /// All of these occur in the line, in lower case.
    words: &'static [&'static str],
    /// The text around the subject, in lower case.
    subject: Option<(&'static str, &'static str)>,
    meaning: &'static str,
    fix: &'static str,
}

/// The first row whose words are all in the line counts. `{}` stands for the subject.
const KNOWN: &[Known] = &[
    Known {
        id: "retracing",
        words: &["triggered tf.function retracing"],
        subject: Some(("calls to ", " triggered tf.function")),
        meaning: "TensorFlow retraces {} repeatedly: each call builds its graph again",
        fix: "Pass tensors instead of Python numbers (tf.constant(step)), give the function an input_signature, and create \
              it once, outside the loop.",
    },
    Known {
        id: "recompilation",
        words: &["hit config", "recompile_limit"],
        subject: Some(("function: '", "'")),
        meaning: "torch.compile gave up on {}: it compiled it too often and now runs it eagerly",
        fix: "Find out what changes with TORCH_LOGS=recompiles. Keep shapes fixed, or mark them with \
              torch._dynamo.mark_dynamic.",
    },
    Known {
        id: "recompilation",
        words: &["hit config", "cache_size_limit"],
        subject: Some(("function: '", "'")),
        meaning: "torch.compile gave up on {}: it compiled it too often and now runs it eagerly",
        fix: "Find out what changes with TORCH_LOGS=recompiles. Keep shapes fixed, or mark them with \
              torch._dynamo.mark_dynamic.",
    },
    Known {
        id: "slow-compile",
        words: &["slow compile"],
        subject: Some(("compiling module ", " ")),
        meaning: "XLA reports that compiling {} takes very long",
        fix: "Compile once: keep shapes fixed and use a persistent compilation cache (jax_compilation_cache_dir). Loops \
              that Python unrolls make programs large; use lax.scan or lax.fori_loop.",
    },
    Known {
        id: "slow-compile",
        words: &["constant folding an instruction is taking"],
        subject: None,
        meaning: "XLA spends long on folding a large constant while it compiles",
        fix: "Pass large arrays as arguments instead of closing over them.",
    },
    Known {
        id: "gpu-not-used",
        words: &["could not find cuda drivers"],
        subject: None,
        meaning: "TensorFlow found no CUDA driver: everything runs on the processor",
        fix: "Check nvidia-smi, and start the container with --gpus all. Install tensorflow[and-cuda].",
    },
    Known {
        id: "gpu-not-used",
        words: &["cannot dlopen some gpu libraries"],
        subject: None,
        meaning: "TensorFlow cannot load the GPU's libraries: everything runs on the processor",
        fix: "Install tensorflow[and-cuda], or put the CUDA and cuDNN libraries on LD_LIBRARY_PATH.",
    },
    Known {
        id: "gpu-not-used",
        words: &["failed call to cuinit"],
        subject: None,
        meaning: "CUDA did not start: everything runs on the processor",
        fix: "Check nvidia-smi and CUDA_VISIBLE_DEVICES. If you do not want to use a GPU, ignore this.",
    },
    Known {
        id: "gpu-not-used",
        words: &["falling back to cpu"],
        subject: None,
        meaning: "JAX found a GPU or TPU but cannot use it: everything runs on the processor",
        fix: "Install the matching jaxlib, for example pip install 'jax[cuda12]'.",
    },
    Known {
        id: "input-ran-out",
        words: &["input ran out of data"],
        subject: None,
        meaning: "the input ran out of data before the epoch ended",
        fix: "Add .repeat() to the dataset, or make steps_per_epoch × epochs fit its size.",
    },
    Known {
        id: "out-of-memory",
        words: &["out of memory"],
        subject: None,
        meaning: "memory ran out",
        fix: "Use a smaller batch, mixed precision or gradient checkpointing. stepscope memory shows what was live at \
              the peak of a profile.",
    },
    Known {
        id: "out-of-memory",
        words: &["resource_exhausted"],
        subject: None,
        meaning: "memory ran out",
        fix: "Use a smaller batch, mixed precision or rematerialisation. stepscope memory shows what was live at the peak \
              of a profile.",
    },
    Known {
        id: "memory-pressure",
        words: &["allocator", "ran out of memory trying to allocate"],
        subject: None,
        meaning: "the allocator ran out of memory and had to work around it, which costs time",
        fix: "Use a smaller batch, or free memory that other processes hold on the device.",
    },
    Known {
        id: "memory-pressure",
        words: &["allocation of", "exceeds", "of free system memory"],
        subject: None,
        meaning: "a single allocation takes a large part of the machine's free memory",
        fix: "Use a smaller batch, or do not hold the whole data set in one tensor.",
    },
    Known {
        id: "loader-workers",
        words: &["this dataloader will create", "worker processes in total"],
        subject: None,
        meaning: "the DataLoader starts more workers than there are cores for it",
        fix: "Set num_workers to the number of cores that the job may use.",
    },
    Known {
        id: "loader-workers",
        words: &["does not have many workers which may be a bottleneck"],
        subject: Some(("the '", "'")),
        meaning: "Lightning reports that {} has too few workers to keep up",
        fix: "Set num_workers of the DataLoader to about the number of cores.",
    },
    Known {
        id: "loader-workers",
        words: &["dataloader worker", "killed by signal"],
        subject: None,
        meaning: "a worker of the DataLoader was killed, mostly because memory or shared memory ran out",
        fix: "Use fewer workers, or start the container with a larger --shm-size.",
    },
    Known {
        id: "collective-timeout",
        words: &["watchdog caught collective operation timeout"],
        subject: None,
        meaning: "a collective timed out: at least one rank did not arrive",
        fix: "Look for the rank that is behind or has died. TORCH_NCCL_TRACE_BUFFER_SIZE keeps the last collectives of \
              each rank.",
    },
    Known {
        id: "slow-callbacks",
        words: &["callback method", "is slow compared to the batch time"],
        subject: Some(("callback method `", "`")),
        meaning: "Keras reports that the callback {} takes longer than the batch",
        fix: "Do less in it, or do it every N batches.",
    },
];

/// What a line warns of; `None` if it is no warning whose meaning is known. Further lines may name its subject.
pub fn warning(text: &str) -> Option<Warning> {
    let lower = text.to_ascii_lowercase();
    let line = lower.lines().next()?;
    let rank = KNOWN.iter().position(|known| known.words.iter().all(|word| line.contains(word)))?;
    let known = KNOWN.get(rank)?;
    let subject = known.subject.and_then(|(before, after)| between(text, &lower, before, after)).map(named);
    let meaning = known.meaning.replace("{}", subject.as_deref().unwrap_or("a program"));
    Some(Warning { id: known.id, rank, subject, meaning, fix: known.fix })
}

/// The text between two others. ASCII lower case keeps all positions.
fn between<'t>(line: &'t str, lower: &str, before: &str, after: &str) -> Option<&'t str> {
    let start = lower.find(before)? + before.len();
    let length = lower.get(start..)?.find(after)?;
    line.get(start..start + length).filter(|text| !text.is_empty())
}

/// `<function train_step at 0x7f…>` → `train_step`.
fn named(text: &str) -> String {
    let inside = text.trim_start_matches('<').trim_end_matches('>');
    let inside = inside.split(" at 0x").next().unwrap_or(inside).split(" of <").next().unwrap_or(inside);
    let name = inside.strip_prefix("function ").or(inside.strip_prefix("bound method ")).unwrap_or(inside);
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_of_frameworks_are_understood_with_their_subject() {
        let retracing = warning(
            "WARNING:tensorflow:5 out of the last 5 calls to <function train_step at 0x7f0c5c3b9d00> triggered \
             tf.function retracing. Tracing is expensive",
        )
        .unwrap();
        assert_eq!((retracing.id, retracing.subject.as_deref()), ("retracing", Some("train_step")));
        assert!(retracing.meaning.contains("train_step"));
        let keras = warning(
            "WARNING:tensorflow:6 out of the last 6 calls to <function \
             TensorFlowTrainer.make_predict_function.<locals>.one_step_on_data_distributed at 0x7f> triggered \
             tf.function retracing.",
        );
        assert!(keras.unwrap().subject.unwrap().ends_with("one_step_on_data_distributed"));
        let limit =
            warning("W0101 torch._dynamo hit config.recompile_limit (8)\n   function: 'forward' (m.py:3)");
        assert_eq!(limit.unwrap().subject.as_deref(), Some("forward"));
        let id = |line| warning(line).map(|warning| warning.id);
        assert_eq!(
            id(
                "2026-01-01 cuda_dso_loader.cc:31] Could not find cuda drivers on your machine, GPU will not be used."
            ),
            Some("gpu-not-used")
        );
        assert_eq!(id("Your input ran out of data; interrupting training."), Some("input-ran-out"));
        assert_eq!(
            id("WARNING:tensorflow:Callback method `on_train_batch_end` is slow compared to the batch time"),
            Some("slow-callbacks")
        );
    }

    #[test]
    fn other_lines_are_no_warnings() {
        let next = "All log messages are written to STDERR\nCould not find cuda drivers on your machine";
        assert_eq!(warning(next), None, "the line itself must say it");
        for line in ["", "loss: 0.5", "using GPU 0", "calls to triggered", "Training finished without error"]
        {
            assert_eq!(warning(line), None, "{line}");
        }
    }
}
