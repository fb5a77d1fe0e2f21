"""Statistics of the workers."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psutil
import torch

from keisei.selfplay.plan import FailurePolicy
from keisei.training.parallel.experience_collector import ExperienceCollector, Record
from keisei.training.parallel.worker_communicator import INFERENCE, WorkerLine
from keisei.training.parallel.worker_status import ACTIVITIES, FIELDS

if TYPE_CHECKING:
    from keisei.training.parallel.base_manager import BaseManager
    from keisei.training.parallel.supervisor import Supervisor


def statistics(supervisor: Supervisor) -> dict[str, Any]:
    """Everything that the supervisor knows; docs/parallel.md says what to look at."""
    communicator, collector = supervisor.communicator, supervisor.collector
    lines = communicator.lines
    return {
        **totals(collector, supervisor.failures),
        "active_workers": len(communicator.workers),
        "free_cores": supervisor.free_cores,
        "workers": {line.index: _of_line(supervisor, line) for line in communicator.workers},
        "inference": _of_line(supervisor, lines[INFERENCE]) if INFERENCE in lines else None,
        "queue_info": {
            **communicator.get_queue_info(),
            "rollouts_waiting": len(collector.waiting),
            "slots_free": len(collector.free),
        },
        "synchronization": supervisor.synchronizer.get_sync_stats(),
    }


def totals(collector: ExperienceCollector, failures: FailurePolicy) -> dict[str, Any]:
    """What was played and lost since the start, on any backend."""
    counts, lags = collector.totals, collector.lags
    return {
        "is_running": True,
        **{f"total_{name}": counts[name] for name in ("steps", "games", "rollouts")},
        "dropped_rollouts": counts["dropped_rollouts"],
        "restarts": failures.restarts.total(),
        "lag": sum(lags) / max(len(lags), 1),
        "max_lag": max(lags, default=0),
    }


def _of_line(supervisor: Supervisor, line: WorkerLine) -> dict[str, Any]:
    row = dict(zip(FIELDS, supervisor.status["status"][line.index].tolist(), strict=True))
    now = time.monotonic()
    age = max(now - line.started, 1e-9)
    shares = {name: row[name] / age for name in ACTIVITIES}
    return {
        "pid": line.process.pid,
        "incarnation": supervisor.shards.get(line.index, {}).get("incarnation", 0),
        "rollouts": line.rollouts,
        "steps": row["steps"],
        "evaluations": row["evaluations"],
        "games": row["games"],
        **supervisor.collector.records.get(line.index, Record()).figures(),
        "steps_per_s": row["steps"] / age,
        "evaluations_per_s": row["evaluations"] / age,
        **shares,
        "silent_for": now - row["beat"],
        "restarts": supervisor.failures.restarts[line.index],
        "lag": supervisor.synchronizer.version - line.version if line.version >= 0 else 0,
        "state": _state(line),
    }


def _state(line: WorkerLine) -> str:
    if line.leaving:
        return "leaving"
    if not line.ready:
        return "starting"
    return "paused" if line.paused else "running"


def memory_of_tree() -> int:
    """Bytes that this process and all below it use together; shared memory counts once."""
    me = psutil.Process()
    total = 0
    for process in [me, *me.children(recursive=True)]:
        try:
            info = process.memory_full_info()
            total += getattr(info, "pss", info.uss)
        except psutil.Error:  # it has just ended
            continue
    return total


def worker_rows(manager: BaseManager) -> list[dict[str, Any]]:
    """Each worker as the page shows it (`keisei serve`)."""
    rows = []
    for index, worker in manager.get_statistics()["workers"].items():
        rows.append(
            {
                "worker": index,
                **{name: worker[name] for name in ("state", "restarts", "lag")},
                **{name: round(worker[name], 4) for name in ACTIVITIES},
                "steps_per_s": round(worker["steps_per_s"], 1),
                "resident_mb": None if worker.get("is_elsewhere") else _resident_mb(worker["pid"]),
                "node": worker.get("host"),  # None: this machine
            }
        )
    return rows


def _resident_mb(pid: int) -> float | None:
    try:
        return round(float(psutil.Process(pid).memory_info().rss) / 2**20, 1)
    except psutil.Error:  # it has just ended
        return None


def worker_metrics(manager: BaseManager) -> dict[str, float]:
    """What a run records of its workers with every update: above all, who waits for whom."""
    now = manager.get_statistics()
    workers = list(now["workers"].values())
    count = max(len(workers), 1)  # on Ray, all may be away
    means = {f"workers_{name}": sum(w[name] for w in workers) / count for name in ACTIVITIES}
    if manager.agent.device.type == "cuda":
        with suppress(ImportError, RuntimeError):  # it needs nvidia-ml-py, and a driver that tells
            means["gpu_busy"] = torch.cuda.utilization(manager.agent.device) / 100
    if manager.parallel.model_sync_interval == "auto":
        means["sync_interval"] = manager.sync_interval
    return {
        **means,
        "workers": len(workers),
        "lag": now["lag"],
        "dropped_rollouts": now["dropped_rollouts"],
        "restarts": now["restarts"],
        "rollouts_waiting": now["queue_info"]["rollouts_waiting"],
        "memory_mb": memory_of_tree() / 2**20,
    }


def score_metrics(opponent_scores: dict[str, list[float]]) -> dict[str, float]:
    """The learner's mean score against each kind of opponent."""
    return {
        f"score against {name} opponents": sum(scores) / len(scores)
        for name, scores in opponent_scores.items()
        if scores
    }
