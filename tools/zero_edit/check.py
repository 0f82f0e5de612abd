#!/usr/bin/env python3
"""Runs unmodified training scripts under `stepscope run` and compares steps, step time, verdict and line with the truth.

    tools/zero_edit/check.py STEPSCOPE PYTHON [NAME…]

The stopwatch is inside the script: it ticks once per step, where a person would look at the clock. Recording costs time, so
both clocks are compared over the same steps of the same run, once for the steps in the recorded window and once for all
others. One line per script: steps counted and by the stopwatch, from the window to the end of the run; what is off in the
median step, outside of the window and in it; id and line of the verdict; and what is wrong.
"""

import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(__file__))
from scripts import LAUNCHES, LIBRARY, NO_STEPS, SCRIPTS  # noqa: E402


def line_of(source, function):
    """The line on which a function starts."""
    for number, line in enumerate(source.splitlines(), 1):
        if "def {}(".format(function) in line:
            return number
    return None


def paired(spans, ticks):
    """Durations of steps by both clocks: each span with the interval between ticks that it shares most time with."""
    pairs, place = [], 0
    for start, end in spans:
        while place + 2 < len(ticks) and ticks[place + 1] <= start:
            place += 1
        best, share = None, 0.0
        for number in range(place, min(place + 3, len(ticks) - 1)):
            common = min(end, ticks[number + 1]) - max(start, ticks[number])
            if common > share:
                best, share = number, common
        if best is not None:
            pairs.append((end - start, ticks[best + 1] - ticks[best]))
    return pairs


def error_of(pairs):
    """How far the median step is off by step number, if there are a few steps."""
    if len(pairs) < 3:
        return None
    return statistics.median(ours / theirs for ours, theirs in pairs) - 1


def window_of(saved):
    """The log of the first rank's window; times of its boundaries in seconds since 1970."""
    for path in sorted(glob.glob(os.path.join(saved, "plugins/profile/*/*.host.json"))):
        log = json.load(open(path))
        wall = log["clock"][0][0]
        return log, [(wall + at) / 1e9 for at in (log.get("steps") or {}).get("times", [])]
    return None, []


def run(stepscope, python, name, folder):
    """Runs a script; returns ticks, the summary, the window, and what was printed."""
    source, launch = SCRIPTS[name][0], LAUNCHES.get(name, ("{python}", "{script}"))
    script, watch = os.path.join(folder, "train.py"), os.path.join(folder, "watch.json")
    with open(script, "w") as file:
        file.write(source)
    library = os.path.join(folder, "site-packages")
    os.mkdir(library)
    with open(os.path.join(library, "burning.py"), "w") as file:
        file.write(LIBRARY)
    result, saved = os.path.join(folder, "run.json"), os.path.join(folder, "saved")
    command = [stepscope, "run", "--save", saved, "--json", result, "--"]
    command += [part.format(python=python, script=script, bin=os.path.dirname(python)) for part in launch]
    environment = dict(os.environ, STOPWATCH=watch, PYTHONPATH=library)
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=240)
    read = lambda path: json.load(open(path)) if os.path.exists(path) else None
    return read(watch), read(result), window_of(saved), done.stderr


def counted(summary, log, times, ticks):
    """Boundaries from the window to the last one that was seen, and ticks in the same time."""
    steps = summary["steps"] or {}
    observed = steps.get("observed", [])
    last = summary["begun_unix_s"] + observed[-1]["end_s"] if observed else 0.0
    if not times or last <= times[-1]:
        # The run ended in the window.
        return len(times) - 1, sum(times[0] < tick <= times[-1] for tick in ticks) if times else 0
    numbers = steps["count"] + steps["profiled"] + 1
    return numbers - log["window"]["first_step"], sum(times[0] < tick <= last for tick in ticks)


def check(stepscope, python, name):
    source, ids, function = SCRIPTS[name]
    with tempfile.TemporaryDirectory() as folder:
        try:
            ticks, summary, (log, times), said = run(stepscope, python, name, folder)
        except subprocess.TimeoutExpired:
            return name, "-", "-", "-", "-", "-", "time limit"
        if os.environ.get("KEEP"):
            shutil.copytree(folder, os.path.join(os.environ["KEEP"], name), dirs_exist_ok=True)
    if ticks is None or summary is None:
        return name, "-", "-", "-", "-", "-", "no result: " + said[-300:].replace("\n", " ")
    steps, verdict, wrong = summary["steps"] or {}, summary["verdict"] or {}, []
    found, true = counted(summary, log, times, ticks) if log else (0, len(ticks) - 1)
    if found != true and name not in NO_STEPS:
        wrong.append("count")
    begun = summary["begun_unix_s"]
    outside = [(begun + one["end_s"] - one["ms"] / 1e3, begun + one["end_s"]) for one in steps.get("observed", [])]
    errors = [error_of(paired(outside, ticks)), error_of(paired(list(zip(times, times[1:])), ticks))]
    if name not in NO_STEPS and any(error is not None and abs(error) > 0.01 for error in errors):
        wrong.append("median")
    if verdict.get("id") not in ids:
        wrong.append("verdict")
    line = verdict.get("line")
    if function is not None and line != "train.py:{} {}".format(line_of(source, function), function):
        wrong.append("line")
    shown = ["-" if error is None else "{:+.2f} %".format(100 * error) for error in errors]
    return (name, "{}/{}".format(found, true), *shown, verdict.get("id"), line, ", ".join(wrong) or "ok")


def main():
    stepscope, python, *names = sys.argv[1:]
    rows = []
    for name in names or SCRIPTS:
        rows.append(check(os.path.abspath(stepscope), python, name))
        print("{:20} {:>9} {:>9} {:>9}  {!s:18} {!s:34} {}".format(*rows[-1]), flush=True)
    right = sum(row[-1] == "ok" for row in rows)
    print("{} of {} right".format(right, len(rows)))


if __name__ == "__main__":
    main()
