"""The page with the timeline, served from a notebook or a script."""

from __future__ import annotations

import atexit
import html
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Union
from urllib.parse import quote

Path = Union[str, "os.PathLike[str]"]

_running: list["Server"] = []


class Server:
    """A page that is being served by a process of its own. It ends with Python, or earlier with :meth:`stop`.

    In a notebook it shows as a link; ``str(server.url)`` is the address. The page listens on this machine only: from
    another one, forward the port (``ssh -L 6200:127.0.0.1:6200 HOST``).
    """

    def __init__(self, paths: list[str], port: int | None) -> None:
        given = [] if port is None else ["--port", str(port)]
        command = [sys.executable, "-m", "stepscope", "serve", *given, "--", *paths]
        self.paths = paths
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.url = (self._process.stdout.readline() if self._process.stdout else "").strip()
        if not self.url:
            _, told = self._process.communicate()
            from ._stepscope import Error

            raise Error(told.strip().removeprefix("error: ") or "the page could not be served")
        _running.append(self)

    @property
    def running(self) -> bool:
        """Is the page still served?"""
        return self._process.poll() is None

    def timeline(self, session: str | None = None) -> str:
        """Address of the timeline of a session; of the newest by default."""
        base, _, token = self.url.partition("?")
        return "{}{}#/{}/timeline".format(base, "?" + token if token else "", quote(session or "", safe=""))

    def stop(self) -> None:
        """Ends the server."""
        if self.running:
            self._process.terminate()
            self._process.wait()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        if self in _running:
            _running.remove(self)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return "stepscope serves {} on {}".format(", ".join(self.paths), self.url if self.running else "nothing: stopped")

    def _repr_html_(self) -> str:
        if not self.running:
            return "<p>The page was stopped.</p>"
        shown = html.escape(", ".join(self.paths))
        link = html.escape(self.url, quote=True)
        return '<p>stepscope serves <code>{}</code>: <a href="{}" target="_blank" rel="noopener">{}</a></p>'.format(
            shown, link, link
        )


def serve(*paths: Path, port: int | None = None) -> Server:
    """Serves the page for profiles below ``paths`` (default: the current folder), and returns at once.

        >>> page = stepscope.serve("logs/")
        >>> page.url
        'http://127.0.0.1:6200/'
        >>> page.stop()

    ``port`` is the port to listen on; by default 6200, or the next free one.
    """
    return Server([os.fspath(path) for path in paths] or ["."], port)


def serving(paths: Sequence[str]) -> Server | None:
    """The running server of these paths, if there is one."""
    return next((server for server in _running if server.running and server.paths == list(paths)), None)


@atexit.register
def _stop_all() -> None:
    for server in list(_running):
        server.stop()
