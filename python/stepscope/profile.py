"""Open profiles: the report, every view as a table, events, SQL and comparisons."""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Union

from . import _stepscope
from .frame import Frame
from .progress import Shown
from .record import StepscopeWarning
from .server import Path, Server, serve, serving

Paths = Union[Path, "list[Path]", "tuple[Path, ...]"]


def open(  # noqa: A001
    path: Paths,
    *more: Path,
    session: str | None = None,
    host: str | None = None,
    whole: bool = False,
    steps: tuple[int, int] | None = None,
    time: tuple[float, float] | None = None,
    warm_up: bool = False,
    progress: bool | None = None,
) -> Profile:
    """Opens a profile: a file, a session folder or a whole log directory, of which the newest session is used.

        >>> profile = stepscope.open("logs/")
        >>> profile = stepscope.open("trace.json.gz")
        >>> profile = stepscope.open("logs/", session="2026_01_31_12_00_00")
        >>> profile = stepscope.open("logs/", steps=(10, 20))        # only these steps, inclusive
        >>> profile = stepscope.open("logs/", time=(1.2, 1.5))       # only this time range, in seconds

    The format is recognised by content: XPlane, Chrome and Kineto JSON, Nsight Systems and Nsight Compute, nvidia-smi.

    ``host`` is a regular expression for hosts to use. ``whole`` covers the whole recording instead of the counted steps,
    ``warm_up`` counts warm-up steps too. ``progress`` shows a progress bar; by default in notebooks and on terminals.
    Reading releases the interpreter lock, and Ctrl-C interrupts it. Damaged files are read as far as possible, with a
    warning (``profile.problems`` has the details). Raises ``stepscope.Error`` if there is nothing to read.
    """
    given = path if isinstance(path, (list, tuple)) else [path]
    asked = {
        "paths": [os.fspath(one) for one in (*given, *more)],
        "session": session,
        "host": host,
        "whole": whole,
        "steps": steps,
        "seconds": time,
        "warm_up": warm_up,
    }
    with Shown(progress) as tick:
        native = _stepscope.Recording.open(asked, tick)
    profile = Profile(native, asked)
    for problem in profile.problems:
        warnings.warn(problem, StepscopeWarning, stacklevel=2)
    return profile


def demo() -> Profile:
    """Opens the sample profile that is built into the package: a step that waits for its input.

    >>> print(stepscope.demo().report())
    """
    native = _stepscope.Recording.sample()
    return Profile(native, None)


@dataclass(frozen=True)
class Finding:
    """One finding: what is wrong, how that is known, and what to do about it."""

    #: Its id, such as ``input-bound``; ``stepscope explain ID`` documents each.
    id: str
    #: ``cause``, ``habits``, ``goal``, ``run``, or ``trust`` for a doubt about the recording.
    about: str
    #: ``critical``, ``warning`` or ``info``.
    severity: str
    #: What it is about, such as an op type.
    subject: str | None
    #: Share of the step time that it owns, from 0 to 1.
    fraction: float | None
    #: The most that fixing it saves, in milliseconds per step.
    gain_ms_per_step: float | None
    #: How sure the finding is, from 0 to 1.
    confidence: float
    #: What is wrong, in one sentence.
    summary: str
    #: How that is known.
    evidence: list[str]
    #: What to do.
    advice: list[str]
    #: Everything that the JSON report says about it.
    raw: dict[str, Any] = field(repr=False, compare=False)

    def explain(self) -> str:
        """What the finding means, how it is detected, and how to fix and verify it."""
        return _stepscope.explain(self.id) or ""

    def __str__(self) -> str:
        lines = ["{} {}: {}".format(self.severity, self.id, self.summary)]
        return "\n".join(lines + ["  · " + line for line in self.evidence] + ["  → " + line for line in self.advice])


def _finding(raw: dict[str, Any]) -> Finding:
    names = ("id", "about", "severity", "subject", "fraction", "gain_ms_per_step", "confidence", "summary", "evidence", "advice")
    known: dict[str, Any] = {name: raw.get(name) for name in names}
    return Finding(**known, raw=raw)


