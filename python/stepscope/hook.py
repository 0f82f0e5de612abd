"""Finds the steps of a program that knows nothing of it, and records a window of them.

``stepscope run`` puts this file into the program (``inject/sitecustomize.py``). Three parts, each of which knows only the one
before it:

* ``Loop`` turns events (a batch is fetched, an optimizer has updated, a compiled function is called) into boundaries of steps.
* ``Recorder`` listens to boundaries and opens and closes windows. Anything else that wants to act between two steps listens
  in the same way: ``Loop.listeners``.
* ``patch`` makes events of the frameworks' own calls.

Nothing here may disturb the program: every entry is guarded, problems end in the recording and never on its output, and
outside of a window a step costs a few microseconds. Python 3.8 and later; no dependencies.
"""

import atexit
import json
import os
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time

record = sys.modules.get("_stepscope_record")
memory = sys.modules.get("_stepscope_memory")
if record is None or memory is None:  # imported from the package, as in a notebook
    from . import memory, record

now_ns = time.perf_counter_ns
OWN_FILE = os.path.abspath(__file__)
record._OWN_FILES.update((OWN_FILE, __file__, memory.__file__))  # type: ignore[union-attr]


# --- Steps -----------------------------------------------------------------------------------------------------------


class Loop:
    """Boundaries of steps, from events in the order of time.

    The best source that has spoken counts: batches of Keras; else an optimizer's updates; else backward passes; else calls of
    compiled functions; else fetches alone. Updates, passes and calls are anchors: a step has one of them, and begins with the
    first fetch of its training iterator after the anchor before it, if there is such an iterator.
    """

    SOURCES = ("keras", "update", "backward", "call", "fetch")
    FEW = 3  # events after which a source is believed

    def __init__(self, listeners=()):
        self.listeners = list(listeners)
        self.number = 0  # of the current step
        self.source = None
        self.site = None  # file, function and line of the last boundary's event
        self._anchor = None
        self._counts = {source: {} for source in self.SOURCES}
        self._best = len(self.SOURCES)  # place of the best source that has spoken; fetches have to speak more than once
        self._times = {}  # of calls: site -> ns, without the first two of each
        self._fetched = None  # the last fetch since the last anchor
        self._fetches_before = {}
        self._anchors = 0
        self._waits_for_fetch = False
        self._thread = None
        self._others = {}

    # Called by the patches, before and after what they watch.

    def ours(self, source):
        """Whether this thread runs the loop: the main thread, or another one that has trained for a while."""
        ident = threading.get_ident()
        if self._thread is None:
            if threading.current_thread() is threading.main_thread():
                self._thread = ident
            elif source in ("keras", "update"):
                self._others[ident] = self._others.get(ident, 0) + 1
                if self._others[ident] >= self.FEW:
                    self._thread = ident
        elif ident != self._thread and source in ("keras", "update") and not self._anchors:
            self._others[ident] = self._others.get(ident, 0) + 1
            if self._others[ident] >= self.FEW:
                self._thread = ident
        return ident == self._thread

    def before_fetch(self, key, site):
        """A batch is about to be fetched."""
        self._count("fetch", key)
        source = self._source()
        if source == "fetch":
            if key == self._most("fetch"):
                self._boundary(source, site)
        elif self._waits_for_fetch and key == self._training_iterator():
            self._waits_for_fetch = False
            self._boundary(source, site)
        self._fetched = key

    def anchor(self, source, key, site, lasted=0):
        """An update has happened, or a compiled function is about to be called."""
        self._count(source, key)
        if self._source() != source:
            return
        if source == "call" and not self._is_main_call(key):
            return
        if source != "call" and key != self._most(source):
            return
        self._anchors += 1
        if self._waits_for_fetch:
            # The batch came from an iterator that is not known yet: the step before ended all the same.
            self._boundary(source, site)
        if self._fetched is not None:
            self._fetches_before[self._fetched] = self._fetches_before.get(self._fetched, 0) + 1
        self._fetched = None
        if self._training_iterator() is None:
            # A call begins the step that it is in, an update ends it.
            self._boundary(source, site)
            self._waits_for_fetch = False
        else:
            self._waits_for_fetch = True

    def called(self, key, lasted):
        """A compiled function has returned."""
        count = self._counts["call"].get(key, 0)
        if count > 2:
            self._times[key] = self._times.get(key, 0) + lasted

    def batch_begins(self, site):
        """Keras begins a batch."""
        self._count("keras", "batch")
        self._boundary("keras", site)

    # What follows from the counts.

    def _count(self, source, key):
        counts = self._counts[source]
        count = counts[key] = counts.get(key, 0) + 1
        if source != "fetch" or count > 2 * self.FEW:
            self._best = min(self._best, self.SOURCES.index(source))

    def _source(self):
        return self.SOURCES[self._best] if self._best < len(self.SOURCES) else None

    def ignores(self, source):
        """Whether a better source has spoken, so that events of this one need not be looked at."""
        return self._best < self.SOURCES.index(source)

    def _most(self, source):
        """The key with the most events; of those that are about equal, the first."""
        counts = self._counts[source]
        most = max(counts.values())
        for key, count in counts.items():
            if count >= most - 1:
                return key
        return None

    def _is_main_call(self, key):
        """Whether this is the function that takes most of the time; of several, the first of the cycle."""
        if not self._times:
            return key == next(iter(self._counts["call"]))
        longest = max(self._times, key=self._times.get)
        wanted = self._counts["call"].get(longest, 0)
        for other, count in self._counts["call"].items():
            if abs(count - wanted) <= 1 and other in self._times:
                return key == other
        return key == longest

    def _training_iterator(self):
        """The iterator whose batches most anchors use."""
        before = self._fetches_before
        if not before:
            return None
        key = max(before, key=before.get)
        return key if 2 * before[key] >= self._anchors else None

    def _boundary(self, source, site):
        at = now_ns()
        if source != self.source:
            self.source, self.number = source, 0
            for listener in self.listeners:
                listener.restarted()
        self.site = site
        self.number += 1
        for listener in self.listeners:
            listener.boundary(self.number, at)

    def event(self):
        """Anything else of the loop happened."""
        for listener in self.listeners:
            listener.event()


