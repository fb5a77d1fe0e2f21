"""`keisei benchmark growth`: how costs grow with games, workers, network and minibatch."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from rich.console import Console

from keisei.benchmarks import collect, learn
from keisei.benchmarks.growth_plot import draw, rows
from keisei.benchmarks.report import Contender, interleave, publish
from keisei.config_schema import AppConfig
from keisei.core.neural_network import build_network
from keisei.core.ppo_agent import PPOAgent
from keisei.core.runtime import traced
from keisei.errors import KeiseiError
from keisei.processes.machine import cores, keep_freed_memory
from keisei.processes.other_load import OtherLoad
from keisei.processes.shared_memory import layout_bytes
from keisei.shogi.features import OBSERVATION_BYTES
from keisei.training.parallel import ParallelManager
from keisei.training.parallel.slots import slot_layout, slots_needed

GAMES, WORKERS, PRESETS = (1, 4, 16, 64, 256, 512), (1, 2, 4), ("tiny", "small", "full")
MINIBATCHES = (32, 64, 128, 256, 512, 1024)
# A move of 64 games takes 15 ms, 0.13 s and 1 s; larger networks are measured that much longer, so
# that the window has enough moves.
WINDOWS = {"tiny": 1, "small": 2, "full": 4}
# The rollouts are not taken, so they must be long enough that slots do not run out.
ROLLOUT_STEPS = 32_768
MOVE_TIMEOUT = 120.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class Case:
    """A number of workers, of games for each, and a size of network."""

    games: int = 64
    workers: int = 2
    preset: str = "tiny"

    def __str__(self) -> str:
        return f"collect: workers {self.workers}, games each {self.games}, network {self.preset}"

    @property
    def alone(self) -> str:
        """The name of its network alone, which is the same for any number of workers."""
        return f"network {self.preset} alone: batch {self.games}"

    @property
    def settings(self) -> AppConfig:
        """The settings of its workers."""
        length = max(128, ROLLOUT_STEPS // self.games)
        return collect.settings(self.preset, self.workers, length=length, games=self.games)


@dataclass
class Playing:
    """Steps/s and memory of a case's workers, which are started for the measurement."""

    case: Case
    seconds: float
    memory: list[int] = field(default_factory=list)  # of a worker, in bytes, in each round

    def __call__(self) -> tuple[float, float]:
        config = self.case.settings
        with ParallelManager(config, PPOAgent(config, "cpu")) as manager:
            _next_moves(manager, 0)
            before = _next_moves(manager, 0)  # the first moves set up PyTorch's kernels
            after = _next_moves(manager, self.seconds * WINDOWS[self.case.preset])
            workers = manager.get_statistics()["workers"].values()
            self.memory.append(max(unique_bytes(worker["pid"]) for worker in workers))
        # Each worker by its own clock, from a move to a move: the window has whole moves only.
        pairs = [(after[worker], before[worker]) for worker in before]
        return sum((s1 - s0) / (t1 - t0) for (s1, t1), (s0, t0) in pairs), 1.0


def _next_moves(manager: ParallelManager, seconds: float) -> dict[int, tuple[float, float]]:
    """Wait `seconds`, then for each worker's next move: its steps so far, and the time."""

    def steps() -> dict[int, float]:
        return {i: row["steps"] for i, row in manager.get_statistics()["workers"].items()}

    time.sleep(seconds)
    before, deadline = steps(), time.perf_counter() + MOVE_TIMEOUT
    seen: dict[int, tuple[float, float]] = {}
    while len(seen) < len(before):
        time.sleep(0.001)
        now = time.perf_counter()
        new = {i: (count, now) for i, count in steps().items() if count > before.get(i, count)}
        seen = new | seen
        if now > deadline:
            raise KeiseiError(
                f"workers {sorted(set(before) - set(seen))} made no move in {MOVE_TIMEOUT:.0f} s: "
                "the machine is too busy; measure again when it is idle"
            )
    return seen


def unique_bytes(pid: int) -> int:
    """Memory that only this process has, without slots.

    A page of a slot counts as the worker's own until another process looks at it.
    """
    process = psutil.Process(pid)
    if not psutil.LINUX:
        return int(process.memory_full_info().uss)
    maps = [row for row in process.memory_maps() if not row.path.startswith("/memfd:keisei")]
    return sum(row.private_clean + row.private_dirty for row in maps)


def network_alone(case: Case, seconds: float) -> Contender:
    """Positions/s of the case's network in batches of its games, on one thread of this process."""
    network = build_network(case.settings.model)
    planes = network.planes(np.zeros((case.games, OBSERVATION_BYTES), np.uint8))
    forward = traced(network, case.games)

    def run() -> int:
        threads, count, end = torch.get_num_threads(), 0, time.perf_counter() + seconds
        torch.set_num_threads(1)
        with torch.inference_mode():
            while not count or time.perf_counter() < end:
                forward(planes)
                count += case.games
        torch.set_num_threads(threads)
        return count

    return run


