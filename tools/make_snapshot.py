"""Writes a large memory snapshot as PyTorch's `_dump_snapshot` does, without PyTorch: to measure readers with it.

    python tools/make_snapshot.py OUT [--entries 4000000] [--depth 40]     about 1 GB
    python tools/make_snapshot.py OUT --hostile                            the same beginning, then a call of a function

Protocol 4, as `pickle.dump` writes it: keys and frames are shared, every dictionary and list is memoized, each entry has its own
list of frames. Every step allocates and frees the same blocks; the first blocks stay. `pickle.load` reads it, too.
"""

import argparse
import random
import struct

STEP = 400  # allocations per step
STACKS = 800
FRAMES = 3000
BASE = 0x7F0000000000


class Writer:
    def __init__(self, path):
        self.file = open(path, "wb", 1 << 22)
        self.memo = 0
        self.known = {}
        self.file.write(b"\x80\x04")

    def memoize(self):
        self.memo += 1
        return b"\x94"

    def text(self, text):
        """A string, the second time a reference."""
        if text in self.known:
            return self.get(self.known[text])
        self.known[text] = self.memo
        data = text.encode()
        return b"\x8c" + bytes([len(data)]) + data + self.memoize()

    @staticmethod
    def get(number):
        return b"h" + bytes([number]) if number < 256 else b"j" + struct.pack("<I", number)

    @staticmethod
    def integer(number):
        if number < 1 << 31:
            return b"J" + struct.pack("<i", number)
        return b"\x8a\x08" + struct.pack("<q", number)


def frames_of(writer):
    """References to frames; each is written once, inside a list that nobody needs."""
    out, places = [b"]" + writer.memoize() + b"("], []
    for number in range(FRAMES):
        places.append(writer.memo)
        library = "" if number % 7 == 0 else "site-packages/torch/"
        file = "/home/u/{}module_{}.py".format(library, number % 200)
        parts = [b"}", writer.memoize(), b"("]
        for key, value in (("name", "function_{}".format(number)), ("filename", file)):
            parts += [writer.text(key), writer.text(value)]
        parts += [writer.text("line"), writer.integer(number % 1000 + 1), b"u"]
        out += parts
    return b"".join(out) + b"e", places


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out")
    parser.add_argument("--entries", type=int, default=4_000_000)
    parser.add_argument("--depth", type=int, default=40)
    parser.add_argument("--hostile", action="store_true")
    options = parser.parse_args()
    random.seed(7)
    writer = Writer(options.out)
    write = writer.file.write
    write(b"}" + writer.memoize() + b"(")
    write(writer.text("allocator_settings"))
    frames, places = frames_of(writer)
    write(frames)
    stacks = [
        b"(" + b"".join(writer.get(random.choice(places)) for _ in range(options.depth)) + b"e" for _ in range(STACKS)
    ]
    write(writer.text("device_traces"))
    write(b"]" + writer.memoize() + b"]" + writer.memoize() + b"(")

    def entry(action, address, size, time, stack):
        parts = [b"}", writer.memoize(), b"(", writer.text("action"), writer.text(action)]
        parts += [writer.text("addr"), writer.integer(address), writer.text("size"), writer.integer(size)]
        parts += [writer.text("stream"), b"K\x00", writer.text("time_us"), writer.integer(time)]
        parts += [writer.text("frames"), b"]", writer.memoize(), stacks[stack], b"u"]
        return b"".join(parts)

    sizes = [512 * random.randint(1, 4000) for _ in range(STEP)]
    kept = [(BASE - (number + 1) * (1 << 22), 1 << 20, number % STACKS) for number in range(500)]
    time, written = 1_790_000_000_000_000, 0
    for address, size, stack in kept:
        write(entry("alloc", address, size, time, stack))
        time += 3
        written += 1
    while written < options.entries:
        live = []
        for number, size in enumerate(sizes):
            address = BASE + number * (1 << 22)
            write(entry("alloc", address, size, time, (number * 7) % STACKS))
            live.append((address, size, (number * 7) % STACKS))
            time += 3
        for address, size, stack in reversed(live):
            for action in ("free_requested", "free_completed"):
                write(entry(action, address, size, time, stack))
                time += 2
        written += 3 * STEP
    if options.hostile:
        write(b"cos\nsystem\n\x8c\x02id\x85R")
    write(b"ea")  # the entries of device 0
    write(writer.text("segments"))
    write(b"]" + writer.memoize() + b"(")
    for address, size, stack in kept:
        write(b"}" + writer.memoize() + b"(")
        for key, value in (("device", 0), ("address", address), ("total_size", size), ("allocated_size", size)):
            write(writer.text(key) + writer.integer(value))
        for key, value in (("active_size", size), ("requested_size", size), ("stream", 0)):
            write(writer.text(key) + writer.integer(value))
        write(writer.text("segment_type") + writer.text("large"))
        write(writer.text("blocks") + b"]" + writer.memoize() + b"(")
        write(b"}" + writer.memoize() + b"(" + writer.text("address") + writer.integer(address))
        write(writer.text("size") + writer.integer(size) + writer.text("requested_size") + writer.integer(size))
        write(writer.text("state") + writer.text("active_allocated"))
        write(writer.text("frames") + b"]" + writer.memoize() + stacks[stack] + b"u")
        write(b"eu")
    write(b"eu.")
    writer.file.close()


if __name__ == "__main__":
    main()
