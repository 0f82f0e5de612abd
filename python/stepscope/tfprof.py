"""TensorFlow's classic profiler (``tf.compat.v1.profiler``) with stepscope behind it: change the import, keep the calls.

    from stepscope.tfprof import ProfileOptionBuilder, Profiler

    profiler = Profiler(sess.graph, logdir="prof")
    run_meta = tf.compat.v1.RunMetadata()
    sess.run(train_op, options=..., run_metadata=run_meta)
    profiler.add_step(0, run_meta)
    profiler.profile_name_scope(ProfileOptionBuilder.time_and_memory())

and with ``tf.function``:

    profiler = Profiler(train_step.get_concrete_function(batch), logdir="prof")
    profiler.add_function_step(0, batch)
    profiler.profile_operations(ProfileOptionBuilder.time_and_memory())

TensorFlow is needed for recording only. Graph, runs and op log are saved below ``logdir``; the views are computed by the
``stepscope`` command on these files, so that the same tables can be had later from the command line. The command is the
one that the environment variable ``STEPSCOPE`` names, else the one in this package, else the one on the path.
"""

import copy
import importlib.util
import json
import json.decoder
import json.scanner
import os
import re
import shutil
import subprocess
import sys
import tempfile

__all__ = ["ProfileOptionBuilder", "Profiler", "advise", "profile", "write_op_log"]

_ALL_ADVICE = {  # type: dict
    "ExpensiveOperationChecker": {},
    "AcceleratorUtilizationChecker": {},
    "JobChecker": {},
    "OperationChecker": {},
}

#: Options with a number, and what each is where none is given.
_NUMBERS = {
    "max_depth": 10,
    "min_bytes": 0,
    "min_peak_bytes": 0,
    "min_residual_bytes": 0,
    "min_output_bytes": 0,
    "min_micros": 0,
    "min_accelerator_micros": 0,
    "min_cpu_micros": 0,
    "min_params": 0,
    "min_float_ops": 0,
    "min_occurrence": 0,
    "step": -1,
}

#: Options of old tutorials that tfprof itself never had.
_SWITCHES = ("show_trainable_variables",)

#: The calls that work, for messages.
_WORKS = "record with profiler.add_step(0, run_meta), then profiler.profile_name_scope(ProfileOptionBuilder.time_and_memory())"

_LISTS = (
    "account_type_regexes",
    "start_name_regexes",
    "trim_name_regexes",
    "show_name_regexes",
    "hide_name_regexes",
    "select",
)


