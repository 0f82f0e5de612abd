#!/usr/bin/env python3
"""Runs unmodified training scripts under `stepscope run` and compares steps, step time, verdict and line with the truth.

    tools/zero_edit/check.py STEPSCOPE PYTHON [NAME…]

One line per script: steps counted / by the stopwatch inside, median step against that stopwatch over the same steps, id and
line of the verdict, and what is wrong.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(__file__))
from scripts import LIBRARY, SCRIPTS  # noqa: E402


def line_of(source, function):
    """The line on which a function starts."""
    for number, line in enumerate(source.splitlines(), 1):
        if "def {}(".format(function) in line:
            return number
    return None


def matched(observed, begun, ticks):
    """Durations by both clocks, over the time that was not recorded."""
    seen = [(begun + one["end_s"] - one["ms"] / 1e3, begun + one["end_s"], one["ms"] / 1e3) for one in observed]
    inside = lambda at: any(start <= at < end for start, end, _ in seen)
    theirs = [b - a for a, b in zip(ticks, ticks[1:]) if inside((a + b) / 2)]
    return [seconds for *_, seconds in seen], theirs


def check(stepscope, python, name):
    source, ids, function = SCRIPTS[name]
    with tempfile.TemporaryDirectory() as folder:
        script, watch = os.path.join(folder, "train.py"), os.path.join(folder, "watch.json")
        with open(script, "w") as file:
            file.write(source)
        library = os.path.join(folder, "site-packages")
        os.mkdir(library)
        with open(os.path.join(library, "burning.py"), "w") as file:
            file.write(LIBRARY)
        result = os.path.join(folder, "run.json")
        command = [stepscope, "run", "--save", os.path.join(folder, "saved"), "--json", result, "--", python, script]
        try:
            done = subprocess.run(command, env=dict(os.environ, STOPWATCH=watch, PYTHONPATH=library), cwd=folder, capture_output=True, text=True, timeout=240)
        except subprocess.TimeoutExpired:
            return name, "-", "-", "-", "-", "time limit"
        if not os.path.exists(watch) or not os.path.exists(result):
            return name, "-", "-", "-", "-", "no result: " + done.stderr[-300:].replace("\n", " ")
        ticks, run = json.load(open(watch)), json.load(open(result))
    steps, verdict, wrong = run["steps"] or {}, run["verdict"] or {}, []
    counted = steps.get("count", 0) + steps.get("profiled", 0)
    # The last step may have no end, and the first few teach what a step is.
    if not -1 <= len(ticks) - 1 - counted <= 2:
        wrong.append("count")
    ours, theirs = matched(steps.get("observed", []), run["begun_unix_s"], ticks)
    error = None
    if min(len(ours), len(theirs)) >= 3:
        error = statistics.median(ours) / statistics.median(theirs) - 1
        if abs(error) > 0.01:
            wrong.append("median")
    if verdict.get("id") not in ids:
        wrong.append("verdict")
    line = verdict.get("line")
    if function is not None and line != "train.py:{} {}".format(line_of(source, function), function):
        wrong.append("line")
    shown = "-" if error is None else "{:+.2f} %".format(100 * error)
    return name, "{}/{}".format(counted, len(ticks) - 1), shown, verdict.get("id"), line, ", ".join(wrong) or "ok"


def main():
    stepscope, python, *names = sys.argv[1:]
    rows = []
    for name in names or SCRIPTS:
        rows.append(check(os.path.abspath(stepscope), python, name))
        print("{:20} {:>9} {:>9}  {!s:18} {!s:34} {}".format(*rows[-1]), flush=True)
    right = sum(row[-1] == "ok" for row in rows)
    print("{} of {} right".format(right, len(rows)))


if __name__ == "__main__":
    main()
