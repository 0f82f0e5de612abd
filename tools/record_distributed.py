"""Records small distributed jobs with a known cause, on one machine.

    python tools/record_distributed.py SCENE FOLDER     one job, one file per process in FOLDER
    python tools/record_distributed.py --list           the scenes

Each scene is a strategy and what is wrong with it: `mwms-healthy`, `ddp-slow-python`. A job has two processes at most, so that
two cores suffice. `label.json` says what was planted. The scenes need TensorFlow, JAX or PyTorch.
"""

import argparse
import contextlib
import glob
import json
import os
import shutil
import socket
import subprocess
import sys
import time

STEPS = 14
WARM_UP = 4

# What is wrong: the finding that is right, the process that is slow, and why.
SCENES = {
    "mwms-healthy": ("communication", None, ""),
    "mwms-slow-input": ("straggler", "worker0", "input"),
    "mwms-slow-compute": ("straggler", "worker0", "compute: matrix_power"),
    "mwms-slow-python": ("straggler", "worker1", "python"),
    "mwms-small-packs": ("communication", None, "too many small collectives"),
    "ddp-healthy": ("communication", None, ""),
    "ddp-slow-python": ("straggler", "rank0", "python: bookkeeping"),
    "ddp-uneven-batch": ("straggler", "rank0", "uneven batch"),
    "ddp-slow-input": ("straggler", "rank1", "input"),
    "ddp-small-buckets": ("communication", None, "too many small collectives"),
    "jax-devices-healthy": (None, None, ""),
    "jax-devices-slow": ("straggler", "device 1", "compute"),
    "jax-processes-healthy": ("communication", None, ""),
    "jax-processes-slow-python": ("straggler", "process0", "python: bookkeeping"),
    "mirrored-healthy": (None, None, ""),
    "mirrored-uneven-batch": ("straggler", "replica 0", "uneven batch"),
    "servers-bound": ("parameter-server", None, "pulls and pushes"),
    "servers-healthy": (None, None, "large batches, tiny variables"),
    "service-slow": ("input", "data service", "map of the data worker"),
    "service-healthy": (None, None, ""),
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def collect(log, target):
    """Moves the one recording below `log` to `target`."""
    found = sorted(glob.glob(os.path.join(log, "**", "*.xplane.pb"), recursive=True))
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.move(found[-1], target)
    shutil.rmtree(log, ignore_errors=True)


def target_of(folder, name):
    return os.path.join(folder, "plugins", "profile", "run", name + ".xplane.pb")


def bookkeeping(seconds):
    """Python that takes this long."""
    until = time.perf_counter() + seconds
    total = 0
    while time.perf_counter() < until:
        total += sum(number * number for number in range(500))
    return total


# ---------------------------------------------------------------- TensorFlow


def tensorflow(replicas=1):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import tensorflow as tf

    tf.config.threading.set_inter_op_parallelism_threads(2)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    if replicas > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        part = tf.config.LogicalDeviceConfiguration()
        tf.config.set_logical_device_configuration(cpu, [part] * replicas)
    return tf


def heavy_map(tf, rounds):
    def heavy(x):
        for _ in range(rounds):
            noise = tf.random.uniform([32 * 256])
            x = x + 0.001 * tf.reshape(tf.sort(noise), [32, 256])
        return x

    return heavy


def train_tf(tf, strategy, cause, slow, log, width=256, layers=3):
    with strategy.scope():
        sizes = [(256, width)] + [(width, width)] * layers + [(width, 8)]
        weights = [tf.Variable(tf.random.normal(size, stddev=0.05)) for size in sizes]
        biases = [tf.Variable(tf.zeros([size[1]])) for size in sizes]
        optimizer_rate = 0.01
    variables = weights + biases
    data = tf.data.Dataset.from_tensors(tf.ones([32, 256])).repeat()
    if cause == "slow-input" and slow:
        data = data.map(heavy_map(tf, 60))
    batches = iter(data)

    def replica_step(x):
        with tf.GradientTape() as tape:
            for weight, bias in zip(weights, biases):
                x = tf.nn.relu(tf.matmul(x, weight) + bias)
            loss = tf.reduce_mean(tf.square(x))
        extra = 0.0
        if cause == "slow-compute" and slow:
            with tf.name_scope("matrix_power"):
                square = tf.random.uniform([500, 500]) * (1.0 / 500.0)
                for _ in range(6):
                    square = tf.matmul(square, square)
                extra = 0.0 * tf.reduce_sum(square)
        gradients = tape.gradient(loss, variables)
        context = tf.distribute.get_replica_context()
        options = tf.distribute.experimental.CommunicationOptions(
            bytes_per_pack=2048 if cause == "small-packs" else 0
        )
        gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients, options=options)

        for variable, gradient in zip(variables, gradients):
            variable.assign_sub(optimizer_rate * gradient)
        return loss + extra

    @tf.function
    def step(x):
        return strategy.run(replica_step, args=(x,))

    for number in range(WARM_UP + STEPS):
        if number == WARM_UP:
            tf.profiler.experimental.start(log)
        with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
            x = next(batches)
            if cause == "slow-python" and slow:
                bookkeeping(0.15)
            step(x)
    tf.profiler.experimental.stop()