class ProfileOptionBuilder:
    """Builds options, as ``tf.compat.v1.profiler.ProfileOptionBuilder`` does."""

    def __init__(self, options=None):
        if options is not None:
            self._options = copy.deepcopy(options)
            return
        self._options = dict(_NUMBERS, max_depth=100)
        self._options.update(
            order_by="name",
            account_type_regexes=[".*"],
            start_name_regexes=[".*"],
            trim_name_regexes=[],
            show_name_regexes=[".*"],
            hide_name_regexes=[],
            account_displayed_op_only=False,
            select=["micros"],
            output="stdout",
        )

    @staticmethod
    def trainable_variables_parameter():
        """Parameters of trainable variables."""
        return _preset(account_type_regexes=["_trainable_variables"], select=["params"])

    @staticmethod
    def float_operation():
        """Float operations, the most first."""
        return _preset(min_float_ops=1, select=["float_ops"], order_by="float_ops")

    @staticmethod
    def time_and_memory(
        min_micros=1,
        min_bytes=1,
        min_accelerator_micros=0,
        min_cpu_micros=0,
        min_peak_bytes=0,
        min_residual_bytes=0,
        min_output_bytes=0,
    ):
        """Time and requested memory, the slowest first."""
        return _preset(
            min_micros=min_micros,
            min_bytes=min_bytes,
            min_accelerator_micros=min_accelerator_micros,
            min_cpu_micros=min_cpu_micros,
            min_peak_bytes=min_peak_bytes,
            min_residual_bytes=min_residual_bytes,
            min_output_bytes=min_output_bytes,
            select=["micros", "bytes"],
            order_by="micros",
        )

    def build(self):
        """The options, a copy of their own."""
        return copy.deepcopy(self._options)

    def _with(self, **options):
        self._options.update(options)
        return self

    def with_max_depth(self, max_depth):
        return self._with(max_depth=max_depth)

    def with_min_memory(self, min_bytes=0, min_peak_bytes=0, min_residual_bytes=0, min_output_bytes=0):
        return self._with(
            min_bytes=min_bytes,
            min_peak_bytes=min_peak_bytes,
            min_residual_bytes=min_residual_bytes,
            min_output_bytes=min_output_bytes,
        )

    def with_min_execution_time(self, min_micros=0, min_accelerator_micros=0, min_cpu_micros=0):
        return self._with(
            min_micros=min_micros, min_accelerator_micros=min_accelerator_micros, min_cpu_micros=min_cpu_micros
        )

    def with_min_parameters(self, min_params):
        return self._with(min_params=min_params)

    def with_min_occurrence(self, min_occurrence):
        return self._with(min_occurrence=min_occurrence)

    def with_min_float_operations(self, min_float_ops):
        return self._with(min_float_ops=min_float_ops)

    def with_accounted_types(self, account_type_regexes):
        return self._with(account_type_regexes=list(account_type_regexes))

    def with_node_names(
        self, start_name_regexes=None, show_name_regexes=None, hide_name_regexes=None, trim_name_regexes=None
    ):
        given = {
            "start_name_regexes": start_name_regexes,
            "show_name_regexes": show_name_regexes,
            "hide_name_regexes": hide_name_regexes,
            "trim_name_regexes": trim_name_regexes,
        }
        return self._with(**{name: list(value) for name, value in given.items() if value is not None})

    def account_displayed_op_only(self, is_true):
        return self._with(account_displayed_op_only=is_true)

    def with_empty_output(self):
        return self._with(output="none")

    def with_stdout_output(self):
        return self._with(output="stdout")

    def with_file_output(self, outfile):
        return self._with(output="file:outfile=%s" % outfile)

    def with_timeline_output(self, timeline_file):
        return self._with(output="timeline:outfile=%s" % timeline_file)

    def with_pprof_output(self, pprof_file):
        return self._with(output="pprof:outfile=%s" % pprof_file)

    def order_by(self, attribute):
        return self._with(order_by=attribute)

    def select(self, attributes):
        return self._with(select=list(attributes))

    def with_step(self, step):
        return self._with(step=step)


def _preset(**options):
    builder = ProfileOptionBuilder().with_max_depth(10000).account_displayed_op_only(True)
    return builder._with(**options).build()


class Node:
    """A row of a view, with the fields of tfprof's GraphNodeProto and MultiGraphNodeProto as attributes."""

    def __init__(self, fields):
        self._fields = fields
        self.children, self.graph_nodes = [], []
        # Not by recursion: a tree may be deeper than Python allows calls to be.
        waiting = [self]
        while waiting:
            node = waiting.pop()
            for name, nodes in (("children", node.children), ("graph_nodes", node.graph_nodes)):
                nodes += [Node._alone(one) for one in node._fields.get(name, [])]
                waiting += nodes

    @classmethod
    def _alone(cls, fields):
        node = cls.__new__(cls)
        node._fields, node.children, node.graph_nodes = fields, [], []
        return node

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        default = {"devices": [], "input_shapes": {}, "name": ""}.get(name, 0)
        return self._fields.get(name, default)

    def __repr__(self):
        return "Node(%r, %d children)" % (self.name, len(self.children))


