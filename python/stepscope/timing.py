"""Benchmarks of a step against a stored baseline, with the statistics of ``stepscope compare``."""

from __future__ import annotations

import functools
import json
import os
import platform
import re
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from . import _stepscope
from .record import StepscopeWarning
from .turns import Counter

_SCHEMA = "stepscope.baseline.v1"
#: Names the folder of baselines where neither the decorator nor pytest does.
_VARIABLE = "STEPSCOPE_BASELINE"

Function = TypeVar("Function", bound=Callable[..., Any])


class Regression(AssertionError):
    """The step is slower than its baseline by more than the limit, and that is not noise."""


@dataclass
class Settings:
    """What applies to all benchmarks of a program; the pytest plugin sets it."""

    #: Folder of baselines.
    folder: str | None = None
    #: Replace the baselines instead of checking against them.
    update: bool = False
    #: What to check, instead of what each benchmark says.
    metrics: tuple[str, ...] = ()


settings = Settings()

#: What each benchmark said, for the summary of a test run.
told: list[str] = []


def benchmark(
    max_regression: str | float = "5%",
    *,
    baseline: str | os.PathLike[str] | None = None,
    name: str | None = None,
    warmup: int = 5,
    steps: int = 30,
    runs: int = 3,
    strict: bool = False,
    metric: str | Sequence[str] = (),
) -> Callable[[Function], Function]:
    """Times a step function and compares it with a stored baseline.

        >>> @stepscope.benchmark(max_regression="5%")
        ... def test_train_step(model, batch):        # pytest passes fixtures as usual
        ...     model.train_on_batch(batch)

    Each call of the decorated function runs ``warmup`` steps, then ``runs`` runs of ``steps`` timed steps. The first call
    stores the times as the baseline. Later calls compare with it and raise ``stepscope.Regression`` if the mean step is
    slower by more than ``max_regression`` and that is not noise. If the result is too noisy to decide, it passes with a
    warning; with ``strict=True`` it fails. The decision is the one of ``stepscope gate``.

    Beside the time, the CPU time of each step is compared, and its instructions where the kernel lets a process count them.
    On a busy machine these are far more certain, but they cannot see waiting. More work fails the benchmark only while the
    time is too noisy to decide. ``metric="cpu"`` (or ``"instructions"``, ``"step.median"``, or several) checks just that.

    Baselines are JSON files, one per function, in the folder of ``pytest --stepscope-baseline DIR``, in ``baseline``, or
    in the folder that the environment variable ``STEPSCOPE_BASELINE`` names. Without a folder, the function just runs
    once. ``pytest --stepscope-update`` replaces baselines after an intended change. A baseline belongs to one machine:
    on another one it is refused.

    Work on a device must be finished when the function returns: call ``block_until_ready()``,
    ``torch.cuda.synchronize()`` or read a result. Returns what the last step returned.
    """
    limit = _fraction(max_regression)

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def measured(*arguments: Any, **named: Any) -> Any:
            folder = settings.folder or baseline or os.environ.get(_VARIABLE)
            if not folder:
                return function(*arguments, **named)
            title = name or "{}.{}".format(function.__module__, function.__qualname__)
            step = functools.partial(function, *arguments, **named)
            figures, result = _timed(step, warmup, steps, runs)
            wanted = settings.metrics or ((metric,) if isinstance(metric, str) else tuple(metric))
            _check(os.fspath(folder), title, figures, limit, strict, wanted)
            return result

        return measured  # type: ignore[return-value]

    return decorate


def _fraction(limit: str | float) -> float:
    """``"5%"`` or 0.05."""
    if isinstance(limit, str):
        try:
            value = float(limit.strip().rstrip("%")) / 100
        except ValueError:
            raise ValueError("max_regression is a percentage such as \"5%\" or a fraction such as 0.05") from None
    else:
        value = float(limit)
    if not 0 <= value < float("inf"):
        raise ValueError("max_regression must not be negative")
    return value


