#!/usr/bin/env python3
"""Record the small real profiles that live in fixtures/.

    record_fixtures.py [--tf-python PY] [--torch-python PY] [--out DIR] [--workdir DIR] [--hide TEXT]... [NAME...]

Every fixture is a short CPU training program run in a process of its own and watched by the framework's own profiler.
The files are kept byte for byte as the profiler wrote them (PyTorch's JSON is gzipped); only their names become neutral.
A stopwatch (time.perf_counter) runs beside the profiler and ends up in truth.json, so tests can compare what we
compute from the profile with what really happened.

TF and JAX fixtures:  pip install tensorflow "jax[cpu]"      (give that interpreter with --tf-python)
PyTorch fixtures:     pip install torch                      (--torch-python)

Profiles quote paths: the program's own, the interpreter's, the log directory, the host name. The programs therefore
run from a copy in --workdir under the host name "trainer" (Linux, own UTS namespace), and a fixture that
still quotes this machine's home, repository, temporary directory or host name (or any --hide text) is refused.
An interpreter below $HOME will trip that check; use one in a neutral place.
"""
import argparse
import contextlib
import ctypes
import glob
import gzip
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

SESSION = "2026_01_01_00_00_00"
HOST = "trainer"
MAX_BYTES = 300_000
RECIPES = {}


def recipe(name, env):
    """Register a training program under the fixture's name; `env` says which interpreter runs it."""
    def add(fn):
        RECIPES[name] = (fn, env)
        return fn
    return add


class Stopwatch:
    """Wall time of each step and of the named parts in it."""

    def __init__(self):
        self.steps = []
        self._open = None

    @contextlib.contextmanager
    def step(self, **labels):
        self._open = dict(labels)
        began = time.perf_counter()
        yield
        row, self._open = self._open, None
        self.steps.append({"step": time.perf_counter() - began, **row})

    @contextlib.contextmanager
    def part(self, name):
        began = time.perf_counter()
        yield
        if self._open is not None:
            self._open[name] = self._open.get(name, 0.0) + time.perf_counter() - began


# ---- TensorFlow ------------------------------------------------------------------------------------------------------

def import_tf():
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    import tensorflow as tf
    return tf


def photos(tf, count, side):
    """JPEG files in memory: smooth random pictures, so that they decode like photographs rather than like noise."""
    tf.random.set_seed(7)
    coarse = tf.random.uniform((count, 12, 12, 3), 0, 255)
    full = tf.cast(tf.image.resize(coarse, (side, side), "bicubic"), tf.float32)
    full = tf.cast(tf.clip_by_value(full + tf.random.normal(full.shape, stddev=6.0), 0, 255), tf.uint8)
    return [tf.io.encode_jpeg(p, quality=90).numpy() for p in full]


def small_convnet(tf, side, filters=16):
    k = tf.keras.layers
    return tf.keras.Sequential([
        k.Input((side, side, 3)),
        k.Conv2D(filters, 3, strides=2, activation="relu"),
        k.Conv2D(2 * filters, 3, strides=2, activation="relu"),
        k.GlobalAveragePooling2D(),
        k.Dense(10),
    ])


def train_step_of(tf, model):
    optimizer = tf.keras.optimizers.SGD(0.01)
    optimizer.build(model.trainable_variables)
    cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            loss = cross_entropy(labels, model(images, training=True))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    return train_step


def tf_loop(tf, logdir, dataset, train_step, warm, steps):
    """A hand-written loop with the step marker from TensorFlow's guide; only steps after the warm-up are profiled."""
    watch, batches = Stopwatch(), iter(dataset)
    for _ in range(warm):
        train_step(*next(batches))
    tf.profiler.experimental.start(logdir)
    for i in range(warm, warm + steps):
        with watch.step(step_num=i), tf.profiler.experimental.Trace("train", step_num=i, _r=1):
            with watch.part("input"):
                images, labels = next(batches)
            with watch.part("compute"):
                train_step(images, labels).numpy()
    tf.profiler.experimental.stop()
    return watch.steps


@recipe("tf-train", "tf")
def tf_train(logdir):
    """TensorFlow tf.function loop, marked steps; tf.data map, batch and prefetch keep the model fed."""
    tf = import_tf()
    model = small_convnet(tf, 64, filters=64)

    def example(i):
        seed = tf.stack([tf.cast(i, tf.int32), 3])
        return tf.random.stateless_uniform((64, 64, 3), seed), tf.cast(i % 10, tf.int32)

    dataset = tf.data.Dataset.range(1_000_000).map(example, num_parallel_calls=2).batch(16).prefetch(2)
    return tf_loop(tf, logdir, dataset, train_step_of(tf, model), warm=6, steps=10)