class Profiler:
    """Keeps a graph and what its runs recorded, and shows them as tfprof does.

    ``graph`` is a ``tf.Graph``, a concrete function, or nothing for the default graph. ``logdir`` is where the files
    are saved; without it they are kept in a temporary folder until the profiler goes. A path as the first argument is
    the log directory, as old tutorials write it: ``Profiler("logs")``.
    """

    def __init__(self, graph=None, op_log=None, logdir=None):
        if isinstance(graph, (str, os.PathLike)):
            graph, logdir = None, graph
        if isinstance(op_log, (str, os.PathLike)):
            op_log, logdir = None, op_log
        if graph is not None and not hasattr(graph, "as_graph_def") and not hasattr(graph, "graph"):
            kind = "a tf.function" if hasattr(graph, "get_concrete_function") else type(graph).__name__
            raise TypeError(
                "Profiler takes a tf.Graph, a concrete function or a log directory, not %s; for a tf.function: "
                'Profiler(train_step.get_concrete_function(batch), logdir="logs")' % kind
            )
        self._temporary = None
        if logdir is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="stepscope-tfprof-")
            logdir = self._temporary.name
        self.logdir = os.fspath(logdir)
        os.makedirs(self.logdir, exist_ok=True)
        self._recorder = _Recorder(graph, op_log)
        self._runs = []
        self._save_graph()

    def add_step(self, step, run_meta):
        """Adds what a run recorded under a number; several runs may share one."""
        if not run_meta.step_stats.dev_stats:
            raise ValueError(
                "the run metadata holds no step stats: run with RunOptions(trace_level=RunOptions.FULL_TRACE)"
            )
        path = os.path.join(self.logdir, "run_meta_%d.pb" % len(self._runs))
        with open(path, "wb") as file:
            file.write(run_meta.SerializeToString())
        self._runs.append((int(step), path))
        self._recorder.add(run_meta)
        self._save_graph()

    def add_function_step(self, step, *inputs):
        """Runs the concrete function once on these inputs and adds what was recorded.

        A ``tf.function`` has no run metadata to pass, so its graph runs in a session of its own, with copies of the
        variables: once to warm up, once recorded. The program's own variables stay as they are.
        """
        self.add_step(step, self._recorder.run_function(inputs))

    def profile_name_scope(self, *scope, options=None, **more):
        """The scope view; returns its tree.

        Takes options, as TensorFlow's profiler does; or, as old tutorials write it, the name of a scope, a depth and a
        dictionary: ``profile_name_scope("train", 10, {"show_trainable_variables": True})``.
        """
        return self._show("scope", self._options(scope, options, more))

    def profile_graph(self, *scope, options=None, **more):
        """The graph view; returns its tree."""
        return self._show("graph", self._options(scope, options, more))

    def profile_operations(self, *scope, options=None, **more):
        """The op view; returns its rows, each the only child of the one before."""
        return self._show("op", self._options(scope, options, more))

    def profile_python(self, *scope, options=None, **more):
        """The code view; returns its tree."""
        return self._show("code", self._options(scope, options, more))

    def _options(self, given, options, more):
        """Options from what a call passes: a dictionary of tfprof's options as it is; scope, depth and switches of old
        tutorials on top of the preset that they mean."""
        scope, depth = None, None
        for value in given:
            if isinstance(value, dict) and options is None:
                options = value
            elif isinstance(value, str) and scope is None:
                scope = value
            elif isinstance(value, int) and not isinstance(value, bool) and depth is None:
                depth = value
            else:
                raise TypeError("%r is no name of a scope, depth or options; %s" % (value, _WORKS))
        options = dict(options or {}, **more)
        if scope is None and depth is None and options and not set(options) & set(_SWITCHES):
            return options
        if not self._recorder.graph_def.node:
            raise ValueError(
                "the profiler has no graph to show: TensorFlow 2 runs ops one by one; pass a concrete function: "
                'Profiler(train_step.get_concrete_function(batch), logdir="%s")' % self.logdir
            )
        parameters = options.pop("show_trainable_variables", not self._runs)
        preset = ProfileOptionBuilder.trainable_variables_parameter if parameters else (
            ProfileOptionBuilder.time_and_memory
        )
        chosen = dict(preset(), **options)
        if depth is not None:
            chosen["max_depth"] = depth
        if scope is not None:
            chosen["start_name_regexes"] = [re.escape(scope) + "($|/.*)"]
        return chosen

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError("tfprof's Profiler has no `%s`; %s" % (name, _WORKS))

    def advise(self, options=_ALL_ADVICE):
        """What tfprof's checks say; returns the reports of each check that ``options`` names."""
        sys.stdout.write(self._run("advise"))
        checkers = json.loads(self._run("advise", "--json"))["checkers"]
        return {name: found["reports"] for name, found in checkers.items() if name in options}

    def serialize_to_string(self):
        """The profile as ProfileProto, which ``--profile_path`` reads."""
        return self._recorder.profile_proto(self._runs)

    def save(self, path):
        """Writes the profile into a file that ``stepscope tfprof --profile_path`` reads; into a folder as ``profile.pb``."""
        path = os.fspath(path)
        if os.path.isdir(path) or path.endswith(os.sep):
            path = os.path.join(path, "profile.pb")
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        profile = self.serialize_to_string()
        with open(path, "wb") as file:
            file.write(profile)

    def _save_graph(self):
        for name, message in (("graph.pb", self._recorder.graph_def), ("op_log.pb", self._recorder.op_log)):
            with open(os.path.join(self.logdir, name), "wb") as file:
                file.write(message.SerializeToString())

    def _files(self):
        files = ["--graph_path", os.path.join(self.logdir, "graph.pb")]
        if self._recorder.op_log.log_entries:
            files += ["--op_log_path", os.path.join(self.logdir, "op_log.pb")]
        for step, path in self._runs:
            files += ["--run_meta_path", path, "--run_meta_steps", str(step)]
        return files

    def _show(self, view, options):
        arguments = _arguments(options)
        sys.stdout.write(self._run(view, *arguments))
        output = [argument for argument in arguments if argument.startswith("--output=")]
        kept = [argument for argument in arguments if argument not in output]
        return _tree(self._run(view, *kept, "--json"))

    def _run(self, view, *arguments):
        command = _binary() + ["tfprof", view] + self._files() + list(arguments)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        sys.stderr.write(done.stderr)
        if done.returncode not in (0, 4):
            raise RuntimeError(done.stderr.strip() or "stepscope tfprof failed")
        return done.stdout


