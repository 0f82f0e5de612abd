"""The hook in a program that runs already: attached, detached, and in notebooks. Frameworks are a few lines."""

import json
import os
import subprocess
import sys
import tempfile
import types
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
MAKER = os.path.join(HERE, "..", "..", "crates", "stepscope", "tests", "support", "fake_torch.py")


class Events:
    def __init__(self):
        self.calls = {}

    def register(self, name, call):
        self.calls.setdefault(name, []).append(call)

    def unregister(self, name, call):
        self.calls[name].remove(call)

    def run(self, name):
        for call in list(self.calls.get(name, [])):
            call(None)


class HookTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.library = tempfile.TemporaryDirectory()
        subprocess.run([sys.executable, "-B", MAKER, cls.library.name], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.library.cleanup()

    def setUp(self):
        self.before = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "torch"}
        for name in self.before:
            del sys.modules[name]
        sys.path.insert(0, self.library.name)
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        from stepscope import hook, record

        hook.detach()
        record._cache.clear()
        sys.path.remove(self.library.name)
        for name in [name for name in sys.modules if name.split(".")[0] == "torch"]:
            del sys.modules[name]
        sys.modules.update(self.before)
        self.folder.cleanup()

    def train(self, steps=60):
        import torch

        optimizer = torch.optim.SGD()
        for _ in range(steps):
            torch.work(0.001)
            optimizer.step()

    def logs(self, folder):
        found = []
        for place, _, names in os.walk(folder):
            found += [os.path.join(place, name) for name in names if name.endswith(".host.json")]
        documents = []
        for path in sorted(found):
            with open(path) as file:
                documents.append(json.load(file))
        return documents

    def attach(self, **options):
        from stepscope import hook

        with open(os.path.join(self.folder.name, "options.json"), "w") as file:
            json.dump(dict(options, into=os.path.join(self.folder.name, "logs")), file)
        return hook, hook.attach(self.folder.name)

    def test_a_loop_that_runs_is_recorded_once_and_left_as_it_was(self):
        import torch

        self.train(3)
        hook, recorder = self.attach(once=True)
        self.assertEqual(len(torch.optim.optimizer._hooks), 1)
        recorder.WARM_SECONDS = 0.05
        self.train(120)
        self.assertEqual((recorder.state, recorder.problems), ("done", []))
        self.assertEqual(torch.optim.optimizer._hooks, [])
        self.assertFalse(hasattr(torch.autograd.backward, "__wrapped__"))
        (log,) = self.logs(self.folder.name)
        self.assertEqual((log["steps"]["source"], log["window"]["ended_by"]), ("update", "complete"))

    def test_without_steps_some_time_is_recorded(self):
        import time

        import torch

        hook, recorder = self.attach(once=True)
        timer = hook.arm(0.05, 0.2)
        for _ in range(100):
            torch.work(0.005)
            time.sleep(0.001)
        timer.join(5)
        (log,) = self.logs(self.folder.name)
        self.assertIsNone(log["steps"])
        self.assertEqual(log["window"]["ended_by"], "time")
        self.assertTrue(any(thread["id"] == log["loop_thread"] for thread in log["threads"]))

    def test_the_first_problem_takes_all_patches_back(self):
        import torch

        hook, recorder = self.attach()
        hook._loop.anchor = None
        self.train(3)
        self.assertEqual(torch.optim.optimizer._hooks, [])
        self.assertEqual(len(recorder.problems), 1)

    def test_compiled_functions_of_the_program_are_wrapped_while_it_is_attached(self):
        from stepscope import hook

        class PjitFunction:
            def __call__(self, x):
                return x + 1

        main, step = sys.modules["__main__"], PjitFunction()
        sys.modules.setdefault("jax", types.ModuleType("jax"))
        main.compiled_step = step
        try:
            self.attach()
            self.assertIsInstance(main.compiled_step, hook.Jitted)
            self.assertEqual(main.compiled_step(1), 2)
            hook.detach()
            self.assertIs(main.compiled_step, step)
        finally:
            del main.compiled_step
            if not hasattr(sys.modules["jax"], "__version__"):
                del sys.modules["jax"]

    def test_every_cell_of_a_notebook_that_trains_is_recorded(self):
        import stepscope
        from stepscope import notebook

        shell = types.SimpleNamespace(events=Events())
        folder, before = os.getcwd(), list(sys.meta_path)
        os.chdir(self.folder.name)
        try:
            stepscope.load_ipython_extension(shell)
            stepscope.load_ipython_extension(shell)
            self.assertEqual(len(notebook._extension), 1)
            for steps in (30, 0, 30):
                shell.events.run("pre_run_cell")
                self.train(steps) if steps else None
                shell.events.run("post_run_cell")
            stepscope.unload_ipython_extension(shell)
            self.train(30)
            self.assertEqual(len(self.logs(notebook.FOLDER)), 2)
            self.assertEqual((sys.meta_path, sum(map(len, shell.events.calls.values()))), (before, 0))
        finally:
            os.chdir(folder)


if __name__ == "__main__":
    unittest.main()
