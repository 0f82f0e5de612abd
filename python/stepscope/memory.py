"""Saves who holds device memory, at the end of a window and when memory runs out. Used by ``hook.py`` alone.

Each framework has its own file: PyTorch with CUDA a snapshot (``.memory.pickle``), JAX a device memory profile
(``.memory.prof``). TensorFlow's profile contains every allocation already; only the peaks of its GPUs are added to the log.

Nothing here may disturb the program: every entry is guarded, no device is initialised that the program does not use, and the
history of allocations is a ring of bounded size. Stacks cost about two microseconds per allocation, so they are recorded until
the first window has ended and inside later ones; after that only if memory is scarce or grows.
"""

import collections
import os
import pickle
import sys
import time

#: Switches it off, as ``stepscope run --no-memory`` does.
VARIABLE = "STEPSCOPE_MEMORY"
#: Allocations and frees of PyTorch that are kept: tens of megabytes at most.
MOST_ENTRIES = 50000
#: Beginnings of steps that are kept for the snapshot, which has no steps of its own.
MOST_STEPS = 2000
#: Live arrays of JAX above which no profile is taken: writing it visits each of them.
MOST_ARRAYS = 200000
#: Programs that try sizes until one fits run out of memory again and again.
MOST_FAILURES = 3
#: From this share of a device on, memory is scarce.
SCARCE = 0.8
#: Memory that is larger by this share at the end of the second window than at that of the first one grows.
GROWS = 0.01


class Keeper:
    """What is known about memory in this process. ``framework`` names the one that trains; ``failed`` is called when memory
    has run out, and calls ``save_failure``."""

    def __init__(self, wanted, framework, failed):
        self.on = wanted and os.environ.get(VARIABLE, "1") not in ("0", "off", "no")
        self.failure = None  # the file of the last failure, which no later state replaces
        self._framework = framework
        self._failed = failed
        self._failures = 0
        self._history = None  # of PyTorch: None, "plain" or "stacks"
        self._windows = 0
        self._used = None  # bytes at the end of the window before
        self._steps = collections.deque(maxlen=MOST_STEPS)  # number, microseconds since 1970

    # Called by the hook.

    def watch_torch(self, cuda):
        """Records history as soon as the program initialises CUDA; never initialises it."""
        if self.on:
            self._guarded(lambda: cuda._lazy_call(lambda: self._guarded(self._attach)))

    def step_begins(self, number):
        self._steps.append((number, time.time_ns() // 1000))

    def restarted(self):
        """What was taken for steps were none."""
        self._steps.clear()

    def window_begins(self):
        self._guarded(lambda: self._record("stacks"))

    def window_ends(self, place, name, complete=True):
        """Saves the state; after a failure that ended the program, the state of the failure instead."""
        self._windows += 1
        if self.failure is not None and not complete:
            self._guarded(lambda: self._move(place, name))
        else:
            self._guarded(lambda: self._save(place, name))
        self._guarded(self._afterwards)

    def exit(self):
        """The program ends: whether by running out of memory, unless that has been saved when it happened."""
        if self.failure is None and self._guarded(ran_out):
            self._out_of_memory()

    def devices(self):
        """Bytes in use and their peak, of the GPUs of TensorFlow."""
        return self._guarded(lambda: tensorflow_devices() if self._framework() == "tensorflow" else None) or None

    # Saving.

    def save_failure(self, place, name):
        self.failure = self._guarded(lambda: self._save(place, name))
        return self.failure is not None

    def _save(self, place, name):
        os.makedirs(place, exist_ok=True)
        # A library that is only imported must not be asked: that would initialise its devices.
        ending, write = WRITERS.get(self._framework(), (None, None))
        if write is None:
            return None
        path = os.path.join(place, name + ending)
        part = path + ".part"
        try:
            if not write(part, list(self._steps)):
                return None
            os.replace(part, path)
        finally:
            if os.path.exists(part):
                os.remove(part)
        self.failure = None
        return path

    def _move(self, place, name):
        ending = ".memory" + self.failure.rsplit(".memory", 1)[1]
        path = os.path.join(place, name + ending)
        if path != self.failure:
            os.replace(self.failure, path)
            try:
                os.rmdir(os.path.dirname(self.failure))
            except OSError:
                pass
            self.failure = path

    def _out_of_memory(self, *figures):
        self._failures += 1
        if self._failures <= MOST_FAILURES:
            self._guarded(self._failed)

    # PyTorch's history.

    def _attach(self):
        observe = getattr(sys.modules["torch"]._C, "_cuda_attach_out_of_memory_observer", None)
        self._record("stacks")
        if observe is not None:
            observe(self._out_of_memory)

    def _record(self, kind):
        torch = sys.modules.get("torch")
        if self._history == kind or not has_cuda(torch):
            return
        stacks = {"context": "alloc", "stacks": "python"} if kind == "stacks" else {"context": None}
        torch.cuda.memory._record_memory_history("all", max_entries=MOST_ENTRIES, **stacks)
        self._history = kind

    def _afterwards(self):
        """Goes on with stacks only where they may be needed."""
        torch = sys.modules.get("torch")
        if not has_cuda(torch):
            return
        free, total = torch.cuda.mem_get_info()
        used, before = torch.cuda.memory_allocated(), self._used
        self._used = used
        grows = before is not None and used > before * (1 + GROWS)
        if free > (1 - SCARCE) * total and not grows:
            self._record("plain")

    def _guarded(self, call):
        if not self.on:
            return None
        try:
            return call()
        except Exception:
            return None


def has_cuda(torch):
    """Whether the program uses CUDA through PyTorch."""
    cuda = getattr(torch, "cuda", None)
    return cuda is not None and cuda.is_available() and cuda.is_initialized()


def write_torch(path, steps):
    torch = sys.modules.get("torch")
    if not has_cuda(torch):
        return False
    snapshot = torch.cuda.memory._snapshot()
    marks = snapshot["external_annotations"] = list(snapshot.get("external_annotations") or ())
    for (number, begun), (_, ended) in zip(steps, steps[1:]):
        name = "step {}".format(number)
        marks.append({"stage": "START", "name": name, "device": 0, "time_us": begun})
        marks.append({"stage": "END", "name": name, "device": 0, "time_us": ended})
    with open(path, "wb") as file:
        pickle.dump(snapshot, file, protocol=4)
    return True


def write_jax(path, steps):
    jax = sys.modules.get("jax")
    save = getattr(getattr(jax, "profiler", None), "save_device_memory_profile", None)
    if save is None or not 0 < len(jax.live_arrays()) <= MOST_ARRAYS:
        return False
    save(path)
    return True


WRITERS = {"torch": (".memory.pickle", write_torch), "jax": (".memory.prof", write_jax)}


def tensorflow_devices():
    config = getattr(sys.modules.get("tensorflow"), "config", None)
    if config is None:
        return None
    found = []
    for number, _ in enumerate(config.list_logical_devices("GPU")):
        name = "GPU:{}".format(number)
        info = config.experimental.get_memory_info(name)
        found.append({"device": name, "in_use_bytes": info.get("current"), "peak_bytes": info.get("peak")})
    return found


def ran_out():
    """Whether the exception that ends the program says that a device has no memory left."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    for _ in range(16):  # an exception may have been raised while another one was handled
        if error is None:
            return False
        if type(error).__name__ in ("OutOfMemoryError", "ResourceExhaustedError"):
            return True
        if type(error).__name__ in ("XlaRuntimeError", "JaxRuntimeError") and "RESOURCE_EXHAUSTED" in str(error)[:200]:
            return True
        error = error.__cause__ or error.__context__
    return False
