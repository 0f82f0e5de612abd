"""The fleet on Ray. Workers need the same wheel (``runtime_env={"pip": ["stepscope"]}``) and the same paths."""

from __future__ import annotations

from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

from . import FleetReport, check_versions, failed, finish, memory, merge, partial, plan, version

_WIDTH = 16  # partials merged by one task
_RETRIES = 3  # a task whose worker dies more often is given up


def run(*paths: Any, threads: int = 1, **options: Any) -> FleetReport:
    """Plans here, reads and merges on the cluster that ``ray.init`` reached. Options are those of ``fleet.plan``."""
    works = plan(*paths, **options)
    nodes = [node for node in ray.nodes() if node["Alive"]]
    ask = ray.remote(version)
    asked = [ask.options(num_cpus=0, scheduling_strategy=On(node["NodeID"], soft=True)).remote() for node in nodes]
    check_versions(dict(zip([node["NodeID"] for node in nodes], ray.get(asked))))
    # A hint beyond what any node has would make a task wait for ever.
    most = max((node["Resources"].get("memory", 0) for node in nodes), default=0)
    needs = [{"memory": int(min(memory(work), most)), "num_cpus": threads, "max_retries": _RETRIES} for work in works]
    read = ray.remote(partial)
    refs = [read.options(**need).remote(work, threads) for need, work in zip(needs, works)]
    parts = [slice(first, first + _WIDTH) for first in range(0, len(refs), _WIDTH)]
    merged = [(_merge.remote(*refs[part]), refs[part], works[part]) for part in parts]
    kept = [_whole(*group) for group in merged]
    while len(kept) > 1:
        kept = [_merge.remote(*kept[first : first + _WIDTH]) for first in range(0, len(kept), _WIDTH)]
    return finish(ray.get(kept[0]) if kept else merge([]))


@ray.remote(max_retries=_RETRIES)
def _merge(*parts: bytes) -> bytes:
    return merge(list(parts))


@ray.remote(num_cpus=0, max_retries=_RETRIES)
def _ended(part: bytes) -> None:
    """Takes a result where it lies, so that the driver learns whether there is one without holding it."""


def _whole(united: Any, refs: list[Any], works: list[dict[str, Any]]) -> Any:
    """A merged group. If a task of it failed for good, the others and an entry that says so."""
    try:
        ray.get(_ended.remote(united))
        return united
    except RayError:
        return ray.put(merge([_one(ref, work) for ref, work in zip(refs, works)]))


def _one(ref: Any, work: dict[str, Any]) -> bytes:
    try:
        return ray.get(ref)
    except RayError as error:
        return failed(work, "the task failed: {}".format(type(error).__name__))
