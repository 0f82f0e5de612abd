#!/usr/bin/env python3
"""Studies `stepscope gate --paired`: how often it calls equal programs different, and finds what was changed.

    paired.py study OUT.jsonl --stepscope BIN [--python PY] [--trials N] [--framework NAME]... [--change NAME]...
    paired.py table OUT.jsonl
    paired.py loop FRAMEWORK CHANGE          # what each side runs

Each trial starts two processes of their own, which never share anything but the machine. A change is exact: more work is
spun in processor time, as a share of what the step took while it warmed up; waiting is slept. A line of OUT is one trial.
The load average is noted with each trial: nothing is known about a machine that is not in it.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
# Share of the step that is spun or slept on top.
CHANGES = {"none": (0, 0), "plus3": (0.03, 0), "plus10": (0.10, 0), "plus30": (0.30, 0), "wait30": (0, 0.30), "periodic": (1.2, 0),
           "tail": (6.0, 0)}
TITLES = {"none": "no change", "plus3": "+3 % work", "plus10": "+10 % work", "plus30": "+30 % work", "wait30": "+30 % waiting only",
          "periodic": "+120 % every 4th step", "tail": "7 times as long, 1 step in 20"}


def plain_step():
    """Ten to twenty milliseconds of Python."""
    total = 0
    for i in range(150_000):
        total += i * i
    return total


def loop(framework, change):
    import tempfile

    import stepscope_turns

    if framework == "plain":
        step = plain_step
    else:
        sys.path.insert(0, str(HERE))
        import workloads

        step, _, _ = workloads.LOOPS[framework](pathlib.Path(tempfile.gettempdir()), 10**9)
    spun, slept = CHANGES[change]
    draw = random.Random(os.getpid()).random
    walls, cpus, number = [], [], 0
    while True:
        began, worked = time.perf_counter(), time.process_time()
        step()
        if number < 8:
            walls.append(time.perf_counter() - began)
            cpus.append(time.process_time() - worked)
        now = spun
        if change == "periodic":
            now = spun if number % 4 == 3 else 0
        elif change == "tail":
            now = spun if draw() < 0.05 else 0
        until = time.process_time() + now * statistics.median(cpus)
        while time.process_time() < until:
            pass
        if slept:
            time.sleep(slept * min(walls))
        number += 1
        stepscope_turns.boundary()


def trial(args, framework, change):
    command = lambda name: f"{args.python} {HERE / 'paired.py'} loop {framework} {name}"
    before, began = os.getloadavg()[0], time.time()
    done = subprocess.run(
        [args.stepscope, "gate", "--paired", "--base", command("none"), "--new", command(change), "--time-budget", args.budget, "--json"],
        capture_output=True, text=True)
    try:
        told = json.loads(done.stdout)
    except ValueError:
        return {"framework": framework, "change": change, "error": done.stderr[-300:]}
    compared = told["comparison"]
    ratio = lambda of: of and [of["value"], of["low"], of["high"]]
    return {
        "framework": framework, "change": change, "exit": done.returncode, "outcome": told["outcome"],
        "wall": compared["verdict"], "wall_ratio": ratio((compared["mean"] or {}).get("ratio")),
        "work": {one["metric"]: one["change"] for one in compared["work"]},
        "work_ratio": {one["metric"]: ratio(one["ratio"]) for one in compared["work"]},
        "pairs": compared["pairs"], "seconds": round(time.time() - began, 1), "load": [before, os.getloadavg()[0]],
    }


def study(args):
    for number in range(args.trials):
        for framework in args.framework:
            for change in args.change:
                line = trial(args, framework, change)
                with args.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(number, line, file=sys.stderr)


def table(out):
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    groups = collections.defaultdict(list)
    for line in lines:
        if "error" not in line:
            groups[line["change"]].append(line)
    share = lambda hits, of: f"{hits} of {of}"
    print("| change | trials | wall time | CPU time | gate fails | pairs (median) | seconds (median) |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for change, title in TITLES.items():
        group = groups.get(change)
        if not group:
            continue
        if change == "none":
            wall = sum(line["wall"] in ("slower", "faster") for line in group)
            cpu = sum(line["work"].get("cpu") in ("more", "less") for line in group)
        else:
            wall = sum(line["wall"] == "slower" for line in group)
            cpu = sum(line["work"].get("cpu") == "more" for line in group)
        middle = lambda key: f"{statistics.median(line[key] for line in group):.0f}"
        fails = sum(line["exit"] == 1 for line in group)
        of = len(group)
        print(f"| {title} | {of} | {share(wall, of)} | {share(cpu, of)} | {share(fails, of)} | {middle('pairs')} | {middle('seconds')} |")
    loads = [value for line in lines if "load" in line for value in line["load"]]
    print(f"\nLoad average {min(loads):.1f} to {max(loads):.1f} (median {statistics.median(loads):.1f}) on {os.cpu_count()} cores; "
          f"{sum('error' in line for line in lines)} trials could not run.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("loop")
    one.add_argument("framework")
    one.add_argument("change", choices=CHANGES)
    many = commands.add_parser("study")
    many.add_argument("out", type=pathlib.Path)
    many.add_argument("--stepscope", default="stepscope")
    many.add_argument("--python", default=sys.executable)
    many.add_argument("--trials", type=int, default=20)
    many.add_argument("--budget", default="60s")
    many.add_argument("--framework", action="append", choices=["plain", "tensorflow", "jax", "torch"])
    many.add_argument("--change", action="append", choices=CHANGES)
    shown = commands.add_parser("table")
    shown.add_argument("out", type=pathlib.Path)
    args = parser.parse_args()
    if args.command == "loop":
        loop(args.framework, args.change)
    elif args.command == "table":
        table(args.out)
    else:
        args.framework = args.framework or ["plain"]
        args.change = args.change or ["none", "plus10", "plus30"]
        study(args)


if __name__ == "__main__":
    main()
