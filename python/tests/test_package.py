"""Tests of the package with its native module: profiles, frames, notebooks, interrupts, forks, the command line.

They run where the wheel is installed (``cargo xtask wheel --check``), and are skipped elsewhere. Data-frame libraries are
used where they are installed.
"""

import contextlib
import functools
import http.server
import importlib.util
import io
import json
import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
import warnings

if importlib.util.find_spec("stepscope") is None:
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import stepscope  # noqa: E402

NATIVE = importlib.util.find_spec("stepscope._stepscope") is not None
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
FIXTURES = os.path.join(ROOT, "fixtures")
SLOW = os.path.join(FIXTURES, "tf-input-bound")
FAST = os.path.join(FIXTURES, "tf-train")


def has(*modules):
    return all(importlib.util.find_spec(module) is not None for module in modules)


def command(*arguments):
    return subprocess.run([sys.executable, "-m", "stepscope", *arguments], capture_output=True, text=True)


class Recording(unittest.TestCase):
    """What must work without the native module."""

    def test_recording_does_not_load_the_native_module(self):
        script = "import stepscope, sys\nwith stepscope.step(1), stepscope.mark('input'): pass\n"
        script += "assert not [name for name in sys.modules if '_stepscope' in name], sys.modules"
        path = os.pathsep.join(sys.path)
        subprocess.run([sys.executable, "-c", script], check=True, env=dict(os.environ, PYTHONPATH=path))

    def test_the_helper_works_as_a_single_copied_file(self):
        from stepscope import record

        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(record.__file__, os.path.join(folder, "stepscope.py"))
            script = "import stepscope\nwith stepscope.window('logs', warmup=0) as w:\n    w.step()\nprint(stepscope.__file__)"
            # -I would leave out the folder; -P is new in 3.11.
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", script], cwd=folder, capture_output=True, text=True, check=True
            )
            self.assertEqual(os.path.dirname(os.path.realpath(done.stdout.strip())), os.path.realpath(folder))

    def test_names_are_listed_before_they_are_loaded(self):
        self.assertIn("open", dir(stepscope))
        with self.assertRaises(AttributeError):
            stepscope.nothing
        self.assertNotIn("open", stepscope.__all__, "a star import must not hide Python's own")