class Report:
    """The report: verdict, step time, breakdown, ops, findings and fixes.

    >>> report = profile.report()
    >>> print(report)                      # text; in a notebook, the report shows itself
    >>> report.verdict
    >>> report.breakdown["input"]          # milliseconds per step
    >>> report.json["steps"]["median_ms"]  # everything, as `stepscope report --json` writes it
    >>> report.save("report.html")         # one self-contained page; .md and .json work too
    """

    def __init__(self, native: Any, profile: Profile) -> None:
        self._native = native
        self._profile = profile

    @cached_property
    def json(self) -> dict[str, Any]:
        """Everything as plain values, schema ``stepscope.report.v1``."""
        return json.loads(self._native.json())

    @property
    def verdict(self) -> str:
        """Why the step is slow, in one sentence."""
        return str(self._native.verdict)

    @cached_property
    def findings(self) -> list[Finding]:
        """The findings; the first is the verdict."""
        return [_finding(raw) for raw in self.json["findings"]]

    @property
    def breakdown(self) -> dict[str, float]:
        """Milliseconds per step by category; they sum to the mean step."""
        return {row["category"]: row["ms_per_step"] for row in self.json["breakdown"]}

    def markdown(self) -> str:
        """The report for a pull request."""
        return str(self._native.markdown())

    def html(self) -> str:
        """One self-contained page."""
        return str(self._native.html())

    def save(self, path: Path) -> None:
        """Writes the report to a file: HTML, Markdown (``.md``), JSON (``.json``) or text (``.txt``), by its name."""
        name = os.fspath(path)
        ending = os.path.splitext(name)[1]
        forms = {".md": self.markdown, ".json": self._native.json, ".txt": self._native.text}
        text = forms.get(ending, self.html)()
        with _open_file(name, "w", encoding="utf-8") as file:
            file.write(text)

    def __str__(self) -> str:
        return str(self._native.text()).rstrip("\n")

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {
            "text/plain": str(self),
            "text/html": self._native.fragment(self._profile._timeline()),
            "text/markdown": self.markdown(),
        }


class Comparison:
    """What changed between two sides, and whether it is more than noise.

    >>> change = stepscope.open("before/").compare("after/")
    >>> change.verdict                     # faster, slower, same, unclear or not-comparable
    >>> change.ratio                       # NEW over BASE: estimate, low and high
    >>> print(change)
    """

    def __init__(self, native: Any) -> None:
        self._native = native

    @cached_property
    def json(self) -> dict[str, Any]:
        """Everything as plain values, schema ``stepscope.compare.v1``."""
        return json.loads(self._native.json())

    @property
    def verdict(self) -> str:
        """``faster``, ``slower``, ``same``, ``unclear`` or ``not-comparable``."""
        return str(self.json["verdict"])

    @property
    def summary(self) -> str:
        """The verdict in one sentence."""
        return str(self.json["summary"])

    @property
    def ratio(self) -> dict[str, float | None]:
        """NEW over BASE: ``median`` is the estimate, ``low`` and ``high`` are its interval."""
        return dict(self.json["ratio"])

    def markdown(self) -> str:
        """The comparison for a pull request."""
        return str(self._native.markdown())

    def html(self) -> str:
        """One self-contained page with both sides."""
        return str(self._native.html())

    def __str__(self) -> str:
        return str(self._native.text()).rstrip("\n")

    __repr__ = __str__

    def _repr_markdown_(self) -> str:
        return self.markdown()


