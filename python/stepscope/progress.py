"""Progress of long reads: with tqdm where it is installed, else one line on a terminal, else nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

#: Work that ends before this shows nothing; a flashing bar is distracting.
_PATIENCE_SECONDS = 0.3

Tick = Callable[[int, int, int], None]


def in_notebook() -> bool:
    """Is this a notebook, which shows more than text?"""
    ipython = sys.modules.get("IPython")
    try:
        return type(ipython.get_ipython()).__name__ == "ZMQInteractiveShell" if ipython else False
    except Exception:
        return False


class Shown:
    """``with Shown() as tick:``; ``tick(bytes, total, events)`` shows how far a read is."""

    def __init__(self, wanted: bool | None = None) -> None:
        self._wanted = (in_notebook() or _is_terminal()) if wanted is None else wanted
        self._since = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> Tick | None:
        return self._tick if self._wanted else None

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def _tick(self, done: int, total: int, events: int) -> None:
        if total == 0 or time.monotonic() - self._since < _PATIENCE_SECONDS:
            return
        if self._bar is None:
            self._bar = _bar(total)
        self._bar.show(done, total, events)


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except Exception:
        return False


def _bar(total: int) -> _Tqdm | _Line:
    try:
        return _Tqdm(total)
    except Exception:  # not installed, or without the widgets that it wants
        return _Line()


class _Tqdm:
    def __init__(self, total: int) -> None:
        from tqdm.auto import tqdm

        self._bar = tqdm(total=total, unit="B", unit_scale=True, desc="reading", leave=False)

    def show(self, done: int, total: int, events: int) -> None:
        self._bar.total = total
        self._bar.update(min(done, total) - self._bar.n)

    def close(self) -> None:
        self._bar.close()


class _Line:
    def show(self, done: int, total: int, events: int) -> None:
        print("\rreading {:.0%}, {:,} events".format(min(done / total, 1), events), end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