@recipe("tf-input-bound", "tf")
def tf_input_bound(logdir):
    """The same loop, starved: JPEGs are decoded one after the other in a sequential map and nothing is prefetched."""
    tf = import_tf()
    model = small_convnet(tf, 96)
    files = tf.data.Dataset.from_tensor_slices((photos(tf, 24, 960), [i % 10 for i in range(24)])).repeat()

    def decode(data, label):
        image = tf.io.decode_jpeg(data, channels=3)
        image = tf.image.resize(image, (96, 96))
        image = tf.image.random_flip_left_right(image)
        return image / 255.0, label

    as_written = tf.data.Options()  # else tf.data fuses map and batch into an asynchronous step and adds a Prefetch of its own
    as_written.experimental_optimization.apply_default_optimizations = False
    dataset = files.map(decode).batch(8).with_options(as_written)
    return tf_loop(tf, logdir, dataset, train_step_of(tf, model), warm=6, steps=14)


@recipe("tf-session", "tf")
def tf_session(logdir):
    """A TensorFlow 1 graph with unknown batch size, trained in a session; graph, op log and run metadata for tfprof."""
    tf = import_tf()
    import numpy as np
    from tensorflow.python.profiler import tfprof_logger
    v1 = tf.compat.v1
    v1.disable_eager_execution()
    v1.set_random_seed(7)
    images = v1.placeholder(tf.float32, [None, 32, 32, 3], name="images")
    labels = v1.placeholder(tf.int32, [None], name="labels")
    with v1.variable_scope("conv1"):
        kernel = v1.get_variable("kernel", [3, 3, 3, 32])
        bias = v1.get_variable("bias", [32], initializer=v1.zeros_initializer())
        hidden = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(images, kernel, 2, "SAME"), bias))
    with v1.variable_scope("BatchNorm"):
        mean, variance = tf.nn.moments(hidden, [0, 1, 2])
        hidden = tf.nn.batch_normalization(hidden, mean, variance, None, None, 1e-3)
    with v1.variable_scope("head"):
        weights = v1.get_variable("kernel", [16 * 16 * 32, 10])
        logits = tf.matmul(tf.reshape(hidden, [-1, 16 * 16 * 32]), weights)
    with v1.name_scope("loss"):
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    train = v1.train.MomentumOptimizer(0.01, 0.9).minimize(loss)
    graph, watch = v1.get_default_graph(), Stopwatch()
    rng = np.random.default_rng(3)
    fed = {images: rng.random((64, 32, 32, 3), np.float32), labels: rng.integers(0, 10, 64)}
    options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)

    def write(name, message):
        pathlib.Path(logdir, name).write_bytes(message.SerializeToString(deterministic=True))

    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        for _ in range(3):
            session.run(train, fed, options=options, run_metadata=v1.RunMetadata())
        for step in range(3):
            run_meta = v1.RunMetadata()
            with watch.step(step_num=step):
                session.run(train, fed, options=options, run_metadata=run_meta)
            write(f"run_meta_{step}.pb", run_meta)
    write("graph.pb", graph.as_graph_def(add_shapes=True))
    write("op_log.pb", tfprof_logger.merge_default_with_oplog(graph))
    return watch.steps


class KerasWatch:
    """`step`: from the last callback's batch begin to the first one's batch end; `period`: to the next batch's begin."""

    def __init__(self, tf, only=None):
        self.steps, self.only = [], only
        self.first = tf.keras.callbacks.LambdaCallback(on_train_batch_end=self._end)
        self.last = tf.keras.callbacks.LambdaCallback(on_train_batch_begin=self._begin)

    def _begin(self, batch, logs):
        now = time.perf_counter()
        if self.steps and self._wants(batch):
            self.steps[-1]["period"] = now - self._began
        self._began = now

    def _end(self, batch, logs):
        if self._wants(batch):
            self.steps.append({"step": time.perf_counter() - self._began, "step_num": batch})

    def _wants(self, batch):
        return self.only is None or batch in self.only


def keras_model(tf):
    import numpy as np
    k = tf.keras.layers
    model = tf.keras.Sequential([k.Input((64,)), k.Dense(512, activation="relu"), k.Dense(512, activation="relu"), k.Dense(10)])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    rng = np.random.default_rng(5)
    return model, rng.random((4096, 64), np.float32), rng.integers(0, 10, 4096).astype("int32")


@recipe("keras-fit", "tf")
def keras_fit(logdir):
    """model.fit profiled by the TensorBoard callback (profile_batch), which names its marker "Profiled batch"."""
    tf = import_tf()
    model, x, y = keras_model(tf)
    watch = KerasWatch(tf, only=range(9, 19))  # profile_batch counts from 1, the marker's step_num from 0
    board = tf.keras.callbacks.TensorBoard(logdir, profile_batch=(10, 19), write_graph=False)
    model.fit(x, y, batch_size=128, epochs=1, verbose=0, callbacks=[watch.first, board, watch.last])
    return watch.steps


