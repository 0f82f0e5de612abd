"""First module of a Python program that ``stepscope run`` starts: looks out for frameworks, and does nothing else.

``stepscope run`` puts the folder of this file first in ``PYTHONPATH``. The program must not notice: the folder leaves
``sys.path`` and the environment at once, the program's own ``sitecustomize`` runs as usual, and no problem of this file
becomes visible. Children that run Python are followed: they get the folder when they are started, other children do not.
The hook itself (``_stepscope_hook``) is only loaded when a framework is imported.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
#: Modules to patch as soon as they are loaded, before the program can take names out of them.
WATCHED = frozenset(
    (
        "torch.cuda",
        "torch.utils.data.dataloader",
        "torch.optim.optimizer",
        "torch.autograd",
        "tensorflow.python.data.ops.iterator_ops",
        "tensorflow.python.data.ops.dataset_ops",
        "tensorflow.python.eager.polymorphic_function.polymorphic_function",
        "tensorflow.python.client.session",
        "keras.src.callbacks.callback_list",
        "keras.src.callbacks",
        "tf_keras.src.callbacks",
        "keras.callbacks",
        "jax",
    )
)
#: Words in a command line whose program may run Python.
LAUNCHERS = ("python", "torchrun", "accelerate", "deepspeed", "mpirun", "mpiexec", "horovodrun", "srun", "jupyter")
VARIABLE = "STEPSCOPE_RUN"


class Finder:
    """Lets the other finders find a watched module, and patches it once it is loaded."""

    def __init__(self, load_hook):
        self.load_hook = load_hook
        self.busy = set()

    def find_spec(self, name, path=None, target=None):
        if name not in WATCHED or name in self.busy:
            return None
        self.busy.add(name)
        try:
            for finder in sys.meta_path:
                find = getattr(finder, "find_spec", None)
                if finder is self or find is None:
                    continue
                spec = find(name, path, target)
                if spec is not None:
                    self.watch(name, spec.loader)
                    return spec
        except Exception:
            return None
        finally:
            self.busy.discard(name)
        return None

    def watch(self, name, loader):
        load = getattr(loader, "exec_module", None)
        if load is None:
            return

        def exec_module(module):
            try:
                del loader.exec_module
            except Exception:
                pass
            load(module)
            try:
                self.load_hook().patch(name, module)
            except Exception:
                pass

        try:
            loader.exec_module = exec_module
        except Exception:
            pass


def hook_loader(folder):
    """The hook, loaded on first use."""
    loaded = []

    def load():
        if not loaded:
            import importlib.util

            modules = []
            names = ["record", "memory", "hook"]
            if os.environ.get("STEPSCOPE_TURNS"):
                names.insert(1, "turns")
            for part in names:
                name, file = "_stepscope_" + part, part + ".py"
                module = sys.modules.get(name)
                if module is None:
                    spec = importlib.util.spec_from_file_location(name, os.path.join(HERE, file))
                    module = importlib.util.module_from_spec(spec)
                    sys.modules[name] = module
                    spec.loader.exec_module(module)
                modules.append(module)
            loaded.append(modules[-1])
            modules[-1].begin(folder)
        return loaded[0]

    return load


def follow_children(folder):
    """Starts children that may run Python as this program was started."""

    def wanted(arguments):
        try:
            words = [os.fsdecode(word) for word in list(arguments)[:64]]
        except Exception:
            return False
        return any(word in part.rsplit("/", 1)[-1] or (" " in part and word in part) for part in words for word in LAUNCHERS)

    def with_hook(environment):
        """The same environment with the folder first in its path."""
        bytes_keys = any(isinstance(key, bytes) for key in environment)
        code = os.fsencode if bytes_keys else (lambda text: text)
        changed = dict(environment)
        path = changed.get(code("PYTHONPATH"))
        changed[code("PYTHONPATH")] = code(HERE) + code(os.pathsep) + path if path else code(HERE)
        changed[code(VARIABLE)] = code(folder)
        return changed

    def environment_of(given):
        return with_hook(os.environb if given is None else given)

    import _posixsubprocess

    fork_exec = _posixsubprocess.fork_exec

    def fork_exec_followed(*arguments):
        try:
            if wanted(arguments[0]):
                environment = arguments[5]
                if environment is None:
                    pairs = environment_of(None)
                else:
                    pairs = with_hook(dict(pair.split(b"=", 1) for pair in environment if b"=" in pair))
                listed = [key + b"=" + value for key, value in pairs.items()]
                arguments = arguments[:5] + (listed,) + arguments[6:]
        except Exception:
            pass
        return fork_exec(*arguments)

    _posixsubprocess.fork_exec = fork_exec_followed

    execv, execve = os.execv, os.execve

    def execv_followed(path, arguments):
        if wanted(arguments):
            return execve(path, arguments, environment_of(None))
        return execv(path, arguments)

    def execve_followed(path, arguments, env):
        return execve(path, arguments, environment_of(env) if wanted(arguments) else env)

    os.execv, os.execve = execv_followed, execve_followed
    for name in ("posix_spawn", "posix_spawnp"):
        spawn = getattr(os, name, None)
        if spawn is None:
            continue

        def spawn_followed(path, arguments, env, *rest, _spawn=spawn, **more):
            return _spawn(path, arguments, environment_of(env) if wanted(arguments) else env, *rest, **more)

        setattr(os, name, spawn_followed)


def leave_no_trace():
    """Takes the folder out of the path and the environment; returns the folder of the run."""
    while HERE in sys.path:
        sys.path.remove(HERE)
    sys.path_importer_cache.pop(HERE, None)
    parts = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if os.path.abspath(part) != HERE or not part]
    if any(parts):
        os.environ["PYTHONPATH"] = os.pathsep.join(parts)
    else:
        os.environ.pop("PYTHONPATH", None)
    return os.environ.pop(VARIABLE, None)


def main():
    folder = leave_no_trace()
    if not folder or not os.path.isdir(folder):
        return
    line = getattr(sys, "orig_argv", None) or []
    if any(word in part for part in line[:4] for word in ("resource_tracker", "multiprocessing.forkserver")):
        return
    follow_children(folder)
    # Shows that this interpreter could be followed at all.
    with open(os.path.join(folder, "python.{}".format(os.getpid())), "w") as file:
        file.write("{}.{}.{}".format(*sys.version_info[:3]))
    sys.meta_path.insert(0, Finder(hook_loader(folder)))


if __name__ == "sitecustomize":
    try:
        main()
    except Exception:
        pass

    # The program's own one, which this file hides. If there is none, or if it fails, Python does what it would have done.
    sys.modules.pop("sitecustomize", None)
    import sitecustomize  # noqa: F401
