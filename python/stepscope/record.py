"""Records a steady-state window of a training loop, with step markers and named phases.

Part of the package ``stepscope``, and usable without it: the file has no dependencies, so you can also copy it next to
your training script as ``stepscope.py``. It imports no framework; it uses the one that your program has already imported
(TensorFlow, Keras 3, JAX or PyTorch). It never breaks training: any problem with the
profiler becomes a warning, and the loop continues.

    import stepscope

    with stepscope.window("logs", warmup=10, steps=20) as w:
        for batch in w.wrap(dataset):
            train_step(batch)

If the loop is not a ``for`` over batches, call ``w.step()`` at the end of each iteration. With Keras, use
``model.fit(..., callbacks=[stepscope.KerasCallback("logs", warmup=10, steps=20)])``.

Ten steps run unprofiled, so that tracing, compiling and cold caches are over. The next twenty are recorded. Then the
profile is written below ``logs``, and ``stepscope report logs`` explains why the step is slow.

``stepscope.step(i)`` and ``stepscope.mark("input")`` only annotate steps and their phases, for programs that are
recorded from outside with ``stepscope capture``.
"""

import atexit
import contextlib
import gc
import gzip
import json
import os
import socket
import sys
import threading
import time
import warnings

__all__ = ["KerasCallback", "mark", "step", "window"]
__version__ = "0.1.0"

#: Phases that the analysis knows; any other name is kept as a plain annotation.
PHASES = ("input", "output", "python", "compute", "sync")


class StepscopeWarning(UserWarning):
    """The profile is not as requested; training is not affected."""


def _warn(text):
    try:
        warnings.warn("stepscope: " + text, StepscopeWarning, stacklevel=4)
    except StepscopeWarning as warning:  # where warnings are errors, this one still must not break training
        print(warning, file=sys.stderr)


# --- The frameworks: how each records, and how each marks -----------------------------------------------------------


class _TensorFlow:
    name = "tensorflow"

    def __init__(self, module):
        self._profiler = module.profiler.experimental
        self._test = getattr(module, "test", None)

    def prepare(self, python):
        pass

    def start(self, logdir, python):
        options = self._profiler.ProfilerOptions(
            host_tracer_level=2, python_tracer_level=int(python), device_tracer_level=1
        )
        self._profiler.start(logdir, options=options)

    def finish_work(self):
        """Waits for devices that run behind the loop."""
        sync = getattr(getattr(self._test, "experimental", None), "sync_devices", None)
        if sync is not None:
            sync()

    def stop(self, logdir, unfinished):
        self._profiler.stop()

    def unprepare(self):
        pass

    def step(self, name, number):
        return self._profiler.Trace(name, step_num=number, _r=1)

    def mark(self, name):
        return self._profiler.Trace(name)


class _Jax:
    name = "jax"

    def __init__(self, module):
        self._jax = module
        self._profiler = module.profiler

    def prepare(self, python):
        pass

    def start(self, logdir, python):
        options = getattr(self._profiler, "ProfileOptions", None)
        if options is None:  # before 0.4.36 every Python call was recorded
            self._profiler.start_trace(logdir)
            return
        options = options()
        options.python_tracer_level = int(python)
        options.host_tracer_level = 2
        self._profiler.start_trace(logdir, profiler_options=options)

    def finish_work(self):
        """Calls return before their work is done. Without waiting, the work of the last steps would be cut off."""
        for array in self._jax.live_arrays():
            if not array.is_deleted():
                array.block_until_ready()

    def stop(self, logdir, unfinished):
        self._profiler.stop_trace()

    def unprepare(self):
        pass

    def step(self, name, number):
        return self._profiler.StepTraceAnnotation(name, step_num=number)

    def mark(self, name):
        return self._profiler.TraceAnnotation(name)