def mwms(cause, index, ports, folder):
    workers = [f"127.0.0.1:{port}" for port in ports[:2]]
    task = {"type": "worker", "index": index}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": task})
    tf = tensorflow()
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    _, slow, _ = SCENES["mwms-" + cause]
    log = os.path.join(folder, f"log{index}")
    layers = 10 if cause == "small-packs" else 3
    try:
        train_tf(tf, strategy, cause, slow == f"worker{index}", log, width=128, layers=layers)
    finally:
        collect(log, target_of(folder, f"worker{index}"))
    # The other worker may still need this one.
    time.sleep(3)
    os._exit(0)


def mirrored(cause, folder):
    tf = tensorflow(replicas=3)
    strategy = tf.distribute.MirroredStrategy([f"CPU:{number}" for number in range(3)])
    with strategy.scope():
        weights = [tf.Variable(tf.random.normal([256, 256], stddev=0.05)) for _ in range(3)]

    def replica_step(x):
        with tf.GradientTape() as tape:
            for weight in weights:
                x = tf.nn.relu(tf.matmul(x, weight))
            loss = tf.reduce_mean(tf.square(x))
        gradients = tape.gradient(loss, weights)
        context = tf.distribute.get_replica_context()
        gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        for variable, gradient in zip(weights, gradients):
            variable.assign_sub(0.01 * gradient)
        return loss

    sizes = [4_000, 200, 200] if cause == "uneven-batch" else [400, 400, 400]

    def values(context):
        return tf.ones([sizes[context.replica_id_in_sync_group], 256])

    x = strategy.experimental_distribute_values_from_function(values)
    step = tf.function(lambda batch: strategy.run(replica_step, args=(batch,)))
    log = os.path.join(folder, "log")
    for number in range(WARM_UP + STEPS):
        if number == WARM_UP:
            tf.profiler.experimental.start(log)
        with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
            step(x)
    tf.profiler.experimental.stop()
    collect(log, target_of(folder, "host0"))


def cluster_of(ports):
    return {
        "chief": [f"127.0.0.1:{ports[0]}"],
        "ps": [f"127.0.0.1:{ports[1]}"],
        "worker": [f"127.0.0.1:{ports[2]}"],
    }


def flag(folder, name):
    return os.path.join(folder, name)


def servers(cause, index, ports, folder):
    """Process 0 coordinates and holds the parameter server, process 1 is the worker."""
    tf = tensorflow()
    cluster = tf.train.ClusterSpec(cluster_of(ports))
    if index == 1:
        server = tf.distribute.Server(cluster, job_name="worker", task_index=0, protocol="grpc", start=True)
        wait_for(flag(folder, "start"))
        log = os.path.join(folder, "log1")
        tf.profiler.experimental.start(log)
        open(flag(folder, "started1"), "w").close()
        wait_for(flag(folder, "stop"))
        tf.profiler.experimental.stop()
        collect(log, target_of(folder, f"127.0.0.1_{ports[2]}"))
        open(flag(folder, "stopped1"), "w").close()
        wait_for(flag(folder, "end"))
        del server
        os._exit(0)
    server = tf.distribute.Server(cluster, job_name="ps", task_index=0, protocol="grpc", start=True)
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, rpc_layer="grpc", task_type="chief", task_id=0)
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    bound = cause == "bound"
    size, batch, rounds = (900, 8, 1) if bound else (64, 512, 40)
    with strategy.scope():
        weights = [tf.Variable(tf.random.normal([size, size], stddev=0.02)) for _ in range(3)]

    @tf.function
    def worker_step(iterator):
        x = next(iterator)
        with tf.GradientTape() as tape:
            for weight in weights:
                x = tf.nn.relu(tf.matmul(x, weight))
            for _ in range(rounds - 1):
                x = tf.nn.relu(tf.matmul(x, tf.linalg.matmul(x, x, transpose_a=True)) * 0.001)
            loss = tf.reduce_mean(tf.square(x))
        for variable, gradient in zip(weights, tape.gradient(loss, weights)):
            variable.assign_sub(0.01 * gradient)
        return loss

    def dataset():
        return tf.data.Dataset.from_tensors(tf.ones([batch, size])).repeat().prefetch(2)

    iterator = iter(coordinator.create_per_worker_dataset(dataset))
    for _ in range(3):
        coordinator.schedule(worker_step, args=(iterator,))
    coordinator.join()
    open(flag(folder, "start"), "w").close()
    wait_for(flag(folder, "started1"))
    log = os.path.join(folder, "log0")
    tf.profiler.experimental.start(log)
    for number in range(STEPS):
        with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
            coordinator.schedule(worker_step, args=(iterator,))
            coordinator.join()
    tf.profiler.experimental.stop()
    open(flag(folder, "stop"), "w").close()
    collect(log, target_of(folder, f"127.0.0.1_{ports[0]}"))
    wait_for(flag(folder, "stopped1"))
    open(flag(folder, "end"), "w").close()
    del server
    os._exit(0)


