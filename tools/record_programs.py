#!/usr/bin/env python3
"""Record compiled programs with a known flaw on a CPU, each beside the same program without it.

    record_programs.py OUT [NAME...]

Every program trains or infers a few steps under JAX's or TensorFlow's own profiler, in a process of its own. EXPECTED
says which finding about programs each must have; it was written before the first recording was read. Programs whose name ends in `_fixed` must
have none of these findings. `OUT/truth.json` lists them, for `tests/programs_live.rs`.

`version`, `version_wider`, `version_slower` and `clusters` are not among them: their profiles are kept in
crates/stepscope/tests/recordings, for the tests in tests/programs.rs. Profiles quote paths; record them with an interpreter
in a neutral place.

    pip install "jax[cpu]" tensorflow
"""
import json
import os
import pathlib
import subprocess
import sys

# What each program must be told. Products in float32 and padding are not visible on a CPU: neither its peaks nor its tiles
# are known.
EXPECTED = {
    "kv_cache": ["layout-copies"],
    "kv_cache_fixed": [],
    "channels_first": ["layout-copies"],
    "channels_first_fixed": [],
    "kept_values": ["unfused-ops"],
    "kept_values_fixed": [],
    "closure": ["large-constants"],
    "closure_fixed": [],
    "checkpoint_fixed": [],
    "sharded": ["collective-not-overlapped"],
    "sharded_fixed": [],
    "tf_closure": ["large-constants"],
    "tf_closure_fixed": [],
}
# With the peaks of a device stated (`report --peak FLOPS,BYTES`), two more can be seen on a CPU.
EXPECTED_WITH_PEAK = {"streaming": "memory-bound-ops", "checkpoint_fixed": "low-mfu"}
STEPS = 8
ENVIRONMENT = {"sharded": {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"},
               "sharded_fixed": {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"},
               "version_slower": {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"},
               "clusters": {"TF_XLA_FLAGS": "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit --tf_xla_min_cluster_size=2"}}


def jax_steps(out, step, state, *inputs):
    """Records STEPS calls of `state = step(state, *inputs)`."""
    import jax
    state = jax.block_until_ready(step(state, *inputs))
    with jax.profiler.trace(out):
        for number in range(STEPS):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                state = jax.block_until_ready(step(state, *inputs))


def tf_steps(out, step, *inputs):
    import tensorflow as tf
    step(*inputs)
    with tf.profiler.experimental.Profile(out):
        for number in range(STEPS):
            with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
                step(*inputs).numpy()


def kv_cache(out, fixed):
    """One token per step goes into a cache. Without donation, every step copies the whole cache."""
    import jax
    import jax.numpy as jnp

    def step(state, weights):
        cache, position = state
        with jax.named_scope("attend"):
            query = jax.lax.dynamic_slice_in_dim(cache, position, 1, axis=0) @ weights
        with jax.named_scope("append"):
            cache = jax.lax.dynamic_update_slice_in_dim(cache, query, position + 1, axis=0)
        return cache, position + 1

    step = jax.jit(step, donate_argnums=0 if fixed else ())
    jax_steps(out, step, (jnp.ones((16384, 1024)), jnp.int32(0)), jnp.eye(1024))


def channels_first(out, fixed):
    """A mean over rows and one over columns of an image batch; channels first forces the array to be turned."""
    import jax
    import jax.numpy as jnp
    layout = ("NHWC", "HWIO", "NHWC") if fixed else ("NCHW", "OIHW", "NCHW")

    def step(images, kernel):
        for _ in range(3):
            with jax.named_scope("conv"):
                images = jax.lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=layout)
        return images

    shape, kernel = ((16, 128, 128, 16), (1, 1, 16, 16)) if fixed else ((16, 16, 128, 128), (16, 16, 1, 1))
    jax_steps(out, jax.jit(step), jnp.ones(shape), jnp.ones(kernel) / 16)


def kept_values(out, fixed):
    """A chain of elementwise operations. Each result is wanted by the caller, so that the compiler cannot fuse them."""
    import jax
    import jax.numpy as jnp

    def step(state):
        x, kept = state[0], []
        with jax.named_scope("activation"):
            for _ in range(4):
                x = jnp.tanh(x)
                kept.append(x)
        return kept[-1:] if fixed else kept[::-1]

    jax_steps(out, jax.jit(step), [jnp.ones((2048, 2048))])


def closure(out, fixed):
    """A table that the function takes from its surroundings."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    table = np.random.default_rng(0).normal(size=(4096, 2048)).astype(np.float32)

    def forward(x, weights):
        with jax.named_scope("project"):
            return jnp.tanh(x @ weights) @ weights.T

    if fixed:
        jax_steps(out, jax.jit(forward), jnp.ones((64, 4096)), jnp.asarray(table))
    else:
        jax_steps(out, jax.jit(lambda x: forward(x, table)), jnp.ones((64, 4096)))


def checkpoint(out, fixed):
    """Three layers whose activations are computed again in the backward pass."""
    import jax
    import jax.numpy as jnp
    width = 768

    def layer(x, weights):
        with jax.named_scope("layer"):
            return jnp.tanh(x @ weights)

    kept = layer if fixed else jax.checkpoint(layer)

    def loss(weights, x):
        for each in weights:
            x = kept(x, each)
        return jnp.mean(x * x)

    @jax.jit
    def step(weights, x):
        gradients = jax.grad(loss)(weights, x)
        return [old - 0.01 * new for old, new in zip(weights, gradients)]

    jax_steps(out, step, [jnp.eye(width) * 0.1] * 3, jnp.ones((1024, width)))


def sharded(out, fixed):
    """Two devices. A large sum over both per step and hardly any products, or a small sum and many products."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
    mesh = Mesh(jax.devices(), ("data",))
    rows = NamedSharding(mesh, PartitionSpec("data"))
    everywhere = NamedSharding(mesh, PartitionSpec())
    width = 256 if fixed else 2048

    def step(weights, x):
        with jax.named_scope("gradient"):
            return weights - 1e-3 * (x.T @ x)

    x = jax.device_put(jnp.ones((131072 if fixed else 16, width)), rows)
    weights = jax.device_put(jnp.zeros((width, width)), everywhere)
    jax_steps(out, jax.jit(step, out_shardings=everywhere), weights, x)


def streaming(out, _):
    """Elementwise work on arrays that no cache holds: the memory limits it."""
    import jax
    import jax.numpy as jnp
    step = jax.jit(lambda x, y: x * 0.5 + y)
    jax_steps(out, step, jnp.ones((8192, 4096)), jnp.ones((8192, 4096)))


def tf_closure(out, fixed):
    """A numpy array in the closure of a compiled function."""
    import numpy as np
    import tensorflow as tf
    table = np.random.default_rng(0).normal(size=(4096, 2048)).astype(np.float32)
    variable = tf.Variable(table)

    @tf.function(jit_compile=True)
    def step(x):
        return tf.tanh(x @ (variable if fixed else tf.constant(table)))

    tf_steps(out, step, tf.ones((64, 4096)))


def mlp(out, width, **jit):
    """A training step with a hidden layer of this width, recorded without Python's own frames."""
    import jax
    import jax.numpy as jnp

    def loss(weights, x):
        with jax.named_scope("embed"):
            x = jnp.tanh(x @ weights[0])
        with jax.named_scope("mlp"):
            x = jnp.tanh(x @ weights[1]) @ weights[2]
        return jnp.mean(x * x)

    @jax.jit
    def step(weights, x):
        gradients = jax.grad(loss)(weights, x)
        with jax.named_scope("update"):
            return [old - 0.01 * new for old, new in zip(weights, gradients)]

    shapes = [(256, 256), (256, width), (width, 256)]
    state, x = [jnp.full(shape, 0.01) for shape in shapes], jnp.ones((256, 256))
    state = jax.block_until_ready(step(state, x))
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with jax.profiler.trace(out, profiler_options=options):
        for number in range(STEPS):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                state = jax.block_until_ready(step(state, x))


def version(out, _):
    """The first version of a program."""
    mlp(out, 512)


def version_wider(out, _):
    """Twice as many products in one scope."""
    mlp(out, 1024)


def version_slower(out, _):
    """The same program on one thread: the same work takes longer."""
    mlp(out, 512)


def clusters(out, _):
    """Automatic clustering around an op that XLA does not compile."""
    import numpy as np
    import tensorflow as tf
    first = tf.Variable(np.full((512, 1024), 0.01, np.float32))
    second = tf.Variable(np.full((1024, 512), 0.01, np.float32))

    @tf.function
    def step(x):
        with tf.name_scope("encoder"):
            hidden = tf.tanh(tf.nn.relu(x @ first)) * 2.0 + 1.0
        with tf.name_scope("lookup"):
            values, _ = tf.unique(tf.cast(tf.reshape(hidden[:, :1], [-1]) * 10, tf.int32))
            hidden = hidden * tf.cast(tf.size(values), tf.float32)
        with tf.name_scope("decoder"):
            return tf.reduce_mean(tf.exp(-tf.nn.relu(hidden @ second)) + 0.5)

    x = tf.constant(np.ones((256, 512), np.float32))
    step(x)
    tf_steps(out, step, x)


PROGRAMS = {f.__name__: f for f in (kv_cache, channels_first, kept_values, closure, checkpoint, sharded, streaming,
                                    tf_closure, version, version_wider, version_slower, clusters)}


def main():
    if sys.argv[1] == "--one":
        name, out = sys.argv[2:4]
        return PROGRAMS[name.removesuffix("_fixed")](out, name.endswith("_fixed"))
    out = pathlib.Path(sys.argv[1])
    names = sys.argv[2:] or [*EXPECTED, "streaming"]
    for name in names:
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2",
                       **ENVIRONMENT.get(name, {})}
        command = [sys.executable, __file__, "--one", name, str(out / name)]
        subprocess.run(command, check=True, env=environment, timeout=300)
    truth = {"findings": EXPECTED, "with_peak": EXPECTED_WITH_PEAK}
    (out / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")


if __name__ == "__main__":
    main()