class _Torch:
    name = "torch"

    def __init__(self, module):
        self._torch = module
        self._profile = None

    def prepare(self, python):
        """Runs one step ahead, because the first event that PyTorch's profiler records is slow."""
        profiler = self._torch.profiler
        activities = [profiler.ProfilerActivity.CPU]
        if self._torch.cuda.is_available():
            activities.append(profiler.ProfilerActivity.CUDA)
        self._profile = profiler.profile(activities=activities, with_stack=bool(python))
        self._profile.prepare_trace()

    def start(self, logdir, python):
        self._profile.start_trace()

    def finish_work(self):
        if self._torch.cuda.is_available() and self._torch.cuda.is_initialized():
            self._torch.cuda.synchronize()

    def stop(self, logdir, unfinished):
        profile, self._profile = self._profile, None
        profile.stop_trace()
        os.makedirs(logdir, exist_ok=True)
        name = "{}_{}.{}.pt.trace.json.gz".format(socket.gethostname(), os.getpid(), time.time_ns() // 1000000)
        part = os.path.join(logdir, ".part." + name)
        try:
            profile.export_chrome_trace(part)
            if unfinished is not None:
                self._drop(part, "ProfilerStep#{}".format(unfinished))
            os.replace(part, os.path.join(logdir, name))
        finally:
            with contextlib.suppress(OSError):
                os.remove(part)

    def _drop(self, path, name):
        """PyTorch also writes unfinished events when the profiler stops; half a step would count as a whole one."""
        with gzip.open(path, "rt") as file:
            trace = json.load(file)
        trace["traceEvents"] = [event for event in trace["traceEvents"] if event.get("name") != name]
        with gzip.open(path, "wt") as file:
            json.dump(trace, file)

    def unprepare(self):
        # A prepared profiler can only be stopped after it was started.
        profile, self._profile = self._profile, None
        profile.start_trace()
        profile.stop_trace()

    def step(self, name, number):
        # The only step name that PyTorch's own tools recognise.
        return self._torch.profiler.record_function("ProfilerStep#{}".format(number))

    def mark(self, name):
        return self._torch.profiler.record_function(name)


_FRAMEWORKS = {"tensorflow": _TensorFlow, "jax": _Jax, "torch": _Torch}


def _keras_backend():
    keras = sys.modules.get("keras")
    try:
        return keras.config.backend()
    except Exception:  # no Keras, Keras 2, or one that is half imported
        return None


def _framework_name():
    """The framework in use: Keras' backend, else JAX or PyTorch, even beside TensorFlow, which then loads data."""
    loaded = [name for name in ("jax", "torch", "tensorflow") if name in sys.modules]
    backend = _keras_backend()
    if backend in loaded:
        return backend
    return loaded[0] if loaded else None


_cache = {}  # type: dict


def _framework(name=None):
    """The framework to use, or None; never raises."""
    name = name or _framework_name()
    module = sys.modules.get(name) if name else None
    if module is None or name not in _FRAMEWORKS:
        return None
    known = _cache.get(name)
    if known is None or known[0] is not module:
        try:
            known = (module, _FRAMEWORKS[name](module))
        except Exception:  # a module of that name without a profiler
            return None
        _cache[name] = known
    return known[1]


# --- What a framework's profiler does not see ----------------------------------------------------------------------


_LIBRARY_PARTS = ("/site-packages/", "/dist-packages/", "/lib/python", "/lib64/python", "<frozen", "<string>", "<__array_function__")
_NOTEBOOK_PARTS = ("/ipykernel_", "<ipython-input")
_kinds = {}  # type: dict
_OWN_FILES = {__file__, os.path.abspath(__file__)}


def _is_user_file(file):
    """Whether a file is the program's own, and not a library's, Python's or this one."""
    known = _kinds.get(file)
    if known is None:
        if any(part in file for part in _NOTEBOOK_PARTS) or file == "<stdin>":
            known = True
        elif file == "<string>":
            known = sys.argv[:1] == ["-c"]
        else:
            library = file.startswith("<") or any(part in file for part in _LIBRARY_PARTS)
            known = not library and file not in _OWN_FILES and not file.startswith(_PYTHON_FOLDERS)
        _kinds[file] = known
    return known


def _python_folders():
    folders = {os.path.dirname(os.__file__)}
    for part in ("", "site-packages"):
        folders.add(os.path.join(os.path.dirname(os.__file__), part))
    return tuple(folder.rstrip("/") + "/" for folder in folders)


_PYTHON_FOLDERS = _python_folders()
_listening: list = []  # the log of the open window; an audit hook cannot be removed


def _heard(event, arguments):
    if not _listening:
        return
    try:
        if event == "open":
            _listening[0]._opened(arguments)
        elif event == "subprocess.Popen":
            _listening[0]._started(arguments)
    except Exception:
        pass


class _Lock:
    """How long the loop's thread waits for the interpreter lock, from one sample to the next.

    Since the last sample, the loop's thread slept for some time (the kernel counts what a thread runs, and what it waits for a
    processor), and other threads ran Python. What is common to both was waited for the lock, unless the loop's thread now sleeps
    for another reason: the kernel knows the address that a thread sleeps on. The address of the lock is learnt from a thread of
    our own that does nothing but want it, once other threads run Python.
    """

    _FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "ppc64le": 221}
    #: The lock's condition variable; its parts have addresses of their own.
    _SIZE = 64
    #: Threads that are looked at, and samples for which a thread counts as running after it has moved.
    _MOST, _RECENT = 8, 25

    def __init__(self, own):
        self._own = own  # threads that are not the program's
        self._codes = {}  # code: bytes of its instructions
        self._places = {}  # thread: where it stood
        self._moved = {}  # thread: samples that it still counts as running
        self._address = None
        self._tries = 20
        self._files = {}  # thread and name: open file
        self._ran = {}  # thread: ns that it has run, and waited for a processor
        self._read = None
        try:
            import opcode

            names = opcode.opname
        except Exception:
            names = []
        starts = ("RESUME", "JUMP_BACKWARD", "JUMP_ABSOLUTE", "POP_JUMP_BACKWARD")
        self._waits = frozenset(number for number, name in enumerate(names) if name.startswith(starts))
        self._on = getattr(sys, "_is_gil_enabled", lambda: True)()

    def waited(self, loop, frames, gap):
        """How many of the last nanoseconds the loop waited, and for which threads; frames by thread."""
        if not self._on or loop not in frames:
            return 0, ()
        running = [ident for ident, frame in frames.items() if ident != loop and self._runs(ident, frame)]
        if not running:
            return 0, ()
        if self._address is None and self._tries > 0:
            # This gives the lock up, so that the next sample is the first that can be trusted.
            self._tries -= 1
            self._learn()
        asleep = self._since(loop, gap, False)
        held = {ident: self._since(ident, gap, True) for ident in running[: self._MOST]}
        if not self._is_sure(frames[loop]):
            at = self._sleeps_on(loop)
            if at is not None and (self._address is None or abs(at - self._address) >= self._SIZE):
                return 0, ()
        holders = sorted((ident for ident in held if held[ident] > 0), key=held.get, reverse=True)
        return max(0, min(asleep, sum(held.values()), gap)), holders

    def _runs(self, ident, frame):
        place = (id(frame), frame.f_lasti)
        if self._places.get(ident, place) != place:
            self._moved[ident] = self._RECENT
        self._places[ident] = place
        self._moved[ident] = left = self._moved.get(ident, 0) - 1
        return left >= 0 or self._is_sure(frame)

    def _since(self, ident, gap, ran):
        """Nanoseconds that a thread ran, or slept, since this was last asked."""
        words = self._words(ident, "schedstat")
        if words is None:
            return 0
        now = (int(words[0]), int(words[1]))
        before = self._ran.get(ident)
        self._ran[ident] = now
        if before is None:
            return 0
        busy, queued = now[0] - before[0], now[1] - before[1]
        return busy if ran else gap - busy - queued

    def _is_sure(self, frame):
        code = frame.f_code
        instructions = self._codes.get(code)
        if instructions is None:
            instructions = self._codes[code] = code.co_code
        at = frame.f_lasti
        return 0 <= at < len(instructions) and instructions[at] in self._waits

    def _learn(self):
        ended = []

        def spin():
            self._own.add(threading.get_ident())
            while not ended:
                pass

        thread = threading.Thread(target=spin, name="stepscope-lock", daemon=True)
        thread.start()
        try:
            for _ in range(6):
                time.sleep(0.0002)
                frame = sys._current_frames().get(thread.ident)
                if frame is not None and frame.f_code is spin.__code__ and self._is_sure(frame):
                    self._address = self._sleeps_on(thread.ident) or None
                del frame
                if self._address is not None:
                    break
        finally:
            ended.append(True)
            thread.join(1.0)

    def _sleeps_on(self, ident):
        """What a thread sleeps on: an address, 0 for anything but a lock, ``None`` if it does not sleep."""
        words = self._words(ident, "syscall")
        if words is None or words[0] == b"running":
            return None
        return int(words[1], 16) if len(words) > 1 and words[0] == self._futex else 0

    def _words(self, ident, name):
        """What the kernel says of a thread. Must not give the lock up meanwhile, or the answer would change."""
        try:
            if self._read is None:
                import ctypes
                import platform

                self._futex = str(self._FUTEX[platform.machine()]).encode()
                self._buffer = ctypes.create_string_buffer(256)
                self._read = ctypes.PyDLL(None).pread
                self._read.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_longlong)
            file = self._files.get((ident, name))
            if file is None:
                native = getattr(threading._active.get(ident), "native_id", None)
                # Opening gives the lock up: the next sample reads.
                path = "/proc/self/task/{}/{}".format(native, name)
                self._files[(ident, name)] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                return None
            size = self._read(file, self._buffer, 255, 0)
            return self._buffer.raw[: max(size, 0)].split() or None
        except Exception:  # no such file on this system, or it may not be read
            self._on = False
            return None

    def close(self):
        for file in self._files.values():
            with contextlib.suppress(OSError):
                os.close(file)
        self._files = {}


