#!/usr/bin/env python3
"""What following and recording a program costs, with and without in turn (ABAB) inside of one process.

    tools/zero_edit/cost.py PYTHON [outside|window|start]…

outside: a step with the patches and without, after the window was recorded. window: a recorded step with Python samples and
with the framework's recorder alone. start: an interpreter, and one that imports a framework, with the folder of the hook in
its path and without. Medians over pairs; run it on a quiet machine.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, "..", "..", "python", "stepscope")


def folder_of_hook():
    """The folder that `stepscope run` makes."""
    folder = tempfile.mkdtemp(prefix="zero-edit-")
    for name in ("hook.py", "record.py", "turns.py", os.path.join("inject", "sitecustomize.py")):
        shutil.copy(os.path.join(PACKAGE, name), folder)
    with open(os.path.join(folder, "options.json"), "w") as file:
        json.dump({"into": os.path.join(folder, "into")}, file)
    return folder


# --- Inside of the measured process ----------------------------------------------------------------------------------


def hook():
    import importlib.util

    for part in ("record", "hook"):
        name = "_stepscope_" + part
        spec = importlib.util.spec_from_file_location(name, os.path.join(PACKAGE, part + ".py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return module


def work(loops):
    """Python of the step's own: always the same amount."""
    total = 0.0
    for number in range(loops):
        total += number * 1.5
    return total


#: A few milliseconds of Python, as in the loops of scripts.
LOOPS = 50000
REPEATS = 12


def torch_steps():
    import torch

    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.utils.data.TensorDataset(torch.zeros(80, 64), torch.zeros(80, 1))

    def steps(loops):
        for x, y in torch.utils.data.DataLoader(data, batch_size=8):
            optimizer.zero_grad()
            ((model(x) - y) ** 2).mean().backward()
            optimizer.step()
            work(loops)

    return steps, 10


def tensorflow_steps():
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    w = tf.Variable(tf.ones((64, 64)))

    @tf.function
    def train_step(x):
        w.assign_sub(1e-6 * tf.transpose(x) @ x)

    data = tf.data.Dataset.from_tensors(tf.ones((8, 64))).repeat(10)

    def steps(loops):
        for x in data:
            train_step(x)
            work(loops)

    return steps, 10


def jax_steps():
    import jax
    import jax.numpy as jnp

    module = sys.modules[__name__]
    module.jitted = jax.jit(lambda w, x: w - 1e-6 * x.T @ x)
    x = jnp.ones((8, 64))

    def steps(loops):
        w = jnp.ones((64, 64))
        for _ in range(10):
            w = module.jitted(w, x)
            w.block_until_ready()
            work(loops)

    return steps, 10


STEPS = {"torch": torch_steps, "tensorflow": tensorflow_steps, "jax": jax_steps}


def timed(steps, count, loops):
    """Wall and processor time of the loop's thread per step, over some hundred milliseconds."""
    wall, cpu = time.perf_counter(), time.thread_time()
    for _ in range(REPEATS):
        steps(loops)
    count *= REPEATS
    return (time.perf_counter() - wall) / count, (time.thread_time() - cpu) / count


def outside(framework, pairs=34):
    """Seconds per step with and without patches."""
    steps, count = STEPS[framework]()
    hooked = hook()
    folder = folder_of_hook()
    steps(LOOPS)
    rows = []
    for pair in range(pairs):
        row = {}
        for followed in (True, False) if pair % 2 else (False, True):
            if followed:
                recorder = hooked.attach(folder)
                recorder.state, recorder.windows = "done", 2
            steps(LOOPS)
            row[followed] = timed(steps, count, LOOPS)
            hooked.detach()
        rows.append((row[True], row[False]))
    shutil.rmtree(folder, ignore_errors=True)
    return rows[4:]


def window(framework, pairs=24):
    """Seconds per recorded step with and without samples."""
    steps, count = STEPS[framework]()
    hooked = hook()
    record = hooked.record
    folder = folder_of_hook()
    hooked.begin(folder)
    steps(LOOPS)
    rows = []
    for pair in range(pairs):
        row = {}
        for sampled in (True, False) if pair % 2 else (False, True):
            profiler = record._framework(framework)
            place = os.path.join(folder, "{}.{}".format(pair, sampled))
            hooked.quietly(lambda: profiler.prepare(False))
            hooked.quietly(lambda: profiler.start(place, False))
            log = record._HostLog(2.0)  # a window of two seconds
            if sampled:
                log.start()
            steps(LOOPS)
            row[sampled] = timed(steps, count, LOOPS)
            if sampled:
                log.stop()
            hooked.quietly(lambda: profiler.stop(place, None))
            shutil.rmtree(place, ignore_errors=True)
            if framework == "tensorflow":
                time.sleep(0.2)
        rows.append((row[True], row[False]))
    shutil.rmtree(folder, ignore_errors=True)
    return rows[2:]


# --- The other side --------------------------------------------------------------------------------------------------


def shown(what, framework, rows):
    line = "{:8} {:11}".format(what, framework)
    for place, clock in enumerate(("wall", "processor")):
        with_it = statistics.median(row[0][place] for row in rows)
        without = statistics.median(row[1][place] for row in rows)
        more = statistics.median(row[0][place] - row[1][place] for row in rows)
        line += "  {}: {:9.1f} µs without, {:9.1f} with, {:+7.1f} µs ({:+.2f} %)".format(
            clock, 1e6 * without, 1e6 * with_it, 1e6 * more, 100 * more / without
        )
    print(line, flush=True)


def started(python, code, pairs):
    folder = folder_of_hook()
    plain = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "STEPSCOPE_RUN")}
    followed = dict(plain, PYTHONPATH=folder, STEPSCOPE_RUN=folder)
    rows = []
    for pair in range(pairs + 1):
        row = {}
        for env in (followed, plain) if pair % 2 else (plain, followed):
            begun = time.perf_counter()
            subprocess.run([python, "-c", code], env=env, check=True, capture_output=True)
            took = time.perf_counter() - begun
            row[env is followed] = (took, took)
        rows.append((row[True], row[False]))
    shutil.rmtree(folder, ignore_errors=True)
    with_it, without = (statistics.median(row[side][0] for row in rows[1:]) for side in (0, 1))
    more = statistics.median(row[0][0] - row[1][0] for row in rows[1:])
    print(
        "start    {:30}  {:8.1f} ms without, {:8.1f} with, {:+6.1f} ms".format(code, 1e3 * without, 1e3 * with_it, 1e3 * more),
        flush=True,
    )


def main():
    if sys.argv[1] == "--inside":
        rows = {"outside": outside, "window": window}[sys.argv[2]](sys.argv[3])
        print(json.dumps(rows))
        return
    python, *wanted = sys.argv[1:]
    for what in wanted or ("outside", "window", "start"):
        if what == "start":
            started(python, "pass", 40)
            for framework in ("torch", "tensorflow", "jax"):
                started(python, "import " + framework, 6)
            continue
        for framework in STEPS:
            command = [python, os.path.abspath(__file__), "--inside", what, framework]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
            if done.returncode:
                print(what, framework, "failed:", done.stderr[-300:])
                continue
            shown(what, framework, json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    main()
