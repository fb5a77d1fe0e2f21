"""Lets workers play while processes are killed, and looks for differences, losses, leaks and hangs.

python scripts/test_parallel_stability.py --kills 100 [--workers 2]
python scripts/test_parallel_stability.py --duration 1200 [--kill-every 10] [--workers 2]

With --kills a storm: workers that start, wait, take weights or play are killed or halted, one, two
in a row, or all at once. In sync mode the run must end with the weights of the one in which nobody
was killed, bit for bit; in async mode every rollout must be counted once.

With --duration, an async run for so long, which also must not use more memory in its last third
than in its first (by more than 5 %).

Both exit with 1 if a finished rollout was lost or counted twice, if a collection took too long, or
if anything was left behind.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import torch

from keisei.config_schema import AppConfig, load_config
from keisei.core.ppo_agent import PPOAgent
from keisei.core.rollout import Rollout
from keisei.training.parallel import BaseManager, ParallelManager, SerialManager
from keisei.training.parallel.statistics import memory_of_tree
from keisei.training.parallel.worker_communicator import WorkerLine
from keisei.training.parallel.worker_status import FIELDS

HANG = 60.0  # seconds for one collection
LONGEST_WAIT = 2.0  # seconds for a worker to be at the moment that is wanted
MOMENTS = ("starting", "idle", "syncing", "playing")


def settings(*more: str) -> AppConfig:
    """Short rollouts and updates, and workers that may die as often as they like."""
    parallel = ["max_restarts=1000000", "worker_timeout=3", "rollout_length=32", *more]
    return load_config(
        overrides=["training.ppo_epochs=1", *(f"training.parallel.{one}" for one in parallel)]
    )


class Storm(threading.Thread):
    """Kills workers at all moments of their lives."""

    def __init__(self, manager: ParallelManager, kills: int, seed: int = 1) -> None:
        super().__init__(daemon=True)
        assert manager._supervisor is not None
        self._supervisor = manager._supervisor
        self._left = kills
        self._random = random.Random(seed)
        self._hit: set[int] = set()  # who was killed already, and may not know yet
        self.killed: Counter[str] = Counter()  # by moment and signal
        self.over = threading.Event()

    def run(self) -> None:
        try:
            while self._left > 0:
                moment = self._random.choice(MOMENTS)
                how = self._random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP])
                many = self._random.choice([1, 1, 2, 9])  # 9: all who are at that moment
                for _ in range(self._random.choice([1, 1, 2])):  # and who takes their place, too
                    self._kill(moment, how, many)
                self.over.wait(self._random.random() / 2)
        finally:
            self.over.set()

    def _kill(self, moment: str, how: signal.Signals, many: int) -> None:
        supervisor, deadline = self._supervisor, time.monotonic() + LONGEST_WAIT
        while time.monotonic() < deadline:
            with supervisor.changed:  # nobody is replaced meanwhile
                lines = supervisor.communicator.workers
                alive = [line for line in lines if line.process.pid not in self._hit]
                found = [line for line in alive if self._moment(line) == moment]
                if found:
                    for line in found[: min(many, self._left)]:
                        os.kill(line.process.pid, how)
                        self._hit.add(line.process.pid)
                        self.killed[f"{moment} {how.name}"] += 1
                        self._left -= 1
                    return
                supervisor.changed.wait(self._random.random() / 100)

    def _moment(self, line: WorkerLine) -> str:
        if not line.ready:
            return "starting"
        if not line.slots:
            return "idle"
        row = self._supervisor.status["status"][line.index]
        return "playing" if row[FIELDS.index("steps")] > line.steps else "syncing"


class Books:
    """Counts what is collected, and what should not be so."""

    def __init__(self, manager: ParallelManager) -> None:
        self.manager = manager
        self.collected = 0
        self.problems: list[str] = []

    def collect(self) -> list[Rollout]:
        """One collection, and a look at the books."""
        rollouts = self.manager.collect_experiences(timeout=HANG)
        wanted = self.manager.parallel.update_steps
        if sum(rollout.num_steps for rollout in rollouts) < wanted:
            self.problems.append(f"{len(rollouts)} rollouts within {HANG:.0f} s are not enough")
        self.collected += len(rollouts)
        now = self.manager.get_statistics()
        books = now["queue_info"]["rollouts_waiting"] + now["dropped_rollouts"] + self.collected
        if now["total_rollouts"] != books:
            self.problems.append(f"{now['total_rollouts']} rollouts were finished, {books} found")
        if any(not (rollout.values == rollout.values).all() for rollout in rollouts):
            self.problems.append("a rollout holds what nobody wrote")
        return rollouts

    def close(self) -> int:
        """Stop the workers; returns how many of them were replaced."""
        restarts = int(self.manager.get_statistics()["restarts"])
        self.manager.shutdown()
        children = psutil.Process().children(recursive=True)
        left = [child.pid for child in children if child.name().startswith("keisei-worker")]
        if left:
            self.problems.append(f"workers are left: {left}")
        return restarts


def storm(mode: str, kills: int, workers: int) -> dict[str, Any]:
    """Train in a storm; in sync mode, train again in silence and compare."""
    config = settings(f"mode={mode}", f"num_workers={workers}", "num_envs_per_worker=16")
    agent = PPOAgent(config, "cpu")
    manager = ParallelManager(config, agent)
    manager.start_workers()
    books, killer = Books(manager), Storm(manager, kills)
    start, updates = time.monotonic(), 0
    killer.start()
    while not killer.over.is_set():
        learn(manager, agent, books.collect())
        updates += 1
    learn(manager, agent, books.collect())  # those who were killed last are back
    restarts = books.close()
    if mode == "sync":
        quiet = PPOAgent(config, "cpu")
        serial = SerialManager(config, quiet)
        for _ in range(updates + 1):
            learn(serial, quiet, serial.collect_experiences())
        weights = zip(agent.network.parameters(), quiet.network.parameters(), strict=True)
        if not all(torch.equal(one, two) for one, two in weights):
            books.problems.append("the weights are not those of the undisturbed run")
    return {
        "mode": mode,
        "seconds": round(time.monotonic() - start, 1),
        "kills": killer.killed.total(),
        "killed": dict(sorted(killer.killed.items())),
        "restarts": restarts,
        "updates": updates + 1,
        "rollouts": books.collected,
        "problems": books.problems,
    }


def learn(manager: BaseManager, agent: PPOAgent, rollouts: list[Rollout]) -> None:
    """One update, and its weights to the workers."""
    agent.update(rollouts)
    manager.synchronize_models()


def soak(duration: float, kill_every: float, workers: int) -> dict[str, Any]:
    """Play for long, kill now and then, and look at the memory."""
    config = settings("mode=async", f"num_workers={workers}")
    manager = ParallelManager(config, PPOAgent(config, "cpu"))
    manager.start_workers()
    books, memory, kills = Books(manager), [], 0
    start = last_storm = time.monotonic()
    while time.monotonic() - start < duration:
        books.collect()
        if time.monotonic() - last_storm > kill_every:
            # Before the kills, when all are back: a process that has just started is small.
            memory.append(memory_of_tree())
            killer = Storm(manager, kills=workers, seed=kills)
            killer.start()
            while not killer.over.is_set():
                books.collect()
            kills += killer.killed.total()
            last_storm = time.monotonic()
    restarts = books.close()
    third = max(len(memory) // 3, 1)
    growth = statistics.mean(memory[-third:]) / statistics.mean(memory[:third]) - 1 if memory else 0
    if len(memory) >= 3 and growth > 0.05:
        books.problems.append(f"memory grew by {growth:.1%}")
    return {
        "seconds": duration,
        "kills": kills,
        "restarts": restarts,
        "rollouts": books.collected,
        "memory_mb": [round(used / 2**20) for used in memory],
        "memory_growth": growth,
        "problems": books.problems,
    }


def main() -> None:
    """Run, print the report, and exit with 1 if there was a problem."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=0, help="a storm of so many, in both modes")
    parser.add_argument("--duration", type=float, default=0, help="seconds to play for")
    parser.add_argument("--kill-every", type=float, default=10, help="seconds")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the report to this file")
    options = parser.parse_args()
    reports = []
    if options.kills:
        reports += [storm(mode, options.kills, options.workers) for mode in ("sync", "async")]
    if options.duration or not options.kills:
        reports.append(soak(options.duration or 60, options.kill_every, options.workers))
    text = json.dumps(reports, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text, encoding="utf-8")
    sys.exit(1 if any(report["problems"] for report in reports) else 0)


if __name__ == "__main__":
    main()