class _HostLog:
    """Python samples, pauses of the garbage collector, opened files and started children, while a window is open.

    A sample counts for the time since the sample before it: the sampling thread gets the interpreter lock late while
    other threads run Python, so that mere counts would favour everything that gives the lock up.
    """

    #: Seconds from one sample to the next: short windows need many, and each sample costs the loop some 0.1 ms.
    PERIOD, LONGEST_PERIOD, ENOUGH = 0.004, 0.010, 100
    #: Python code must give the lock up this soon, or all samples would fall into the calls that give it up themselves.
    SWITCH_INTERVAL = 0.0005
    DEPTH = 192
    MOST = 100000  # samples
    MOST_FILES = 2000
    _hook_added = False

    def __init__(self, expected=None):
        """``expected``: how many seconds the window will have, if that is known."""
        self.period = min(max(self.PERIOD, (expected or 0.0) / self.ENOUGH), max(self.PERIOD, self.LONGEST_PERIOD))
        self.threads = {}  # ident: [samples]
        self.names = {}  # ident: (native id, name)
        self.sites = {}
        self.stacks = {}
        self.pauses = []
        self.opens = []
        self.children = []
        self.lock_waits = []
        self.lost = 0
        self.own = set()  # threads that are not the program's
        self.clock = []
        self._paused_at = None
        self._stop = threading.Event()
        self._thread = None
        self._interval = sys.getswitchinterval()
        self._chains = {}
        self._count = 0
        self._lock = _Lock(self.own)
        self.loop = threading.get_ident()

    def now(self):
        return time.perf_counter_ns() - self.clock[0][1]

    def start(self):
        self.clock = [(time.time_ns(), time.perf_counter_ns())]
        gc.callbacks.append(self._collected)
        if not _HostLog._hook_added and hasattr(sys, "addaudithook"):
            _HostLog._hook_added = True
            sys.addaudithook(_heard)
        _listening[:] = [self]
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(min(self._interval, self.SWITCH_INTERVAL))
        self._thread = threading.Thread(target=self._sample, name="stepscope-samples", daemon=True)
        self._thread.start()

    def mark_clock(self, framework):
        """Leaves this log's time in the profile: the mark shows how both clocks relate, and which thread runs the loop."""
        with _Annotation(lambda: framework.mark("stepscope/clock#{}".format(self.now()))):
            pass

    def stop(self):
        _listening[:] = []
        with contextlib.suppress(ValueError):
            gc.callbacks.remove(self._collected)
        self._stop.set()
        sys.setswitchinterval(self._interval)
        self.clock.append((time.time_ns(), time.perf_counter_ns()))
        if self._thread is not None:
            self._thread.join(1.0)
        self._lock.close()

    def _collected(self, phase, info):
        now = time.perf_counter_ns() - self.clock[0][1]
        if phase == "start":
            self._paused_at = now
        elif self._paused_at is not None and len(self.pauses) < self.MOST_FILES:
            self.pauses.append((self._paused_at, now - self._paused_at, info.get("generation", 0)))
            self._paused_at = None

    def _opened(self, arguments):
        path, mode, flags = arguments
        if not isinstance(path, (str, bytes)) or threading.get_ident() in self.own:
            return
        writes = (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)) or any(
            letter in (mode or "") for letter in "wax+"
        )
        if len(self.opens) < self.MOST_FILES:
            self.opens.append((self.now(), threading.get_ident(), os.fsdecode(path), bool(writes)))
        else:
            self.lost += 1

    def _started(self, arguments):
        if len(self.children) < self.MOST_FILES:
            self.children.append((self.now(), threading.get_ident(), str(arguments[0])))

    def _sample(self):
        self.own.add(threading.get_ident())
        before = 0
        while not self._stop.wait(self.period):
            try:
                frames = {ident: frame for ident, frame in sys._current_frames().items() if ident not in self.own}
                now = self.now()
                waited, holders = self._lock.waited(self.loop, frames, now - before) if len(frames) > 1 else (0, ())
                seen = {ident: self._add(ident, frame, now, now - before) for ident, frame in frames.items()}
                if waited > 0 and len(self.lock_waits) < self.MOST:
                    stacks = [seen[ident] for ident in holders if seen[ident] is not None]
                    self.lock_waits.append((now, waited, stacks[0] if stacks else None))
                del frames
            except Exception:
                self.lost += 1
                continue
            before = now

    def _add(self, ident, frame, now, weight):
        # Lines are looked up once per stack: the place of an instruction is known at once, its line is not.
        chain, at = [], frame
        for _ in range(self.DEPTH):
            chain.append(at.f_code)
            chain.append(at.f_lasti)
            at = at.f_back
            if at is None:
                break
        stack = self._stack(tuple(chain), frame)
        if stack is None:
            return None
        samples = self.threads.get(ident)
        if samples is None:
            samples = self.threads[ident] = []
            thread = threading._active.get(ident)
            self.names[ident] = (getattr(thread, "native_id", None), getattr(thread, "name", ""))
        self._count += 1
        if self._count > self.MOST:
            self.lost += 1
        else:
            samples.append((now, weight, stack))
        return stack

    def _stack(self, chain, frame):
        """The number of a stack: the program's own frames, and the library that the last of them calls."""
        known = self._chains.get(chain, -1)
        if known != -1:
            return known
        kept, called = [], None
        for _ in range(self.DEPTH):  # innermost first
            if frame is None:
                break
            code, line = frame.f_code, frame.f_lineno
            frame = frame.f_back
            if _is_user_file(code.co_filename):
                if not kept and called is not None:
                    kept.append(self._site(called[0], called[1], False))
                kept.append(self._site(code, line, True))
            elif not kept and code.co_filename not in _OWN_FILES:
                called = (code, line)
        number = None
        if kept:
            number = self.stacks.setdefault(tuple(reversed(kept)), len(self.stacks))
        if len(self._chains) < self.MOST:
            self._chains[chain] = number
        return number

    def _site(self, code, line, user):
        generator = bool(code.co_flags & 0x220)  # a generator, of either kind
        key = (code.co_filename, code.co_firstlineno, line or code.co_firstlineno, code.co_name, user, generator)
        return self.sites.setdefault(key, len(self.sites))

    def count(self):
        """Samples of the thread that has the most."""
        return max((len(samples) for samples in list(self.threads.values())), default=0)

    def document(self):
        """Everything as plain values of JSON; times are nanoseconds since the first of the two clock readings."""
        loop = self.loop
        threads = []
        for ident, samples in self.threads.items():
            native, name = self.names[ident]
            threads.append({"id": native, "name": name, "samples": [list(sample) for sample in samples]})
        native_ids = {ident: native for ident, (native, _) in self.names.items()}
        native_ids.setdefault(loop, getattr(threading._active.get(loop), "native_id", None))
        sites = [
            {
                "file": _shown(file),
                "line": line,
                "first_line": first,
                "function": function,
                "user": user,
                "generator": generator,
            }
            for file, first, line, function, user, generator in self.sites
        ]
        return {
            "schema": "stepscope.host.v1",
            "pid": os.getpid(),
            "python": "{}.{}.{}".format(*sys.version_info[:3]),
            "program": [os.path.basename(part) if place == 0 else part for place, part in enumerate(sys.argv[:1])],
            "clock": [list(pair) for pair in self.clock],
            "loop_thread": native_ids[loop],
            "sites": sites,
            "stacks": [list(stack) for stack in self.stacks],
            "threads": threads,
            "collections": [list(pause) for pause in self.pauses],
            "lock_waits": [list(wait) for wait in self.lock_waits],
            "opens": [[at, native_ids.get(ident), path, writes] for at, ident, path, writes in self.opens],
            "children": [[at, native_ids.get(ident), path] for at, ident, path in self.children],
            "lost": self.lost,
        }


