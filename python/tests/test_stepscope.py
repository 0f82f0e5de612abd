"""Tests of the helper: with fakes for every framework, and live with those that are installed.

    python -m unittest discover -s python/tests
"""

import contextlib
import glob
import gzip
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import types
import unittest
import warnings

if importlib.util.find_spec("stepscope") is None:  # not installed: the package of this repository, without its native part
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from stepscope import record as stepscope  # noqa: E402

HELPER = os.path.dirname(os.path.dirname(os.path.abspath(stepscope.__file__)))


class Annotation:
    def __init__(self, log, *what):
        self.log, self.what = log, what

    def __enter__(self):
        self.add("begin")

    def __exit__(self, *exception):
        self.add("end")

    def add(self, edge):
        # Marks of the clock have a time in their names; a test of their own looks at them.
        if not self.what[0].startswith("stepscope/clock#"):
            self.log.append((edge,) + self.what)


def fake_tensorflow(log, fails=()):
    def call(name):
        def made(*arguments, **options):
            log.append((name,))
            if name in fails:
                raise RuntimeError("no " + name)

        return made

    def trace(name, **options):
        if "Trace" in fails:
            raise RuntimeError("no Trace")
        return Annotation(log, name, options.get("step_num"))

    module = types.ModuleType("tensorflow")
    profiler = types.SimpleNamespace(
        ProfilerOptions=lambda **levels: levels, start=call("start"), stop=call("stop"), Trace=trace
    )
    module.profiler = types.SimpleNamespace(experimental=profiler)
    module.test = types.SimpleNamespace(experimental=types.SimpleNamespace(sync_devices=call("sync")))
    return module


def fake_jax(log):
    module = types.ModuleType("jax")

    class Array:
        def is_deleted(self):
            return False

        def block_until_ready(self):
            log.append(("ready",))

    class Options:
        python_tracer_level = 1
        host_tracer_level = 3

    module.live_arrays = lambda: [Array()]
    module.profiler = types.SimpleNamespace(
        ProfileOptions=Options,
        start_trace=lambda logdir, profiler_options: log.append(("start", profiler_options.python_tracer_level)),
        stop_trace=lambda: log.append(("stop",)),
        StepTraceAnnotation=lambda name, step_num: Annotation(log, name, step_num),
        TraceAnnotation=lambda name: Annotation(log, name),
    )
    return module


def fake_torch(log):
    class Profile:
        def __init__(self, activities, with_stack):
            pass

        def prepare_trace(self):
            log.append(("prepare",))

        def start_trace(self):
            log.append(("start",))

        def stop_trace(self):
            log.append(("stop",))

        def export_chrome_trace(self, path):
            with open(path, "w") as file:
                file.write("{}")

    module = types.ModuleType("torch")
    module.cuda = types.SimpleNamespace(is_available=lambda: False)
    module.profiler = types.SimpleNamespace(
        ProfilerActivity=types.SimpleNamespace(CPU="cpu", CUDA="cuda"),
        profile=Profile,
        record_function=lambda name: Annotation(log, name),
    )
    return module


def profiles(folder):
    """The files of a folder, without the logs beside profiles."""
    return [name for name in os.listdir(folder) if not name.endswith(".host.json")]


class Faked(unittest.TestCase):
    """With only the fakes loaded."""

    def setUp(self):
        self.log = []
        self.saved = {name: sys.modules.pop(name, None) for name in ("tensorflow", "jax", "torch", "keras")}
        self.addCleanup(self.restore)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def restore(self):
        for name, module in self.saved.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module
        self.assertIsNone(stepscope._active, "a window was left open")

    def use(self, name, fake):
        sys.modules[name] = fake

    def run_loop(self, turns, **options):
        """Runs a loop and gives back the warnings."""
        said = io.StringIO()
        with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stderr(said):
            warnings.simplefilter("always")
            with stepscope.window(self.folder.name, **options) as w:
                for _ in range(turns):
                    self.log.append(("work",))
                    w.step()
        self.said = said.getvalue()
        self.window = w
        return [str(warning.message) for warning in caught]


