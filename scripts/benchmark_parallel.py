"""How collection grows with the number of workers on this machine.

python scripts/benchmark_parallel.py --workers 1,2,4 [--games 64] [--preset tiny] [--seconds 5]

Each number of workers plays for some seconds; the table shows moves per second, the gain over the
first line, how busy a worker was, and the memory of all processes together.
"""

from __future__ import annotations

import argparse
import time

from rich.console import Console
from rich.table import Table

from keisei.config_schema import load_config
from keisei.core.ppo_agent import PPOAgent
from keisei.training.parallel import ParallelManager
from keisei.training.parallel.statistics import memory_of_tree


def measure(preset: str, workers: int, games: int, seconds: float) -> tuple[float, float, float]:
    """Moves per second, the share of time that workers were busy, and megabytes."""
    config = load_config(
        overrides=[
            f"model.preset={preset}",
            "training.minibatch_size=1",  # nothing is learned here, so any number of games will do
            "training.parallel.mode=async",
            "training.parallel.rollout_length=16",
            f"training.parallel.num_workers={workers}",
            f"training.parallel.num_envs_per_worker={games}",
        ]
    )
    with ParallelManager(config, PPOAgent(config, "cpu")) as manager:
        for _ in range(2):  # the first rollouts set up PyTorch's kernels
            manager.collect_experiences()
        steps, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            steps += sum(rollout.num_steps for rollout in manager.collect_experiences())
        took = time.perf_counter() - start
        rows = manager.get_statistics()["workers"].values()
        busy = sum(row["busy"] for row in rows) / len(rows)
        return steps / took, busy, memory_of_tree() / 2**20


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", default="1,2,4", help="numbers, with commas between them")
    parser.add_argument("--games", type=int, default=64, help="games of each worker")
    parser.add_argument("--preset", default="tiny", help="tiny, small or full")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each line of the table")
    options = parser.parse_args()
    table = Table(
        "workers", "moves/s", "gain", "busy", "memory", title=f"{options.games} games each"
    )
    first = 0.0
    for workers in map(int, options.workers.split(",")):
        speed, busy, memory = measure(options.preset, workers, options.games, options.seconds)
        first = first or speed
        gain = f"{speed / first:.2f}"
        table.add_row(f"{workers}", f"{speed:,.0f}", gain, f"{busy:.0%}", f"{memory:,.0f} MB")
    Console().print(table)


if __name__ == "__main__":
    main()
