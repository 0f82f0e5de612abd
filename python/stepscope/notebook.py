"""``%load_ext stepscope`` in a notebook: every training loop that a cell runs is recorded, and its verdict is shown below it.

    %load_ext stepscope          from now on
    %unload_ext stepscope        no longer

Recordings are below ``stepscope-logs`` in the folder of the notebook; ``stepscope.open("stepscope-logs")`` opens the newest.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from typing import Any

FOLDER = "stepscope-logs"


class Extension:
    """Listens from one cell to the next."""

    def __init__(self, shell: Any, into: str = FOLDER) -> None:
        from . import hook
        from .inject import sitecustomize

        self.shell = shell
        self.hook = hook
        self.folder = tempfile.mkdtemp(prefix="stepscope-")
        with open(os.path.join(self.folder, "options.json"), "w") as file:
            json.dump({"into": os.path.abspath(into)}, file)
        self.recorder = hook.attach(self.folder)
        # Frameworks that a later cell imports.
        self.finder = sitecustomize.Finder(lambda: hook)
        sys.meta_path.insert(0, self.finder)
        shell.events.register("pre_run_cell", self.before)
        shell.events.register("post_run_cell", self.after)

    def before(self, *_: Any) -> None:
        # Functions that earlier cells compiled.
        self.hook.guarded(self.hook.patch_jitted)

    def after(self, *_: Any) -> None:
        loop = self.hook._loop
        steps = loop.number if loop is not None else 0
        recorded = self.recorder.again()
        if recorded is not None:
            self.show(recorded, steps)

    def show(self, recorded: str, steps: int) -> None:
        place = os.path.relpath(recorded)
        try:
            from .profile import open as open_profile

            print(open_profile(recorded).report())
        except Exception:  # the native module is missing, or the recording is too short for a verdict
            print("stepscope: recorded {} steps; run `stepscope report {}`".format(steps, place))
        else:
            print("stepscope: {}".format(place))

    def end(self) -> None:
        self.shell.events.unregister("pre_run_cell", self.before)
        self.shell.events.unregister("post_run_cell", self.after)
        self.recorder.again()
        self.hook.detach()
        if self.finder in sys.meta_path:
            sys.meta_path.remove(self.finder)
        shutil.rmtree(self.folder, ignore_errors=True)


_extension: list[Extension] = []


def load(shell: Any) -> None:
    if not _extension:
        _extension.append(Extension(shell))


def unload(shell: Any) -> None:
    while _extension:
        _extension.pop().end()