def _cell(file):
    """The cell of a notebook, as IPython names it in tracebacks: ``In[3]``."""
    try:
        named = sys.modules["IPython"].get_ipython().compile.format_code_name(file)
        return named[1] if isinstance(named[1], str) and named[1].startswith("In") else "notebook.py"
    except Exception:
        return "notebook.py"


def _shown(file):
    """A file as a person would name it: relative to the program's folder, else its last two parts."""
    for part in _NOTEBOOK_PARTS:
        if part in file:
            return _cell(file)
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    for folder in (os.path.dirname(os.path.abspath(main)) if main else None, os.getcwd()):
        if folder and file.startswith(folder.rstrip("/") + "/"):
            return file[len(folder.rstrip("/")) + 1 :]
    for part in _LIBRARY_PARTS[:2] + _PYTHON_FOLDERS:
        if part in file:
            return file.rsplit(part, 1)[1]
    return "/".join(file.rsplit("/", 2)[-2:]) if not _is_user_file(file) else file.rsplit("/", 1)[-1]


def _write_json(path, document):
    part = path + ".part"
    with open(part, "w") as file:
        json.dump(document, file, separators=(",", ":"))
    os.replace(part, path)


_PROFILE_ENDINGS = (".xplane.pb", ".pt.trace.json.gz", ".pt.trace.json")


