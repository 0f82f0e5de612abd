"""stepscope explains why a machine-learning step is slow: it opens profiles of TensorFlow, JAX and PyTorch.

Open a profile and read the verdict:

    >>> import stepscope
    >>> profile = stepscope.open("logs/")            # the newest session below logs/
    >>> print(profile.report())                      # verdict, breakdown, findings, fixes
    >>> profile.findings[0].advice                   # what to change
    >>> profile.ops.to_pandas()                      # any view as a data frame; .to_polars(), .to_arrow()
    >>> profile.events.to_arrow()                    # every recorded event
    >>> profile.sql("SELECT name, sum(dur) FROM event GROUP BY name ORDER BY 2 DESC LIMIT 10")
    >>> print(stepscope.open("before/").compare("after/"))   # faster, slower, same, or too noisy to decide
    >>> profile.serve()                              # the page with the timeline, in a notebook or a script

Record a profile from inside a program. This part needs none of the above and never breaks training:

    >>> with stepscope.window("logs", warmup=10, steps=20) as w:
    ...     for batch in w.wrap(dataset):
    ...         train_step(batch)

Guard a step against regressions, in pytest (``pytest --stepscope-baseline DIR``) or anywhere else:

    >>> @stepscope.benchmark(max_regression="5%")
    ... def test_step():
    ...     train_step(batch)

``help(stepscope.open)``, ``help(stepscope.Profile)`` and ``help(stepscope.benchmark)`` explain each with examples.
The command line is part of the package: ``stepscope report logs/`` or ``python -m stepscope report logs/``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .record import PHASES, KerasCallback, StepscopeWarning, __version__, mark, step, window

if TYPE_CHECKING:
    from ._stepscope import Error as Error
    from .frame import Frame as Frame
    from .profile import Comparison as Comparison
    from .profile import Finding as Finding
    from .profile import Profile as Profile
    from .profile import Report as Report
    from .profile import demo as demo
    from .profile import open as open
    from .server import Server as Server
    from .server import serve as serve
    from .timing import Regression as Regression
    from .timing import benchmark as benchmark

# `open` is left out: `from stepscope import *` must not hide Python's own.
__all__ = [
    "Comparison",
    "Error",
    "Finding",
    "Frame",
    "KerasCallback",
    "PHASES",
    "Profile",
    "Regression",
    "Report",
    "Server",
    "StepscopeWarning",
    "__version__",
    "benchmark",
    "demo",
    "mark",
    "serve",
    "step",
    "window",
]

#: Where each name lives that is loaded on first use. Recording must work without the native module.
_LAZY = {
    "Comparison": "profile",
    "Error": "_stepscope",
    "Finding": "profile",
    "Frame": "frame",
    "Profile": "profile",
    "Regression": "timing",
    "Report": "profile",
    "Server": "server",
    "benchmark": "timing",
    "demo": "profile",
    "open": "profile",
    "serve": "server",
}
_MODULES = ("fleet", "tfprof")


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext stepscope``: records the training loops of a notebook, and shows the verdict below their cells."""
    from .notebook import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext stepscope``."""
    from .notebook import unload

    unload(shell)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module("." + _LAZY[name], __name__), name)
    if name in _MODULES:
        return importlib.import_module("." + name, __name__)
    raise AttributeError("module {!r} has no attribute {!r}".format(__name__, name))


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_LAZY) | set(_MODULES))