def wait_for(path, seconds=90):
    until = time.time() + seconds
    while not os.path.exists(path):
        if time.time() > until:
            sys.exit(f"{path} did not appear")
        time.sleep(0.05)


def service(cause, index, ports, folder):
    """Process 0 trains, process 1 holds the dispatcher and one worker of the tf.data service."""
    tf = tensorflow()
    if index == 1:
        data = tf.data.experimental.service
        dispatcher = data.DispatchServer(data.DispatcherConfig(port=ports[0]))
        worker = data.WorkerServer(data.WorkerConfig(dispatcher_address=dispatcher.target.split("://")[1], port=ports[1]))
        open(flag(folder, "serving"), "w").close()
        wait_for(flag(folder, "start"))
        log = os.path.join(folder, "log1")
        tf.profiler.experimental.start(log)
        open(flag(folder, "started1"), "w").close()
        wait_for(flag(folder, "stop"))
        tf.profiler.experimental.stop()
        collect(log, target_of(folder, f"127.0.0.1_{ports[1]}"))
        wait_for(flag(folder, "end"))
        del worker, dispatcher
        os._exit(0)
    wait_for(flag(folder, "serving"))
    rounds = 40 if cause == "slow" else 1
    data = tf.data.Dataset.from_tensors(tf.random.normal([32, 256])).repeat().map(heavy_map(tf, rounds))
    data = data.apply(
        tf.data.experimental.service.distribute(
            processing_mode="parallel_epochs", service=f"grpc://127.0.0.1:{ports[0]}"
        )
    ).prefetch(2)
    size = 256 if cause == "slow" else 1_024
    model = [tf.Variable(tf.random.normal([256, size])), tf.Variable(tf.random.normal([size, size]))]

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            for weight in model:
                x = tf.nn.relu(tf.matmul(x, weight))
            loss = tf.reduce_mean(x)
        for variable, gradient in zip(model, tape.gradient(loss, model)):
            variable.assign_sub(0.001 * gradient)
        return loss

    batches = iter(data)
    for _ in range(WARM_UP):
        step(next(batches))
    open(flag(folder, "start"), "w").close()
    wait_for(flag(folder, "started1"))
    log = os.path.join(folder, "log0")
    tf.profiler.experimental.start(log)
    for number in range(STEPS + 10):
        with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
            step(next(batches))
    tf.profiler.experimental.stop()
    open(flag(folder, "stop"), "w").close()
    collect(log, target_of(folder, f"127.0.0.1_{ports[2]}"))
    time.sleep(2)
    open(flag(folder, "end"), "w").close()
    os._exit(0)


# ---------------------------------------------------------------- JAX


def jax_job(cause, index, ports, folder, devices, processes):
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
    import jax
    import jax.numpy as jnp

    if processes > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(f"127.0.0.1:{ports[0]}", processes, index)
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    try:
        from jax import shard_map
    except ImportError:
        from jax.experimental.shard_map import shard_map
    mesh = Mesh(jax.devices(), ("data",))
    count = len(jax.devices())

    def local_step(weight, x):
        place = jax.lax.axis_index("data")
        rounds = jnp.where((place == 1) & (cause == "slow"), 30, 1)
        y = jax.lax.fori_loop(0, rounds, lambda _, y: jnp.tanh(y @ weight), x)
        gradient = x.T @ y / x.shape[0]
        return weight - 0.001 * jax.lax.pmean(gradient, "data")

    options = {"mesh": mesh, "in_specs": (PartitionSpec(), PartitionSpec("data")), "out_specs": PartitionSpec()}
    try:
        mapped = shard_map(local_step, check_vma=False, **options)
    except TypeError:
        mapped = shard_map(local_step, check_rep=False, **options)
    step = jax.jit(mapped)
    size = 384
    shape = (count * 128, size)
    sharding = NamedSharding(mesh, PartitionSpec("data"))
    import numpy as np

    x = jax.make_array_from_callback(shape, sharding, lambda place: np.ones(shape, np.float32)[place])
    weight = jnp.ones((size, size)) * 0.001
    slow = SCENES[("jax-processes-" if processes > 1 else "jax-devices-") + cause][1] == f"process{index}"
    log = os.path.join(folder, f"log{index}")
    for number in range(WARM_UP + STEPS):
        if number == WARM_UP:
            jax.profiler.start_trace(log)
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            if cause == "slow-python" and slow:
                bookkeeping(0.08)
            weight = step(weight, x)
            weight.block_until_ready()
    jax.profiler.stop_trace()
    collect(log, target_of(folder, f"process{index}" if processes > 1 else "host0"))


