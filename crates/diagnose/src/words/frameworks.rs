//! The same advice in each framework's language, for rules that share it.

use stepscope_analyze::vocabulary::Framework;

use super::lines;

/// How to read results back rarely: the usual Python of a loop.
pub(crate) fn few_reads(framework: Framework) -> &'static str {
    match framework {
        Framework::TensorFlow | Framework::Keras => {
            "Keep metrics as tensors (`tf.keras.metrics.Mean`) and call `.numpy()` or `float(loss)` only when you log."
        }
        Framework::Jax => {
            "Keep metrics on the device, and call `float(loss)` or `jax.device_get` only when you log."
        }
        Framework::PyTorch => {
            "Keep metrics as tensors (`loss.detach()`), and call `.item()` or `float(loss)` only when you log."
        }
        Framework::Unknown => "Read results back only when the host needs them: not in every iteration.",
    }
}

/// How to launch fewer and longer kernels.
pub(crate) fn fewer_launches(framework: Framework) -> Vec<String> {
    match framework {
        Framework::Keras => lines([
            "Fuse ops and run several batches per call: `model.compile(..., jit_compile=True, steps_per_execution=16)`.",
            "Use larger batches: the same launches then do more work.",
        ]),
        Framework::TensorFlow => lines([
            "Fuse ops: `@tf.function(jit_compile=True)` around the whole step.",
            "Use larger batches: the same launches then do more work.",
        ]),
        Framework::Jax => lines([
            "Put the whole step under one `jax.jit`, optimizer included, so that XLA fuses it.",
            "Use larger batches, or run several steps per call with `jax.lax.scan`.",
        ]),
        Framework::PyTorch => lines([
            "Fuse ops and replay launches as a CUDA graph: `torch.compile(model, mode=\"reduce-overhead\")`.",
            "Update all parameters in a few kernels: `torch.optim.AdamW(..., fused=True)`.",
            "Use larger batches: the same launches then do more work.",
        ]),
        Framework::Unknown => lines(["Fuse kernels, capture them in a CUDA graph, or use larger batches."]),
    }
}

/// How to record a few steady steps.
pub fn capture(framework: Framework) -> &'static str {
    match framework {
        Framework::Keras => {
            "`model.fit(..., callbacks=[tf.keras.callbacks.TensorBoard(logdir, profile_batch=(10, 20))])`"
        }
        Framework::TensorFlow => {
            "`tf.profiler.experimental.start(logdir)` after step 10, `tf.profiler.experimental.stop()` after step 20"
        }
        Framework::Jax => {
            "`jax.profiler.start_trace(logdir)` after step 10, `jax.block_until_ready(...)` and \
             `jax.profiler.stop_trace()` after step 20"
        }
        Framework::PyTorch => {
            "`torch.profiler.profile(schedule=torch.profiler.schedule(wait=5, warmup=5, active=10))` with \
             `prof.step()` at the end of each step"
        }
        Framework::Unknown => {
            "start the profiler after step 10 and stop it after step 20 (Nsight Systems: `cudaProfilerStart()` and \
             `cudaProfilerStop()` in the program, `nsys profile --capture-range=cudaProfilerApi`)"
        }
    }
}

/// How to record with less detail.
pub(crate) fn less_detail(framework: Framework) -> &'static str {
    match framework {
        Framework::TensorFlow | Framework::Keras => {
            "Record with less detail: `tf.profiler.experimental.ProfilerOptions(host_tracer_level=1, \
             python_tracer_level=0)`."
        }
        Framework::Jax => {
            "Record with less detail: `options = jax.profiler.ProfileOptions()`, \
             `options.python_tracer_level = 0`, `start_trace(logdir, profiler_options=options)`."
        }
        Framework::PyTorch => {
            "Record with less detail: `profile(with_stack=False, record_shapes=False, profile_memory=False)`."
        }
        Framework::Unknown => "Record with less detail: without Python frames, shapes and memory.",
    }
}