def _profiles_in(folder, since=0.0):
    """Profiles below a folder that were written after a time, newest last."""
    found = []
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            if name.endswith(_PROFILE_ENDINGS) and not name.startswith(".part.") and os.path.getmtime(path) >= since:
                found.append(path)
    return sorted(found, key=os.path.getmtime)


def _host_of(profile):
    """The name of the host in a profile's name; the file beside it has the same."""
    name = os.path.basename(profile)
    for ending in _PROFILE_ENDINGS:
        if name.endswith(ending):
            name = name[: -len(ending)]
            break
    head, _, tail = name.rpartition(".")
    return head if head and tail.isdigit() and len(tail) >= 12 else name


def _write_beside(profile, document):
    _write_json(os.path.join(os.path.dirname(profile), _host_of(profile) + ".host.json"), document)


# --- Annotations -----------------------------------------------------------------------------------------------------


class _Annotation:
    """A context manager that never raises by itself."""

    __slots__ = ("_inner", "_make")

    def __init__(self, make):
        self._make = make
        self._inner = None

    def __enter__(self):
        try:
            self._inner = self._make()
            if self._inner is not None:
                self._inner.__enter__()
        except Exception:
            self._inner = None
        return self

    def __exit__(self, *exception):
        inner, self._inner = self._inner, None
        if inner is not None:
            with contextlib.suppress(Exception):
                inner.__exit__(*exception)
        return False