@dataclass
class _Figures:
    """What was measured, by run and step."""

    #: Milliseconds of wall time.
    times: list[list[float]]
    #: Work by kind: ``cpu`` in milliseconds, ``instructions``.
    work: dict[str, list[list[float]]]


def _timed(step: Callable[[], Any], warmup: int, steps: int, runs: int) -> tuple[_Figures, Any]:
    """Time and work of each step."""
    counter = Counter()
    result = None
    for _ in range(warmup):
        result = step()
    wall, cpu, count = time.perf_counter_ns, time.process_time_ns, counter.read
    figures = _Figures([], {"cpu": [], "instructions": []})
    for _ in range(max(runs, 1)):
        run = []
        for _ in range(max(steps, 1)):
            counted, worked, began = count(), cpu(), wall()
            result = step()
            ended, rested = wall(), cpu()
            run.append(((ended - began) / 1e6, (rested - worked) / 1e6, (counted, count())))
        figures.times.append([took for took, _, _ in run])
        figures.work["cpu"].append([worked for _, worked, _ in run])
        pairs = [(before, after) for _, _, (before, after) in run]
        known = [float(after - before) for before, after in pairs if before is not None and after is not None]
        figures.work["instructions"].append(known)
    if not all(figures.work["instructions"]):
        del figures.work["instructions"]
    return figures, result


def _machine() -> str:
    return "{} {} x{}".format(platform.node(), platform.processor() or platform.machine(), os.cpu_count())


def _check(
    folder: str, title: str, figures: _Figures, limit: float, strict: bool, metrics: tuple[str, ...]
) -> None:
    path = os.path.join(folder, re.sub(r"[^A-Za-z0-9._-]+", "_", title) + ".json")
    stored = None if settings.update else _stored(path)
    if stored is None:
        _store(path, title, figures)
        told.append("{}: stored as the baseline in {}".format(title, path))
        return
    machine = str(stored.get("machine", ""))
    if machine != _machine():
        text = "{} was stored on another machine; it has {}, this is {}; store one here with `pytest --stepscope-update`"
        raise _stepscope.Error(text.format(path, machine, _machine()))
    # Baselines from before work was stored have none.
    work = stored.get("work")
    base = (stored["runs"], machine, work if isinstance(work, dict) else {})
    new = (figures.times, machine, figures.work)
    outcome, text, _ratio = _stepscope.gate_steps(base, new, limit, list(metrics))
    if outcome == "missing":
        missing = "{} has no {}; store it again with `pytest --stepscope-update`"
        raise _stepscope.Error(missing.format(path, " or ".join(metrics)))
    told.append("{}: {}".format(title, text.strip()))
    if outcome == "failed" or (strict and outcome == "unclear"):
        advice = "if the change is intended, store it with `pytest --stepscope-update` or delete {}".format(path)
        raise Regression("{}\n{}\n{}".format(title, text.rstrip(), advice))
    if outcome == "unclear":
        warnings.warn("{}: {}".format(title, text.strip()), StepscopeWarning, stacklevel=4)


def _stored(path: str) -> dict[str, Any] | None:
    try:
        with open(path, encoding="utf-8") as file:
            stored = json.load(file)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ValueError("{} is not a baseline: {}; delete it to store a new one".format(path, error)) from None
    runs = stored.get("runs") if isinstance(stored, dict) else None
    if not isinstance(stored, dict) or stored.get("schema") != _SCHEMA or not isinstance(runs, list) or not runs:
        raise ValueError("{} is not a baseline of schema {}; delete it to store a new one".format(path, _SCHEMA))
    return stored


def _store(path: str, title: str, figures: _Figures) -> None:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    value = {
        "schema": _SCHEMA,
        "name": title,
        "machine": _machine(),
        "python": "{}.{}.{}".format(*sys.version_info[:3]),
        "unit": "ms",
        "runs": figures.times,
        "work": figures.work,
    }
    part = "{}.{}.part".format(path, os.getpid())
    with open(part, "w", encoding="utf-8") as file:
        json.dump(value, file)
        file.write("\n")
    os.replace(part, path)
