#!/usr/bin/env python3
"""Make a fleet of hosts from the small profiles in fixtures/, with three causes planted.

    tools/make-fleet.py FOLDER --hosts 2000 [--truncated 3]

Files are hard links where the file system allows it. Planted:
- `data/slow-loader`: a fifth of the hosts wait for input;
- host `node-0007`: about 18 % slower than its peers in each of three jobs;
- `nightly/bert`: ten recordings on ten days, about 10 % slower since the eighth (2026-03-08).
"""

import argparse
import os
import shutil
from pathlib import Path

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
STRAGGLER = 7


def profile(name):
    return next((FIXTURES / name).rglob("*.xplane.pb"))


def place(source, root, job, session, node):
    folder = root / job / "plugins" / "profile" / session
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"node-{node:04}.xplane.pb"
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
    return target


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hosts", type=int, default=2000, help="number of hosts; at least 100")
    parser.add_argument("--truncated", type=int, default=0, help="cut this many files of the steady job in half")
    options = parser.parse_args()
    hosts, root = options.hosts, options.folder
    usual, slower = profile("jax-plain"), profile("jax-train")
    day = "2026_03_{:02}_04_00_00".format
    for job, share in [("vision/resnet", 0.20), ("vision/vit", 0.15), ("speech/whisper", 0.10)]:
        for node in range(max(int(hosts * share), STRAGGLER + 1)):
            place(slower if node == STRAGGLER else usual, root, job, day(1), node)
    for node in range(int(hosts * 0.20)):
        place(profile("tf-input-bound"), root, "data/slow-loader", day(2), node + 3000)
    before, after = profile("keras-fit"), profile("keras-plain")
    for number in range(1, 11):
        for node in range(int(hosts * 0.02)):
            place(after if number >= 8 else before, root, "nightly/bert", day(number), node + 5000)
    steady = [place(profile("tf-train"), root, "steady/lm", day(3), node + 7000) for node in range(int(hosts * 0.15))]
    for target in steady[: options.truncated]:
        content = target.read_bytes()
        target.unlink()
        target.write_bytes(content[: len(content) // 2])


if __name__ == "__main__":
    main()