@recipe("keras-plain", "tf")
def keras_plain(logdir):
    """model.fit between profiler start and stop: no step marker anywhere in the file."""
    tf = import_tf()
    model, x, y = keras_model(tf)
    model.fit(x[:512], y[:512], batch_size=128, epochs=1, verbose=0)
    watch = KerasWatch(tf)
    tf.profiler.experimental.start(logdir)
    model.fit(x[:1536], y[:1536], batch_size=128, epochs=1, verbose=0, callbacks=[watch.first, watch.last])
    tf.profiler.experimental.stop()
    return watch.steps


# ---- JAX -------------------------------------------------------------------------------------------------------------

def jax_program():
    import jax
    import jax.numpy as jnp
    import numpy as np
    rng = np.random.default_rng(11)
    params = [jnp.asarray(rng.normal(0, 0.05, (512, 512)), jnp.float32) for _ in range(4)]
    batch = jnp.asarray(rng.normal(0, 1, (256, 512)), jnp.float32)

    def loss_fn(params, batch):
        hidden = batch
        for w in params:
            hidden = jax.nn.relu(hidden @ w)
        return jnp.mean((hidden - batch) ** 2)

    @jax.jit
    def update(params, batch):
        loss, grads = jax.value_and_grad(loss_fn)(params, batch)
        return [w - 0.01 * g for w, g in zip(params, grads)], loss

    for _ in range(3):
        params, loss = update(params, batch)
    jax.block_until_ready(loss)
    return jax, update, params, batch


@recipe("jax-train", "tf")
def jax_train(logdir):
    """JAX jit training loop with StepTraceAnnotation around each update."""
    jax, update, params, batch = jax_program()
    watch = Stopwatch()
    with jax.profiler.trace(logdir):
        for i in range(12):
            with watch.step(step_num=i), jax.profiler.StepTraceAnnotation("train", step_num=i):
                params, loss = update(params, batch)
                jax.block_until_ready((params, loss))
    return watch.steps


@recipe("jax-plain", "tf")
def jax_plain(logdir):
    """JAX jit training loop that fetches the loss every step; no step marker."""
    jax, update, params, batch = jax_program()
    watch = Stopwatch()
    with jax.profiler.trace(logdir):
        for i in range(12):
            with watch.step(step_num=i):
                params, loss = update(params, batch)
                float(loss)
    return watch.steps


# ---- PyTorch ---------------------------------------------------------------------------------------------------------

def torch_program(width, rows):
    import torch
    torch.manual_seed(13)

    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return 4096

        def __getitem__(self, i):
            return torch.full((128,), float(i % 17)), i % 10

    net = torch.nn.Sequential(torch.nn.Linear(128, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader(Rows(), batch_size=rows, num_workers=0)

    def update(x, y):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return torch, loader, update


def torch_loop(watch, batches, update, steps, after=lambda: None):
    for i in range(steps):
        with watch.step(step_num=i):
            with watch.part("input"):
                x, y = next(batches)
            with watch.part("compute"):
                update(x, y)
        after()


@recipe("torch-train", "torch")
def torch_train(logdir):
    """torch.profiler with a schedule (ProfilerStep#), shapes and memory; DataLoader in the training process."""
    torch, loader, update = torch_program(width=1024, rows=48)
    watch, batches, skipped, active = Stopwatch(), iter(loader), 3, 6
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=2, warmup=1, active=active, repeat=1),
        on_trace_ready=lambda p: p.export_chrome_trace(os.path.join(logdir, HOST + ".pt.trace.json")),
        record_shapes=True, profile_memory=True, with_stack=False,
    ) as profiler:
        torch_loop(watch, batches, update, skipped + active, after=profiler.step)
    return watch.steps[skipped:]


@recipe("torch-plain", "torch")
def torch_plain(logdir):
    """torch.profiler without a schedule, so no ProfilerStep#; Python stacks recorded."""
    torch, loader, update = torch_program(width=1024, rows=24)
    watch, batches = Stopwatch(), iter(loader)
    torch_loop(Stopwatch(), batches, update, 3)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True) as profiler:
        torch_loop(watch, batches, update, 4)
    profiler.export_chrome_trace(os.path.join(logdir, HOST + ".pt.trace.json"))
    return watch.steps


# ---- running them ----------------------------------------------------------------------------------------------------

def take_neutral_host_name():
    """Own UTS namespace (with a user namespace when not root). Elsewhere the real name stays and the check decides."""
    new_uts, new_user = 0x04000000, 0x10000000
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        if libc.unshare(new_uts) == 0 or libc.unshare(new_user | new_uts) == 0:
            socket.sethostname(HOST)


