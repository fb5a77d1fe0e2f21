"""What workers on Ray do, in numbers: the names are those of processes, and the cluster's."""

from __future__ import annotations

import socket
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from keisei.training.parallel.experience_collector import Record
from keisei.training.parallel.statistics import totals

if TYPE_CHECKING:
    from keisei.training.parallel.ray_line import RayLine
    from keisei.training.parallel.ray_manager import RayManager


def ray_statistics(manager: RayManager) -> dict[str, Any]:
    """Everything that the manager knows; see docs/cluster.md for what to look at."""
    if not manager.is_running:
        return {"is_running": False}
    collector, lines = manager.collector, list(manager.lines.values())
    here = [line for line in lines if line.is_here]
    return {
        **totals(collector, manager.failures),
        "active_workers": len(here),
        "workers": {line.index: _of_line(manager, line) for line in here},
        "inference": None,
        "queue_info": {
            "workers": len(lines),
            "ready": len(here),
            "rollouts_in_work": sum(len(line.work) for line in lines),
            "rollouts_waiting": len(collector.waiting),
        },
        "synchronization": {
            "version": manager.published,
            "sync_count": manager.totals["versions"],
            "bytes": manager.totals["weights_bytes"] // max(manager.totals["versions"], 1),
        },
        "cluster": _cluster(manager, here),
    }


def _of_line(manager: RayManager, line: RayLine) -> dict[str, Any]:
    now = time.monotonic()
    age = sum(line.seconds.values()) or 1.0  # up to its last rollout
    return {
        "pid": line.about["pid"],
        "node": line.about["node"],
        "host": line.about["host"],
        "rollouts": line.rollouts,
        "steps": line.steps,
        "games": line.games,
        **manager.collector.records.get(line.index, Record()).figures(),
        "steps_per_s": line.steps / age,
        **{name: seconds / age for name, seconds in line.seconds.items()},
        "silent_for": now - line.heard,
        "restarts": manager.failures.restarts[line.index],
        "lag": manager.published - line.version if line.version >= 0 else 0,
        "state": "running",
        "is_elsewhere": line.about["host"] != socket.gethostname(),
    }


def _cluster(manager: RayManager, here: list[RayLine]) -> dict[str, Any]:
    """The nodes with their workers, what went over the wire at most, and the object stores."""
    workers = Counter(line.about["node"] for line in here)
    known, stores = manager.cluster_now()
    nodes = [{**node, "workers": workers[node["node"]]} for node in known]
    return {
        "nodes": nodes,
        # A set of weights is fetched once by every node that has workers.
        "weights_bytes": manager.totals["weights_bytes"] * max(len(workers), 1),
        "rollout_bytes": manager.totals["rollout_bytes"],
        "object_store": stores,
    }
