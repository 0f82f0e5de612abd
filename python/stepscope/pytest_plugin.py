"""Options of pytest for ``@stepscope.benchmark``: ``--stepscope-baseline DIR``, ``--stepscope-update`` and
``--stepscope-metric METRIC``.

The native module is only loaded if a test uses it.
"""

from __future__ import annotations

import sys
from typing import Any


def pytest_addoption(parser: Any) -> None:
    """Adds the options."""
    group = parser.getgroup("stepscope", "step times against a baseline")
    group.addoption(
        "--stepscope-baseline",
        metavar="DIR",
        default=None,
        help="compare tests marked @stepscope.benchmark with the baselines in DIR; store those that are missing",
    )
    group.addoption(
        "--stepscope-update", action="store_true", help="replace the baselines instead of comparing with them"
    )
    group.addoption(
        "--stepscope-metric",
        metavar="METRIC",
        action="append",
        default=[],
        help="check this metric: step.mean, step.median, step.p90, cpu, instructions; repeatable",
    )


def pytest_configure(config: Any) -> None:
    """Passes the options to the decorator."""
    folder = config.getoption("--stepscope-baseline")
    update = config.getoption("--stepscope-update")
    metrics = config.getoption("--stepscope-metric")
    if folder is None and not update and not metrics:
        return
    from .timing import settings

    settings.folder = folder or settings.folder
    settings.update = update
    settings.metrics = tuple(metrics)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints one paragraph per benchmark."""
    timing = sys.modules.get("stepscope.timing")
    if timing is None or not timing.told:
        return
    terminalreporter.section("stepscope")
    for line in timing.told:
        terminalreporter.write_line(line)
