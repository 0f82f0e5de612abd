"""The loops of the study: one small training step per framework, recorded by the framework's own profiler.

Each loop runs in a process of its own:

    python workloads.py FRAMEWORK CHANGE STEPS FOLDER

FOLDER receives the profile and `stopwatch.json`: wall time and CPU time of each step, measured around the step.
A change is exact by construction: the step spins for a given share of the time that it has just taken.
"""
import json
import os
import pathlib
import random
import sys
import time

WARM_UP = 8
# Which share of a step's own time step number i spins on top. The last two move the mean by 30 % and leave the median.
CHANGES = {
    "none": lambda i, draw: 0.0,
    "plus3": lambda i, draw: 0.03,
    "plus10": lambda i, draw: 0.10,
    "plus30": lambda i, draw: 0.30,
    "periodic": lambda i, draw: 1.20 if i % 4 == 3 else 0.0,
    "tail": lambda i, draw: 6.0 if draw() < 0.05 else 0.0,
}


def tensorflow_loop(folder, steps):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    import contextlib

    import tensorflow as tf

    layers = [tf.Variable(tf.random.normal((384, 384)) * 0.05) for _ in range(6)]
    x = tf.random.normal((256, 384))

    @tf.function
    def train(x):
        with tf.GradientTape() as tape:
            y = x
            for layer in layers:
                y = tf.nn.relu(y @ layer)
            loss = tf.reduce_mean(y * y)
        for layer, gradient in zip(layers, tape.gradient(loss, layers)):
            layer.assign_sub(0.001 * gradient)
        return loss

    @contextlib.contextmanager
    def profiler():
        options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0)
        tf.profiler.experimental.start(str(folder), options=options)
        yield lambda: None
        tf.profiler.experimental.stop()

    mark = lambda i: tf.profiler.experimental.Trace("train", step_num=i, _r=1)
    return lambda: train(x).numpy(), mark, profiler


def jax_loop(folder, steps):
    os.environ["JAX_PLATFORMS"] = "cpu"
    import contextlib

    import jax
    import jax.numpy as jnp

    def loss_of(layers, x):
        for layer in layers:
            x = jax.nn.relu(x @ layer)
        return (x * x).mean()

    @jax.jit
    def train(layers, x):
        gradients = jax.grad(loss_of)(layers, x)
        return [layer - 0.001 * gradient for layer, gradient in zip(layers, gradients)]

    keys = jax.random.split(jax.random.PRNGKey(0), 7)
    state = {"layers": [jax.random.normal(key, (384, 384)) * 0.05 for key in keys[:6]]}
    x = jax.random.normal(keys[6], (256, 384))

    def step():
        state["layers"] = jax.block_until_ready(train(state["layers"], x))

    @contextlib.contextmanager
    def profiler():
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0
        jax.profiler.start_trace(str(folder), profiler_options=options)
        yield lambda: None
        jax.profiler.stop_trace()

    return step, lambda i: jax.profiler.StepTraceAnnotation("train", step_num=i), profiler


def torch_loop(folder, steps):
    import contextlib

    import torch

    torch.manual_seed(0)
    layers = [part for _ in range(6) for part in (torch.nn.Linear(384, 384), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    x = torch.randn(256, 384)

    def step():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    @contextlib.contextmanager
    def profiler():
        # Only with a schedule does the profiler mark the steps.
        schedule = torch.profiler.schedule(wait=0, warmup=0, active=steps, repeat=1)
        activities = [torch.profiler.ProfilerActivity.CPU]
        with torch.profiler.profile(activities=activities, schedule=schedule) as recorder:
            yield recorder.step
        recorder.export_chrome_trace(str(folder / "trace.json"))

    return step, lambda i: contextlib.nullcontext(), profiler


LOOPS = {"tensorflow": tensorflow_loop, "jax": jax_loop, "torch": torch_loop}


def record(framework, change, steps, folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    step, mark, profiler = LOOPS[framework](folder, steps)
    share = CHANGES[change]
    draw = random.Random(os.getpid()).random

    def turn(i):
        began = time.perf_counter()
        step()
        until = began + (time.perf_counter() - began) * (1 + share(i, draw))
        while time.perf_counter() < until:
            pass

    for _ in range(WARM_UP):
        turn(0)
    wall, cpu = [], []
    with profiler() as next_step:
        for i in range(steps):
            began, worked = time.perf_counter(), time.process_time()
            with mark(i):
                turn(i)
            wall.append(1e3 * (time.perf_counter() - began))
            cpu.append(1e3 * (time.process_time() - worked))
            next_step()
    saved = {"framework": framework, "change": change, "at": time.time(), "wall_ms": wall, "cpu_ms": cpu}
    (folder / "stopwatch.json").write_text(json.dumps(saved))


if __name__ == "__main__":
    framework, change, steps, folder = sys.argv[1:]
    record(framework, change, int(steps), folder)
