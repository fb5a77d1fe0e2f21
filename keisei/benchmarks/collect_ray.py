"""`keisei benchmark collect --backend ray`: workers on Ray beside as many worker processes."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from keisei.benchmarks.collect import GAMES, settings
from keisei.benchmarks.report import Contender, interleave, median_ratio, publish
from keisei.config_schema import AppConfig
from keisei.core.ppo_agent import PPOAgent
from keisei.processes.machine import keep_freed_memory
from keisei.processes.ray_cluster import cluster
from keisei.training.parallel import make_manager
from keisei.training.parallel.ray_sizing import store_bytes

WORKERS = 2


def collecting(config: AppConfig, agent: PPOAgent, seconds: float) -> Contender:
    """Moves that arrive here in about `seconds`, from one rollout's arrival to another's.

    The workers play alone: they are started for the measurement and stopped after it.
    """
    one = config.training.parallel.rollout_steps

    def run() -> tuple[int, float]:
        with make_manager(config, agent) as manager:
            for _ in range(2 * WORKERS):  # the first moves set up PyTorch's kernels
                manager.collect_experiences(one)
            steps, start = 0, time.perf_counter()
            while time.perf_counter() - start < seconds:
                steps += sum(r.num_steps for r in manager.collect_experiences(one))
            return steps, time.perf_counter() - start

    return run


def run(
    json_file: Path | None = None,
    preset: str = "tiny",
    rounds: int = 5,
    seconds: float | None = None,
) -> None:
    """Measure (`seconds` for each in each round), print a table, write JSON."""
    seconds = seconds or (10.0 if preset == "tiny" else 40.0)
    keep_freed_memory()
    processes = settings(preset, WORKERS, length=32)
    actors = settings(preset, WORKERS, length=32, backend="ray")
    agent = PPOAgent(processes, "cpu")
    with cluster("auto", store_bytes(actors)):
        contenders = {
            "ray": collecting(actors, agent, seconds),
            "process": collecting(processes, agent, seconds),
        }
        rates = interleave(contenders, rounds)
    speed = {name: statistics.median(values) for name, values in rates.items()}
    ratio = median_ratio(rates, "ray", "process")
    rows = [(name, f"{value:,.0f} /s") for name, value in speed.items()]
    rows.append(("ray_to_process", f"{ratio:.2f}"))
    title = f"Collecting over Ray and with processes, {WORKERS} workers, {preset}, {GAMES} games"
    figures = {"preset": preset, "ray_to_process": ratio, "steps_per_s": speed, "rates": rates}
    publish(title, rows, figures, json_file)