def step(number, name="train"):
    """``with stepscope.step(i):`` around one iteration. Costs almost nothing while no profiler is active."""

    def make():
        framework = _framework()
        return framework and framework.step(name, number)

    return _Annotation(make)


def mark(phase):
    """``with stepscope.mark("input"):`` around a phase of a step.

    ``input`` waits for or creates the next batch, ``output`` writes checkpoints and logs, ``python`` is Python work of
    the loop, ``compute`` is model work in code that the framework does not see, ``sync`` waits for a device.
    """

    return _phase(phase, None)


def _phase(phase, framework_name):
    def make():
        framework = _framework(framework_name)
        return framework and framework.mark("stepscope/" + str(phase))

    return _Annotation(make)


# --- The window ------------------------------------------------------------------------------------------------------

_lock = threading.Lock()
_active = None
_RUNNING = ("waiting", "prepared", "recording")


@atexit.register
def _close_at_exit():
    if _active is not None:
        _active._close(True)


class window:
    """Skips the first ``warmup`` steps, records the next ``steps``, and writes the profile below ``logdir``.

    ``python=True`` also records all Python calls, which slows the loop down; TensorFlow 2.21 cannot record them, whatever it
    is asked for. ``framework`` is ``"tensorflow"``,
    ``"jax"`` or ``"torch"``; set it if the program imports several and the wrong one would be used.
    """

    def __init__(self, logdir, warmup=10, steps=20, *, name="train", python=False, framework=None):
        if framework is not None and framework not in _FRAMEWORKS:
            raise ValueError("framework is one of " + ", ".join(sorted(_FRAMEWORKS)))
        self.logdir = os.fspath(logdir)
        self.warmup = max(int(warmup), 0)
        self.steps = max(int(steps), 1)
        self.recorded = 0
        self._name = name
        self._python = python
        self._wanted = framework
        self._framework = None
        self._seen = 0
        self._marker = None
        self._is_callback = False
        self._log = None
        self._state = "new"  # then waiting, prepared, recording, done; or off

    @property
    def done(self):
        """True once everything is recorded. A loop that only runs for the profile can end then."""
        return self._state == "done"

    def __enter__(self):
        self._open()
        if self._state == "recording":
            self._begin_marker()
        return self

    def __exit__(self, *exception):
        self._close(exception[0] is not None)
        return False

    def step(self):
        """Ends one step of the loop and starts the next."""
        if self._state not in _RUNNING:
            return
        self._seen += 1
        if self._state == "recording":
            self._end_marker()
            self.recorded += 1
        self._advance()
        if self._state == "recording":
            self._begin_marker()

    def wrap(self, iterable):
        """Iterates and counts each iteration as a step; fetching the next item is its input phase."""
        iterator = iter(iterable)
        while True:
            try:
                with _phase("input", self._wanted):
                    item = next(iterator)
            except StopIteration:
                return
            yield item
            self.step()

    # Keras calls these: its loop starts and ends batches itself, and does other work between them.

    def _batch_begins(self):
        if self._state == "recording" and self._marker is None:
            self._begin_marker()

    def _batch_ends(self):
        if self._state not in _RUNNING:
            return
        self._seen += 1
        if self._marker is not None:
            self._end_marker()
            self.recorded += 1
        self._advance()

    # Work between two steps.

    def _open(self):
        global _active
        if self._state != "new":
            return
        with _lock:
            # Keras does not notify callbacks when an exception ends a fit: a window that is still open has ended.
            stale = _active if _active is not None and _active._is_callback else None
        if stale is not None:
            stale._close(True)
        with _lock:
            free = _active is None
            if free:
                _active = self
        if not free:
            self._state = "off"
            _warn("another window is already open; a process records one profile at a time, so this window is ignored")
            return
        self._state = "waiting"
        self._advance()

    def _advance(self):
        if self._state == "waiting" and self._seen >= self.warmup - 1:
            self._prepare()
        if self._state == "prepared" and self._seen >= self.warmup:
            self._start()
        elif self._state == "recording" and self.recorded >= self.steps:
            self._stop()

    def _prepare(self):
        self._framework = _framework(self._wanted)
        if self._framework is None:
            wanted = self._wanted or "TensorFlow, JAX or PyTorch"
            _warn("nothing is recorded, because {} is not imported".format(wanted))
            self._give_up()
            return
        if self._try("prepare the profiler", self._framework.prepare, self._python):
            self._state = "prepared"
        else:
            self._give_up()

    def _start(self):
        self._try("wait for the devices", self._framework.finish_work)
        if self._try("start the profiler", self._framework.start, self.logdir, self._python):
            self._state = "recording"
            self._log = _HostLog()
            self._try("sample Python", self._log.start)
            self._try("mark the clock", self._log.mark_clock, self._framework)
        else:
            self._give_up()

    def _stop(self):
        framework, self._state = self._framework, "done"
        unfinished = None if self._marker is None else self._seen
        self._try("wait for the devices", framework.finish_work)
        log, begun = self._log, time.time()
        self._try("end the samples of Python", log.stop)
        written = self._try("write the profile", framework.stop, self.logdir, unfinished)
        # Closed after the profiler, so that an unfinished step is not in the profile.
        self._end_marker()
        self._release()
        if written:
            self._try("write the samples of Python", self._write_log, log, begun)
            steps = "1 step" if self.recorded == 1 else "{} steps".format(self.recorded)
            text = "stepscope: recorded {}; run `stepscope report {}` to see the verdict".format(steps, self.logdir)
            with contextlib.suppress(Exception):
                print(text, file=sys.stderr)

    def _write_log(self, log, begun):
        profiles = _profiles_in(self.logdir, begun - 1.0)
        if profiles:
            _write_beside(profiles[-1], dict(log.document(), framework=self._framework.name))

    def _close(self, failed):
        if self._state == "recording":
            why = "an exception ended the loop" if failed else "the loop ended"
            if self.recorded < self.steps:
                _warn("{} after {} of {} recorded steps".format(why, self.recorded, self.steps))
            self._stop()
        elif self._state in ("waiting", "prepared"):
            if not failed:
                text = "nothing was recorded: the loop ended after {} steps, during the warm-up of {} steps"
                _warn(text.format(self._seen, self.warmup))
            if self._state == "prepared":
                self._try("stop the profiler", self._framework.unprepare)
            self._give_up()
        else:
            self._release()

    def _begin_marker(self):
        self._marker = _Annotation(lambda: self._framework.step(self._name, self._seen))
        self._marker.__enter__()

    def _end_marker(self):
        marker, self._marker = self._marker, None
        if marker is not None:
            marker.__exit__(None, None, None)

    def _give_up(self):
        self._state = "off"
        self._end_marker()
        self._release()

    def _release(self):
        global _active
        with _lock:
            if _active is self:
                _active = None

    def _try(self, what, call, *arguments):
        try:
            call(*arguments)
            return True
        except Exception as error:
            _warn("could not {}: {}: {}".format(what, type(error).__name__, error))
            return False


# --- Keras -----------------------------------------------------------------------------------------------------------


def KerasCallback(logdir, warmup=10, steps=20, *, python=False):
    """A callback for ``model.fit``, for Keras 3 with any backend and for tf.keras."""
    keras = sys.modules.get("keras") or getattr(sys.modules.get("tensorflow"), "keras", None)
    if keras is None:
        raise RuntimeError("stepscope.KerasCallback needs Keras: import keras first")

    class StepscopeCallback(keras.callbacks.Callback):
        def __init__(self):
            super().__init__()
            self.window = window(logdir, warmup, steps, python=python)
            self.window._is_callback = True

        def on_train_begin(self, logs=None):
            self.window._open()

        def on_train_batch_begin(self, batch, logs=None):
            self.window._batch_begins()

        def on_train_batch_end(self, batch, logs=None):
            self.window._batch_ends()

        def on_train_end(self, logs=None):
            self.window._close(False)

    return StepscopeCallback()
