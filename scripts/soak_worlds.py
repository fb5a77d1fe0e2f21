"""Does a long run in a world hold its memory? 100 agents that learn beside collecting (make soak).

Trains for so many minutes, writes down after each epoch what the run's process and its children
hold, and compares the last quarter of the time with the one before: with full memories of
experience, nothing may grow any more. Exits with 1 if it grew by more than `--most` megabytes.
"""

from __future__ import annotations

import argparse
import sys
import time
from statistics import median

import psutil
import torch

from keisei.processes.machine import keep_freed_memory
from keisei.worlds import make_environment

TURNS = 100
SETTINGS = [
    "agents=[double_dqn, iqn, ppo, random]",
    "double_dqn.hidden=[64]",
    "iqn.hidden=[64]",
    "ppo.hidden=[64]",
    "parallel.async_learning=true",
    "parallel.world_workers=2",
]


def held() -> float:
    """Megabytes of this process and its children; what they share is counted once for each."""
    here = psutil.Process()
    total = 0
    for process in (here, *here.children(recursive=True)):
        try:
            total += process.memory_info().rss
        except psutil.Error:  # it has just ended
            continue
    return total / 1e6


def soak(minutes: float, agents: int, copies: int) -> list[tuple[float, float]]:
    """Minutes and megabytes after each epoch; at least eight epochs."""
    world = f"world_settings={{num_agents: {agents}, height: 40, width: 40, max_turns: {TURNS}}}"
    # Memories are full after the first epoch, so that their filling is not taken for growth.
    full = [f"{kind}.memory={copies * TURNS}" for kind in ("double_dqn", "iqn")]
    points: list[tuple[float, float]] = []
    with make_environment("cleanup", [*SETTINGS, *full, world, f"copies={copies}"]) as environment:
        start = time.monotonic()
        while len(points) < 8 or points[-1][0] < minutes:
            environment.run_epoch()
            points.append(((time.monotonic() - start) / 60, held()))
            shown = f"{points[-1][0]:6.1f} min  {points[-1][1]:8.1f} MB"
            print(f"epoch {environment.epoch:5}  {shown}", flush=True)
        environment.finish()
    return points


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument("--copies", type=int, default=32)
    parser.add_argument("--most", type=float, default=50, help="megabytes that it may grow by")
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    points = soak(options.minutes, options.agents, options.copies)
    quarter = len(points) // 4
    before = median(megabytes for _, megabytes in points[-2 * quarter : -quarter])
    last = median(megabytes for _, megabytes in points[-quarter:])
    grown = last - before
    print(f"third quarter {before:.1f} MB, last quarter {last:.1f} MB: grew by {grown:.1f} MB")
    sys.exit(grown > options.most)


if __name__ == "__main__":
    main()
