#!/usr/bin/env python3
"""Records the study: the same loops again and again, unchanged and slowed, on a quiet and on a loaded machine.

    record.py OUT [--python PY] [--rounds N] [--steps N] [--load quiet|loaded] [--framework NAME]...

Each run is a process of its own. A round holds three unchanged runs with the changed ones between them, so that a
machine that gets busier or hotter in the course of the study favours nobody. Runs that are in OUT already are kept.

The load is a controlled antagonist: three processes that copy memory in bursts, each on and off for exponentially
distributed times of 2 s on average. It comes and goes within runs and between them, as neighbours on a CI machine do.
"""
import argparse
import multiprocessing
import pathlib
import random
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
ROUND = ["none", "plus3", "periodic", "none", "plus10", "tail", "none", "plus30"]
FRAMEWORKS = ["tensorflow", "jax", "torch"]
ANTAGONISTS = 3
MEAN_BURST = 2.0


def disturb(seed):
    """Copies memory in bursts, until it is killed."""
    draw = random.Random(seed)
    block = bytearray(8 << 20)
    while True:
        until = time.monotonic() + draw.expovariate(1 / MEAN_BURST)
        while time.monotonic() < until:
            bytes(block)
        time.sleep(draw.expovariate(1 / MEAN_BURST))


def record_round(args, number):
    for framework in args.framework:
        for place, change in enumerate(ROUND):
            folder = args.out / args.load / framework / f"{number:02}-{place}-{change}"
            if (folder / "stopwatch.json").exists():
                continue
            shutil.rmtree(folder, ignore_errors=True)
            command = [args.python, HERE / "workloads.py", framework, change, str(args.steps), folder]
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    print(f"{args.load}: round {number + 1} of {args.rounds}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--python", default=sys.executable, help="an interpreter with the three frameworks")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--load", choices=["quiet", "loaded"], default="quiet")
    parser.add_argument("--framework", action="append", choices=FRAMEWORKS)
    args = parser.parse_args()
    args.framework = args.framework or FRAMEWORKS
    disturbers = range(ANTAGONISTS if args.load == "loaded" else 0)
    antagonists = [multiprocessing.Process(target=disturb, args=(i,), daemon=True) for i in disturbers]
    for process in antagonists:
        process.start()
    try:
        for number in range(args.rounds):
            record_round(args, number)
    finally:
        for process in antagonists:
            process.kill()


if __name__ == "__main__":
    main()
