"""Where the time of a training goes, and what waits for what.

python scripts/profile_training.py --mode serial|parallel --workers 2 [-o section.field=value ...]

Prints the share of each phase, what every worker did, and the functions of the training process
that took longest. For a picture over time use `keisei train --trace FILE`.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from keisei.config_schema import load_config
from keisei.runs.run import Run
from keisei.settings import to_yaml
from keisei.training.trainer import Trainer


def profile(mode: str, workers: int, settings: list[str]) -> None:
    """Train for some updates and print where the time went."""
    config = load_config(
        overrides=[
            "training.total_timesteps=65536",
            f"training.parallel.enabled={'true' if mode == 'parallel' else 'false'}",
            f"training.parallel.num_workers={workers}",
            *settings,
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(config, Run.create(Path(folder), "profile", to_yaml(config)))
        trainer.start_workers()
        profiler = cProfile.Profile()
        phases = {"collect": 0.0, "learn": 0.0}
        start = time.perf_counter()
        profiler.enable()
        while not trainer.progress.finished:
            trainer.update()
            now = trainer.progress.metrics
            steps = now["steps_per_s"]
            phases["collect"] += steps / now["collect_steps_per_s"]
            phases["learn"] += steps / now["learn_steps_per_s"]
        profiler.disable()
        took = time.perf_counter() - start
        show(trainer, phases, took)
        trainer.stop_workers()
    pstats.Stats(profiler).strip_dirs().sort_stats("tottime").print_stats(12)


def show(trainer: Trainer, phases: dict[str, float], took: float) -> None:
    """Tables of phases and of workers."""
    speed = trainer.progress.steps / took
    updates = trainer.progress.updates
    table = Table("phase", "share", title=f"{speed:,.0f} moves/s over {took:.0f} s")
    for name, total in phases.items():
        table.add_row(name, f"{total / updates:.0%}")
    Console().print(table)
    workers = trainer.manager.get_statistics()["workers"]
    if workers:
        table = Table("worker", "moves/s", "busy", "waiting", "syncing")
        for index, row in workers.items():
            shares = [f"{row[name]:.0%}" for name in ("busy", "waiting", "syncing")]
            table.add_row(str(index), f"{row['steps_per_s']:,.0f}", *shares)
        Console().print(table)


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=["serial", "parallel"], default="parallel")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("-o", action="append", default=[], help="a setting, as of keisei train")
    options = parser.parse_args()
    profile(options.mode, options.workers, options.o)


if __name__ == "__main__":
    main()
