"""Lets two programs take turns in short windows of steps, for ``stepscope gate --paired``.

The gate starts both programs with the environment variable ``STEPSCOPE_TURNS``, which names a socket. At the end of each
step, whatever knows the steps calls ``boundary()``: the hook of ``stepscope run``, the recorder, or a line in the script.
After a warm-up the program waits there until it is its turn, runs as many steps as it is told, says what each of them took,
and waits again. While it waits, the gate stops the whole process group, so that threads and loader processes neither
disturb the other program nor work ahead.

The file has no dependencies and never breaks a program: without the variable, or after any problem, ``boundary()`` does
nothing.
"""

import os
import socket
import time

__all__ = ["boundary", "Counter"]

#: Names the socket.
VARIABLE = "STEPSCOPE_TURNS"
#: How many steps run before the first turn.
WARM_UP_VARIABLE = "STEPSCOPE_TURNS_WARMUP"
WARM_UP = 10

_turns = None


class Counter:
    """Counts the instructions of this process in user space, where the kernel allows it; else ``read()`` is ``None``.

    Threads that start later are counted, those that run already are not.
    """

    _NUMBER = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319}
    #: Hardware counters: instructions.
    _HARDWARE, _INSTRUCTIONS = 0, 1
    _INHERIT, _NO_KERNEL, _NO_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6
    _SIZE = 128

    def __init__(self, kind=_HARDWARE, config=_INSTRUCTIONS):
        self._file = -1
        #: Why there is no count.
        self.problem = None
        try:
            self._open(kind, config)
        except Exception as error:
            self.problem = str(error)

    def _open(self, kind, config):
        import ctypes
        import platform
        import struct

        number = self._NUMBER.get(platform.machine()) if platform.system() == "Linux" else None
        if number is None:
            self.problem = "not on this system"
            return
        flags = self._INHERIT | self._NO_KERNEL | self._NO_HYPERVISOR
        head = struct.pack("=IIQQQQQ", kind, self._SIZE, config, 0, 0, 0, flags)
        attributes = ctypes.create_string_buffer(head, self._SIZE)
        library = ctypes.CDLL(None, use_errno=True)
        # This process, any core, no group, closed on exec.
        opened = library.syscall(number, attributes, 0, -1, -1, 8)
        if opened < 0:
            self.problem = os.strerror(ctypes.get_errno())
            return
        self._file = opened

    def read(self):
        if self._file < 0:
            return None
        try:
            return int.from_bytes(os.read(self._file, 8), "little")
        except OSError as error:
            self.problem = str(error)
            self._file = -1
            return None


class _Turns:
    def __init__(self, path):
        self._path = path
        self._process = os.getpid()
        self._left = int(os.environ.get(WARM_UP_VARIABLE) or WARM_UP)
        self._socket = None
        self._counter = None
        self._done = []
        self._began = None

    def boundary(self, finish):
        if os.getpid() != self._process:  # a forked child has no turns
            return
        if self._began is not None:
            if finish is not None and self._left == 1:
                finish()
            self._done.append(self._since(self._began))
        self._left -= 1
        if self._left > 0:
            self._began = self._now() if self._began is not None else None
            return
        if self._socket is None:
            self._connect()
            self._say("ready")
        else:
            self._say("done " + ",".join(self._done))
        self._done = []
        self._left = self._wait()
        self._began = self._now()

    def _connect(self):
        self._counter = Counter()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(self._path)

    def _now(self):
        return time.perf_counter_ns(), time.process_time_ns(), self._counter.read()

    def _since(self, began):
        wall, cpu, instructions = self._now()
        counted = "" if instructions is None or began[2] is None else str(instructions - began[2])
        return "{}:{}:{}".format(wall - began[0], cpu - began[1], counted)

    def _say(self, line):
        self._socket.sendall(line.encode() + b"\n")

    def _wait(self):
        """How many steps the next turn has."""
        line = b""
        while not line.endswith(b"\n"):
            part = self._socket.recv(64)
            if not part:
                raise EOFError
            line += part
        word, _, number = line.decode().strip().partition(" ")
        if word != "go":
            raise EOFError
        return int(number)


def boundary(finish=None):
    """The end of a step. ``finish`` waits for devices that run behind the loop; it is called once per turn."""
    global _turns
    if _turns is False:
        return
    try:
        if _turns is None:
            path = os.environ.get(VARIABLE)
            if not path:
                _turns = False
                return
            _turns = _Turns(path)
        _turns.boundary(finish)
    except Exception:  # the gate is gone, or something else is wrong: the program goes on alone
        _turns = False