class _Recorder:
    """What of TensorFlow is needed: the graph with its shapes, and the op log that tfprof makes of it."""

    def __init__(self, graph, op_log):
        import tensorflow as tf
        from tensorflow.python.profiler import tfprof_logger

        self._tf, self._logger = tf, tfprof_logger
        if graph is None and not tf.executing_eagerly():
            graph = tf.compat.v1.get_default_graph()
        self._function = graph if hasattr(graph, "structured_outputs") else None
        self._graph = getattr(graph, "graph", graph)
        self.graph_def = tf.compat.v1.GraphDef()
        self.op_log = tfprof_logger.tfprof_log_pb2.OpLogProto()
        self._known, self._entries, self._texts = set(), {}, {}
        self._merge(tfprof_logger.merge_default_with_oplog(self._graph, op_log=op_log))
        self._add_nodes()

    def add(self, run_meta):
        """A run fills in shapes that the graph leaves open, and with them FLOPs."""
        self._merge(self._logger.merge_default_with_oplog(self._graph, run_meta=run_meta))
        self._add_nodes()

    def _add_nodes(self):
        if self._graph is None:
            return
        shapes = self._variables()
        for node in self._graph.as_graph_def(add_shapes=True).node:
            if node.name in self._known:
                continue
            self._known.add(node.name)
            added = self.graph_def.node.add()
            added.CopyFrom(node)
            if node.name in shapes:
                added.attr["shape"].shape.CopyFrom(shapes[node.name].as_proto())

    def _variables(self):
        """Placeholders through which a function sees its variables: their shapes; those to train get the type."""
        captures = getattr(self._graph, "captures", None)
        if not captures:
            return {}
        placeholders = {id(outer): inner.op.name for outer, inner in captures}
        shapes = {}
        for variable in getattr(self._graph, "variables", ()):
            name = placeholders.get(id(variable.handle))
            if name is None:
                continue
            shapes[name] = variable.shape
            if variable.trainable:
                self._entry(name, types=["_trainable_variables"])
        return shapes

    def _merge(self, log):
        """Adds a log; texts have numbers of their own in each."""
        texts = dict(log.id_to_string)
        for entry in log.log_entries:
            frames = []
            for trace in entry.code_def.traces:
                file, function, line = (texts.get(number, "none") for number in (
                    trace.file_id, trace.function_id, trace.line_id))
                frames.append((trace.lineno, trace.func_start_line, file, function, line))
            self._entry(entry.name, entry.float_ops, entry.types, frames)

    def _entry(self, name, float_ops=0, types=(), frames=()):
        entry = self._entries.get(name)
        if entry is None:
            entry = self._entries[name] = self.op_log.log_entries.add()
            entry.name = name
        if float_ops:
            entry.float_ops = float_ops
        entry.types.extend(kind for kind in types if kind not in entry.types)
        if frames and not entry.HasField("code_def"):
            for lineno, start, file, function, line in frames:
                trace = entry.code_def.traces.add(lineno=lineno, func_start_line=start)
                trace.file_id, trace.function_id = self._text(file), self._text(function)
                trace.line_id = self._text(line)

    def _text(self, text):
        if text not in self._texts:
            number = self._texts[text] = len(self._texts)
            self.op_log.id_to_string[number] = text
        return self._texts[text]

    def run_function(self, inputs):
        """The run metadata of the concrete function's graph, run in a session."""
        if self._function is None:
            raise ValueError("add_function_step needs a profiler of a concrete function")
        v1, function = self._tf.compat.v1, self._graph
        captured = {id(inner): outer for outer, inner in function.captures}
        values = {id(variable.handle): (variable, variable.numpy()) for variable in function.variables}
        constants = {id(outer): outer.numpy() for outer, _ in function.captures if id(outer) not in values}
        flat = [_array(value) for value in self._tf.nest.flatten(inputs)]
        graph = self._tf.Graph()
        with graph.as_default():
            mapped, initial = {}, {}
            for inner in function.inputs:
                outer = captured.get(id(inner))
                if outer is None:
                    continue
                if id(outer) in constants:
                    mapped[inner.name] = self._tf.constant(constants[id(outer)])
                    continue
                variable, value = values[id(outer)]
                start = v1.placeholder(variable.dtype, variable.shape)
                initial[start] = value
                copied = v1.Variable(start, use_resource=True, trainable=variable.trainable)
                mapped[inner.name] = copied.handle
            v1.import_graph_def(function.as_graph_def(), input_map=mapped, name="")
            fetched = [graph.get_operation_by_name(tensor.op.name) for tensor in function.outputs]
            fetched += [graph.get_operation_by_name(op.name) for op in function.control_outputs]
            arguments = [tensor for tensor in function.inputs if id(tensor) not in captured]
            if len(flat) != len(arguments):
                raise ValueError("the function takes %d tensors, %d were given" % (len(arguments), len(flat)))
            fed = {graph.get_tensor_by_name(inner.name): value for inner, value in zip(arguments, flat)}
            run_meta = v1.RunMetadata()
            options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
            with v1.Session(graph=graph) as session:
                session.run(v1.global_variables_initializer(), initial)
                session.run(fetched, fed)
                session.run(fetched, fed, options=options, run_metadata=run_meta)
        return run_meta

    def profile_proto(self, runs):
        """TensorFlow itself puts a profile together; only one of its profilers can live at a time."""
        try:
            from tensorflow.python.profiler.internal import _pywrap_tfprof as tfprof
        except ImportError:
            raise RuntimeError(
                "this TensorFlow can no longer write a single profile file; the log directory holds the same: "
                "stepscope tfprof scope --graph_path LOGDIR/graph.pb --run_meta_path LOGDIR/run_meta_0.pb"
            ) from None

        tfprof.NewProfiler(self.graph_def.SerializeToString(), self.op_log.SerializeToString())
        try:
            for step, path in runs:
                with open(path, "rb") as file:
                    tfprof.AddStep(step, b"", file.read(), b"")
            return tfprof.SerializeToString()
        finally:
            tfprof.DeleteProfiler()


