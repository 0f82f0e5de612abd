"""Tests of the benchmark decorator and the pytest plugin, with a clock of their own where time decides."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
import warnings
from unittest import mock

if importlib.util.find_spec("stepscope") is None:
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import stepscope  # noqa: E402

NATIVE = importlib.util.find_spec("stepscope._stepscope") is not None


class Clock:
    """A clock that a step advances by its own time, with a little noise that repeats."""

    def __init__(self):
        self.now, self.turn = 0, 0

    def step(self, ms):
        self.turn = (self.turn * 1103515245 + 12345) % 2**31
        self.now += int(ms * 1e6 * (1 + (self.turn / 2**31 - 0.5) / 50))

    def __call__(self):
        return self.now


@unittest.skipUnless(NATIVE, "needs the wheel")
class Benchmarks(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext_(tempfile.TemporaryDirectory())
        self.clock = Clock()
        self.enterContext_(mock.patch("time.perf_counter_ns", self.clock))

    def enterContext_(self, context):  # enterContext is new in 3.11
        entered = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return entered

    def run_step(self, ms, **options):
        @stepscope.benchmark(baseline=self.folder, name="step", **options)
        def step(value):
            self.clock.step(ms)
            return value

        return step(7)

    def test_the_first_call_stores_and_later_calls_compare(self):
        self.assertEqual(self.run_step(10.0), 7)
        with open(os.path.join(self.folder, "step.json")) as file:
            stored = json.load(file)
        self.assertEqual((stored["schema"], len(stored["runs"]), len(stored["runs"][0])), ("stepscope.baseline.v1", 3, 30))
        self.assertEqual(self.run_step(10.0), 7, "the same speed passes")
        self.run_step(8.0)
        with self.assertRaisesRegex(stepscope.Regression, "gate failed"):
            self.run_step(12.0)
        self.run_step(12.0, max_regression=0.5)

    def test_work_is_stored_and_can_be_what_is_checked(self):
        worked = Clock()
        self.enterContext_(mock.patch("time.process_time_ns", worked))

        def run(ms, cpu_ms, **options):
            @stepscope.benchmark(baseline=self.folder, name="step", **options)
            def step():
                self.clock.step(ms)
                worked.step(cpu_ms)

            step()

        run(10.0, 8.0)
        with open(os.path.join(self.folder, "step.json")) as file:
            self.assertAlmostEqual(json.load(file)["work"]["cpu"][0][0], 8.0, delta=0.2)
        run(10.0, 8.0, metric="cpu")
        run(10.0, 12.0)  # more work in the same time is only reported
        with self.assertRaisesRegex(stepscope.Regression, "cpu 8"):
            run(10.0, 12.0, metric=["step.mean", "cpu"])
        with self.assertRaisesRegex(stepscope.Error, "has no device"):
            run(10.0, 8.0, metric="device")
        with self.assertRaisesRegex(ValueError, "unknown metric"):
            run(10.0, 8.0, metric="speed")

    def test_another_machine_is_refused(self):
        self.run_step(10.0)
        path = os.path.join(self.folder, "step.json")
        with open(path) as file:
            stored = json.load(file)
        stored["machine"] = "another machine"
        with open(path, "w") as file:
            json.dump(stored, file)
        with self.assertRaisesRegex(stepscope.Error, "another machine"):
            self.run_step(10.0)

    def test_a_file_that_is_no_baseline_is_named(self):
        with open(os.path.join(self.folder, "step.json"), "w") as file:
            file.write("[]")
        with self.assertRaisesRegex(ValueError, "not a baseline"):
            self.run_step(10.0)

    def test_without_a_folder_the_function_just_runs(self):
        calls = []

        @stepscope.benchmark()
        def step():
            calls.append(1)

        step()
        self.assertEqual(calls, [1])
        with self.assertRaises(ValueError):
            stepscope.benchmark(max_regression="fast")

    @unittest.skipUnless(importlib.util.find_spec("pytest"), "needs pytest")
    def test_pytest_compares_with_a_baseline(self):
        test = textwrap.dedent(
            """
            import os, time
            import pytest, stepscope

            @pytest.fixture
            def seconds():
                return float(os.environ["SECONDS"])

            @stepscope.benchmark(max_regression="50%", warmup=1, steps=10, runs=3)
            def test_step(seconds):
                time.sleep(seconds)
            """
        )
        with open(os.path.join(self.folder, "test_it.py"), "w") as file:
            file.write(test)

        def pytest(seconds, *options):
            # The plugin comes with the installed package; with it, `-p` is not needed.
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "test_it.py"]
            env = dict(os.environ, SECONDS=str(seconds))
            return subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True)

        first = pytest(0.002, "--stepscope-baseline", "base")
        self.assertEqual(first.returncode, 0, first.stdout + first.stderr)
        self.assertIn("stored as the baseline", first.stdout)
        slower = pytest(0.02, "--stepscope-baseline", "base")
        self.assertEqual(slower.returncode, 1, slower.stdout)
        self.assertIn("gate failed", slower.stdout)
        self.assertEqual(pytest(0.02, "--stepscope-baseline", "base", "--stepscope-update").returncode, 0)
        self.assertEqual(pytest(0.02).returncode, 0, "without a folder it is an ordinary test")

    def test_too_noisy_to_decide_is_a_warning(self):
        self.run_step(10.0, steps=3, runs=1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with mock.patch("stepscope._stepscope.gate_steps", return_value=("unclear", "too noisy", None)):
                self.run_step(10.0, steps=3, runs=1)
                with self.assertRaises(stepscope.Regression):
                    self.run_step(10.0, steps=3, runs=1, strict=True)
        self.assertTrue(any("too noisy" in str(one.message) for one in caught))


if __name__ == "__main__":
    unittest.main()
