"""Tests of ``stepscope.tfprof``: options against those of TensorFlow, and live tables against those of tfprof itself.

    STEPSCOPE=target/debug/stepscope python -m unittest discover -s python/tests
"""

import contextlib
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

PYTHON = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
if importlib.util.find_spec("stepscope") is None:  # not installed: the package of this repository
    sys.path.insert(0, PYTHON)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pprof  # noqa: E402
from stepscope.tfprof import Node, ProfileOptionBuilder, _arguments, _tree  # noqa: E402

ROOT = os.path.dirname(PYTHON)


def binary():
    named = os.environ.get("STEPSCOPE")
    built = [os.path.join(ROOT, "target", profile, "stepscope") for profile in ("debug", "release")]
    return next((path for path in [named] + built if path and os.path.exists(path)), None)


LIVE = importlib.util.find_spec("tensorflow") is not None and binary() is not None


class Options(unittest.TestCase):
    def test_a_preset_is_a_copy_that_can_be_built_upon(self):
        builder = ProfileOptionBuilder(ProfileOptionBuilder.time_and_memory(min_micros=5))
        options = builder.with_step(3).with_node_names(show_name_regexes=["a,b"]).select(["micros"]).build()
        self.assertEqual((options["min_micros"], options["step"], options["max_depth"]), (5, 3, 10000))
        self.assertEqual(ProfileOptionBuilder.time_and_memory()["step"], -1)
        arguments = _arguments(options)
        self.assertIn("--show_name_regexes=a\\,b", arguments)
        self.assertIn("--account_displayed_op_only=true", arguments)
        self.assertIn("--trim_name_regexes=", arguments)

    def test_what_is_missing_is_what_tensorflow_takes_for_it(self):
        arguments = _arguments({"select": ["params"]})
        self.assertIn("--max_depth=10", arguments)
        self.assertIn("--account_type_regexes=", arguments)
        with self.assertRaises(ValueError):
            _arguments({"selects": []})

    def test_a_tree_has_the_fields_as_attributes(self):
        text = '{"name": "a", "total_float_ops": 3, "children": [{"name": "b", "children": []}]}'
        tree = _tree(text)
        self.assertIsInstance(tree, Node)
        self.assertEqual((tree.total_float_ops, tree.children[0].name, tree.total_parameters), (3, "b", 0))
        deep = '{"name": "x", "children": [' * 5000 + "]}" * 5000
        self.assertEqual(_tree(deep).children[0].name, "x")

    @unittest.skipUnless(LIVE, "needs TensorFlow and the binary")
    def test_calls_of_old_tutorials_work_where_their_meaning_is_clear(self):
        script = """
            import os, sys, tempfile
            import tensorflow as tf
            from stepscope.tfprof import Profiler
            logs = tempfile.mkdtemp()
            with tf.Graph().as_default():
                with tf.compat.v1.variable_scope("train"):
                    w = tf.compat.v1.get_variable("w", [3, 4])
                with tf.compat.v1.variable_scope("other"):
                    v = tf.compat.v1.get_variable("v", [5, 5])
                profiler = Profiler(logs)
                assert os.listdir(logs), "the log directory is used"
                tree = profiler.profile_name_scope("train", 10, {"show_trainable_variables": True, "max_depth": 10})
                assert tree.total_parameters == 12, tree.total_parameters
                try:
                    profiler.save(logs)
                    assert os.path.getsize(os.path.join(logs, "profile.pb")) > 0
                except RuntimeError as error:
                    assert "--graph_path LOGDIR/graph.pb" in str(error), error
            assert os.path.exists(os.path.join(logs, "graph.pb"))
        """
        run(self, script)

    @unittest.skipUnless(LIVE, "needs TensorFlow and the binary")
    def test_what_cannot_work_is_refused_with_the_call_that_does(self):
        script = """
            import tempfile
            import tensorflow as tf
            from stepscope.tfprof import Profiler
            def refused(kind, call, part):
                try:
                    call()
                except kind as error:
                    assert part in str(error) and "\\n" not in str(error), error
                else:
                    raise SystemExit("not refused: %s" % part)
            profiler = Profiler(tempfile.mkdtemp())
            refused(ValueError, lambda: profiler.profile_name_scope("train", 10), "get_concrete_function")
            refused(TypeError, lambda: Profiler(tf.function(lambda x: x)), "get_concrete_function(batch)")
            refused(TypeError, lambda: Profiler(17), "tf.Graph")
            refused(AttributeError, lambda: profiler.start_profiling(), "add_step(0, run_meta)")
            refused(TypeError, lambda: profiler.profile_name_scope(3.5), "time_and_memory()")
        """
        run(self, script)

    @unittest.skipUnless(LIVE, "needs TensorFlow and the binary")
    def test_the_builder_builds_what_tensorflows_does(self):
        script = """
            import tensorflow as tf
            from stepscope.tfprof import ProfileOptionBuilder as Ours, _arguments
            Theirs = tf.compat.v1.profiler.ProfileOptionBuilder
            def built(B):
                b = B(B.time_and_memory()).with_max_depth(3).with_min_memory(1, 2, 3, 4)
                b = b.with_min_execution_time(5, 6, 7).with_min_parameters(8).with_min_occurrence(9)
                b = b.with_min_float_operations(10).with_accounted_types(["a"]).account_displayed_op_only(False)
                b = b.with_node_names(["s"], ["t"], ["u"], ["v"]).order_by("name").select(["bytes"]).with_step(11)
                return b.with_timeline_output("f").build()
            assert built(Ours) == built(Theirs), (built(Ours), built(Theirs))
            for name in ("trainable_variables_parameter", "float_operation", "time_and_memory"):
                # TensorFlow leaves out what is 0.
                assert _arguments(getattr(Ours, name)()) == _arguments(getattr(Theirs, name)()), name
            assert _arguments(Ours().build()) == _arguments(Theirs().build())
        """
        run(self, script)


