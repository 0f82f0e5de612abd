"""Records the examples in README.md and docs/ again: runs the commands that they show, and puts in what was printed.

    cargo xtask docs --examples [NAME...]

A comment ``<!-- example: NAME -->`` stands before each block that is recorded. Programs that examples run are in
tools/doc_examples. Examples whose framework is not installed are skipped, and the block stays as it is.
"""
import argparse
import importlib.util
import os
import pty
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tools" / "doc_examples"
#: Columns of the terminal that the examples see.
WIDTH = 100
#: A framework takes its time to start, more so on a busy machine.
PATIENCE_S = 300


class Session:
    """A folder in which commands run as on a terminal; collects what a reader would see there."""

    def __init__(self, folder, binary):
        self.folder, self.lines, self.children = Path(folder), [], []
        tools = self.folder / ".bin"
        tools.mkdir()
        (tools / "stepscope").symlink_to(binary)
        # Not a link: an environment finds its packages from the place of its Python.
        (tools / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        (tools / "python").chmod(0o755)
        quiet = {"NO_COLOR": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", "PYTHONUNBUFFERED": "1"}
        path = os.pathsep.join([str(tools), os.environ["PATH"]])
        self.env = {**os.environ, **quiet, "PATH": path, "XDG_CACHE_HOME": str(self.folder / ".cache")}

    def program(self, name, as_name="train.py"):
        shutil.copy(PROGRAMS / name, self.folder / as_name)

    def helper(self):
        shutil.copy(ROOT / "python/stepscope/record.py", self.folder / "stepscope.py")

    def start(self, command):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.children.append(subprocess.Popen([sys.executable, *command], cwd=self.folder, env=self.env, **quiet))

    def show(self, command, *, shown=None, prompt=True, keep=lambda lines: lines, replace=()):
        """Runs a command and collects its messages, then its output; `keep` shortens them."""
        if prompt:
            self.lines.append(f"$ {shown or command}")
        said = self.run(command)
        for old, new in replace:
            said = said.replace(old, new)
        self.lines += keep([line.rstrip() for line in said.splitlines()])

    def run(self, command):
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (50, WIDTH))
        with tempfile.TemporaryFile("w+") as messages:
            child = subprocess.Popen(command, shell=True, cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
                                     stdout=theirs, stderr=messages)
            os.close(theirs)
            output = b""
            while True:
                try:
                    part = os.read(ours, 65536)
                except OSError:  # The command has ended.
                    break
                if not part:
                    break
                output += part
            child.wait()
            os.close(ours)
            messages.seek(0)
            said = messages.read() + output.decode(errors="replace").replace("\r\n", "\n")
        if child.returncode != 0:
            raise RuntimeError(f"`{command}` ended with {child.returncode}:\n{said}")
        return said

    def end(self):
        for child in self.children:
            child.kill()
            child.wait()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(port):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise TimeoutError(f"nothing listens on port {port}")


def until(pattern, *also):
    """Lines up to the first that matches, then `…`, then the later ones that match one of `also`."""

    def keep(lines):
        end = next((at for at, line in enumerate(lines) if re.search(pattern, line)), len(lines) - 1) + 1
        later = [line for line in lines[end:] if any(re.search(one, line) for one in also)]
        return [*lines[:end], "…", *later]

    return keep


def report(session):
    shutil.copytree(ROOT / "fixtures/tf-input-bound", session.folder / "logs")
    kept = until(r"^  gradient.*Input")
    session.show("stepscope report logs/",
                 keep=lambda lines: ["", *kept(lines)[:-1], "  …", "", *lines[lines.index("what to do"):]])


def captured(session, program, port, shown):
    actual = free_port()
    session.program(program)
    session.start(["train.py", str(actual)])
    session.lines.append("$ python train.py &")
    wait_for(actual)
    command = f"stepscope capture localhost:{actual} --logdir logs --until-steady --patience 60s"
    session.show(command, shown=f"stepscope capture localhost:{port} --logdir logs --until-steady",
                 keep=until(*shown), replace=[(str(actual), str(port))])
    return actual


def tensorflow(session):
    captured(session, "tensorflow.py", 6009, [r"^  dispatch", r"prefetch\("])
    session.show("stepscope input logs", keep=lambda lines: lines[:1])


def jax(session):
    session.helper()
    captured(session, "jax_loop.py", 9999, [r"^[A-Z]"])


def every(session):
    session.helper()
    session.program("jax_loop.py")
    port = free_port()
    session.start(["train.py", str(port)])
    wait_for(port)
    time.sleep(10)
    options = "--logdir logs --every 2s --duration 1s --budget 2GB"
    session.show(f"stepscope capture localhost:{port} {options} --samples 2",
                 shown=f"stepscope capture localhost:9999 {options}", keep=lambda lines: [l for l in lines if l[:2] == "20"])


def inside(session, program, shown):
    session.helper()
    session.program(program)
    session.lines.append("$ cp …/python/stepscope/record.py stepscope.py")
    session.show("python train.py", keep=lambda lines: [line for line in lines if "stepscope" in line])
    session.show("stepscope report logs", keep=until(*shown))


def keras(session):
    session.env["KERAS_BACKEND"] = "tensorflow"
    inside(session, "keras_fit.py", [r"^  compute", r"^  (dispatch|warning)", r"steps_per_execution"])


def torch(session):
    inside(session, "torch_loop.py", [r"^  input"])


def without_log(lines):
    """What follows the messages of the framework."""
    return lines[lines.index(""):]


def run(session):
    session.program("tensorflow.py")
    port = free_port()
    command = "stepscope run --profiler-port {} --save before -- python train.py{} > train.log"
    session.show(command.format(port, f" {port} 150"), shown=command.format(6009, ""), keep=without_log,
                 replace=[(f"train.py {port} 150", "train.py"), (str(port), "6009")])


def unchanged(session):
    session.program("unchanged.py")
    session.show("stepscope run -- python train.py", keep=until(r"^memory "), replace=[(tempfile.gettempdir() + "/", "/tmp/")])


def served(session, options, keep=lambda lines: lines):
    session.program("server.py", "server.py")
    port = free_port()
    session.start(["server.py", str(port)])
    wait_for(port)
    (session.folder / "request.json").write_text('{"instances": [[1.0], [2.0]]}')
    url = f"http://localhost:{port}/v1/models/m:predict"
    session.show(f"stepscope bench infer {url} --body request.json {options}", prompt=False, keep=keep,
                 replace=[(str(port), "8501")])


def short_histogram(lines):
    """The five most frequent latencies and the longest."""
    bars = [at for at, line in enumerate(lines) if re.match(r" *[0-9.]+ .?s – ", line)]
    left_out = set(bars[5:-1])
    return ["…" if at == bars[5] else line for at, line in enumerate(lines) if at not in left_out or at == bars[5]]


def infer(session):
    served(session, "--rate 100 --duration 40s", short_histogram)


def sweep(session):
    served(session, "--sweep --rate 40 --slo p99=50ms --duration 3s")


def command(session):
    session.show("""stepscope bench command --runs 20 --against 'python3 -c "sum(range(3000000))"' -- """
                 """python3 -c 'sum(range(20000000))'""", prompt=False)


def pipeline(session):
    session.program("pipeline.py", "pipeline.py")
    session.show("stepscope bench input --step 2ms -- python pipeline.py", prompt=False)


#: By name: the file, the package that it needs, and what records it.
EXAMPLES = {
    "report": ("README.md", None, report),
    "capture-tensorflow": ("docs/capture.md", "tensorflow", tensorflow),
    "capture-keras": ("docs/capture.md", "keras", keras),
    "capture-jax": ("docs/capture.md", "jax", jax),
    "capture-torch": ("docs/capture.md", "torch", torch),
    "capture-every": ("docs/capture.md", "jax", every),
    "run-unchanged": ("docs/run.md", "torch", unchanged),
    "run": ("docs/run.md", "tensorflow", run),
    "bench-infer": ("docs/bench.md", None, infer),
    "bench-sweep": ("docs/bench.md", None, sweep),
    "bench-command": ("docs/bench.md", None, command),
    "bench-input": ("docs/bench.md", None, pipeline),
}


def replaced(text, name, lines):
    """The page with a new block after the comment of the example: fenced, or indented by four spaces."""
    mark = f"<!-- example: {name} -->\n\n"
    if mark not in text:
        raise ValueError(f"there is no comment `{mark.strip()}`")
    before, rest = text.split(mark)
    if rest.startswith("```"):
        return f"{before}{mark}```\n" + "\n".join(lines) + "\n" + rest[rest.index("\n```", 3) + 1:]
    block = re.match(r"(?:(?:    .*)?\n)*    .*\n", rest)
    indented = "".join(f"    {line}".rstrip() + "\n" for line in lines)
    return before + mark + indented + rest[block.end() if block else 0:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=Path)
    parser.add_argument("names", nargs="*")
    wanted = parser.parse_args()
    unknown = set(wanted.names) - set(EXAMPLES)
    if unknown:
        sys.exit(f"no such example: {', '.join(sorted(unknown))}; there are {', '.join(EXAMPLES)}")
    for name in wanted.names or EXAMPLES:
        file, needs, record = EXAMPLES[name]
        if needs and not importlib.util.find_spec(needs):
            print(f"skipped {name}: {needs} is not installed; set STEPSCOPE_TEST_PYTHON to a Python that has it")
            continue
        with tempfile.TemporaryDirectory() as folder:
            session = Session(folder, wanted.bin.resolve())
            try:
                record(session)
            finally:
                session.end()
        page = ROOT / file
        page.write_text(replaced(page.read_text(), name, session.lines))
        print(f"recorded {name} in {file}")


if __name__ == "__main__":
    main()