@unittest.skipUnless(NATIVE, "needs the wheel")
class Profiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.profile = stepscope.open(SLOW)

    def test_the_report_is_that_of_the_command_line(self):
        report = self.profile.report()
        told = json.loads(command("report", SLOW, "--json").stdout)
        self.assertEqual(report.json, told)
        self.assertEqual(str(report), command("report", SLOW).stdout.rstrip("\n"))
        self.assertEqual(self.profile.findings[0].id, "input-bound")
        self.assertIn("input-bound", self.profile.findings[0].explain())
        self.assertAlmostEqual(sum(report.breakdown.values()), report.json["steps"]["mean_ms"], delta=0.05)

    def test_every_view_is_a_frame_with_the_columns_of_the_command_line(self):
        from stepscope import _stepscope

        for name, question, ways in _stepscope.views():
            frame = getattr(self.profile, name)
            told = json.loads(command(*name.split("_"), SLOW, "--json").stdout)
            self.assertEqual(len(frame), len(told["rows"]), name)
            for row, other in zip(frame, told["rows"]):
                for key, value in other.items():
                    if value is None and key not in row:  # rows of named numbers: one column per name
                        value = {column: None for column in row if column.startswith(key + ".")}
                    elif isinstance(value, dict):
                        value = {"{}.{}".format(key, part): number for part, number in value.items()}
                    else:
                        value = {key: value}
                    for column, expected in value.items():
                        self.assertEqual(row[column], expected, (name, column))
            self.assertTrue(question.endswith("?"))
            for by in ways:
                self.assertGreaterEqual(len(self.profile.view(name, by)), 0)

    def test_all_events_are_there(self):
        events = self.profile.events
        self.assertEqual(len(events), self.profile.sources[0]["events"])
        self.assertEqual(
            events.columns, ["host", "process", "track", "name", "category", "start_ps", "duration_ps"]
        )
        self.assertEqual(set(events["host"]), {"trainer"})

    def test_a_part_can_be_selected(self):
        some = stepscope.open(SLOW, steps=(8, 10))
        self.assertEqual(some.steps["index"], [8, 9, 10])
        self.assertLess(len(stepscope.open(SLOW, time=(0.0, 0.2)).steps), len(self.profile.steps))
        with self.assertRaisesRegex(stepscope.Error, "steps 900 to 901"):
            stepscope.open(SLOW, steps=(900, 901)).steps

    def test_what_cannot_be_done_says_what_can(self):
        with self.assertRaisesRegex(stepscope.Error, "check the path"):
            stepscope.open(os.path.join(ROOT, "nowhere"))
        with self.assertRaisesRegex(stepscope.Error, "the views are steps, "):
            self.profile.view("colour")
        with self.assertRaisesRegex(stepscope.Error, "name, type"):
            self.profile.view("ops", by="colour")
        with self.assertRaisesRegex(KeyError, "the columns are"):
            self.profile.ops["colour"]
        with self.assertRaises(AttributeError):
            self.profile.colour

    def test_damage_is_a_warning_and_the_rest_is_read(self):
        file = self.profile.sources[0]["path"]
        with tempfile.TemporaryDirectory() as folder:
            cut = os.path.join(folder, "cut.xplane.pb")
            with open(file, "rb") as whole, open(cut, "wb") as out:
                out.write(whole.read()[:100_000])
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                profile = stepscope.open(cut)
            self.assertTrue(any("damaged" in str(one.message) for one in caught))
            self.assertTrue(profile.problems and len(profile.events) > 0)

    def test_sql_answers_with_a_frame(self):
        found = self.profile.sql("SELECT count(*) AS events, sum(dur) AS ns, 'x' AS text, NULL AS none FROM event")
        self.assertEqual(found.columns, ["events", "ns", "text", "none"])
        row = found.rows()[0]
        self.assertEqual((row["events"], row["text"], row["none"]), (len(self.profile.events), "x", None))
        self.assertEqual(len(self.profile.sql("SELECT name FROM event", rows=5, quiet=True)), 5)
        with self.assertWarnsRegex(stepscope.StepscopeWarning, "5 rows"):
            self.profile.sql("SELECT name FROM event", rows=5)
        for bad in ("DELETE FROM event", "SELECT * FROM nowhere", "ATTACH 'x' AS y", ""):
            with self.assertRaises(stepscope.Error):
                self.profile.sql(bad)
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
        with self.assertRaises(stepscope.Error):
            self.profile.sql(endless, seconds=0.2)

    def test_a_web_address_is_read_like_a_file(self):
        folder = os.path.join(SLOW, "plugins", "profile", "2026_01_01_00_00_00")
        name = next(name for name in os.listdir(folder) if name.endswith(".xplane.pb"))

        class Quiet(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *arguments):
                pass

        handler = functools.partial(Quiet, directory=folder)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            there = stepscope.open("http://127.0.0.1:%d/%s" % (server.server_port, name))
            here = stepscope.open(os.path.join(folder, name))
            self.assertEqual(there.report().verdict, here.report().verdict)
            with self.assertRaisesRegex(stepscope.Error, "neither a file nor a folder"):
                stepscope.open("http://127.0.0.1:%d/nothing.json" % server.server_port).report()
            server.shutdown()

    def test_two_profiles_compare_as_on_the_command_line(self):
        change = self.profile.compare(FAST)
        self.assertEqual(change.json, json.loads(command("compare", SLOW, FAST, "--json").stdout))
        self.assertEqual(change.verdict, "faster")
        self.assertLess(change.ratio["high"], 1)

    def test_a_profile_travels_by_its_paths_and_a_frame_says_that_it_cannot(self):
        again = pickle.loads(pickle.dumps(self.profile))
        self.assertEqual(again.report().verdict, self.profile.report().verdict)
        with self.assertRaisesRegex(TypeError, "to_arrow"):
            pickle.dumps(self.profile.ops)

    def test_files_are_written_by_their_name(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, start in (("r.html", "<!doctype"), ("r.md", "#"), ("r.json", "{"), ("r.txt", "Input-bound")):
                path = os.path.join(folder, name)
                self.profile.report().save(path)
                with open(path, encoding="utf-8") as file:
                    self.assertTrue(file.read().lstrip().startswith(start), name)

    def test_help_teaches(self):
        for thing in (stepscope, stepscope.open, stepscope.Report, stepscope.Frame, stepscope.benchmark):
            self.assertIn(">>>", thing.__doc__ or "")
        for name in dir(stepscope.Profile):
            if not name.startswith("_"):
                self.assertTrue(getattr(stepscope.Profile, name).__doc__, name)

    def test_the_sample_is_built_in(self):
        self.assertIn("Input-bound", stepscope.demo().report().verdict)


@unittest.skipUnless(NATIVE, "needs the wheel")
class Frames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.profile = stepscope.open(SLOW)

    @unittest.skipUnless(has("pyarrow"), "needs pyarrow")
    def test_arrow_takes_frames_without_a_copy(self):
        import pyarrow

        events = self.profile.events
        first, second = pyarrow.table(events), pyarrow.table(events)
        address = lambda table: table["start_ps"].chunk(0).buffers()[1].address  # noqa: E731
        self.assertEqual(address(first), address(second), "both see the frame's own memory")
        first.validate(full=True)
        self.assertEqual(first["name"].to_pylist()[:50], events["name"][:50])
        del events, second
        self.assertEqual(first.num_rows, self.profile.sources[0]["events"])
        for name in ("steps", "ops", "input", "devices", "health", "scopes"):
            table = getattr(self.profile, name).to_arrow()
            table.validate(full=True)
            self.assertEqual(table.to_pylist(), getattr(self.profile, name).rows(), name)

    @unittest.skipUnless(has("pandas", "pyarrow"), "needs pandas")
    def test_pandas(self):
        steps = self.profile.steps.to_pandas()
        self.assertEqual(list(steps["index"]), self.profile.steps["index"])
        self.assertIn("breakdown.input", steps.columns)
        events = self.profile.events.to_pandas()
        self.assertEqual(str(events["name"].dtype), "category")
        self.assertEqual(int(events["duration_ps"].sum()), sum(self.profile.events["duration_ps"]))

    @unittest.skipUnless(has("polars"), "needs polars")
    def test_polars(self):
        ops = self.profile.ops.to_polars()
        self.assertEqual(ops["self_ms"].to_list(), self.profile.ops["self_ms"])
        self.assertEqual(self.profile.events.to_polars().height, len(self.profile.events))

    @unittest.skipUnless(has("duckdb"), "needs duckdb")
    def test_duckdb(self):
        import duckdb

        events = self.profile.events  # noqa: F841 (DuckDB finds it by its name)
        found = duckdb.sql("SELECT count(*), sum(duration_ps) FROM events").fetchall()[0]
        self.assertEqual(found, (len(events), sum(events["duration_ps"])))

    def test_an_empty_frame_is_a_frame(self):
        kernels = self.profile.kernels
        self.assertEqual((len(kernels), kernels.rows(), list(kernels)), (0, [], []))
        if has("pyarrow"):
            self.assertEqual(kernels.to_arrow().num_rows, 0)


@unittest.skipUnless(NATIVE, "needs the wheel")
class Notebooks(unittest.TestCase):
    def test_a_report_shows_itself_without_scripts_and_names_stay_text(self):
        bundle = stepscope.open(SLOW)._repr_mimebundle_()
        self.assertIn("Input-bound", bundle["text/plain"])
        fragment = bundle["text/html"]
        self.assertTrue("<svg" in fragment and "profile.serve()" in fragment)
        self.assertFalse("<script" in fragment or "<style" in fragment)
        self.assertLess(len(fragment), 100_000)
        table = stepscope.open(SLOW).ops._repr_html_()
        self.assertIn("<table>", table)
        self.assertIn('<th style="text-align:left">name</th>', table)
        self.assertIn("<th>self_ms</th>", table, "numbers keep the notebook's own alignment")

    def test_a_served_page_is_linked_and_ends(self):
        profile = stepscope.open(SLOW)
        with profile.serve(port=0) as page:
            import urllib.request

            with urllib.request.urlopen(page.url + "api/sessions") as answer:
                self.assertEqual(answer.status, 200)
            self.assertIn(page.timeline(profile.session), profile._repr_mimebundle_()["text/html"])
            self.assertIn(page.url, page._repr_html_())
            self.assertIs(profile.serve(), page, "one page per path")
        self.assertFalse(page.running)
        with self.assertRaisesRegex(stepscope.Error, "nowhere"):
            stepscope.serve(os.path.join(ROOT, "nowhere"))

    @unittest.skipUnless(has("nbclient", "nbformat", "ipykernel"), "needs nbclient and ipykernel")
    def test_a_notebook_runs_headless_and_shows_the_report(self):
        import nbformat
        from nbclient import NotebookClient

        cells = [
            "import stepscope\nprofile = stepscope.open({!r})\nprofile".format(SLOW),
            "profile.ops",
            "page = profile.serve(port=0)\npage",
            "profile.report()",
            "page.stop()",
        ]
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        with tempfile.TemporaryDirectory() as folder:
            NotebookClient(book, timeout=120, resources={"metadata": {"path": folder}}).execute()
        shown = [cell.outputs[0].data if cell.outputs else {} for cell in book.cells]
        self.assertIn("Input-bound", shown[0]["text/html"])
        self.assertIn("waiting for the next batch", shown[0]["text/html"])
        self.assertTrue(shown[0]["text/html"].count("<rect") >= 14, "one bar per step")
        self.assertIn("<table>", shown[1]["text/html"])
        self.assertIn("http://127.0.0.1", shown[2]["text/html"])
        self.assertIn("/timeline", shown[3]["text/html"], "the thumbnail links to the page that is served")


def _in_child(queue):
    profile = stepscope.open(SLOW)
    queue.put((profile.report().verdict, len(profile.events), len(profile.ops)))


@unittest.skipUnless(NATIVE, "needs the wheel")
class Processes(unittest.TestCase):
    @unittest.skipUnless("fork" in multiprocessing.get_all_start_methods(), "needs fork")
    def test_a_forked_child_does_not_hang(self):
        here = stepscope.open(SLOW)
        expected = (here.report().verdict, len(here.events), len(here.ops))
        fork = multiprocessing.get_context("fork")
        queue = fork.SimpleQueue()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = fork.Process(target=_in_child, args=(queue,))
            child.start()
        child.join(60)
        alive = child.is_alive()
        if alive:
            child.kill()
        self.assertFalse(alive, "the child waits for threads that it does not have")
        self.assertEqual(queue.get(), expected)

    @unittest.skipIf(os.name == "nt", "needs POSIX signals")
    def test_an_interrupt_ends_a_read_and_other_threads_run_meanwhile(self):
        # A pipe never delivers: the read waits until the interrupt.
        script = """
            import os, signal, sys, tempfile, threading, time
            import stepscope
            turns = 0
            def count():
                global turns
                while True:
                    turns += 1
                    time.sleep(0.01)
            threading.Thread(target=count, daemon=True).start()
            threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            folder = tempfile.mkdtemp()
            pipe = os.path.join(folder, "trace.json")
            os.mkfifo(pipe)
            began = time.monotonic()
            try:
                stepscope.open(pipe)
            except KeyboardInterrupt:
                print("interrupted" if turns > 20 else "starved", time.monotonic() - began, flush=True)
                os._exit(0)
            except stepscope.Error as error:
                print("not read", error, flush=True)
                os._exit(0)
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60
        )
        self.assertTrue(done.stdout.startswith(("interrupted", "not read")), done.stdout + done.stderr)

    def test_the_command_line_is_part_of_the_package(self):
        self.assertIn(stepscope.__version__, command("--version").stdout)
        self.assertEqual(command("report", os.path.join(ROOT, "nowhere")).returncode, 3)
        self.assertEqual(command("colour").returncode, 2)
        gate = command("gate", FAST, SLOW)
        self.assertEqual(gate.returncode, 1, gate.stderr)

    def test_versions_agree(self):
        from stepscope import _stepscope, record

        self.assertEqual(_stepscope.__version__, record.__version__)

    def test_progress_is_shown_late_and_cleared(self):
        from stepscope.progress import Shown

        with contextlib.redirect_stderr(io.StringIO()) as out:
            with Shown(True) as tick:
                tick(1, 10, 5)
                self.assertEqual(out.getvalue(), "", "nothing flashes")
                time.sleep(0.35)
                tick(5, 10, 7)
        self.assertIn("reading", out.getvalue())


@unittest.skipUnless(NATIVE, "needs the wheel")
class Fleet(unittest.TestCase):
    def test_the_four_functions_give_the_same_bytes_in_any_order(self):
        from stepscope import fleet

        works = fleet.plan(FIXTURES, group_bytes=1)
        self.assertGreater(len(works), 3)
        parts = [fleet.partial(work, threads=1) for work in works]
        one = fleet.merge(parts)
        backwards = fleet.merge([fleet.merge(parts[::-1][:3]), fleet.merge(parts[::-1][2:]), one])
        self.assertEqual(one, backwards)
        self.assertEqual(fleet.merge([one]), one)
        report = fleet.run(FIXTURES)
        self.assertEqual(report.json, fleet.finish(one).json)
        self.assertGreater(len(report.jobs), 0)
        self.assertEqual(pickle.loads(pickle.dumps(report)).answer, report.answer)

    def test_work_that_failed_is_an_entry_that_says_so(self):
        from stepscope import fleet

        works = fleet.plan(FIXTURES, group_bytes=1)
        parts = [fleet.partial(work) for work in works[1:]] + [fleet.failed(works[0], "the machine died")]
        report = fleet.finish(fleet.merge(parts))
        self.assertFalse(report.complete)
        self.assertIn("the machine died", report.failed["reason"])
        again = fleet.finish(fleet.merge(parts + [fleet.partial(works[0])]))
        self.assertEqual(again.json, fleet.run(FIXTURES).json, "a second try replaces it")

    def test_versions_are_compared(self):
        from stepscope import fleet

        fleet.check_versions({"a": fleet.version()})
        with self.assertRaisesRegex(stepscope.Error, "b has 0.0.1"):
            fleet.check_versions({"a": fleet.version(), "b": "0.0.1 format 0"})

    def test_adapters_stay_small(self):
        folder = os.path.dirname(os.path.abspath(stepscope.fleet.__file__))
        for name in ("ray", "dask", "spark"):
            with open(os.path.join(folder, name + ".py")) as file:
                self.assertLessEqual(len(file.readlines()), 60, name)


if __name__ == "__main__":
    unittest.main()