class Window(Faked):
    def test_exactly_the_steady_steps_are_recorded(self):
        self.use("tensorflow", fake_tensorflow(self.log))
        self.assertEqual(self.run_loop(6, warmup=2, steps=2), [])
        work = ("work",)
        marked = lambda n: [("begin", "train", n), work, ("end", "train", n)]  # noqa: E731
        expected = [work, work, ("sync",), ("start",)] + marked(2) + marked(3) + [("sync",), ("stop",), work, work]
        self.assertEqual(self.log, expected)
        self.assertTrue(self.window.done)
        self.assertIn("recorded 2 steps", self.said)

    def test_without_warmup_the_first_step_is_recorded(self):
        self.use("tensorflow", fake_tensorflow(self.log))
        self.assertEqual(self.run_loop(1, warmup=0, steps=1), [])
        self.assertEqual([entry[0] for entry in self.log], ["sync", "start", "begin", "work", "end", "sync", "stop"])

    def test_a_short_loop_yields_what_there_was_and_no_half_step(self):
        self.use("tensorflow", fake_tensorflow(self.log))
        warned = self.run_loop(4, warmup=1, steps=10)
        self.assertEqual(len(warned), 1)
        self.assertIn("3 of 10", warned[0])
        self.assertEqual(self.window.recorded, 3)
        # The step that began after the last one ends only once the profiler has stopped.
        self.assertLess(self.log.index(("stop",)), self.log.index(("end", "train", 4)))

    def test_a_loop_within_the_warmup_records_nothing(self):
        self.use("tensorflow", fake_tensorflow(self.log))
        warned = self.run_loop(3, warmup=10, steps=10)
        self.assertIn("during the warm-up of 10", warned[0])
        self.assertNotIn(("start",), self.log)

    def test_an_exception_ends_the_profile_and_goes_on(self):
        self.use("tensorflow", fake_tensorflow(self.log))
        with self.assertRaises(KeyError), warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            with stepscope.window(self.folder.name, warmup=0, steps=5) as w:
                w.step()
                raise KeyError("in the loop")
        self.assertEqual(self.log.count(("stop",)), 1)

    def test_a_profiler_that_fails_is_a_warning(self):
        for failing in ("start", "stop", "sync", "Trace"):
            with self.subTest(failing):
                self.log.clear()
                self.use("tensorflow", fake_tensorflow(self.log, fails=(failing,)))
                warned = self.run_loop(8, warmup=2, steps=3)
                self.assertEqual(self.log.count(("work",)), 8)
                self.assertEqual(bool(warned), failing != "Trace")

    def test_warnings_that_are_errors_do_not_break_training(self):
        self.use("tensorflow", fake_tensorflow(self.log, fails=("start",)))
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()) as said:
            warnings.simplefilter("error")
            with stepscope.window(self.folder.name, warmup=0, steps=3) as w:
                w.step()
        self.assertIn("could not start the profiler", said.getvalue())

    def test_a_window_inside_a_window_is_refused(self):
        self.use("tensorflow", fake_tensorflow(self.log))
        with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("always")
            with stepscope.window(self.folder.name, warmup=0, steps=1) as outer:
                with stepscope.window(self.folder.name, warmup=0, steps=1) as inner:
                    inner.step()
                outer.step()
        self.assertEqual((inner.recorded, outer.recorded), (0, 1))
        self.assertIn("another window is already open", str(caught[0].message))
        self.assertEqual(self.log.count(("start",)), 1)

    def test_without_a_framework_the_loop_runs(self):
        warned = self.run_loop(3, warmup=0, steps=1)
        self.assertIn("not imported", warned[0])
        with stepscope.step(1), stepscope.mark("input"):
            pass

    def test_wrapped_batches_are_steps_with_an_input_phase(self):
        self.use("jax", fake_jax(self.log))
        with contextlib.redirect_stderr(io.StringIO()):
            with stepscope.window(self.folder.name, warmup=1, steps=1) as w:
                got = [batch for batch in w.wrap("abc")]
        self.assertEqual(got, ["a", "b", "c"])
        inside = self.log[self.log.index(("begin", "train", 1)) + 1 : self.log.index(("end", "train", 1))]
        self.assertEqual(inside, [("begin", "stepscope/input"), ("end", "stepscope/input")])

    def test_an_unknown_framework_is_wrong_usage(self):
        with self.assertRaises(ValueError):
            stepscope.window("logs", framework="mxnet")


