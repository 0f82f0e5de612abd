"""The framework of `fake_torch.py` with a GPU: an allocator of 1 GB that keeps history as PyTorch's does, and writes it as
PyTorch does. There is no GPU where the tests run; this shows which calls the hook of `stepscope run` makes, and when.

Run it with a folder: it writes a package `torch` there.
"""

import os
import sys

from fake_torch import FILES

INIT = FILES["torch/__init__.py"]
BEGIN, END = INIT.index("class cuda:"), INIT.index("def _now")
FILES["torch/__init__.py"] = INIT[:BEGIN] + "from . import _C, cuda\nOutOfMemoryError = cuda.OutOfMemoryError\n\n" + INIT[END:]
FILES["torch/_C.py"] = """
observers = []

def _cuda_attach_out_of_memory_observer(observer):
    observers.append(observer)
"""
FILES["torch/cuda/__init__.py"] = """
from . import memory
from .memory import OutOfMemoryError

_queued, _state = [], {"initialized": False}

def is_available():
    return True

def is_initialized():
    return _state["initialized"]

def _lazy_call(call):
    call() if is_initialized() else _queued.append(call)

def init():
    if not is_initialized():
        _state["initialized"] = True
        for call in _queued:
            call()

def synchronize():
    pass

def memory_allocated():
    return sum(size for size, _ in memory.blocks.values())

def mem_get_info():
    return memory.CAPACITY - memory_allocated(), memory.CAPACITY
"""
FILES["torch/cuda/memory.py"] = """
import os, sys, time

CAPACITY = 1 << 30
blocks, trace, recorded, state = {}, [], [], {"address": 0x7f0000000000}

class OutOfMemoryError(RuntimeError):
    pass

def _record_memory_history(enabled="all", context="all", stacks="all", max_entries=sys.maxsize):
    recorded.append((enabled, context, max_entries))
    if os.environ.get("HISTORY_FAILS"):
        raise RuntimeError("no history")

def _frames():
    if not recorded or recorded[-1][1] is None:
        return []
    frame, frames = sys._getframe(2), []
    while frame is not None:
        frames.append({"name": frame.f_code.co_name, "filename": frame.f_code.co_filename, "line": frame.f_lineno})
        frame = frame.f_back
    return frames

def _entry(action, address, size, **more):
    if recorded:
        trace.append(dict({"action": action, "addr": address, "size": size, "stream": 0,
            "time_us": time.time_ns() // 1000}, **more))

def allocate(size):
    import torch
    torch.cuda.init()
    frames = _frames()
    used = torch.cuda.memory_allocated()
    if used + size > CAPACITY:
        _entry("oom", 0, size, device_free=CAPACITY - used, frames=frames)
        del trace[-1]["addr"]
        for observer in torch._C.observers:
            observer(0, size, CAPACITY, CAPACITY - used)
        raise OutOfMemoryError("CUDA out of memory.")
    address = state["address"]
    state["address"] += size
    _entry("segment_alloc", address, size, frames=frames)
    _entry("alloc", address, size, frames=frames)
    blocks[address] = (size, frames)
    return address

def free(address):
    size, _ = blocks.pop(address)
    for action in ("free_requested", "free_completed", "segment_free"):
        _entry(action, address, size, frames=[])

def _snapshot():
    segments = [{"device": 0, "address": address, "total_size": size, "allocated_size": size, "active_size": size,
        "requested_size": size, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False,
        "frames": frames, "blocks": [{"address": address, "size": size, "requested_size": size,
        "state": "active_allocated", "frames": frames}]} for address, (size, frames) in blocks.items()]
    return {"segments": segments, "device_traces": [trace[-50000:]], "allocator_settings": {}}
"""

if __name__ == "__main__":
    for name, text in FILES.items():
        path = os.path.join(sys.argv[1], name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
