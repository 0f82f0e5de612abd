"""Runs the fleet on an engine that is started here, kills one of its workers in the middle, and compares the result with
that of this process, byte by byte. Prints what a task costs.

    python python/tests/engines/run.py ray|dask|spark [HOSTS [BYTES_PER_TASK]]

`cargo xtask live --engines` installs the engines and runs this for each.
"""

import os
import shutil
import signal
import sys
import tempfile
import threading
import time

GROUP = int(sys.argv[3]) if len(sys.argv) > 3 else 1  # one host per task
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
PROFILE = os.path.join(ROOT, "fixtures", "tf-train")


def descendants():
    """Processes that this one started, directly or not: pid and command line."""
    parents, lines = {}, {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/{}/stat".format(name)) as file:
                parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
            with open("/proc/{}/cmdline".format(name), "rb") as file:
                lines[int(name)] = file.read().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has ended
    found, waiting = {}, [os.getpid()]
    while waiting:
        parent = waiting.pop()
        for pid in [pid for pid, above in parents.items() if above == parent]:
            found[pid] = lines.get(pid, "")
            waiting.append(pid)
    return found


class Killer(threading.Thread):
    """Kills one worker, as soon as `ready` says that work is under way."""

    def __init__(self, ready, command):
        super().__init__(daemon=True)
        self.ready, self.command, self.killed = ready, command, None

    def run(self):
        while self.killed is None:
            workers = [pid for pid, line in descendants().items() if self.command in line]
            if workers and self.ready():
                os.kill(workers[0], signal.SIGKILL)
                self.killed = workers[0]
            time.sleep(0.02)


def write_hosts(folder, hosts):
    """Real small profiles under other names: two jobs, several sessions, one truncated file."""
    files = [os.path.join(at, name) for at, _, names in os.walk(PROFILE) for name in names if name.endswith(".pb")]
    for number in range(hosts):
        session = "job-{}/plugins/profile/2026_01_{:02}_00_00_00".format(number % 2, 1 + number // 16 % 28)
        os.makedirs(os.path.join(folder, session), exist_ok=True)
        shutil.copy(files[0], os.path.join(folder, session, "host-{:04}.xplane.pb".format(number)))
    with open(os.path.join(folder, session, "cut.xplane.pb"), "wb") as out, open(files[0], "rb") as whole:
        out.write(whole.read()[:50_000])


def on_ray(folder):
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray
    from ray.cluster_utils import Cluster

    from stepscope.fleet import ray as engine

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    for _ in range(2):
        _add_node(cluster)
    ray.init(address=cluster.address, log_to_driver=False)
    killer = Killer(lambda: True, "ray::partial")
    yield killer, lambda: engine.run(folder, group_bytes=GROUP)
    ray.shutdown()
    cluster.shutdown()


def _add_node(cluster, attempts=3):
    """Ray waits 30 seconds for a node; a busy machine may need longer for its processes."""
    for attempt in range(attempts):
        try:
            return cluster.add_node(num_cpus=1)
        except Exception:
            if attempt == attempts - 1:
                raise


def on_dask(folder):
    from distributed import Client, LocalCluster

    from stepscope.fleet import dask as engine

    with LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        workers = list(client.run(os.getpid).values())
        killer = Killer(lambda: any(client.who_has().values()), "")
        killer.run = lambda: _kill_one(killer, workers)
        yield killer, lambda: engine.run(folder, client=client, group_bytes=GROUP)


def _kill_one(killer, workers):
    while not killer.ready():
        time.sleep(0.02)
    os.kill(workers[0], signal.SIGKILL)
    killer.killed = workers[0]


def on_spark(folder):
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    import pyspark

    os.environ.setdefault("SPARK_HOME", os.path.dirname(pyspark.__file__))
    from pyspark.sql import SparkSession

    from stepscope.fleet import spark as engine

    session = SparkSession.builder.master("local-cluster[2,1,1024]").appName("stepscope")
    session = session.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    tracker = session.sparkContext.statusTracker()

    def ready():
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return any(stage is not None and stage.numCompletedTasks > 0 for stage in stages)

    killer = Killer(ready, "CoarseGrainedExecutorBackend")
    yield killer, lambda: engine.run(folder, spark=session, group_bytes=GROUP)
    session.stop()


def main():
    engine, hosts = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 150
    from stepscope import fleet

    with tempfile.TemporaryDirectory() as folder:
        write_hosts(folder, hosts)
        works = fleet.plan(folder, group_bytes=GROUP)
        expected, seconds, used = locally(folder)
        started = time.monotonic()
        running = {"ray": on_ray, "dask": on_dask, "spark": on_spark}[engine](folder)
        killer, run = next(running)
        first = timed(run, expected)
        if engine == "dask":
            # It keeps results by their key: new times of writing are new keys.
            write_hosts(folder, hosts)
            expected, seconds, used = locally(folder)
        second = timed(run, expected)
        if engine == "dask":
            write_hosts(folder, hosts)
            expected, seconds, used = locally(folder)
        killer.start()
        hurt = timed(run, expected)
        assert killer.killed, "no worker was killed while work was under way"
        next(running, None)
    tasks = len(works)
    covered = fleet.finish(expected).coverage
    print("{}: {}; the same bytes as locally, also with a worker killed".format(engine, covered))
    print("  local, one thread: {:.1f} s, {:.1f} s of processor time".format(seconds, used))
    print("  start {:.1f} s, first run {:.1f} s".format(first[0] - started, first[1]))
    print("  second run: {:.1f} s ({:.1f} times as fast as local), {:.1f} s of processor time".format(second[1], seconds / second[1], second[2]))
    print("  cost per task: {:.1f} ms of processor time beside reading".format((second[2] - used) / tasks * 1e3))
    print("  with a worker killed: {:.1f} s".format(hurt[1]))


def locally(folder):
    """The merged partial of this process on one thread: elapsed and processor time."""
    from stepscope import fleet

    began, used = time.monotonic(), time.process_time()
    merged = fleet.merge([fleet.partial(work, 1) for work in fleet.plan(folder, group_bytes=GROUP)])
    return merged, time.monotonic() - began, time.process_time() - used


def timed(run, expected):
    """Runs the fleet, which must give the expected bytes. When it began, how long it took, and its processor time."""
    began, used = time.monotonic(), processor()
    report = run()
    assert report.partial == expected, "another result than that of this process"
    return began, time.monotonic() - began, processor() - used


def processor():
    """Seconds of processor time of this process and of all that it started and that still run. Unlike elapsed time, other
    work on the machine hardly changes it."""
    ticks = 0
    for pid in [os.getpid(), *descendants()]:
        try:
            with open("/proc/{}/stat".format(pid)) as file:
                ticks += sum(int(field) for field in file.read().rpartition(")")[2].split()[11:15])
        except OSError:
            continue  # it has ended
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