def run(test, script, **environment):
    """Runs a script with the helper on its path; each in a process of its own, as tfprof has one profiler only."""
    variables = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), STEPSCOPE=binary(), TF_CPP_MIN_LOG_LEVEL="3", **environment)
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    test.assertEqual(done.returncode, 0, done.stderr)
    return done.stdout


def tfprof(*arguments):
    done = subprocess.run([binary(), "tfprof", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout


FIXTURE = os.path.join(ROOT, "fixtures", "tf-session")
FIXTURE_FILES = [
    "--graph_path",
    os.path.join(FIXTURE, "graph.pb"),
    "--op_log_path",
    os.path.join(FIXTURE, "op_log.pb"),
    "--run_meta_path",
    ",".join(os.path.join(FIXTURE, "run_meta_%d.pb" % step) for step in range(3)),
]


@unittest.skipUnless(binary(), "needs the binary")
class Pprof(unittest.TestCase):
    """Profiles for pprof, read by a decoder that shares no code with what wrote them."""

    def written(self, column, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "profile.pb.gz")
            options = ["--select", column, "--max_depth", "100", "--output", "pprof:outfile=" + file]
            tfprof("code", *FIXTURE_FILES, *options, *arguments)
            return pprof.decode(file)

    def test_every_node_with_a_stack_is_a_sample(self):
        profile = self.written("micros", "--step", "1")
        self.assertEqual(profile["types"], [("count", "count"), ("micros", "microseconds")])
        tree = _tree(tfprof("code", *FIXTURE_FILES, "--max_depth", "100", "--step", "1", "--json"))
        self.assertEqual(sum(values[1] for values, _, _ in profile["samples"]), tree.total_exec_micros)
        self.assertGreater(tree.total_exec_micros, 0)
        for values, stack, labels in profile["samples"]:
            self.assertEqual(values[0], 1)
            self.assertTrue(labels["graph node:"])
            self.assertTrue(stack)
            for (function, file), line in stack:
                self.assertRegex(function, r"^[^/]+:.+")
                self.assertTrue(file.endswith(".py"), file)
                self.assertGreater(line, 0)

    def test_units_are_those_of_the_column(self):
        for column, unit in (("peak_bytes", "bytes"), ("params", "count"), ("float_ops", "count")):
            profile = self.written(column)
            self.assertEqual(profile["types"][1], (column, unit))
            tree = _tree(tfprof("code", *FIXTURE_FILES, "--max_depth", "100", "--select", column, "--json"))
            field = {"peak_bytes": "total_peak_bytes", "params": "total_parameters", "float_ops": "total_float_ops"}
            total = sum(values[1] for values, _, _ in profile["samples"])
            self.assertEqual(total, getattr(tree, field[column]), column)


GRAPH = """
    import os, sys
    import numpy as np
    import tensorflow as tf
    from tensorflow.python.profiler import tfprof_logger
    from stepscope.tfprof import ProfileOptionBuilder, Profiler
    v1 = tf.compat.v1
    v1.disable_eager_execution()
    x = v1.placeholder(tf.float32, [None, 6], name="x")
    with v1.variable_scope("dense"):
        w = v1.get_variable("kernel", [6, 4])
        h = tf.nn.relu(tf.matmul(x, w, name="MatMul"), name="Relu")
    loss = tf.reduce_sum(tf.split(h, 2, axis=1)[1] * 2.0, name="loss")
    train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
    folder = os.environ["FOLDER"]
    session = v1.Session()
    session.run(v1.global_variables_initializer())
    def traced():
        run_meta = v1.RunMetadata()
        options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
        session.run(train, {x: np.ones((5, 6), np.float32)}, options=options, run_metadata=run_meta)
        return run_meta
"""


@unittest.skipUnless(LIVE, "needs TensorFlow and the binary")
class Live(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_a_script_of_tensorflow_1_gets_the_same_tables(self):
        script = GRAPH + """
    ours = Profiler(session.graph, logdir=folder)
    theirs = v1.profiler.Profiler(session.graph)
    for step in (10, 20):
        run_meta = traced()
        ours.add_step(step, run_meta)
        theirs.add_step(step, run_meta)
    B = ProfileOptionBuilder
    cases = [
        ("profile_name_scope", B.trainable_variables_parameter()),
        ("profile_name_scope", B.time_and_memory()),
        ("profile_name_scope", B(B.time_and_memory()).with_step(20).build()),
        ("profile_graph", B.float_operation()),
        ("profile_operations", B.time_and_memory()),
        ("profile_operations", B(B.time_and_memory()).select(["micros", "input_shapes", "occurrence"]).build()),
        ("profile_python", B(B.time_and_memory()).with_node_names(show_name_regexes=[".*string.*"]).build()),
    ]
    for number, (name, options) in enumerate(cases):
        for profiler, who in ((ours, "ours"), (theirs, "theirs")):
            sys.stdout.flush()
            sys.stdout.write("\\n#%d %s" % (number, who))
            sys.stdout.flush()
            tree = getattr(profiler, name)(options=options)
            sys.stdout.write("%d %d %d" % (tree.total_exec_micros, tree.total_float_ops, tree.total_parameters))
    sys.stdout.flush()
    data = theirs.serialize_to_string()
    open(os.path.join(folder, "profile.pb"), "wb").write(data)
        """
        parts = [part.split(" ", 1)[1] for part in run(self, script, FOLDER=self.folder).split("\n#")[1:]]
        self.assertEqual(len(parts), 14)
        for number in range(0, 14, 2):
            ours, theirs = parts[number].removeprefix("ours"), parts[number + 1].removeprefix("theirs")
            self.assertEqual(ours, theirs)
        file = os.path.join(self.folder, "profile.pb")
        self.assertIn("dense/kernel", tfprof("scope", "--profile_path", file, "--select", "params"))

    def test_profiles_for_pprof_hold_the_samples_of_tfprofs_own(self):
        script = GRAPH + """
    ours = Profiler(session.graph, logdir=folder)
    theirs = v1.profiler.Profiler(session.graph)
    run_meta = traced()
    ours.add_step(0, run_meta)
    theirs.add_step(0, run_meta)
    for profiler, who in ((ours, "ours"), (theirs, "theirs")):
        options = ProfileOptionBuilder(ProfileOptionBuilder.time_and_memory()).select(["micros"])
        profiler.profile_python(options=options.with_pprof_output(os.path.join(folder, who)).build())
        """
        run(self, script, FOLDER=self.folder)
        ours, theirs = (pprof.decode(os.path.join(self.folder, who)) for who in ("ours", "theirs"))
        self.assertEqual(ours["types"], theirs["types"])
        samples = [sorted((repr(sample) for sample in profile["samples"])) for profile in (ours, theirs)]
        self.assertEqual(samples[0], samples[1])
        self.assertGreater(len(samples[0]), 5)

    def test_an_old_log_and_a_graph_as_text_give_the_tables(self):
        script = GRAPH + """
    from stepscope.tfprof import write_op_log
    write_op_log(session.graph, folder)
    v1.train.write_graph(session.graph.as_graph_def(add_shapes=True), folder, "graph.pbtxt")
        """
        run(self, script, FOLDER=self.folder)
        graph, log = os.path.join(self.folder, "graph.pbtxt"), os.path.join(self.folder, "tfprof_log")
        files = ["--graph_path", graph, "--op_log_path", log]
        self.assertIn("24/24 params", tfprof("scope", *files, "--preset", "trainable_variables_parameter"))
        self.assertIn("flops", tfprof("scope", *files, "--preset", "float_operation"))
        self.assertIn("<string>", tfprof("code", *files, "--select", "params", "--max_depth", "20"))

    def test_a_function_is_recorded_by_the_helper(self):
        script = """
            import os
            import tensorflow as tf
            from stepscope.tfprof import ProfileOptionBuilder, Profiler
            w = tf.Variable(tf.ones([6, 4]), name="w")
            @tf.function
            def step(x):
                loss = tf.reduce_sum(tf.nn.relu(tf.matmul(x, w)))
                w.assign_sub(0.1 * tf.gradients(loss, [w])[0])
                return loss
            batch = tf.ones([5, 6])
            profiler = Profiler(step.get_concrete_function(batch), logdir=os.environ["FOLDER"])
            profiler.add_function_step(0, batch)
            assert w.numpy()[0][0] == 1.0, "the program's own variables stay as they are"
            tree = profiler.profile_operations(ProfileOptionBuilder.time_and_memory(min_bytes=0))
            assert tree.total_exec_micros > 0, tree
            params = profiler.profile_name_scope(ProfileOptionBuilder.trainable_variables_parameter())
            assert params.total_parameters == 24, params.total_parameters
            flops = profiler.profile_name_scope(ProfileOptionBuilder.float_operation())
            assert flops.total_float_ops >= 2 * 5 * 6 * 4, flops.total_float_ops
        """
        self.assertIn("MatMul", run(self, script, FOLDER=self.folder))
        report = [binary(), "report", os.path.join(self.folder, "run_meta_0.pb")]
        done = subprocess.run(report, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    with contextlib.suppress(io.UnsupportedOperation):
        unittest.main()
