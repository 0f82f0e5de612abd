#!/usr/bin/env python3
"""How often is `stepscope compare` right? Records the same workloads again and again, and once more a tenth slower.

    noise_study.py [--python PY] [--stepscope BIN] [--out DIR] [--runs N] [--steps N] [--slowdown PERCENT] [WORKLOAD...]

Each recording is a process of its own under TensorFlow's profiler on the CPU; plain and slowed ones take turns, so
that a machine that gets busier or hotter in the course of the study does not favour one of them. The slowdown is
exact: each step spins for the given share of the time that it has just taken. Then `compare` judges

  - every pair of plain recordings, which should be "same" (no difference),
  - every plain recording against every slowed one, which should be "slower",
  - all plain recordings together against all slowed ones (several runs a side), which should be "slower",

and the shares are printed. Recordings that are already in --out are used again, so that a change of the statistics
can be judged on the same data.

Needs an interpreter with TensorFlow (--python) and the binary (--stepscope).
"""
import argparse
import collections
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

WARM_UP = 6
WORKLOADS = {}


def workload(function):
    """Register a workload: a function that returns (step, dataset)."""
    WORKLOADS[function.__name__] = function
    return function


def training_step(tf, width, depth, features):
    layers = [tf.keras.layers.Input((features,))]
    layers += [tf.keras.layers.Dense(width, activation="relu") for _ in range(depth)]
    model = tf.keras.Sequential([*layers, tf.keras.layers.Dense(10)])
    optimizer = tf.keras.optimizers.SGD(0.01)
    optimizer.build(model.trainable_variables)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    return step


@workload
def compute(tf):
    """Large dense layers; the input is always ready."""
    step = training_step(tf, width=1024, depth=4, features=512)
    x, y = tf.random.normal((256, 512)), tf.zeros((256,), tf.int32)
    return step, tf.data.Dataset.from_tensors((x, y)).repeat().prefetch(2)


@workload
def input(tf):
    """A sequential map that costs more than the step, without prefetch."""
    step = training_step(tf, width=256, depth=2, features=64)

    def prepare(i):
        x = tf.random.stateless_uniform((100, 2000), seed=[1, tf.cast(i, tf.int32)])
        for _ in range(4):
            x = tf.sort(x, axis=-1, direction="DESCENDING") * 1.0001
        return tf.reshape(tf.reshape(x, (-1,))[: 64 * 64], (64, 64)), tf.fill((64,), tf.cast(i % 10, tf.int32))

    options = tf.data.Options()
    # TensorFlow would add parallel calls and a prefetch, behind which a slower loop hides.
    options.experimental_optimization.apply_default_optimizations = False
    return step, tf.data.Dataset.range(1_000_000).map(prepare).with_options(options)


def record(name, logdir, steps, slowdown):
    """Runs in a process of its own: one recording."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    import tensorflow as tf

    step, dataset = WORKLOADS[name](tf)
    batches = iter(dataset)

    def turn():
        began = time.perf_counter()
        step(*next(batches)).numpy()
        until = began + (time.perf_counter() - began) * (1 + slowdown)
        while time.perf_counter() < until:
            pass

    for _ in range(WARM_UP):
        turn()
    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0)
    tf.profiler.experimental.start(logdir, options=options)
    for number in range(steps):
        with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
            turn()
    tf.profiler.experimental.stop()


def record_all(args, name):
    """The recordings of one workload: (plain, slowed)."""
    plain, slowed = [], []
    for run in range(args.runs):
        for recordings, variant, slowdown in ((plain, "plain", 0.0), (slowed, "slowed", args.slowdown / 100)):
            logdir = args.out / name / f"{variant}-{run}"
            recordings.append(logdir)
            if logdir.exists():
                continue
            print(f"recording {logdir}", file=sys.stderr)
            command = [args.python, __file__, "--record", name, str(logdir), str(args.steps), str(slowdown)]
            subprocess.run(command, check=True)
    return plain, slowed


def verdict(args, base, new):
    """What `compare` says of two sides, each a list of recordings."""
    sides = [part for path in base for part in ("--base", path)] + [part for path in new for part in ("--new", path)]
    done = subprocess.run([args.stepscope, "compare", *sides, "--json"], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def judged(args, title, pairs, right):
    """Compares all pairs, prints the shares of the verdicts, and returns how many were right."""
    results = [verdict(args, base, new) for base, new in pairs]
    counts = collections.Counter(result["verdict"] for result in results)
    shares = ", ".join(f"{word} {count}" for word, count in counts.most_common())
    ratios = sorted(result["ratio"]["median"] for result in results)
    print(f"  {title:<28} {counts[right]}/{len(results)} {right} ({shares}); ratios {ratios[0]:.3f} to {ratios[-1]:.3f}")
    return counts[right], len(results)


def study(args):
    same, slower = (0, 0), (0, 0)
    add = lambda a, b: (a[0] + b[0], a[1] + b[1])
    for name in args.workloads or WORKLOADS:
        plain, slowed = record_all(args, name)
        print(name)
        same = add(same, judged(args, "plain / plain", [([a], [b]) for a, b in itertools.permutations(plain, 2)], "same"))
        pairs = [([a], [b]) for a, b in itertools.product(plain, slowed)]
        slower = add(slower, judged(args, f"plain / {args.slowdown:g} % slower", pairs, "slower"))
        judged(args, "the same, all runs together", [(plain, slowed)], "slower")
    print(f"no difference where there is none: {same[0]}/{same[1]} ({same[0] / same[1]:.1%})")
    print(f"{args.slowdown:g} % slower is told: {slower[0]}/{slower[1]} ({slower[0] / slower[1]:.1%})")


def main():
    if sys.argv[1:2] == ["--record"]:
        name, logdir, steps, slowdown = sys.argv[2:]
        return record(name, logdir, int(steps), float(slowdown))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="an interpreter with TensorFlow")
    parser.add_argument("--stepscope", default="stepscope", help="the binary")
    parser.add_argument("--out", type=pathlib.Path, help="where the recordings go; a temporary folder by default")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--slowdown", type=float, default=10, help="per cent")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(WORKLOADS)}")
    args = parser.parse_args()
    if args.out:
        return study(args)
    with tempfile.TemporaryDirectory() as folder:
        args.out = pathlib.Path(folder)
        study(args)


if __name__ == "__main__":
    main()
