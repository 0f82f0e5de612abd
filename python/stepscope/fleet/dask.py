"""The fleet on Dask. Workers need the same wheel (``PipInstall(["stepscope"])``) and the same paths."""

from __future__ import annotations

from typing import Any

from distributed import Client, as_completed, get_client

from . import FleetReport, check_versions, failed, finish, memory, merge, partial, plan, version

#: Partials merged by one task.
_WIDTH = 16
#: Names the resource by which workers limit memory, where they declare it (``--resources "memory=64e9"``).
_MEMORY = "memory"


def run(*paths: Any, client: Client | None = None, threads: int = 1, **options: Any) -> FleetReport:
    """Plans here, reads and merges on the client's workers. Options are those of ``fleet.plan``."""
    client = client or get_client()
    works = plan(*paths, **options)
    check_versions(client.run(version))
    limit = _limit(client)
    by_key: dict[str, dict[str, Any]] = {}
    tasks = []
    for work in works:
        # Keys by id: a plan that is run twice does the work once, and never the work of another plan.
        key = "stepscope-partial-" + work["id"]
        by_key[key] = work
        needs = {_MEMORY: min(memory(work), limit)} if limit else None
        tasks.append(client.submit(partial, work, threads, key=key, resources=needs, retries=2))
    kept = []
    for task in as_completed(tasks):
        if task.status == "finished":
            kept.append(task)
        else:
            reason = "the task failed: {}".format(type(task.exception()).__name__)
            kept.append(client.submit(failed, by_key[task.key], reason, pure=False))
    while len(kept) > 1:
        groups = [kept[first : first + _WIDTH] for first in range(0, len(kept), _WIDTH)]
        kept = [client.submit(merge, group, pure=False) for group in groups]
    return finish(kept[0].result() if kept else merge([]))


def _limit(client: Client) -> float:
    """The least that any worker declares; 0 if one declares nothing."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return float(min((worker.get("resources", {}).get(_MEMORY, 0) for worker in workers), default=0))
