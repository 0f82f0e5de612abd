#!/usr/bin/env python3
"""Judges the study's runs: how often each method calls equal programs different, and finds what was slowed.

    judge.py RUNS [--stepscope BIN] [--write FILE] [--pairs N]

For each load, framework and change it forms pairs of one run per side (any two runs) and of three runs per side
(interleaved: neighbouring rounds), and asks `stepscope compare` and, on the stopwatch's step times of the same runs,
four other methods. It also checks that `gate` and `journal` never contradict `compare`. With --write the tables
replace the block between the markers in FILE. Deterministic: pairs are drawn with a fixed seed.
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import functools
import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np
import scipy.stats

BEGIN, END = "<!-- noise: begin; written by tools/noise_study/judge.py -->", "<!-- noise: end -->"
CHANGES = {"none": "no change", "plus3": "+3 %", "plus10": "+10 %", "plus30": "+30 %", "periodic": "+120 % every 4th step",
           "tail": "7 times as long, 1 step in 20"}
LEVEL = 0.05


@dataclasses.dataclass(frozen=True)
class Recorded:
    """One run."""
    folder: pathlib.Path
    load: str
    framework: str
    round: int
    place: int
    change: str

    @functools.cached_property
    def steps(self):
        return np.array(json.loads((self.folder / "stopwatch.json").read_text())["wall_ms"])


def recorded(folder):
    for file in sorted(folder.glob("*/*/*/stopwatch.json")):
        number, place, change = file.parent.name.split("-")
        load, framework = file.parts[-4:-2]
        yield Recorded(file.parent, load, framework, int(number), int(place), change)


# Other methods, on the steps of all runs of a side. Each says -1 (faster), 0 (no verdict) or 1 (slower).


def t_test(base, new):
    """Welch's t-test on the steps."""
    p = scipy.stats.ttest_ind(base, new, equal_var=False).pvalue
    return int(np.sign(new.mean() - base.mean())) if p < LEVEL else 0


def mann_whitney(base, new):
    """The rank test on the steps."""
    p = scipy.stats.mannwhitneyu(base, new).pvalue
    return int(np.sign(np.median(new) - np.median(base))) if p < LEVEL else 0


def hyperfine(base, new):
    """As hyperfine prints it: the ratio of the means, plus or minus the propagated standard deviations."""
    ratio = new.mean() / base.mean()
    off = ratio * np.hypot(base.std(ddof=1) / base.mean(), new.std(ddof=1) / new.mean())
    return int(ratio - off > 1) - int(ratio + off < 1)


def criterion(base, new):
    """As criterion.rs decides: bootstrapped change of the mean, 95 % interval beyond a noise threshold of 1 %."""
    chance = np.random.default_rng(1)
    draw = lambda steps: chance.choice(steps, (2000, len(steps))).mean(axis=1)
    low, high = np.quantile(draw(new) / draw(base) - 1, [LEVEL / 2, 1 - LEVEL / 2])
    return int(low > 0.01) - int(high < -0.01)


OTHERS = {"t-test": t_test, "Mann-Whitney": mann_whitney, "hyperfine": hyperfine, "criterion": criterion}
SIGNS = {"slower": 1, "faster": -1}


def stepscope(args, base, new):
    """What `compare` and `gate` say, as (verdict, gate's exit code)."""
    sides = [part for run in base for part in ("--base", run.folder)] + [part for run in new for part in ("--new", run.folder)]
    compared = subprocess.run([args.stepscope, "compare", *sides, "--json"], capture_output=True, check=True)
    gated = subprocess.run([args.stepscope, "gate", *sides, "--json"], capture_output=True)
    return json.loads(compared.stdout)["verdict"], gated.returncode


def journalled(args, runs):
    """Each run's line of a journal."""
    def line(run):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "journal"
            command = [args.stepscope, "journal", "add", run.folder, "--note", "x", "--file", file]
            subprocess.run(command, capture_output=True, check=True)
            return file.read_text()
    return dict(zip(runs, args.pool.map(line, runs)))


def by_journal(args, lines, base, new):
    """What the journal says of two runs, in their order in time."""
    with tempfile.NamedTemporaryFile("w", suffix=".journal") as file:
        file.write(lines[base] + lines[new])
        file.flush()
        done = subprocess.run([args.stepscope, "journal", "show", "--file", file.name, "--json"], capture_output=True, check=True)
    return json.loads(done.stdout)["rows"][-1]["compared"]


def pairs(runs, change, count):
    """Pairs of one run per side, all or `count` of them, by lot."""
    base = [run for run in runs if run.change == "none"]
    new = [run for run in runs if run.change == change]
    every = list(itertools.combinations(base, 2)) if change == "none" else list(itertools.product(base, new))
    chance = random.Random(7)
    if change == "none":
        # Which of the two is called the base is chance, too.
        every = [pair if chance.random() < 0.5 else pair[::-1] for pair in every]
    every = every if len(every) <= count else chance.sample(every, count)
    return [((base,), (new,)) for base, new in every]


