#!/usr/bin/env python3
"""Checks promised gains against reality: records workloads before and after the advised fix, and compares.

    python tools/gain_study.py --python PYTHON --stepscope target/release/stepscope --out FOLDER

PYTHON has tensorflow and jax. Each pair is recorded in processes of its own; for each, the gain that `stepscope report`
promises for the first recording is printed beside the gain that the second one shows. A gain that is larger than
promised, by more than the noise of the steps, is a defect: `gain_ms_per_step` is the most that a fix can win.
"""
import argparse
import json
import os
import subprocess
import sys
import textwrap

PRELUDE = """
import os, sys
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
fixed, out = sys.argv[1] == "after", sys.argv[2]

def profiled(step, steps=16, warm=5):
    import tensorflow as tf
    for number in range(warm):
        step(number)
    tf.profiler.experimental.start(out)
    for number in range(warm, warm + steps):
        with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
            step(number)
    tf.profiler.experimental.stop()

def model():
    import tensorflow as tf
    layers = [tf.keras.layers.Input((64,))] + [tf.keras.layers.Dense(256, activation="relu") for _ in range(3)]
    return tf.keras.Sequential(layers + [tf.keras.layers.Dense(10)])
"""

PAIRS = {
    "input: parallel map and prefetch": """
        import tensorflow as tf
        net = model()
        run = tf.function(lambda x: net(x, training=True))
        def prepare(i):
            x = tf.random.stateless_uniform((64, 3000), seed=[1, tf.cast(i, tf.int32)])
            for _ in range(4):
                x = tf.sort(x, axis=-1)
            return x[:, :64]
        options = tf.data.Options()
        options.experimental_optimization.apply_default_optimizations = False
        data = tf.data.Dataset.range(10**6)
        if fixed:
            data = data.map(prepare, num_parallel_calls=2).prefetch(4)
        else:
            data = data.map(prepare)
        batches = iter(data.with_options(options))
        profiled(lambda number: run(next(batches)))
    """,
    "retracing: a tensor instead of a Python number": """
        import tensorflow as tf
        net = model()
        @tf.function
        def run(x, scale):
            return tf.reduce_sum(net(x, training=True)) * scale
        x = tf.random.normal((64, 64))
        scale = (lambda n: tf.constant(1.0 + n * 0.001)) if fixed else (lambda n: 1.0 + n * 0.001)
        profiled(lambda number: run(x, scale(number)))
    """,
    "eager: one tf.function": """
        import tensorflow as tf
        v = tf.Variable(tf.zeros((8, 8)))
        def body():
            z = v
            for _ in range(300):
                z = tf.tanh(z * 1.01 + 0.1)
            v.assign(z)
        run = tf.function(body) if fixed else body
        profiled(lambda number: run())
    """,
    "python: bookkeeping out of the loop": """
        import tensorflow as tf
        net = model()
        run = tf.function(lambda x: net(x, training=True))
        x = tf.random.normal((64, 64))
        def step(number):
            run(x)
            if not fixed:
                sum(k * k % 7 for k in range(200_000))
        profiled(step)
    """,
    "output: a checkpoint now and then": """
        import tensorflow as tf
        net = model()
        net(tf.zeros((1, 64)))
        run = tf.function(lambda x: net(x, training=True))
        x = tf.random.normal((64, 64))
        checkpoint = tf.train.Checkpoint(net=net)
        def step(number):
            run(x)
            if not fixed or number % 100 == 99:
                checkpoint.write(os.path.join(out, "checkpoint"))
        profiled(step)
    """,
    "recompilation: shapes padded to one": """
        import jax, jax.numpy as jnp
        f = jax.jit(lambda x: jnp.tanh(x @ x.T).sum())
        rows = (lambda n: 128) if fixed else (lambda n: 100 + n)
        for number in range(3):
            f(jnp.ones((rows(number), 64))).block_until_ready()
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0
        with jax.profiler.trace(out, profiler_options=options):
            for number in range(3, 15):
                with jax.profiler.StepTraceAnnotation("train", step_num=number):
                    f(jnp.ones((rows(number), 64))).block_until_ready()
    """,
}


def report(folder):
    told = subprocess.run([OPTIONS.stepscope, "report", folder, "--json"], capture_output=True, text=True, check=True)
    return json.loads(told.stdout)


def record(name, program, side):
    folder = os.path.join(OPTIONS.out, name.split(":")[0], side)
    os.makedirs(folder, exist_ok=True)
    source = PRELUDE + textwrap.dedent(program)
    run = subprocess.run([OPTIONS.python, "-c", source, side, folder], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{name} ({side}) failed: {run.stderr[-800:]}")
    return report(folder)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--python", default=sys.executable)
parser.add_argument("--stepscope", default="target/release/stepscope")
parser.add_argument("--out", required=True, help="where the recordings go")
OPTIONS = parser.parse_args()

broken = 0
print(f"{'pair':48} {'before':>9} {'after':>9} {'real gain':>10} {'promised':>9}  verdict")
for name, program in PAIRS.items():
    before, after = record(name, program, "before"), record(name, program, "after")
    # A gain is promised on the mean step: that is what the breakdown is of.
    real = before["steps"]["mean_ms"] - after["steps"]["mean_ms"]
    verdict = next(f for f in before["findings"] if f["gain_ms_per_step"] is not None)
    promised = verdict["gain_ms_per_step"]
    noise = 2 * (before["steps"]["stddev_ms"] + after["steps"]["stddev_ms"]) / before["steps"]["count"] ** 0.5
    fine = real <= promised + noise
    broken += not fine
    print(
        f"{name:48} {before['steps']['mean_ms']:6.2f} ms {after['steps']['mean_ms']:6.2f} ms"
        f" {real:7.2f} ms {promised:6.2f} ms  {verdict['id']}{'' if fine else '  MORE THAN PROMISED'}"
    )
print(f"{len(PAIRS) - broken} passed, {broken} failed")
sys.exit(1 if broken else 0)
