"""A framework in one file, for tests: what the hook of `stepscope run` looks at, with a profiler that writes a real trace.

Run it with a folder: it writes a package `torch` there.
"""

import os
import sys

FILES = {
    "torch/__init__.py": """
import contextlib, gzip, json, os, threading, time
from . import autograd, optim, utils
__version__ = "0.fake"

class cuda:
    is_available = staticmethod(lambda: False)

def _now():
    return time.time_ns() / 1000

class profiler:
    events = None

    class ProfilerActivity:
        CPU = CUDA = 0

    class profile:
        def __init__(self, **options):
            pass
        def prepare_trace(self):
            pass
        def start_trace(self):
            profiler.events = []
        def stop_trace(self):
            self.events, profiler.events = profiler.events, None
        def export_chrome_trace(self, path):
            with gzip.open(path, "wt") as file:
                json.dump({"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": self.events}, file)

    class record_function:
        def __init__(self, name, category="user_annotation"):
            self.name, self.category = name, category
        def __enter__(self):
            self.begun = _now()
        def __exit__(self, *exception):
            if profiler.events is not None:
                profiler.events.append({"ph": "X", "cat": self.category, "name": self.name, "pid": os.getpid(),
                    "tid": threading.get_native_id(), "ts": self.begun, "dur": _now() - self.begun})

def work(seconds, name="aten::mm"):
    with profiler.record_function(name, "cpu_op"):
        time.sleep(seconds)
""",
    "torch/autograd/__init__.py": "def backward(*arguments):\n    pass\n",
    "torch/optim/__init__.py": "from .optimizer import Optimizer as SGD\n",
    "torch/optim/optimizer.py": """
_hooks = []

class Handle:
    def __init__(self, hook):
        self.hook = hook
    def remove(self):
        _hooks.remove(self.hook)

def register_optimizer_step_post_hook(hook):
    _hooks.append(hook)
    return Handle(hook)

class Optimizer:
    def step(self):
        import torch
        torch.work(0.001, "aten::add_")
        for hook in _hooks:
            hook(self, (), {})
""",
    "torch/utils/__init__.py": "from . import data\n",
    "torch/utils/data/__init__.py": "from .dataloader import DataLoader\n",
    "torch/utils/data/dataloader.py": """
class _BaseDataLoaderIter:
    def __init__(self, loader):
        self._dataset, self._at = loader.dataset, 0
    def __iter__(self):
        return self
    def __next__(self):
        if self._at == len(self._dataset):
            raise StopIteration
        self._at += 1
        return self._dataset[self._at - 1]

class DataLoader:
    def __init__(self, dataset):
        self.dataset = dataset
    def __iter__(self):
        return _BaseDataLoaderIter(self)
""",
}

if __name__ == "__main__":
    for name, text in FILES.items():
        path = os.path.join(sys.argv[1], name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