def triples(runs, change):
    """Three runs per side, in turn: neighbouring rounds, or neighbouring unchanged runs."""
    unchanged = sorted((run for run in runs if run.change == "none"), key=lambda run: (run.round, run.place))
    if change == "none":
        windows = [unchanged[i : i + 6] for i in range(len(unchanged) - 5)]
        return [(tuple(window[0::2]), tuple(window[1::2])) for window in windows]
    changed = sorted((run for run in runs if run.change == change), key=lambda run: run.round)
    sides = []
    for new in (tuple(changed[i : i + 3]) for i in range(len(changed) - 2)):
        for place in sorted({run.place for run in unchanged}):
            base = tuple(run for run in unchanged if run.place == place and run.round in {run.round for run in new})
            sides.append((base, new))
    return sides


def judge(args, runs, sides):
    """All verdicts on these pairs: method -> list of -1, 0, 1, and how many pairs the commands disagree on."""
    said = collections.defaultdict(list)
    contradictions = []
    for (base, new), (verdict, code) in zip(sides, args.pool.map(lambda pair: stepscope(args, *pair), sides)):
        said["stepscope"].append(SIGNS.get(verdict, 0))
        said["gate"].append(int(code == 1))
        said["same"].append(int(verdict == "same"))
        # Slower by less than the gate's limit of 5 % passes, and rightly so.
        if code == 1 and verdict != "slower":
            contradictions.append((base, new, verdict, code))
        old, now = (np.concatenate([run.steps for run in side]) for side in (base, new))
        for name, method in OTHERS.items():
            said[name].append(method(old, now))
    return said, contradictions


def share(values, sign=None):
    hits = sum(value != 0 if sign is None else value == sign for value in values)
    return f"{100 * hits / len(values):.0f} %" if values else "–"


def study(args):
    everything = list(recorded(args.runs))
    loads = [load for load in ("quiet", "loaded") if any(run.load == load for run in everything)]
    frameworks = sorted({run.framework for run in everything})
    results, contradictions, disagreements, journal_pairs = {}, [], [], 0
    for load, framework in itertools.product(loads, frameworks):
        runs = [run for run in everything if (run.load, run.framework) == (load, framework)]
        for change in CHANGES:
            for many, sides in ((1, pairs(runs, change, args.pairs)), (3, triples(runs, change))):
                said, wrong = judge(args, runs, sides)
                results[load, framework, change, many] = said
                contradictions += wrong
                if many == 1:
                    journal_pairs += len(sides)
                    disagreements += against_journal(args, runs, sides, said["stepscope"])
        print(f"{load} {framework}", file=sys.stderr)
    return tables(loads, frameworks, results, len(contradictions), len(disagreements), journal_pairs)


def against_journal(args, runs, sides, verdicts):
    """Pairs on which the journal contradicts `compare`."""
    lines = journalled(args, runs)

    def differs(numbered):
        ((base,), (new,)), sign = numbered
        change = by_journal(args, lines, base, new)
        said = SIGNS.get(change, 0)
        in_order = (base.round, base.place) < (new.round, new.place)
        return said != (sign if in_order else -sign)

    pairs = list(zip(sides, verdicts))
    return [pair for pair, wrong in zip(pairs, args.pool.map(differs, pairs)) if wrong]


def tables(loads, frameworks, results, contradictions, disagreements, journal_pairs):
    methods = ["stepscope", *OTHERS]
    lines = []
    for load in loads:
        for many in (1, 3):
            per_side = "1 run" if many == 1 else "3 interleaved runs"
            lines += ["", f"**{load.capitalize()} machine, {per_side} per side**", ""]
            lines += ["| change | pairs | " + " | ".join(methods) + " | gate fails | “same” |"]
            lines += ["|---|---:|" + "---:|" * (len(methods) + 2)]
            for change, title in CHANGES.items():
                said = collections.defaultdict(list)
                for framework in frameworks:
                    for method, values in results[load, framework, change, many].items():
                        said[method] += values
                sign = None if change == "none" else 1
                row = [share(said[method], sign) for method in methods] + [share(said["gate"]), share(said["same"])]
                lines += [f"| {title} | {len(said['stepscope'])} | " + " | ".join(row) + " |"]
    total = sum(len(said["stepscope"]) for said in results.values())
    lines += ["", f"`gate` contradicted `compare` on {contradictions} of {total} pairs, `journal` on {disagreements} of {journal_pairs}."]
    return "\n".join(lines).strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=pathlib.Path)
    parser.add_argument("--stepscope", default="stepscope", help="the binary")
    parser.add_argument("--pairs", type=int, default=60, help="pairs per framework and change at most")
    parser.add_argument("--write", type=pathlib.Path, help="a file whose block between the markers is replaced")
    args = parser.parse_args()
    with concurrent.futures.ThreadPoolExecutor(2) as args.pool:
        text = study(args)
    print(text)
    if args.write:
        before, rest = args.write.read_text().split(BEGIN)
        args.write.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
