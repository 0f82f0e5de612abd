#!/usr/bin/env python3
"""Writes the Parquet and Arrow files below fixtures/: one table in the ways in which writers write it, and a small export of
Nsight Systems as a folder of tables. Needs pyarrow, nothing else. The same input gives the same files.

    tools/make_tables.py [--out fixtures]

Tests compute the table's values from the row's number, and hold the export against the same one as SQLite: change
`columns` and `export` only together with the tests of crates/read/src/{parquet,arrow} and crates/testkit/src/nsys.rs.
"""

import argparse
import pathlib

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

ROWS = 120


def columns():
    """One column of every type that is read, some with gaps, and two that have to be passed over. Their names are those of
    an export, so that fuzzing reads all of them; what is in them means nothing."""
    rows = range(ROWS)
    kept = lambda i: i % 5 != 0
    return {
        "nested": pa.array([[i, i] for i in rows], pa.list_(pa.int32())),
        "end": pa.array([i * 7919 - 1000 if kept(i) else None for i in rows], pa.int64()),
        "deviceId": pa.array([i - 60 for i in rows], pa.int32()),
        "correlationId": pa.array([2**32 - 1 - i for i in rows], pa.uint32()),
        "globalPid": pa.array([2**64 - 1 - i for i in rows], pa.uint64()),
        "gridX": pa.array([i / 4 for i in rows], pa.float32()),
        "gridY": pa.array([i / 3 if kept(i) else None for i in rows], pa.float64()),
        "streamId": pa.array([i % 3 == 0 for i in rows], pa.bool_()),
        "text": pa.array([f"kernel {i % 11}" if kept(i) else None for i in rows], pa.string()),
        "nameId": pa.array([42] * ROWS, pa.int64()),
        "textId": pa.array([None] * ROWS, pa.int64()),
        "pair": pa.array([{"a": i, "b": i} for i in rows], pa.struct([("a", pa.int64()), ("b", pa.int64())])),
        "start": pa.array(list(rows), pa.int64()),
    }


def write_settings(out):
    table = pa.table(columns())
    deltas = dict.fromkeys(["end", "deviceId", "correlationId", "globalPid", "nameId", "textId", "start"], "DELTA_BINARY_PACKED")
    split = dict.fromkeys(["gridX", "gridY"], "BYTE_STREAM_SPLIT")
    settings = {
        "default": {},
        "zstd": {"compression": "zstd"},
        "pages-v2": {"compression": "none", "data_page_version": "2.0"},
        "pages-v2-snappy": {"data_page_version": "2.0", "use_dictionary": False},
        "small-pages-gzip": {"compression": "gzip", "data_page_size": 64, "write_batch_size": 16},
        "row-groups": {"row_group_size": 37, "use_dictionary": False, "compression": "none"},
        "encodings-lz4": {
            "compression": "lz4",
            "use_dictionary": False,
            "column_encoding": deltas | split | {"text": "DELTA_LENGTH_BYTE_ARRAY"},
        },
        "brotli": {"compression": "brotli"},
        "prefixes": {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, options in settings.items():
        pq.write_table(table, out / f"{name}.parquet", store_schema=False, write_statistics=not options, **options)


def write_arrow(out):
    """Flat columns only; texts through a dictionary in the stream. Batches of few rows, so that there are several."""
    flat = {name: column for name, column in columns().items() if name not in ("nested", "pair")}
    for name, compression in {"framed": None, "framed-zstd": "zstd", "framed-lz4": "lz4"}.items():
        table = pa.table(flat)
        options = ipc.IpcWriteOptions(compression=compression)
        with ipc.new_file(out / f"{name}.arrow", table.schema, options=options) as file:
            file.write_table(table, max_chunksize=50)
    with pa.OSFile(str(out / "streams.arrows"), "wb") as file:
        for name in ["first", "second"]:
            table = pa.table(flat | {"text": flat["text"].dictionary_encode()})
            table = table.replace_schema_metadata({"table_name": name})
            with ipc.new_stream(file, table.schema) as stream:
                stream.write_table(table, max_chunksize=50)


def export():
    """The sample of crates/testkit/src/nsys.rs, table by table."""
    names = ["cudaLaunchKernel_v7000", "gemm<float>(float *)", "gemm", "poll", "main thread", "cublasSgemm_v2"]
    tid = lambda pid, thread: 1 << 48 | pid << 24 | thread
    pids = [70, 71]
    calls = [(pid, i) for pid in pids for i in (1, 2, 3)]
    calls_of = lambda each: [each(pid, i) for pid, i in calls]
    constant = lambda value: [value] * len(calls)
    yield "StringIds", {"id": list(range(1, 7)), "value": names}
    yield "PROCESSES", {"globalPid": [tid(p, 0) for p in pids], "pid": pids, "name": ["python3"] * 2}
    yield "ThreadNames", {"nameId": [5, 5], "priority": [None, None], "globalTid": [tid(p, p) for p in pids]}
    yield "CUPTI_ACTIVITY_KIND_RUNTIME", {
        "start": calls_of(lambda _, i: i * 10_000),
        "end": calls_of(lambda _, i: i * 10_000 + 5_000),
        "globalTid": calls_of(lambda pid, _: tid(pid, pid)),
        "correlationId": calls_of(lambda _, i: i),
        "nameId": constant(1),
    }
    launch = {"registersPerThread": 64, "gridX": 216, "gridY": 2, "gridZ": 1, "blockX": 256, "blockY": 1, "blockZ": 1}
    memory = {"staticSharedMemory": 1024, "dynamicSharedMemory": 512, "localMemoryPerThread": 0}
    yield "CUPTI_ACTIVITY_KIND_KERNEL", {
        "start": calls_of(lambda _, i: i * 10_000 + 6_000),
        "end": calls_of(lambda _, i: i * 10_000 + 9_000),
        "deviceId": calls_of(lambda pid, _: pid - 70),
        "contextId": constant(1),
        "streamId": constant(7),
        "correlationId": calls_of(lambda _, i: i),
        "globalPid": calls_of(lambda pid, _: tid(pid, 0)),
        "demangledName": constant(2),
        "shortName": constant(3),
        **{name: constant(value) for name, value in (launch | memory).items()},
    }


def write_export(out):
    folder = out / "run_pqtdir"
    folder.mkdir(parents=True, exist_ok=True)
    with pa.OSFile(str(out / "run.arrows"), "wb") as file:
        for name, columns in export():
            table = pa.table(columns)
            pq.write_table(table, folder / f"{name}.parquet", store_schema=False)
            table = table.replace_schema_metadata({"table_name": name})
            with ipc.new_stream(file, table.schema) as stream:
                stream.write_table(table)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    fixtures = pathlib.Path(__file__).resolve().parent.parent / "fixtures"
    arguments.add_argument("--out", type=pathlib.Path, default=fixtures)
    out = arguments.parse_args().out
    write_settings(out / "tables")
    write_arrow(out / "tables")
    write_export(out / "nsys-tables")


if __name__ == "__main__":
    main()