class Frameworks(Faked):
    def test_jax_waits_for_its_devices_and_leaves_python_alone(self):
        self.use("tensorflow", fake_tensorflow([]))  # beside JAX it loads data
        self.use("jax", fake_jax(self.log))
        self.assertEqual(self.run_loop(2, warmup=0, steps=2), [])
        self.assertEqual(self.log[:3], [("ready",), ("start", 0), ("begin", "train", 0)])
        self.assertEqual(self.log[-3:], [("end", "train", 1), ("ready",), ("stop",)])

    def test_pytorch_is_prepared_one_step_ahead_and_written_whole(self):
        self.use("torch", fake_torch(self.log))
        self.assertEqual(self.run_loop(4, warmup=2, steps=1), [])
        names = [entry[0] for entry in self.log]
        self.assertEqual(names[:5], ["work", "prepare", "work", "start", "begin"])
        self.assertIn(("begin", "ProfilerStep#2"), self.log)
        files = profiles(self.folder.name)
        self.assertEqual(len(files), 1)
        self.assertTrue(files[0].endswith(".pt.trace.json.gz") and not files[0].startswith("."))

    def test_a_log_of_python_lies_beside_the_profile_with_its_name(self):
        self.use("torch", fake_torch(self.log))
        self.run_loop(4, warmup=2, steps=1)
        [profile] = profiles(self.folder.name)
        host = stepscope._host_of(profile)
        with open(os.path.join(self.folder.name, host + ".host.json")) as file:
            log = json.load(file)
        self.assertEqual((log["schema"], log["framework"]), ("stepscope.host.v1", "torch"))
        self.assertEqual(len(log["clock"]), 2)
        self.assertTrue(all(stack and max(stack) < len(log["sites"]) for stack in log["stacks"]))
        self.assertNotIn("stepscope-samples", [thread["name"] for thread in log["threads"]])

    def test_what_was_prepared_is_taken_down(self):
        self.use("torch", fake_torch(self.log))
        self.run_loop(1, warmup=2, steps=1)
        self.assertEqual([entry[0] for entry in self.log], ["work", "prepare", "start", "stop"])
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_keras_backend_decides(self):
        for name, fake in (("tensorflow", fake_tensorflow), ("jax", fake_jax), ("torch", fake_torch)):
            self.use(name, fake(self.log))
        keras = types.ModuleType("keras")
        for backend in ("tensorflow", "jax", "torch"):
            keras.config = types.SimpleNamespace(backend=lambda backend=backend: backend)
            self.use("keras", keras)
            self.assertEqual(stepscope._framework().name, backend)

    def test_marks_and_steps_go_to_the_framework(self):
        self.use("torch", fake_torch(self.log))
        with stepscope.step(7), stepscope.mark("output"):
            pass
        self.assertEqual(self.log[:2], [("begin", "ProfilerStep#7"), ("begin", "stepscope/output")])


class KerasLoop(Faked):
    def setUp(self):
        super().setUp()
        self.use("tensorflow", fake_tensorflow(self.log))
        keras = types.ModuleType("keras")
        keras.config = types.SimpleNamespace(backend=lambda: "tensorflow")
        keras.callbacks = types.SimpleNamespace(Callback=type("Callback", (), {}))
        self.use("keras", keras)

    def fit(self, callback, batches, fails_at=None):
        callback.on_train_begin()
        for batch in range(batches):
            callback.on_train_batch_begin(batch)
            if batch == fails_at:
                raise KeyError("in the fit")
            callback.on_train_batch_end(batch)
            self.log.append(("between",))
        callback.on_train_end()

    def test_batches_are_steps_and_what_lies_between_them_is_not_marked(self):
        callback = stepscope.KerasCallback(self.folder.name, warmup=1, steps=2)
        with contextlib.redirect_stderr(io.StringIO()):
            self.fit(callback, 5)
        between = ("between",)
        batch = lambda n: [("begin", "train", n), ("end", "train", n)]  # noqa: E731
        expected = [("sync",), ("start",), between] + batch(1) + [between] + batch(2)
        expected += [("sync",), ("stop",), between, between, between]
        self.assertEqual(self.log, expected)

    def test_a_second_fit_records_nothing_more(self):
        callback = stepscope.KerasCallback(self.folder.name, warmup=0, steps=1)
        with contextlib.redirect_stderr(io.StringIO()):
            self.fit(callback, 2)
            self.fit(callback, 2)
        self.assertEqual(self.log.count(("start",)), 1)

    def test_a_fit_that_failed_does_not_block_the_next(self):
        first, second = (stepscope.KerasCallback(self.folder.name, warmup=0, steps=2) for _ in range(2))
        with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with self.assertRaises(KeyError):
                self.fit(first, 3, fails_at=1)
            self.fit(second, 3)
        self.assertEqual((self.log.count(("start",)), self.log.count(("stop",))), (2, 2))
        self.assertEqual((first.window.recorded, second.window.recorded), (1, 2))


