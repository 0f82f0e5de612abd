"""Times `stepscope tfprof` beside TensorFlow's own tfprof on a large RunMetadata: a loop with a million node records.

    python tools/bench_tfprof.py --stepscope target/release/stepscope [--records 1000000] [--without-tensorflow]

The file is made here, byte by byte, as a while loop leaves it: few nodes, each recorded many times. Both programs read
it and print the op view; time and peak memory are those of their processes.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

DEVICE = b"/job:localhost/replica:0/task:0/device:CPU:0"
NODES = [b"while/body/layer_%d/MatMul" % number for number in range(40)]


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def length(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def record(index, start):
    name = NODES[index % len(NODES)]
    memory = length(1, b"cpu") + number(2, 4096) + number(3, 4096) + number(4, 0)
    return b"".join(
        [
            length(1, name),
            number(2, start),
            number(3, 1),
            number(4, 7),
            number(5, 8),
            length(6, memory),
            length(8, name + b" = MatMul(a, b)"),
            number(9, start - 1),
            number(13, start * 1000),
            number(15, 7000),
            number(16, 8000),
        ]
    )


def write(path, records):
    with open(path, "wb") as file:
        parts = [length(2, record(index, 1_700_000_000_000_000 + 10 * index)) for index in range(records)]
        body = length(1, DEVICE) + b"".join(parts)
        file.write(length(1, length(1, body)))


def measure(command, **environment):
    """Seconds, processor seconds and peak memory in bytes of a command. The processor's do not depend on other load."""
    began = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=dict(os.environ, **environment))
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - began
    if status != 0:
        sys.exit("%s failed" % command[0])
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


TENSORFLOW = """
import sys, time
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
began = time.perf_counter()
run = config_pb2.RunMetadata()
run.ParseFromString(open(sys.argv[1], "rb").read())
v1 = tf.compat.v1
profiler = v1.profiler.Profiler(tf.Graph())
profiler.add_step(0, run)
profiler.profile_operations(v1.profiler.ProfileOptionBuilder.time_and_memory())
sys.stderr.write("%.2f\\n" % (time.perf_counter() - began))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stepscope", required=True)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--without-tensorflow", action="store_true")
    parser.add_argument("--write", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        return write(options.write, options.records)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run_meta_0.pb")
        # In a process of its own: a child begins with the memory of its parent, and that counts for its peak.
        writer = [sys.executable, __file__, "--stepscope", "", "--records", str(options.records), "--write", path]
        subprocess.run(writer, check=True)
        size = os.path.getsize(path)
        print("%d records, %.0f MB, load %.1f" % (options.records, size / 1e6, os.getloadavg()[0]))
        views = (
            ("tfprof op", ["tfprof", "op", "--run_meta_path", path, "--preset", "time_and_memory"]),
            ("report", ["report", path, "--json"]),
        )
        for name, arguments in views:
            seconds, cpu, memory = measure([options.stepscope] + arguments)
            figures = (name, seconds, cpu, memory / 1e6, memory / size)
            print("stepscope %-10s %6.2f s, %6.2f s of CPU, %5.0f MB (%.1f times the file)" % figures)
        if not options.without_tensorflow:
            command = [sys.executable, "-c", TENSORFLOW, path]
            seconds, cpu, memory = measure(command, TF_CPP_MIN_LOG_LEVEL="3")
            print("tfprof in Python     %6.2f s, %6.2f s of CPU, %5.0f MB, import included" % (seconds, cpu, memory / 1e6))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
