"""The fleet on Spark. Executors need the same wheel (``--archives`` of a packed environment) and the same paths.

Works on classic Spark and on Spark Connect: only data frames are used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from . import FleetReport, check_versions, failed, finish, memory, merge, partial, plan, version

#: What travels between tasks.
_ROWS = "worker string, version string, part binary"


def run(*paths: Any, spark: SparkSession | None = None, threads: int = 1, **options: Any) -> FleetReport:
    """Plans here, reads and merges on the executors. Options are those of ``fleet.plan``."""
    session = spark or SparkSession.builder.getOrCreate()
    works = plan(*paths, **options)
    if not works:
        return finish(merge([]))
    # Python's memory lies outside the executor's heap, and its limit in MB is optional.
    limit = session.conf.get("spark.executor.pyspark.memory", None) or "0"
    needed = max(memory(work) for work in works) >> 20
    if limit.isdigit() and 0 < int(limit) < needed:
        raise MemoryError("a task may need {} MB; raise spark.executor.pyspark.memory".format(needed))
    rows = [(json.dumps(work), version(), threads) for work in works]
    frame = session.createDataFrame(rows, "work string, version string, threads int").repartition(len(rows))
    done = frame.mapInArrow(_read, _ROWS).coalesce(max(len(rows) // 16, 1)).mapInArrow(_unite, _ROWS).collect()
    check_versions({row.worker: row.version for row in done})
    return finish(merge([bytes(row.part) for row in done if row.part is not None]))


def _read(batches: Iterator[Any]) -> Iterator[Any]:
    """Reads work where its version is that of the driver; else only says which it is."""
    for batch in batches:
        for row in batch.to_pylist():
            work = json.loads(row["work"])
            try:
                part = partial(work, row["threads"]) if row["version"] == version() else None
            except Exception as error:
                part = failed(work, "the task failed: {}".format(error))
            yield _batch(part)


def _unite(batches: Iterator[Any]) -> Iterator[Any]:
    parts = [row["part"] for batch in batches for row in batch.to_pylist()]
    yield _batch(None if None in parts else merge(parts))


def _batch(part: bytes | None) -> Any:
    import socket

    import pyarrow

    return pyarrow.RecordBatch.from_pydict({"worker": [socket.gethostname()], "version": [version()], "part": [part]})