def has(*modules):
    return all(importlib.util.find_spec(module) for module in modules)


class Live(unittest.TestCase):
    """In a process of its own each, because frameworks do not share one gladly."""

    def run_program(self, program, **environment):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        variables = dict(os.environ, PYTHONPATH=HELPER, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", **environment)
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program), folder.name],
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
            timeout=300,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("recorded 4 steps", done.stderr)
        self.assertNotIn("StepscopeWarning", done.stderr)
        return folder.name

    def xplane(self, folder):
        files = glob.glob(os.path.join(folder, "plugins", "profile", "*", "*.xplane.pb"))
        self.assertEqual(len(files), 1, files)
        with open(files[0], "rb") as file:
            return file.read()

    @unittest.skipUnless(has("tensorflow"), "TensorFlow is not installed")
    def test_tensorflow(self):
        folder = self.run_program("""
            import sys, tensorflow as tf, stepscope
            f = tf.function(lambda x: tf.reduce_sum(x @ x))
            with stepscope.window(sys.argv[1], warmup=2, steps=4) as w:
                for x in w.wrap(tf.data.Dataset.range(10).map(lambda i: tf.ones([8, 8]))):
                    f(x)
        """)
        profile = self.xplane(folder)
        self.assertIn(b"train", profile)
        self.assertIn(b"stepscope/input", profile)

    @unittest.skipUnless(has("tensorflow", "keras"), "Keras on TensorFlow is not installed")
    def test_keras(self):
        self.check_keras("tensorflow")

    @unittest.skipUnless(has("jax", "keras"), "Keras on JAX is not installed")
    def test_keras_on_jax(self):
        self.check_keras("jax")

    def check_keras(self, backend):
        program = """
            import sys, keras, numpy, stepscope
            model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
            model.compile(loss="mse", optimizer="sgd")
            callback = stepscope.KerasCallback(sys.argv[1], warmup=2, steps=4)
            model.fit(numpy.ones((80, 4)), numpy.ones((80, 1)), batch_size=8, verbose=0, callbacks=[callback])
        """
        self.assertIn(b"train", self.xplane(self.run_program(program, KERAS_BACKEND=backend)))

    @unittest.skipUnless(has("jax"), "JAX is not installed")
    def test_jax(self):
        folder = self.run_program("""
            import sys, jax, jax.numpy as jnp, stepscope
            f = jax.jit(lambda x: x @ x)
            x = jnp.ones((8, 8))
            with stepscope.window(sys.argv[1], warmup=2, steps=4) as w:
                for _ in range(10):
                    with stepscope.mark("output"):
                        f(x)
                    w.step()
        """)
        profile = self.xplane(folder)
        self.assertIn(b"stepscope/output", profile)
        self.assertIn(b"step_num", profile)

    @unittest.skipUnless(has("torch"), "PyTorch is not installed")
    def test_pytorch(self):
        folder = self.run_program("""
            import sys, torch, stepscope
            with stepscope.window(sys.argv[1], warmup=2, steps=4) as w:
                for x in w.wrap(torch.ones(8, 8) for _ in range(10)):
                    x @ x
        """)
        files = profiles(folder)
        self.assertEqual(len(files), 1)
        with gzip.open(os.path.join(folder, files[0]), "rt") as file:
            events = json.load(file)["traceEvents"]
        steps = {event["name"] for event in events if event.get("name", "").startswith("ProfilerStep#")}
        self.assertEqual(steps, {"ProfilerStep#{}".format(number) for number in range(2, 6)})
        self.assertIn("stepscope/input", {event.get("name") for event in events})

    @unittest.skipUnless(has("torch"), "PyTorch is not installed")
    def test_pytorch_loop_that_ends_early_has_whole_steps_only(self):
        folder = self.run_program("""
            import sys, torch, stepscope, warnings
            warnings.simplefilter("ignore")
            with stepscope.window(sys.argv[1], warmup=2, steps=100) as w:
                for x in w.wrap(torch.ones(8, 8) for _ in range(6)):
                    x @ x
        """)
        with gzip.open(glob.glob(os.path.join(folder, "*.gz"))[0], "rt") as file:
            events = json.load(file)["traceEvents"]
        steps = {event["name"] for event in events if event.get("name", "").startswith("ProfilerStep#")}
        self.assertEqual(steps, {"ProfilerStep#{}".format(number) for number in range(2, 6)})


if __name__ == "__main__":
    unittest.main()
