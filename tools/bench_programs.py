#!/usr/bin/env python3
"""Times what stepscope says about a large compiled program beside XProf's own tools on the same profile, in one run.

    bench_programs.py OUT [--stepscope target/release/stepscope] [--xprof PYTHON] [--layers 48] [--rounds 5]

Records an unrolled model with JAX first, unless OUT has a profile: 48 layers with gradients make about 50,000 instructions.
Each round runs every command once, in a process of its own; medians are printed. XProf writes caches beside its input, so that
each run gets a copy. Answers of the server are timed over HTTP, the second time they are asked: the first one reads the profile.

    pip install "jax[cpu]"      for this Python
    pip install xprof           for --xprof
"""
import argparse
import contextlib
import glob
import http.client
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

XPROF = """
import sys, time
from xprof.convert import raw_to_tool_data
begin = time.perf_counter()
# Its page asks for the list of tools first; that also writes the programs beside the profile, which its memory viewer reads.
raw_to_tool_data.xspace_to_tool_names([sys.argv[1]])
data, _ = raw_to_tool_data.xspace_to_tool_data(
    [sys.argv[1]], sys.argv[2], {"host": "x", "module_name": sys.argv[3], "program_id": sys.argv[4]})
print(time.perf_counter() - begin, len(data or b""))
"""


def record(out, layers):
    """Trains an unrolled model for three steps."""
    import jax
    import jax.numpy as jnp
    width = 16

    def layer(x, p):
        with jax.named_scope("norm"):
            y = (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * p["s"] + p["t"]
        with jax.named_scope("mlp"):
            return x + jax.nn.gelu(y @ p["a"]) @ p["b"]

    def loss(parameters, x):
        for number, p in enumerate(parameters):
            with jax.named_scope(f"layer_{number}"):
                x = layer(x, p)
        return jnp.mean(x * x)

    @jax.jit
    def train_step(parameters, x):
        gradients = jax.grad(loss)(parameters, x)
        return jax.tree.map(lambda a, b: a - 0.01 * b, parameters, gradients)

    one = lambda: {"s": jnp.ones(width), "t": jnp.zeros(width), "a": jnp.eye(width) * 0.1, "b": jnp.eye(width) * 0.1}
    parameters, x = [one() for _ in range(layers)], jnp.ones((8, width))
    parameters = jax.block_until_ready(train_step(parameters, x))
    with jax.profiler.trace(str(out)):
        for number in range(3):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                parameters = jax.block_until_ready(train_step(parameters, x))


def seconds(command):
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin


@contextlib.contextmanager
def server(binary, out):
    """A server on a free port."""
    child = subprocess.Popen([binary, "serve", out, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        for line in child.stdout:
            if found := re.search(r"127\.0\.0\.1:(\d+)", line):
                yield int(found[1])
                break
    finally:
        child.terminate()
        child.wait(10)


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path, headers={"Host": f"127.0.0.1:{port}"})
    answer = connection.getresponse()
    body = answer.read()
    if answer.status == 202:
        # The profile is still being read.
        time.sleep(0.05)
        return get(port, path)
    assert answer.status == 200, (path, answer.status, body[:200])
    return body


def pages(binary, out, program, op, rounds):
    """Milliseconds of each answer behind the page of programs."""
    with server(binary, out) as port:
        sessions = json.loads(get(port, "/api/sessions"))
        number = (sessions if isinstance(sessions, list) else sessions["sessions"])[0]["id"]
        at = f"/api/s/{number}"
        asked = {
            "pane of instructions": f"{at}/view/hlo_ops",
            "graph neighbourhood": f"{at}/programs/graph?program={program}&op={op}&radius=2",
            "card": f"{at}/programs/card?program={program}&op={op}",
            "pane of memory": f"{at}/programs/memory?program={program}",
        }
        found = {}
        for name, path in asked.items():
            get(port, path)
            times = []
            for _ in range(rounds):
                begin = time.perf_counter()
                get(port, path)
                times.append(time.perf_counter() - begin)
            found[name] = statistics.median(times)
        return found


def xprof(python, profile, tool, module, program):
    """Seconds of a process, and those in the tool alone."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "x.xplane.pb"
        shutil.copy(profile, copy)
        begin = time.perf_counter()
        done = subprocess.run([python, "-c", XPROF, str(copy), tool, module, str(program)], check=True, capture_output=True, text=True)
        inside, size = done.stdout.split()[-2:]
        return time.perf_counter() - begin, float(inside), int(size)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--stepscope", default="target/release/stepscope")
    parser.add_argument("--xprof")
    parser.add_argument("--layers", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    if not glob.glob(f"{args.out}/**/*.xplane.pb", recursive=True):
        record(args.out, args.layers)
    profile = glob.glob(f"{args.out}/**/*.xplane.pb", recursive=True)[0]
    table = json.loads(subprocess.check_output([args.stepscope, "hlo", "modules", args.out, "--json"]))
    main_program = table["rows"][0]
    ops = json.loads(subprocess.check_output([args.stepscope, "hlo", "ops", args.out, "--json"]))["rows"]
    module = f"{main_program['name']}({main_program['program_id']})"
    print(f"{module}: {main_program['instructions']:,} instructions, {pathlib.Path(profile).stat().st_size / 1e6:.1f} MB")
    commands = {
        "hlo ops": [args.stepscope, "hlo", "ops", args.out],
        "hlo memory": [args.stepscope, "hlo", "memory", args.out],
        "hlo roofline": [args.stepscope, "hlo", "roofline", args.out],
        "hlo show OP": [args.stepscope, "hlo", "show", args.out, f"{main_program['name']}:{ops[0]['op']}"],
    }
    tools = ["hlo_stats", "memory_viewer", "roofline_model"] if args.xprof else []
    ours, theirs = {name: [] for name in commands}, {tool: [] for tool in tools}
    for _ in range(args.rounds):
        for name, command in commands.items():
            ours[name].append(seconds(command))
        for tool in tools:
            theirs[tool].append(xprof(args.xprof, profile, tool, module, main_program["program_id"]))
    for name, times in ours.items():
        print(f"stepscope {name:22} {statistics.median(times):8.3f} s")
    for tool, runs in theirs.items():
        whole, inside = statistics.median(run[0] for run in runs), statistics.median(run[1] for run in runs)
        print(f"xprof     {tool:22} {whole:8.3f} s, {inside:.3f} s of it in the tool; {runs[0][2]:,} bytes")
    for name, time_taken in pages(args.stepscope, args.out, main_program["program_id"], ops[0]["op"], args.rounds).items():
        print(f"server    {name:22} {time_taken * 1e3:8.1f} ms")


if __name__ == "__main__":
    main()
