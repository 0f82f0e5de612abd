#!/usr/bin/env python3
"""Writes a gigabyte of event files and measures who lists them how fast.

    tools/bench_curves.py write LOGDIR [--runs 200 --tags 50 --points 5000]
    tools/bench_curves.py time LOGDIR --stepscope target/release/stepscope [--server] [--python-runs 2]

`time` runs `stepscope scalars`, TensorBoard's data server (from the package tensorboard_data_server) and TensorBoard's
Python loader one after the other. The Python loader reads only a few runs; its time is scaled to all of them.
Needs numpy; the comparison needs tensorboard.
"""
import argparse
import math
import os
import pathlib
import re
import resource
import struct
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import numpy as np



def table() -> np.ndarray:
    """Castagnoli's polynomial, byte by byte."""
    out = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 & -(byte & 1))
        out.append(byte)
    return np.array(out, dtype=np.uint32)


TABLE = table()


def masked(rows: np.ndarray) -> np.ndarray:
    """The masked checksum of each row of bytes."""
    crc = np.full(rows.shape[0], 0xFFFFFFFF, dtype=np.uint32)
    for column in range(rows.shape[1]):
        crc = TABLE[(crc ^ rows[:, column]) & 0xFF] ^ (crc >> 8)
    crc = ~crc
    return ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(0xA282EAD8)


def varint(number: int) -> bytes:
    out = bytearray()
    while True:
        out.append(number & 0x7F | (0x80 if number > 0x7F else 0))
        number >>= 7
        if number == 0:
            return bytes(out)


def run(seed: int, tags: int, points: int) -> bytes:
    """One run: an event per step with a value of each tag, as a training loop that writes one summary logs it."""
    values, places = b"", []
    for tag in range(tags):
        name = f"layer{tag // 10}/m{tag}".encode()
        value = b"\x0a" + varint(len(name)) + name + b"\x15"
        whole = value + b"\0\0\0\0"
        values += b"\x0a" + varint(len(whole)) + value
        places.append(len(values))
        values += b"\0\0\0\0"
    # Steps take three bytes each, however small, so that all records are equally long.
    head = b"\x09" + bytes(8) + b"\x10\x80\x80\x00\x2a" + varint(len(values))
    event = head + values
    rows = np.tile(np.frombuffer(event, dtype=np.uint8), (points, 1))
    steps = np.arange(points)
    walls = (1.8e9 + seed * 1e5 + steps * 0.1 + np.random.default_rng(seed).random(points) * 0.01).astype("<f8")
    rows[:, 1:9] = walls.view(np.uint8).reshape(points, 8)
    rows[:, 10] = steps & 0x7F | 0x80
    rows[:, 11] = steps >> 7 & 0x7F | 0x80
    rows[:, 12] = steps >> 14
    random = np.random.default_rng(seed + 1)
    for number, place in enumerate(places):
        curve = (np.exp(-steps / (800.0 + 40 * number)) * 3 + random.normal(0, 0.05, points)).astype("<f4")
        at = len(head) + place
        rows[:, at : at + 4] = curve.view(np.uint8).reshape(points, 4)
    length = np.frombuffer(struct.pack("<Q", len(event)), dtype=np.uint8)
    lengths = np.tile(length, (points, 1))
    length_crc = masked(lengths[:1]).astype("<u4").view(np.uint8)
    crcs = masked(rows).astype("<u4").view(np.uint8).reshape(points, 4)
    return np.hstack([lengths, np.tile(length_crc, (points, 1)), rows, crcs]).tobytes()


def write(args: argparse.Namespace) -> None:
    logdir, total = pathlib.Path(args.logdir), 0
    for number in range(args.runs):
        folder = logdir / f"run{number:03}"
        folder.mkdir(parents=True, exist_ok=True)
        data = run(number, args.tags, args.points)
        total += len(data)
        (folder / f"events.out.tfevents.{1_800_000_000 + number}.bench").write_bytes(data)
    print(f"{total / 1e9:.2f} GB, {args.runs} runs x {args.tags} tags x {args.points} points in {logdir}")


class Took(NamedTuple):
    """What a loader took. On a machine that others use too, processor time says more than time by the clock."""

    wall: float
    cpu: float
    megabytes: float

    def line(self, who: str, note: str = "") -> str:
        return f"{who:24}{self.wall:8.2f} s{self.cpu:8.2f} s of processor{self.megabytes:8.0f} MB  {note}"


def measured(command: list[str]) -> Took:
    began = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{command[0]} failed with {status}")
    return Took(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def data_server(logdir: str) -> Took:
    """Until TensorBoard's data server has loaded all runs once, by its own log."""
    import tensorboard_data_server

    binary = tensorboard_data_server.server_binary()
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        with open(log, "w") as out:
            began = time.perf_counter()
            command = [binary, "--logdir", logdir, "--port", "0", "--reload", "once", "-vv"]
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
            while "Finished load cycle" not in log.read_text() and time.perf_counter() - began < 600:
                time.sleep(0.01)
            wall = time.perf_counter() - began
            status = pathlib.Path(f"/proc/{child.pid}/status").read_text()
            child.kill()
            _, _, usage = os.wait4(child.pid, 0)
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    return Took(wall, usage.ru_utime + usage.ru_stime, int(peak.group(1)) / 1024 if peak else math.nan)


def python_loader(logdir: str, runs: int) -> Took:
    """TensorBoard's own accumulator on a few runs; its times are scaled to all."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folders = sorted(path for path in pathlib.Path(logdir).iterdir() if path.is_dir())
    began, busy = time.perf_counter(), time.process_time()
    for folder in folders[:runs]:
        EventAccumulator(str(folder)).Reload()
    scale = len(folders) / runs
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Took((time.perf_counter() - began) * scale, (time.process_time() - busy) * scale, peak)


def times(args: argparse.Namespace) -> None:
    print(f"load: {os.getloadavg()}")
    own = min(measured([args.stepscope, "scalars", args.logdir, "--csv"]) for _ in range(args.rounds))
    print(own.line("stepscope scalars"))
    others = []
    if args.server:
        others.append(("TensorBoard data server", min(data_server(args.logdir) for _ in range(args.rounds)), ""))
    if args.python_runs:
        scaled = f", scaled from {args.python_runs} runs"
        others.append(("TensorBoard in Python", python_loader(args.logdir, args.python_runs), scaled))
    for who, took, scaled in others:
        print(took.line(who, f"{took.wall / own.wall:.1f} times as long, {took.cpu / own.cpu:.1f} times the processor{scaled}"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    writing = commands.add_parser("write")
    writing.add_argument("logdir")
    writing.add_argument("--runs", type=int, default=200)
    writing.add_argument("--tags", type=int, default=50)
    writing.add_argument("--points", type=int, default=5000)
    writing.set_defaults(act=write)
    timing = commands.add_parser("time")
    timing.add_argument("logdir")
    timing.add_argument("--stepscope", required=True)
    timing.add_argument("--rounds", type=int, default=3)
    timing.add_argument("--server", action="store_true")
    timing.add_argument("--python-runs", type=int, default=0)
    timing.set_defaults(act=times)
    args = parser.parse_args()
    args.act(args)


if __name__ == "__main__":
    main()