# --- The window ------------------------------------------------------------------------------------------------------


def rank_of(environment):
    """The rank of this process, the number of ranks, and the name of a task, as launchers set them."""
    for rank, world in (
        ("RANK", "WORLD_SIZE"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("PMI_RANK", "PMI_SIZE"),
        ("JAX_PROCESS_ID", "JAX_NUM_PROCESSES"),
        ("SLURM_PROCID", "SLURM_NTASKS"),
    ):
        try:
            number, count = int(environment[rank]), int(environment[world])
        except (KeyError, ValueError):
            continue
        if count > 1:
            return number, count, None
    return rank_of_task(environment.get("TF_CONFIG"))


def rank_of_task(text):
    """The same from TF_CONFIG; with parameter servers, workers do not step together and have no ranks."""
    try:
        config = json.loads(text)
        cluster, job, number = config["cluster"], config["task"]["type"], int(config["task"]["index"])
        jobs = [(name, len(cluster[name])) for name in ("chief", "master", "worker") if name in cluster]
    except (KeyError, TypeError, ValueError):
        return None
    before = 0
    for name, count in jobs:
        if name == job and number < count and "ps" not in cluster:
            world = sum(count for _, count in jobs)
            return (before + number, world, "{}{}".format(job, number)) if world > 1 else None
        before += count
    return None


class Recorder:
    """Waits for steady steps, records a window of them, and writes it when it closes.

    A first, short window opens early: a script may end after ten steps, or be killed. The window of the steady state replaces
    it. Ranks of one job agree on the first step and the number of steps of each window: by a file, if one `stepscope run`
    started them; else by round numbers, which all ranks arrive at because they step together.
    """

    STEPS, SECONDS, FEWEST = 20, 2.0, 3
    EARLY_FROM, EARLY_STEPS = 3, 8
    WARM_STEPS, WARM_SECONDS, MOST_WARM_STEPS, MOST_WARM_SECONDS = 10, 3.0, 50, 60.0
    SAMPLES = 40
    LONGEST = 90.0  # s, after which one complete step is enough
    KEPT = 100000  # durations of steps
    SHORT, ENOUGH = 0.0025, 2000  # s; steps
    ROUND = 25  # windows of ranks begin at a multiple of this
    LENGTHS = (20, 12, 8, 6)  # windows of ranks have one of these numbers of steps; fewer prove nothing about a late rank

    def __init__(self, folder, loop, options):
        self.folder = folder
        self.loop = loop
        self.into = options.get("into") or folder
        self.once = bool(options.get("once"))  # one window, then the program is left as it was
        self.rank = rank_of(os.environ)
        self.state = "waiting"  # prepared, recording, done
        self.windows = 0
        self.problems = []
        self._reset()
        self._kept, self._unwritten = 0, []  # steps that no profiler slowed down: when each ended, how long it took
        self._said_at = 0.0
        self._begun = time.time()
        self._at_exit = False
        self._written = None
        self._lock = threading.Lock()
        self.memory = memory.Keeper(options.get("memory", True), record._framework_name, self._out_of_memory)

    def _reset(self):
        self._last = None
        self._first_at = None
        self._recent = []
        self._plan = None
        self._unsteady = 0  # steps to leave out after a window

    def is_idle(self):
        """Whether the loop is known and nothing is being recorded."""
        return self.state == "done" and self.loop.site is not None

    # Boundaries.

    def restarted(self):
        """Another source of steps is better than the one before: what was measured so far is of no use."""
        if self.state == "waiting":
            self._reset()
            self.memory.restarted()
            self._kept, self._unwritten = 0, []
            self._say_file("steps", "", "w")

    def boundary(self, number, at):
        try:
            self._boundary(number, at)
        except Exception as error:
            self._give_up(error)

    def event(self):
        """Closes a window whose loop has ended, e.g. before a long evaluation."""
        if self.state == "recording" and self.times:
            waited = (now_ns() - self.times[-1]) / 1e9
            if waited > max(self.SECONDS, 5 * self._pace()) and len(self.times) > self.FEWEST:
                self._guarded_close("loop")

    def _pace(self):
        return statistics.median(self._recent[-10:]) if self._recent else 0.0

    def _boundary(self, number, at):
        self.memory.step_begins(number)
        if self._first_at is None:
            self._first_at = at
            self._register()
        if self.state == "recording":
            self.times.append(at)
            count, lasted = len(self.times) - 1, (at - self.times[0]) / 1e9
            if self._is_complete(count, lasted):
                self._guarded_close("complete")
                self._last, self._unsteady = None, 2
                return
        elif self._last is not None:
            self._measured((at - self._last) / 1e9)
        self._last = at
        if self.state in ("waiting", "prepared"):
            self._advance(number, at)

    def _measured(self, seconds):
        """One step that no profiler slowed down."""
        if self._unsteady > 0:
            self._unsteady -= 1
            return
        self._recent.append(seconds)
        del self._recent[:-64]
        if self._kept < self.KEPT:
            self._kept += 1
            self._unwritten.append((time.time(), seconds))
        if time.monotonic() - self._said_at > 1.0:
            self._say_steps()
            self._leave_short_steps()

    def _leave_short_steps(self):
        """Watching costs some 20 µs per step. Short steps that were timed for long enough are not worth it."""
        if self.state == "done" and self._kept >= self.ENOUGH and self._pace() < self.SHORT:
            detach()

    def _is_complete(self, count, lasted):
        if self.rank is not None:
            return count >= self._plan["steps"]
        if count >= self._plan["steps"] or (lasted >= self.SECONDS and count >= self.FEWEST):
            # On a busy machine the sampling thread gets its turn late: a longer window has enough samples.
            enough = self.log.count() >= self.SAMPLES
            return enough or count >= 3 * self._plan["steps"] or lasted >= 3 * self.SECONDS
        return lasted >= self.LONGEST and count >= 1

    def _advance(self, number, at):
        """Opens a window if it is time to; the step before, its profiler is prepared."""
        if self._plan is None:
            self._plan = self._planned(number, at)
        if self._plan is None:
            return
        start = self._plan["start"]
        if self.state == "waiting" and number >= start - 1:
            self._prepare()
        if self.state == "prepared" and number >= start:
            self._open(number, at)

    def _planned(self, number, at):
        """The next window, once it is known: its first step and its number of steps."""
        agreed = self._agreed(None) if self.rank is not None else None
        if agreed is not None:
            return agreed
        early = self.windows == 0
        if early:
            # One step for the preparation.
            if number < self.EARLY_FROM - 1:
                return None
            steps = self.EARLY_STEPS
        else:
            if not self._is_steady(at):
                return None
            steps = self.STEPS
        pace = self._pace()
        if pace > 0:
            steps = max(self.FEWEST, min(steps, int(self.SECONDS / pace)))
        start = number + 1
        if self.rank is not None:
            steps = next((length for length in self.LENGTHS if length <= steps), self.LENGTHS[-1])
            # The first window begins as soon as all can have read the plan.
            start = number + 2 if early else (number + 1 + self.ROUND) // self.ROUND * self.ROUND
        plan = {
            "start": start,
            "steps": steps,
            "early": early,
            "session": time.strftime("%Y_%m_%d_%H_%M_%S"),
        }
        return self._agreed(plan) if self.rank is not None else plan

    def _is_steady(self, at):
        recent = self._recent
        elapsed = (at - self._first_at) / 1e9
        if len(recent) >= self.MOST_WARM_STEPS or elapsed >= self.MOST_WARM_SECONDS:
            return True
        if len(recent) < self.WARM_STEPS or elapsed < self.WARM_SECONDS:
            return False
        before, after = statistics.median(recent[-10:-5]), statistics.median(recent[-5:])
        return abs(after - before) <= 0.1 * before

    def _agreed(self, plan):
        """The plan that the first rank with one has written for this window, or this one."""
        path = os.path.join(self.folder, "window.{}.{}.json".format(os.environ.get("MASTER_PORT", 0), self.windows))
        if plan is not None:
            part = "{}.{}".format(path, os.getpid())
            with open(part, "w") as file:
                json.dump(plan, file)
            try:
                os.link(part, path)
            except FileExistsError:
                pass
            os.remove(part)
        try:
            with open(path) as file:
                return json.load(file)
        except (OSError, ValueError):
            return None

    # The profiler.

    def _prepare(self):
        self._framework = record._framework()
        if self._framework is None:
            raise RuntimeError("no framework with a profiler")
        quietly(lambda: self._framework.prepare(False))
        self.state = "prepared"

    def _open(self, number, at, thread=None):
        self._part = os.path.join(self.into, ".part.{}.{}".format(os.getpid(), self.windows))
        self._say("recording")
        self.memory.window_begins()
        if thread is None:
            self._finish_work()
        quietly(lambda: self._framework.start(self._part, False))
        self.log = record._HostLog(self._expected())
        if thread is not None:
            self.log.loop = thread
            self.log.own.add(threading.get_ident())
        self.log.start()
        self.log.mark_clock(self._framework)
        if not self._at_exit:
            # Later than the frameworks, so that it runs before they are taken down.
            self._at_exit = True
            atexit.register(self.exit)
        self.state, self.first = "recording", number
        self.times = [now_ns()]

    def _expected(self):
        """How long the window will be, in seconds."""
        steps = self._plan.get("steps")
        return min(steps * self._pace(), self.SECONDS) if steps else self.SECONDS

    def _finish_work(self):
        """Waits for devices that run behind the loop; graphs of TensorFlow 1 cannot be asked."""
        try:
            self._framework.finish_work()
        except Exception:
            pass

    def _guarded_close(self, why):
        try:
            self._close(why)
        except Exception as error:
            self._give_up(error)

    def _close(self, why):
        """Writes the window. The profile gets its place when it is complete."""
        self.state = "writing"
        plan, self._plan = self._plan, None
        framework = self._framework
        if why != "time":
            self._finish_work()
        self.log.mark_clock(framework)
        self.log.stop()
        quietly(lambda: framework.stop(self._part, None))
        self.windows += 1
        steps = len(self.times) - 1
        # A few steps before the end are no better than the early window.
        kept = steps >= (1 if self._written is None else self.FEWEST) or why == "time"
        if kept:
            self._keep(plan, why, max(steps, 0))
        shutil.rmtree(self._part, ignore_errors=True)
        self.state = "waiting" if self._wants_another(plan, why) else "done"
        self._say("recorded" if kept else "empty")
        self.log = None
        if self.once and self.state == "done":
            self._say("done")
            detach()

    # Windows without steps.

    def record_for(self, seconds):
        """Records so many seconds from another thread: nothing shows where the steps of this loop are."""
        try:
            with self._lock:
                if self.state != "waiting" or self.windows:
                    return
                self.state = "timed"
            self._plan = {"early": False, "session": time.strftime("%Y_%m_%d_%H_%M_%S")}
            self._prepare()
            self._open(0, now_ns(), main_thread())
            self.state = "timed"
            self.times = []
            time.sleep(seconds)
            self._end_timed()
        except Exception as error:
            self._give_up(error)

    def _end_timed(self):
        with self._lock:
            if self.state != "timed":
                return
            self.state = "writing"
        self._close("time")

    def _wants_another(self, plan, why):
        if why == "time":
            return not self.once
        if why != "complete":
            return False
        steps = [after - before for before, after in zip(self.times, self.times[1:])]
        if not plan["early"]:
            return False
        # Long steps that agree with one another are as good as any later ones.
        middle = statistics.median(steps)
        agree = all(abs(step - middle) <= 0.1 * middle for step in steps)
        return not (middle >= 1e9 and len(steps) >= self.FEWEST and agree)

    def _keep(self, plan, why, steps):
        profiles = record._profiles_in(self._part)
        place, name = self._place(plan["session"])
        while self.rank is None and place != self._written and os.path.exists(place):
            place += "_"  # two windows within a second
        os.makedirs(place, exist_ok=True)
        document = self.log.document()
        origin = self.log.clock[0][1]
        document.update(
            framework=self._framework.name,
            versions=versions(),
            rank=self.rank and self.rank[0],
            world=self.rank and self.rank[1],
            task=self.rank and self.rank[2],
            window={"first_step": self.first, "steps": steps, "early": plan["early"], "ended_by": why},
            steps=None if why == "time" else {
                "source": self.loop.source,
                "loop": self.loop.site and {
                    "file": record._shown(self.loop.site[0]),
                    "function": self.loop.site[1],
                    "line": self.loop.site[2],
                },
                "times": [at - origin for at in self.times],
            },
            problems=self.problems,
        )
        devices = self.memory.devices()
        if devices:
            document["memory"] = devices
        if profiles:
            file = os.path.basename(profiles[-1])
            ending = next(ending for ending in record._PROFILE_ENDINGS if file.endswith(ending))
            # The name of PyTorch's files has a time in it.
            stamp = ".{}".format(time.time_ns() // 1000000) if "trace.json" in ending else ""
            self._forget_profiles(place, name)
            shutil.move(profiles[-1], os.path.join(place, name + stamp + ending))
        record._write_json(os.path.join(place, name + ".host.json"), document)
        self.memory.window_ends(place, name, why == "complete")
        if self._written is not None and self._written != place:
            self._forget(self._written, name)
        self._written = place

    def _place(self, session):
        """The folder of a session, and how this process' files in it begin."""
        name = socket.gethostname()
        if self.rank is not None:
            number, _, task = self.rank
            name = task or "{}.rank{}".format(name, number)
        else:
            session = "{}_{}".format(session, os.getpid())
        return os.path.join(self.into, "plugins", "profile", session), name

    def _out_of_memory(self):
        """A device has no memory left: what holds it is saved beside the last window, or alone."""
        place, name = self._place(time.strftime("%Y_%m_%d_%H_%M_%S"))
        place = self._written or place
        if self.memory.save_failure(place, name):
            self._written = place
            self._say(self.state)

    def _forget_profiles(self, place, name):
        """Removes the profile of the early window, if both windows ended within one second."""
        for file in os.listdir(place):
            if file.startswith(name + ".") and file.endswith(record._PROFILE_ENDINGS):
                os.remove(os.path.join(place, file))

    def _forget(self, place, name):
        """Removes the early window of this process; other ranks remove their own."""
        for file in os.listdir(place):
            if file.startswith(name + "."):
                os.remove(os.path.join(place, file))
        try:
            os.rmdir(place)
        except OSError:
            pass

    def _give_up(self, error):
        if self.state == "recording":
            try:
                self.log.stop()
                self._framework.stop(self._part, None)
            except Exception:
                pass
            shutil.rmtree(self._part, ignore_errors=True)
        self.state = "done"
        self.problems.append("{}: {}".format(type(error).__name__, error))
        try:
            self._say("failed")
        except Exception:
            pass

    def exit(self):
        """The program ends, by itself or by an exception."""
        self.memory.exit()
        if self.state == "recording":
            self._guarded_close("exit")
        elif self.state == "timed":
            try:
                self._end_timed()
            except Exception as error:
                self._give_up(error)
        elif self.state == "prepared":
            try:
                self._framework.unprepare()
            except Exception:
                pass
        try:
            self._say_steps()
        except Exception:
            pass

    def again(self):
        """Ends what is open, and waits for the next loop: a notebook has several. Returns the recording, if there is one."""
        self.exit()
        written, self._written = self._written, None
        if self.state == "done":
            self.state = "waiting"
        self._reset()
        self.windows, self.problems = 0, []
        self.loop.__init__(self.loop.listeners)
        return written

    def forked(self):
        """This is a child now: windows and buffers are the parent's."""
        self.state = "waiting" if self.state not in ("recording", "timed") else "done"
        self._reset()
        self._kept, self._unwritten, self.windows, self._written = 0, [], 0, None
        self._at_exit = False
        self.loop.__init__([self] if self in self.loop.listeners else [])
        atexit.unregister(self.exit)
        del record._listening[:]

    # What `stepscope run` reads while and after the program runs.

    def _register(self):
        if not self._at_exit:
            self._at_exit = True
            atexit.register(self.exit)
        self._say("waiting")

    def _say(self, state):
        document = {
            "state": state,
            "pid": os.getpid(),
            "rank": self.rank and self.rank[0],
            "framework": record._framework_name(),
            "source": self.loop.source,
            "steps": self.loop.number,
            "session": self._written,
            "problems": self.problems,
        }
        record._write_json(os.path.join(self.folder, "state.{}".format(os.getpid())), document)

    def _say_steps(self):
        self._said_at = time.monotonic()
        if self._unwritten:
            text = "".join("{:.6f} {:.9f}\n".format(at, seconds) for at, seconds in self._unwritten)
            self._unwritten = []
            self._say_file("steps", text, "a")
        self._say(self.state)

    def _say_file(self, name, text, mode):
        with open(os.path.join(self.folder, "{}.{}".format(name, os.getpid())), mode) as file:
            file.write(text)


class Turns:
    """Lets this program and another one take turns in short windows of steps, for ``stepscope gate --paired``.

    A program that reports its steps by itself is left alone: it knows better.
    """

    MODULES = ("stepscope_turns", "stepscope.turns")

    def __init__(self, turns, loop):
        self._turns, self._loop = turns, loop

    def restarted(self):
        pass

    def event(self):
        pass

    def boundary(self, number, at):
        if any(name in sys.modules for name in self.MODULES):
            self._loop.listeners = [listener for listener in self._loop.listeners if listener is not self]
            return
        self._turns.boundary(self._finish)

    def _finish(self):
        framework = record._framework()
        if framework is not None:
            framework.finish_work()


#: What profilers print when they start and end, in lower case.
CHATTER = (b"session_manager.cc", b"save_profile.cc", b"profiler_session", b"profiler session", b"syncactivityprofilerhandler", b"deviceproperties.cpp", b"kineto", b"cupti")


def quietly(call):
    """Runs a call of a profiler without the lines that it prints; what others print meanwhile is kept."""
    try:
        sys.stderr.flush()
        kept = os.dup(2)
        aside = tempfile.TemporaryFile(dir=_recorder.folder)
        os.dup2(aside.fileno(), 2)
    except Exception:
        return call()
    try:
        return call()
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        aside.seek(0)
        lines = [line for line in aside.read().splitlines(True) if not any(word in line.lower() for word in CHATTER)]
        if lines:
            os.write(2, b"".join(lines))
        aside.close()


def versions():
    """Versions of the frameworks that the program has imported."""
    found = {}
    for name in ("torch", "tensorflow", "jax", "keras", "lightning", "transformers", "accelerate", "numpy"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(version, str):
            found[name] = version
    return found


# --- Patches ---------------------------------------------------------------------------------------------------------

_loop = None
_recorder = None
_inside = threading.local()
_undo: list = []  # how to take each patch back


def begin(folder):
    """Starts to listen; once per process."""
    global _loop, _recorder
    options = {}
    try:
        with open(os.path.join(folder, "options.json")) as file:
            options = json.load(file)
    except (OSError, ValueError):
        pass
    _loop = Loop()
    _recorder = Recorder(folder, _loop, options)
    turns = sys.modules.get("_stepscope_turns") if os.environ.get("STEPSCOPE_TURNS") else None
    _loop.listeners.append(_recorder if turns is None else Turns(turns, _loop))
    os.register_at_fork(after_in_child=_recorder.forked)
    return _recorder


def attach(folder, patience=None, seconds=2.0):
    """Starts to listen in a program that runs already. If it shows no steps for so long, a few seconds are recorded."""
    recorder = begin(folder)
    for name, _ in PATCHES:
        module = sys.modules.get(name)
        if module is not None:
            guarded(patch, name, module)
    guarded(patch_jitted)
    if patience is not None:
        arm(patience, seconds)
    return recorder


def detach():
    """Takes back all patches; who kept a patched object keeps it, and it does nothing any more."""
    if _loop is not None:
        _loop.listeners = []
    while _undo:
        try:
            _undo.pop()()
        except Exception:
            pass


def put(owner, name, value):
    """Replaces a member of a module or of a class."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    _undo.append(lambda: setattr(owner, name, before))


def main_thread():
    return threading.main_thread().ident


def arm(patience, seconds):
    """Records some seconds if no steps have shown by then; returns what cancels that."""

    before = _loop.number

    def late():
        if _loop.number == before:
            _recorder.record_for(seconds)

    timer = threading.Timer(patience, late)
    timer.daemon = True
    timer.start()
    return timer


def caller():
    """File, function and line of the program's own code that is being run."""
    frame = sys._getframe(0)
    for _ in range(128):
        if frame is None:
            return None
        code = frame.f_code
        if record._is_user_file(code.co_filename):
            return (code.co_filename, code.co_name, frame.f_lineno)
        frame = frame.f_back
    return None


def patch(name, module):
    """Patches a module that has just been loaded. What is missing in this version is left alone."""
    for wanted, apply in PATCHES:
        if wanted == name:
            apply(module)


def guarded(call, *arguments):
    """Calls something of ours in the midst of the program; the first problem is the last one."""
    try:
        return call(*arguments)
    except Exception as error:
        _recorder.problems.append("{}: {}".format(type(error).__name__, error))
        detach()
        return None


def fetches(owner, key_of):
    """Makes ``__next__`` of an iterator's class say that a batch is fetched."""
    original = owner.__next__

    def said(self):
        if not _loop.ours("fetch"):
            return
        site = caller()
        _loop.before_fetch((key_of(self), site and site[0], site and site[2]), site)
        _loop.event()

    def __next__(self):
        if getattr(_inside, "fetch", False):
            return original(self)
        _inside.fetch = True
        try:
            guarded(said, self)
            return original(self)
        finally:
            _inside.fetch = False

    __next__.__wrapped__ = original
    put(owner, "__next__", __next__)


def kind_of(dataset):
    try:
        return (type(dataset).__name__, len(dataset))
    except Exception:  # an iterable dataset has no length
        return (type(dataset).__name__, None)


def patch_torch_loader(module):
    # Trainers fetch all batches from one line of the program, so that the line alone does not tell training from validation.
    # A dataset may be made anew for each epoch, so it is known by its kind and length.
    fetches(module._BaseDataLoaderIter, lambda iterator: kind_of(getattr(iterator, "_dataset", None)))


def patch_torch_cuda(module):
    _recorder.memory.watch_torch(module)


def patch_torch_optimizer(module):
    def after_step(optimizer, arguments, keywords):
        if _loop.ours("update"):
            guarded(lambda: _loop.anchor("update", id(optimizer), _loop.site if _recorder.is_idle() else caller()))

    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register is not None:
        handle = register(after_step)
        if hasattr(handle, "remove"):
            _undo.append(handle.remove)
        return
    original = module.Optimizer.profile_hook_step

    def profile_hook_step(step):
        wrapped = original(step)

        def stepped(self, *arguments, **keywords):
            result = wrapped(self, *arguments, **keywords)
            after_step(self, arguments, keywords)
            return result

        stepped.hooked = getattr(wrapped, "hooked", True)
        return stepped

    put(module.Optimizer, "profile_hook_step", staticmethod(profile_hook_step))


def patch_torch_autograd(module):
    original = module.backward

    def backward(*arguments, **keywords):
        result = original(*arguments, **keywords)
        if not _loop.ignores("backward") and _loop.ours("backward"):
            site = guarded(caller)
            guarded(_loop.anchor, "backward", site and (site[0], site[2]), site)
        return result

    backward.__wrapped__ = original
    backward.__doc__ = original.__doc__
    put(module, "backward", backward)


def patch_tf_iterator(module):
    fetches(module.OwnedIterator, lambda iterator: "tf")


def patch_tf_numpy_iterator(module):
    for name in ("NumpyIterator", "_NumpyIterator"):
        if hasattr(module, name):
            fetches(getattr(module, name), lambda iterator: "tf")


#: Seconds. Compiling may take as long; steps that come later replace what was recorded then.
LONG_CALL = 20.0
#: Only the first calls may be the only ones.
MOST_ARMED = 4
_armed: list = []


def arm_call():
    _armed.append(None)
    return arm(LONG_CALL, Recorder.SECONDS)


def timed_call(original, key_of):
    """A method that says that a compiled function is called; only the outermost call counts."""

    def __call__(self, *arguments, **keywords):
        if getattr(_inside, "call", False) or not _loop.ours("call"):
            return original(self, *arguments, **keywords)
        if _loop.ignores("call"):
            result = original(self, *arguments, **keywords)
            _loop.event()
            return result
        _inside.call = True
        try:
            site = guarded(caller)
            key = (key_of(self), site and site[0], site and site[2])
            guarded(_loop.anchor, "call", key, site)
            # A loop inside of a compiled function is one long call, which shows no steps.
            timer = guarded(arm_call) if len(_armed) < MOST_ARMED else None
            begun = now_ns()
            try:
                result = original(self, *arguments, **keywords)
            finally:
                if timer is not None:
                    timer.cancel()
            _loop.called(key, now_ns() - begun)
            _loop.event()
            return result
        finally:
            _inside.call = False

    __call__.__wrapped__ = original
    return __call__


def patch_tf_function(module):
    put(module.Function, "__call__", timed_call(module.Function.__call__, id))


def patch_tf_session(module):
    put(module.BaseSession, "run", timed_call(module.BaseSession.run, lambda session: "run"))


def patch_keras(module):
    owner = getattr(module, "CallbackList", None)
    original = getattr(owner, "on_train_batch_begin", None)
    if original is None or hasattr(original, "__wrapped__"):
        return

    def on_train_batch_begin(self, *arguments, **keywords):
        if _loop.ours("keras"):
            guarded(lambda: _loop.batch_begins(caller()))
        return original(self, *arguments, **keywords)

    on_train_batch_begin.__wrapped__ = original
    put(owner, "on_train_batch_begin", on_train_batch_begin)


class Jitted:
    """A compiled function of JAX that says when it is called."""

    def __init__(self, function):
        self.__wrapped__ = function
        for name in ("__name__", "__qualname__", "__doc__", "__module__"):
            try:
                setattr(self, name, getattr(function, name))
            except Exception:
                pass

    def __call__(self, *arguments, **keywords):
        return _call_jitted(self, *arguments, **keywords)

    def __get__(self, instance, owner=None):
        return self if instance is None else _Bound(self, instance)

    def __getattr__(self, name):
        return getattr(self.__wrapped__, name)

    def __repr__(self):
        return repr(self.__wrapped__)

    def __reduce__(self):
        return (_unpickled, (self.__wrapped__,))


def _unpickled(function):
    return function


class _Bound:
    """The same, bound to an object."""

    def __init__(self, jitted, instance):
        self.__wrapped__ = jitted.__wrapped__.__get__(instance, type(instance))
        self._jitted, self._instance = jitted, instance

    def __call__(self, *arguments, **keywords):
        return self._jitted(self._instance, *arguments, **keywords)

    def __getattr__(self, name):
        return getattr(self.__wrapped__, name)


def _plain_call(self, *arguments, **keywords):
    return self.__wrapped__(*arguments, **keywords)


_call_jitted = timed_call(_plain_call, id)


def patch_jax(module):
    original = module.jit

    def jit(*arguments, **keywords):
        made = original(*arguments, **keywords)
        # Without a function it is a decorator, which is given the function later.
        if not hasattr(made, "lower"):
            return (lambda function: Jitted(made(function))) if callable(made) else made
        return Jitted(made)

    jit.__wrapped__ = original
    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(jit, name, getattr(original, name))
    put(module, "jit", jit)


def patch_jitted():
    """Compiled functions of JAX that the program made before: those that its own modules have by name."""
    if "jax" not in sys.modules:
        return
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if module is not sys.modules.get("__main__") and not (isinstance(file, str) and record._is_user_file(file)):
            continue
        for name, value in list(vars(module).items()):
            if type(value).__name__ == "PjitFunction":
                put(module, name, Jitted(value))


PATCHES = (
    ("torch.cuda", patch_torch_cuda),
    ("torch.utils.data.dataloader", patch_torch_loader),
    ("torch.optim.optimizer", patch_torch_optimizer),
    ("torch.autograd", patch_torch_autograd),
    ("tensorflow.python.data.ops.iterator_ops", patch_tf_iterator),
    ("tensorflow.python.data.ops.dataset_ops", patch_tf_numpy_iterator),
    ("tensorflow.python.eager.polymorphic_function.polymorphic_function", patch_tf_function),
    ("tensorflow.python.client.session", patch_tf_session),
    ("keras.src.callbacks.callback_list", patch_keras),
    ("keras.src.callbacks", patch_keras),
    ("tf_keras.src.callbacks", patch_keras),
    ("keras.callbacks", patch_keras),
    ("jax", patch_jax),
)