class Profile:
    """An open profile. ``stepscope.open(path)`` makes one.

    - ``report()`` explains why the step is slow; ``findings`` are its findings, the verdict first.
    - Each view is a table (:class:`Frame`): ``steps``, ``ops``, ``kernels``, ``scopes``, ``functions``, ``programs``, ``input``,
      ``memory``, ``devices``, ``inference``, ``health``. ``view("path")`` is one more, and
      ``view("ops", by="type")`` groups differently.
    - ``events`` has one row per recorded event. ``sql(query)`` asks anything else.
    - ``compare(other)`` says what changed. ``serve()`` opens the page with the timeline.

    In a notebook, a profile shows its report. A profile can be pickled: the receiver opens the same files.
    """

    def __init__(self, native: Any, asked: dict[str, Any] | None) -> None:
        self._native = native
        self._asked = asked
        self._report: Report | None = None
        self._views: dict[tuple[str, str | None], Frame] = {}

    # What it is.

    @property
    def session(self) -> str:
        """Name of the session."""
        return str(self._native.session)

    @property
    def sessions(self) -> list[str]:
        """All sessions below the paths, newest first; choose one with ``stepscope.open(path, session=…)``."""
        return list(self._native.sessions)

    @property
    def hosts(self) -> list[str]:
        """Names of the hosts."""
        return list(self._native.hosts)

    @property
    def sources(self) -> list[dict[str, Any]]:
        """The files: path, format, bytes, host and number of events of each."""
        names = ("path", "format", "bytes", "host", "events")
        return [dict(zip(names, row)) for row in self._native.sources]

    @property
    def problems(self) -> list[str]:
        """Damage in the files, in words; empty if there is none."""
        return list(self._native.problems)

    # What it says.

    def report(self) -> Report:
        """The report: verdict, step time, breakdown, ops, findings and fixes. Computed once."""
        if self._report is None:
            self._report = Report(self._native.report(), self)
        return self._report

    @property
    def findings(self) -> list[Finding]:
        """The findings; the first is the verdict."""
        return self.report().findings

    def compare(self, other: Profile | Path, *more: Profile | Path, min_effect: float = 0.01) -> Comparison:
        """What changed from this profile to ``other``, and whether it is more than noise.

            >>> before.compare("after/").verdict
            >>> before.compare("after1/", "after2/")      # several runs of the new side detect smaller changes

        ``min_effect`` is the smallest change worth reporting, as a fraction.
        """
        new = [one if isinstance(one, Profile) else open(one) for one in (other, *more)]
        sides = [[(one._label(), one._native) for one in side] for side in ([self], new)]
        return Comparison(_stepscope.compare(sides[0], sides[1], min_effect))

    # Its tables.

    def view(self, name: str, by: str | None = None) -> Frame:
        """One view as a table; ``by`` groups its rows differently, such as ``view("ops", by="type")``."""
        key = (name, by)
        if key not in self._views:
            self._views[key] = Frame(self._native.view(name, by))
        return self._views[key]

    @property
    def steps(self) -> Frame:
        """Every step: its time and its breakdown (columns such as ``breakdown.input``)."""
        return self.view("steps")

    @property
    def ops(self) -> Frame:
        """The ops, most expensive first."""
        return self.view("ops")

    @property
    def kernels(self) -> Frame:
        """The GPU kernels: launch configuration, occupancy, the op behind each."""
        return self.view("kernels")

    @property
    def scopes(self) -> Frame:
        """Time by name scope or module."""
        return self.view("scopes")

    @property
    def functions(self) -> Frame:
        """Compiled functions: calls, traces, compilations."""
        return self.view("functions")

    @property
    def programs(self) -> Frame:
        """Programs that XLA compiled; ``view("hlo_ops")`` has their instructions, ``view("hlo_memory")`` their memory."""
        return self.view("hlo_modules")

    @property
    def input(self) -> Frame:
        """The stages of the input pipeline."""
        return self.view("input")

    @property
    def memory(self) -> Frame:
        """Memory per allocator."""
        return self.view("memory")

    @property
    def devices(self) -> Frame:
        """The devices and how busy they were."""
        return self.view("devices")

    @property
    def inference(self) -> Frame:
        """Latency of inference requests."""
        return self.view("inference")

    @property
    def health(self) -> Frame:
        """Problems of the recording itself."""
        return self.view("health")

    @cached_property
    def events(self) -> Frame:
        """One row per recorded event: host, process, track, name, category, ``start_ps``, ``duration_ps``.

        >>> events = profile.events.to_pandas()
        >>> events.groupby("name", observed=True).duration_ps.sum().nlargest(10) / 1e9    # milliseconds
        """
        return Frame(self._native.events())

    def sql(
        self, query: str, *, rows: int | None = None, seconds: float | None = None, quiet: bool = False
    ) -> Frame:
        """Answers a SELECT over the recording: its events, what surrounds them, and stepscope's results as tables.

            >>> profile.sql("SELECT name, count(*), sum(dur) / 1e6 AS ms FROM event GROUP BY name ORDER BY ms DESC")
            >>> profile.sql("SELECT category, sum(dur) FROM breakdown GROUP BY category").to_pandas()

        Times are nanoseconds. ``stepscope sql PATH .tables`` lists the tables, ``stepscope sql --examples`` shows useful
        queries. Queries only read. ``rows`` and ``seconds`` limit the answer (default: 1,000,000 rows, 60 seconds); a
        warning says if rows are missing, unless ``quiet`` is set.
        """
        native, cut = self._native.sql(query, rows, seconds)
        if cut and not quiet:
            warnings.warn(
                "the answer was cut after {:,} rows; raise `rows` to get more".format(native.rows),
                StepscopeWarning,
                stacklevel=2,
            )
        return Frame(native)

    def __getattr__(self, name: str) -> Frame:
        if not name.startswith("_") and any(name == view for view, _, _ in _stepscope.views()):
            return self.view(name)
        raise AttributeError("{!r} object has no attribute {!r}".format(type(self).__name__, name))

    def __dir__(self) -> list[str]:
        return sorted(set(super().__dir__()) | {view for view, _, _ in _stepscope.views()})

    # The page.

    def serve(self, port: int | None = None) -> Server:
        """Serves the page for this profile's paths; in a notebook, shows a link to it."""
        if self._asked is None:
            raise _stepscope.Error("the sample has no path to serve; run `stepscope demo --serve` instead")
        paths = self._asked["paths"]
        return serving(paths) or serve(*paths, port=port)

    def _timeline(self) -> str | None:
        server = serving(self._asked["paths"]) if self._asked else None
        return server.timeline(self.session) if server else None

    def _label(self) -> str:
        return " ".join(self._asked["paths"]) if self._asked else "sample"

    def __reduce__(self) -> Any:
        if self._asked is None:
            return demo, ()
        return _reopened, (self._asked,)

    def __repr__(self) -> str:
        events = sum(source["events"] for source in self.sources)
        hosts = "1 host" if len(self.hosts) == 1 else "{} hosts".format(len(self.hosts))
        return "<stepscope.Profile {}: session {}, {}, {:,} events>".format(self._label(), self.session, hosts, events)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return self.report()._repr_mimebundle_(include, exclude)


def _reopened(asked: dict[str, Any]) -> Profile:
    return Profile(_stepscope.Recording.open(asked, None), asked)


def _open_file(path: str, mode: str, encoding: str) -> Any:
    import io

    return io.open(path, mode, encoding=encoding)
