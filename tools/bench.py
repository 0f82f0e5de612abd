#!/usr/bin/env python3
"""Times stepscope beside XProf on the same profiles, in one run, and prints ratios.

    python tools/bench.py BIG.xplane.pb [--quarter Q.xplane.pb] [--json TRACE.json] [--stepscope target/release/stepscope]

Machines are noisy, so figures from two runs say little: each round runs every command once, one after the other, and
the medians of the rounds are compared. XProf (`pip install xprof`) is timed with the Python that runs this script; it
writes caches beside its input, so it gets a copy. Without XProf only stepscope's own figures are printed.

BIG: a profile of about 160 MB and 9 million events, e.g. an eager TensorFlow loop of 40 steps of 24,000 ops.
"""
import argparse
import importlib.util
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

XPROF = """
import sys
from xprof.convert import raw_to_tool_data
data, _ = raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], "overview_page", {})
assert data, "xprof returned nothing"
"""


def once(command):
    """Seconds and peak resident megabytes of one run."""
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{command} failed: {said.decode(errors='replace')[-500:]}")
    return time.perf_counter() - begin, usage.ru_maxrss / 1024


def rounds(commands, count):
    """The median seconds and the largest peak of each command, over rounds in which all run in turn."""
    taken = {name: [] for name in commands}
    for _ in range(count):
        for name, command in commands.items():
            if name == "xprof":
                with tempfile.TemporaryDirectory() as folder:
                    taken[name].append(once(command + [shutil.copy(OPTIONS.big, folder)]))
            else:
                taken[name].append(once(command))
    return {n: (statistics.median(s for s, _ in t), max(m for _, m in t)) for n, t in taken.items()}


def told(name, seconds, megabytes, path):
    size = os.path.getsize(path) / 1e6
    print(f"{name:16} {seconds:7.3f} s  {size / seconds:7.0f} MB/s  peak {megabytes:6.0f} MB = {megabytes * 1.048576 / size:.2f} x the file")


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("big")
parser.add_argument("--quarter", help="a profile of a quarter of the events, for the growth of time")
parser.add_argument("--json", help="a large Chrome or Kineto trace, not compressed")
parser.add_argument("--stepscope", default="target/release/stepscope")
parser.add_argument("--rounds", type=int, default=3)
OPTIONS = parser.parse_args()

ours = OPTIONS.stepscope
commands = {"info": [ours, "info", OPTIONS.big], "report": [ours, "report", OPTIONS.big, "--json"]}
if importlib.util.find_spec("xprof"):
    commands["xprof"] = [sys.executable, "-c", XPROF]
figures = rounds(commands, OPTIONS.rounds)
for name, (seconds, megabytes) in figures.items():
    told(name, seconds, megabytes, OPTIONS.big)
if "xprof" in figures:
    for name in ["info", "report"]:
        time_ratio = figures["xprof"][0] / figures[name][0]
        memory_ratio = figures["xprof"][1] / figures[name][1]
        print(f"{name}: {time_ratio:.0f} times faster than XProf's overview_page, {memory_ratio:.1f} times less memory")
if OPTIONS.quarter:
    pair = rounds({"quarter": [ours, "info", OPTIONS.quarter], "whole": [ours, "info", OPTIONS.big]}, OPTIONS.rounds)
    events = os.path.getsize(OPTIONS.big) / os.path.getsize(OPTIONS.quarter)
    print(f"growth: {events:.2f} times the bytes take {pair['whole'][0] / pair['quarter'][0]:.2f} times the time")
if OPTIONS.json:
    seconds, megabytes = rounds({"json": [ours, "info", OPTIONS.json]}, OPTIONS.rounds)["json"]
    told("json info", seconds, megabytes, OPTIONS.json)
    size = os.path.getsize(OPTIONS.json) / 1e6
    print(f"json: {max(0.0, megabytes * 1.048576 - size) / size:.2f} bytes of memory a byte of text beyond the mapped file")