def slot_bytes_per_game() -> float:
    """Shared memory for slots per game, with the default rollout length."""
    config = collect.settings("tiny", 2)
    parallel = config.training.parallel
    slots = layout_bytes(slot_layout(config, slots_needed(parallel)))
    return slots / (parallel.num_workers * parallel.num_envs_per_worker)


def telling(name: str, contender: Contender, say: Say) -> Contender:
    """The contender, printing its name before its turn."""

    def run() -> Any:
        say(name)
        return contender()

    return run


def learners(minibatches: Sequence[int]) -> dict[str, Contender]:
    """PPO updates, and forward and backward alone, with minibatches of each size."""
    config = learn.settings("tiny")
    buffer = learn.filled_buffer(config, PPOAgent(config))
    contenders: dict[str, Contender] = {}
    for size in minibatches:
        agent = PPOAgent(learn.settings("tiny", size))
        contenders[f"update: minibatch {size}"] = learn.ppo_update(agent, buffer)
        bare = f"forward and backward: minibatch {size}"
        contenders[bare] = learn.forward_backward(agent, buffer)
        contenders[bare]()  # the first calls set up PyTorch's kernels
    return contenders


def run(
    json_file: Path | None = None,
    plot_file: Path | None = None,
    rounds: int = 3,
    seconds: float = 3.0,
    games: Sequence[int] = GAMES,
    workers: Sequence[int] = WORKERS,
    presets: Sequence[str] = PRESETS,
    minibatches: Sequence[int] = MINIBATCHES,
) -> None:
    """Measure (`seconds` for each figure in each round), print a table, write JSON and a plot."""
    start, console = time.perf_counter(), Console(stderr=True)

    def say(what: str) -> None:
        console.print(f"{time.perf_counter() - start:4.0f} s  {what}", highlight=False)

    keep_freed_memory()
    sweeps = {
        "games": [Case(games=count) for count in games],
        "workers": [Case(workers=count) for count in workers],
        "network": [Case(preset=preset) for preset in presets],
    }
    others = OtherLoad()
    say("getting ready")
    playing = {case: Playing(case, seconds) for sweep in sweeps.values() for case in sweep}
    contenders: dict[str, Contender] = {str(case): run for case, run in playing.items()}
    contenders |= {case.alone: network_alone(case, seconds / 6) for case in playing}
    contenders |= learners(minibatches)
    told = {name: telling(name, run, say) for name, run in contenders.items()}
    rates = interleave(told, rounds)
    other_load = others.look()
    points = {case: _point(run, rates) for case, run in playing.items()}
    figures = {
        **{name: [points[case] for case in sweep] for name, sweep in sweeps.items()},
        "memory": _memory([points[case] for case in sweeps["games"]]),
        "minibatch": [_update(size, rates) for size in minibatches],
        "rounds": rounds,
        "other_load": other_load,
        "seconds": time.perf_counter() - start,
    }
    publish(
        "How costs grow: median (lowest to highest), beside the network alone",
        rows(figures),
        figures,
        json_file,
    )
    if plot_file:
        draw(figures, plot_file)


def _spread(name: str, values: list[float]) -> dict[str, float]:
    middle = statistics.median(values)
    return {name: middle, f"{name}_lowest": min(values), f"{name}_highest": max(values)}


def _point(played: Playing, rates: dict[str, list[float]]) -> dict[str, Any]:
    """One case's figures. Its ideal is the network alone on every core that its workers have."""
    case = played.case
    ideal = [min(case.workers, cores()) * rate for rate in rates[case.alone]]
    shares = [mine / most for mine, most in zip(rates[str(case)], ideal, strict=True)]
    network = build_network(case.settings.model)
    return {
        **asdict(case),
        "weights": sum(weight.numel() for weight in network.parameters()),
        **_spread("steps_per_s", rates[str(case)]),
        "network_alone_per_s": statistics.median(ideal),
        "share_of_network_alone": statistics.median(shares),
        "worker_bytes": statistics.median(played.memory),
    }


def _memory(points: list[dict[str, Any]]) -> dict[str, float]:
    """A worker's memory as a linear function of its games."""
    per_game, without = np.polyfit(
        [point["games"] for point in points], [point["worker_bytes"] for point in points], 1
    )
    return {
        "bytes_without_games": float(without),
        "bytes_per_game": float(per_game),
        "slot_bytes_per_game": slot_bytes_per_game(),
    }


def _update(size: int, rates: dict[str, list[float]]) -> dict[str, float]:
    milliseconds = [1000 / rate for rate in rates[f"update: minibatch {size}"]]
    passes = [1000 / rate for rate in rates[f"forward and backward: minibatch {size}"]]
    return {
        "minibatch": size,
        **_spread("ms_per_sample", milliseconds),
        "forward_backward_ms_per_sample": statistics.median(passes),
    }