def profile(graph=None, run_meta=None, op_log=None, cmd="scope", options=None):
    """Shows one view of a graph, with what one run recorded; returns its tree."""
    profiler = Profiler(graph, op_log)
    if run_meta is not None:
        profiler.add_step(0, run_meta)
    return profiler._show(cmd, options or ProfileOptionBuilder.trainable_variables_parameter())


def advise(graph=None, run_meta=None, options=_ALL_ADVICE):
    """What tfprof's checks say of a graph and one run."""
    profiler = Profiler(graph)
    if run_meta is not None:
        profiler.add_step(0, run_meta)
    return profiler.advise(options or _ALL_ADVICE)


def write_op_log(graph, log_dir, op_log=None, run_meta=None, add_trace=True):
    """Writes ``log_dir/tfprof_log``, which ``--op_log_path`` reads."""
    from tensorflow.python.profiler import tfprof_logger

    tfprof_logger.write_op_log(graph, log_dir, op_log=op_log, run_meta=run_meta, add_trace=add_trace)


def _arguments(options):
    """Options as the command line takes them. What is missing is what the Python functions take for it."""
    known = set(_NUMBERS) | set(_LISTS) | {"order_by", "account_displayed_op_only", "output", "dump_to_file"}
    unknown = sorted(set(options) - known)
    if unknown:
        raise ValueError("unknown options: %s; %s" % (", ".join(unknown), _WORKS))
    arguments = ["--%s=%d" % (name, options.get(name, default)) for name, default in _NUMBERS.items()]
    arguments.append("--order_by=%s" % options.get("order_by", "name"))
    shown = "true" if options.get("account_displayed_op_only", False) else "false"
    arguments.append("--account_displayed_op_only=%s" % shown)
    for name in _LISTS:
        values = options.get(name, [])
        # A comma inside an expression must not split it.
        arguments += ["--%s=%s" % (name, _whole(value)) for value in values] or ["--%s=" % name]
    output = options.get("output", "stdout")
    if options.get("dump_to_file"):
        output = "file:outfile=%s" % options["dump_to_file"]
    arguments.append("--output=%s" % output)
    return arguments


def _array(value):
    return value.numpy() if hasattr(value, "numpy") else value


def _whole(expression):
    return expression.replace("\\,", ",").replace(",", "\\,")


def _tree(text):
    # The op view is as deep as there are operation types.
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 200000))
    try:
        return Node(_decoded(text))
    finally:
        sys.setrecursionlimit(limit)


def _decoded(text):
    try:
        return json.loads(text)
    except RecursionError:  # Python 3.12 and later limit the depth of C code apart from that of Python code
        decoder = json.JSONDecoder()
        decoder.parse_object, decoder.parse_array = json.decoder.JSONObject, json.decoder.JSONArray
        decoder.scan_once = json.scanner.py_make_scanner(decoder)
        return decoder.decode(text)


def _binary():
    """The command as a list: the named one, that of this package, or the one on the path."""
    named = os.environ.get("STEPSCOPE")
    if named:
        return [named]
    if importlib.util.find_spec("stepscope._stepscope") is not None:
        return [sys.executable, "-m", "stepscope"]
    found = shutil.which("stepscope")
    if not found:
        raise RuntimeError("the stepscope command was not found; install the package, or name the binary in STEPSCOPE")
    return [found]
