"""Lets workers play while processes are killed at random, and looks for losses, leaks and hangs.

python scripts/test_parallel_stability.py --duration 1200 [--kill-every 10] [--workers 2]

Exits with 1 if a finished rollout was lost or counted twice, if memory grew (the last third over
the first by more than 5 %), if a worker was not back, if a collection took too long, or if anything
was left behind.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from keisei.config_schema import load_config
from keisei.core.ppo_agent import PPOAgent
from keisei.training.parallel import ParallelManager
from keisei.training.parallel.statistics import memory_of_tree

HANG = 60.0  # seconds for one collection


class Watch:
    """Counts what happens, and what should not."""

    def __init__(self, manager: ParallelManager, kill_every: float) -> None:
        self.manager = manager
        self.kill_every = kill_every
        self.last_kill = time.monotonic()
        self.kills = self.collected = 0
        self.memory: list[int] = []
        self.missing: set[int] = set()  # killed, and not yet replaced
        self.back_after: list[float] = []  # seconds, from a kill until all are ready again
        self.problems: list[str] = []
        self.random = random.Random(1)

    def turn(self) -> None:
        """One collection, one check of the books, and perhaps a kill."""
        start = time.monotonic()
        rollouts = self.manager.collect_experiences(timeout=HANG)
        if not rollouts:
            self.problems.append(f"no rollout within {HANG:.0f} s")
        self.collected += len(rollouts)
        now = self.manager.get_statistics()
        books = now["queue_info"]["rollouts_waiting"] + now["dropped_rollouts"] + self.collected
        if now["total_rollouts"] != books:
            self.problems.append(f"{now['total_rollouts']} rollouts were finished, {books} found")
        if any(not (rollout.values == rollout.values).all() for rollout in rollouts):
            self.problems.append("a rollout holds what nobody wrote")
        pids = {row["pid"] for row in now["workers"].values()}
        all_ready = now["queue_info"]["ready"] == len(pids) == self.manager.parallel.num_workers
        if self.missing and all_ready and not self.missing & pids:
            self.back_after.append(time.monotonic() - self.last_kill)
            self.missing = set()
        if start - self.last_kill > self.kill_every:
            self.kill(sorted(pids))

    def kill(self, pids: list[int]) -> None:
        """Kill one of the workers, or several, or stop one for good."""
        self.last_kill = time.monotonic()
        # Before the kill, when all are back: a process that has just started is small.
        self.memory.append(memory_of_tree())
        victims = self.random.sample(pids, self.random.randint(1, len(pids)))
        how = self.random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP])
        for pid in victims:
            os.kill(pid, how)
        self.missing = set(victims) if how == signal.SIGKILL else set()
        self.kills += len(victims)

    def growth(self) -> float:
        """By how much the memory of the last third was over that of the first."""
        third = max(len(self.memory) // 3, 1)
        first, last = self.memory[:third], self.memory[-third:]
        return statistics.mean(last) / statistics.mean(first) - 1


def run(duration: float, kill_every: float, workers: int) -> dict[str, Any]:
    """Play, kill, and report."""
    config = load_config(
        overrides=[
            "training.parallel.mode=async",
            "training.parallel.max_restarts=1000000",
            "training.parallel.worker_timeout=3",
            "training.parallel.rollout_length=32",
            f"training.parallel.num_workers={workers}",
        ]
    )
    manager = ParallelManager(config, PPOAgent(config, "cpu"))
    manager.start_workers()
    watch = Watch(manager, kill_every)
    start = time.monotonic()
    while time.monotonic() - start < duration:
        watch.turn()
    restarts = manager.get_statistics()["restarts"]
    manager.shutdown()
    left = [child.pid for child in psutil.Process().children(recursive=True)]
    if left:
        watch.problems.append(f"processes are left: {left}")
    if restarts < watch.kills * 0.9:  # one killed twice before it is back counts once
        watch.problems.append(f"{watch.kills} kills, but only {restarts} workers were replaced")
    growth = watch.growth() if len(watch.memory) >= 3 else 0.0
    if growth > 0.05:
        watch.problems.append(f"memory grew by {growth:.1%}")
    return {
        "seconds": duration,
        "kills": watch.kills,
        "restarts": restarts,
        "rollouts": watch.collected,
        "median_seconds_until_back": statistics.median(watch.back_after or [0]),
        "max_seconds_until_back": max(watch.back_after, default=0),
        "memory_mb": [round(used / 2**20) for used in watch.memory],
        "memory_growth": growth,
        "problems": watch.problems,
    }


def main() -> None:
    """Run, print the report, and exit with 1 if there was a problem."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--duration", type=float, default=60, help="seconds")
    parser.add_argument("--kill-every", type=float, default=10, help="seconds")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the report to this file")
    options = parser.parse_args()
    report = run(options.duration, options.kill_every, options.workers)
    text = json.dumps(report, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text, encoding="utf-8")
    sys.exit(1 if report["problems"] else 0)


if __name__ == "__main__":
    main()
