"""Many hosts, jobs and days: which jobs waste most device time, and why; which host is repeatedly slow.

On one machine:

    >>> report = stepscope.fleet.run("runs/")
    >>> print(report)
    >>> report.jobs.to_pandas()

On an engine that is already running (``pip install stepscope[ray]``, ``[dask]`` or ``[spark]``):

    >>> report = stepscope.fleet.ray.run("/shared/runs/")
    >>> report = stepscope.fleet.dask.run("/shared/runs/", client)
    >>> report = stepscope.fleet.spark.run("/shared/runs/", spark)

All of them call the same four functions, and anything else can, too:

    >>> works = plan("runs/")                           # what to read; plain data
    >>> parts = [partial(work) for work in works]       # read it, anywhere, in any order; bytes
    >>> report = finish(merge(parts))

``merge`` is associative, commutative and idempotent, so results do not depend on how an engine schedules, retries or
groups them: the report is the same to the byte. A file that cannot be read becomes an entry that says so.
"""

from __future__ import annotations

import importlib
import json
import os
from functools import cached_property
from typing import Any

from .. import _stepscope
from ..frame import Frame
from ..server import Path

__all__ = ["FleetReport", "failed", "finish", "memory", "merge", "partial", "plan", "run", "version"]

#: Memory of a task beside its trace.
_BASE_BYTES = 256 << 20
#: Memory per byte of a profile: formats that are decoded into memory need most.
_PER_BYTE = 4


def plan(
    *paths: Path, job_pattern: str | None = None, since: int | None = None, group_bytes: int = 1 << 30
) -> list[dict[str, Any]]:
    """What there is to read below ``paths``, as plain data. The same files give the same plan.

    ``job_pattern`` is a regular expression for paths whose groups ``job``, ``session``, ``host`` and ``date`` name what
    they say. ``since`` leaves out older recordings (seconds since 1970). A piece of work reads ``group_bytes`` at most,
    unless one file is larger.
    """
    given = [os.fspath(path) for path in paths]
    return [json.loads(work) for work in _stepscope.fleet_plan(given, job_pattern, since, group_bytes)]


def partial(work: dict[str, Any], threads: int | None = None) -> bytes:
    """Reads one piece of work, on ``threads`` threads or on one per core."""
    return _stepscope.fleet_partial(json.dumps(work), threads)


def failed(work: dict[str, Any], reason: object) -> bytes:
    """The partial of work that could not be done: each of its files says why."""
    return _stepscope.fleet_failed(json.dumps(work), str(reason) or type(reason).__name__)


def merge(parts: list[bytes]) -> bytes:
    """Unites partials: none, one or many, in any order, any number of times."""
    return _stepscope.fleet_merge(list(parts))


def finish(part: bytes) -> FleetReport:
    """The report on everything in a partial."""
    return FleetReport(part)


def run(*paths: Path, threads: int | None = None, **options: Any) -> FleetReport:
    """Plans, reads and reports on this machine. Options are those of :func:`plan`."""
    return finish(merge([partial(work, threads) for work in plan(*paths, **options)]))


def version() -> str:
    """What must be equal on all machines: the version of the package and the format of its partials."""
    return "{} format {}".format(_stepscope.__version__, _stepscope.fleet_format())


def memory(work: dict[str, Any]) -> int:
    """Bytes of memory that a piece of work needs at most, from the size of its largest file."""
    largest = max((file["bytes"] for piece in work["pieces"] for file in piece["inputs"]), default=0)
    return _BASE_BYTES + _PER_BYTE * int(largest)


def check_versions(found: dict[str, str]) -> None:
    """Fails if a worker has another version than this process."""
    other = {worker: text for worker, text in found.items() if text != version()}
    if other:
        named = ", ".join("{} has {}".format(worker, text) for worker, text in sorted(other.items())[:5])
        raise _stepscope.Error(
            "workers run another version of stepscope; this process has {}, {}; install the same wheel everywhere".format(
                version(), named
            )
        )


class FleetReport:
    """The report on many jobs. ``jobs``, ``hosts``, ``ops`` and so on are tables (:class:`stepscope.Frame`)."""

    def __init__(self, part: bytes) -> None:
        #: The partial behind the report; save it, and merge it with others later.
        self.partial = part
        self._native = _stepscope.fleet_finish(part)

    @property
    def answer(self) -> str:
        """Where most device time is lost, in one sentence."""
        return str(self._native.answer)

    @property
    def coverage(self) -> str:
        """What is covered, and what is missing: ``2,046 of 2,048 profiles``."""
        return str(self._native.coverage)

    @property
    def complete(self) -> bool:
        """Is all there that was planned?"""
        return bool(self._native.complete)

    @cached_property
    def json(self) -> dict[str, Any]:
        """Everything as plain values, schema ``stepscope.fleet.v1``."""
        return json.loads(self._native.json())

    @property
    def tables(self) -> list[str]:
        """Names of the tables."""
        return list(self._native.tables)

    def table(self, name: str) -> Frame:
        """One table by its name."""
        return Frame(self._native.table(name))

    def __getattr__(self, name: str) -> Frame:
        if not name.startswith("_") and name in self._native.tables:
            return self.table(name)
        raise AttributeError("{!r} object has no attribute {!r}".format(type(self).__name__, name))

    def __dir__(self) -> list[str]:
        return sorted(set(super().__dir__()) | set(self.tables))

    def html(self) -> str:
        """One self-contained page."""
        return str(self._native.html())

    def __str__(self) -> str:
        return str(self._native.text()).rstrip("\n")

    __repr__ = __str__

    def __reduce__(self) -> Any:
        return FleetReport, (self.partial,)


def __getattr__(name: str) -> Any:
    if name in ("ray", "dask", "spark"):
        return importlib.import_module("." + name, __name__)
    raise AttributeError("module {!r} has no attribute {!r}".format(__name__, name))