def work(name, logdir):
    """The child: run one program, leave profile and truth.json in its log directory."""
    take_neutral_host_name()
    fn, _ = RECIPES[name]
    steps = fn(logdir)
    versions = {m: sys.modules[m].__version__ for m in ("tensorflow", "keras", "jax", "torch") if hasattr(sys.modules.get(m), "__version__")}
    truth = {"fixture": name, "what": " ".join(fn.__doc__.split()), "recorded_with": versions, "clock": "time.perf_counter, seconds", "steps": steps}
    rows = [json.dumps({k: round(v, 6) if isinstance(v, float) else v for k, v in s.items()}) for s in truth.pop("steps")]
    head = json.dumps(truth, indent=1)[:-2]
    pathlib.Path(logdir, "truth.json").write_text(head + ',\n "steps": [\n  ' + ",\n  ".join(rows) + "\n ]\n}\n")


def collect(logdir, target):
    """Copy what a fixture consists of, under neutral names; return the files."""
    kept = []

    def keep(path, data):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        kept.append(path)

    for found in glob.glob(os.path.join(logdir, "**", "plugins", "profile", "*", "*"), recursive=True):
        found = pathlib.Path(found)
        kind = next((k for k in (".xplane.pb", ".trace.json.gz") if found.name.endswith(k)), None)
        if kind and (kind == ".xplane.pb" or found.stat().st_size <= MAX_BYTES // 3):
            above = found.parent.parent.relative_to(logdir)
            keep(target / above / SESSION / (HOST + kind), found.read_bytes())
    for found in glob.glob(os.path.join(logdir, "*.pt.trace.json")):
        found = pathlib.Path(found)
        keep(target / (found.name + ".gz"), gzip.compress(found.read_bytes(), 9, mtime=0))
    for found in sorted(glob.glob(os.path.join(logdir, "*.pb"))):
        keep(target / os.path.basename(found), pathlib.Path(found).read_bytes())
    if not kept:
        sys.exit(f"{target.name}: the profiler wrote nothing")
    keep(target / "truth.json", pathlib.Path(logdir, "truth.json").read_bytes())
    return kept


def leaks(path, hide):
    """Private text that a file quotes."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    found = [t for t in hide if t.encode() in data]
    host = socket.gethostname()
    if re.search(rb'(?<![\w.$/-])' + re.escape(host.encode()) + rb'(?![\w.$/-])', data):
        found.append("host name " + host)
    return found


def main():
    here = pathlib.Path(__file__).resolve()
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("names", nargs="*", metavar="NAME", help="fixtures to record (all: " + ", ".join(RECIPES) + ")")
    a.add_argument("--tf-python", default=sys.executable)
    a.add_argument("--torch-python", default=sys.executable)
    a.add_argument("--out", type=pathlib.Path, default=here.parent.parent / "fixtures")
    a.add_argument("--workdir", type=pathlib.Path, default=pathlib.Path("/home/user/train"))
    a.add_argument("--hide", action="append", default=[], help="more text that no fixture may contain")
    a.add_argument("--worker", help=argparse.SUPPRESS)
    o = a.parse_args()
    if o.worker:
        return work(o.worker, o.names[0])

    unknown = set(o.names) - set(RECIPES)
    if unknown:
        a.error("no such fixture: " + ", ".join(sorted(unknown)))
    o.workdir.mkdir(parents=True, exist_ok=True)
    program = shutil.copy(here, o.workdir / "train.py")
    hide = [os.path.expanduser("~"), str(here.parent.parent), tempfile.gettempdir() + "/", *o.hide]
    failed = []
    for name in o.names or RECIPES:
        logdir = o.workdir / "logs" / name
        shutil.rmtree(logdir, ignore_errors=True)
        logdir.mkdir(parents=True)
        python = o.tf_python if RECIPES[name][1] == "tf" else o.torch_python
        env = {"PATH": os.environ.get("PATH", ""), "HOME": str(o.workdir), "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([python, program, "--worker", name, str(logdir)], cwd=o.workdir, env=env, capture_output=True, text=True)
        if done.returncode:
            failed.append(name)
            print(f"{name}: failed\n{done.stderr[-1500:]}")
            continue
        target = o.out / name
        shutil.rmtree(target, ignore_errors=True)
        for path in collect(logdir, target):
            quoted, size = leaks(path, hide), path.stat().st_size
            trouble = (f"  QUOTES {quoted}" if quoted else "") + ("  TOO LARGE" if size > MAX_BYTES else "")
            print(f"{path.relative_to(o.out)}  {size:,} bytes{trouble}")
            if trouble:
                failed.append(name)
    if failed:
        sys.exit("not fit to commit: " + ", ".join(sorted(set(failed))))


if __name__ == "__main__":
    main()