# ---------------------------------------------------------------- PyTorch


def ddp(cause, index, ports, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(ports[0]), RANK=str(index), WORLD_SIZE="2")
    import torch

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    layers = []
    for _ in range(20 if cause == "small-buckets" else 4):
        layers += [torch.nn.Linear(384, 384), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers)
    buckets = {"bucket_cap_mb": 0.01} if cause == "small-buckets" else {}
    model = torch.nn.parallel.DistributedDataParallel(model, **buckets)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    slow = SCENES["ddp-" + cause][1] == f"rank{index}"

    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return 10_000

        def __getitem__(self, _):
            if cause == "slow-input" and slow:
                bookkeeping(0.004)
            return torch.ones(384)

    batch = 512 if cause == "uneven-batch" and slow else 32
    batches = iter(torch.utils.data.DataLoader(Rows(), batch_size=batch))
    schedule = torch.profiler.schedule(wait=0, warmup=3, active=STEPS - 4)
    activities = [torch.profiler.ProfilerActivity.CPU]
    target = os.path.join(folder, f"rank{index}.json.gz")
    options = {"record_shapes": True, "on_trace_ready": lambda done: done.export_chrome_trace(target)}
    with torch.profiler.profile(activities=activities, schedule=schedule, **options) as profiler:
        for _ in range(STEPS - 1):
            x = next(batches)
            if cause == "slow-python" and slow:
                with torch.profiler.record_function("bookkeeping"):
                    bookkeeping(0.1)
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            profiler.step()
    torch.distributed.barrier()


# ---------------------------------------------------------------- the jobs


def child(scene, index, ports, folder):
    kind, _, cause = scene.partition("-")
    if kind == "mwms":
        mwms(cause, index, ports, folder)
    elif kind == "mirrored":
        mirrored(cause, folder)
    elif kind == "servers":
        servers(cause, index, ports, folder)
    elif kind == "service":
        service(cause, index, ports, folder)
    elif kind == "ddp":
        ddp(cause, index, ports, folder)
    elif scene.startswith("jax-devices-"):
        jax_job(scene.removeprefix("jax-devices-"), 0, ports, folder, 3, 1)
    else:
        jax_job(scene.removeprefix("jax-processes-"), index, ports, folder, 1, 2)


def record(scene, folder):
    os.makedirs(folder, exist_ok=True)
    ports = [free_port() for _ in range(3)]
    alone = scene.startswith(("mirrored", "jax-devices"))
    command = [sys.executable, os.path.abspath(__file__), scene, folder, "--ports", ",".join(map(str, ports))]
    jobs = [subprocess.Popen(command + ["--index", str(index)]) for index in range(1 if alone else 2)]
    for job in jobs:
        try:
            job.wait(timeout=150)
        except subprocess.TimeoutExpired:
            job.kill()
    for name in ["start", "stop", "started1", "stopped1", "serving", "end"]:
        with contextlib.suppress(FileNotFoundError):
            os.remove(flag(folder, name))
    bottleneck, slow, cause = SCENES[scene]
    label = {"scene": scene, "bottleneck": bottleneck, "slow": slow, "cause": cause, "exits": [job.returncode for job in jobs]}
    with open(os.path.join(folder, "label.json"), "w") as file:
        json.dump(label, file, indent=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", nargs="?")
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--index", type=int)
    parser.add_argument("--ports", default="")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(SCENES))
    elif arguments.index is None:
        record(arguments.scene, os.path.abspath(arguments.folder))
    else:
        ports = [int(port) for port in arguments.ports.split(",") if port]
        child(arguments.scene, arguments.index, ports, arguments.folder)


if __name__ == "__main__":
    main()
