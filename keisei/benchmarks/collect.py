"""`keisei benchmark collect`: worker processes compared with the best that the processor can do."""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

import numpy as np
import torch
from torch import nn

from keisei.benchmarks.report import Contender, interleave, median_ratio, publish
from keisei.config_schema import AppConfig, load_config
from keisei.core.experience_buffer import ExperienceBuffer
from keisei.core.learner import Learner, make_learner
from keisei.core.ppo_agent import PPOAgent
from keisei.core.precision import acting_network
from keisei.core.rollout import Rollout, empty_rollout
from keisei.core.runtime import traced, tracing_pays
from keisei.processes.machine import keep_freed_memory
from keisei.search.gumbel import visits_by_round
from keisei.selfplay.plan import ParallelError
from keisei.selfplay.shard import SelfPlayShard
from keisei.shogi.features import OBSERVATION_BYTES
from keisei.training.parallel import ParallelManager
from keisei.training.parallel.model_sync import ModelReceiver, ModelSynchronizer
from keisei.training.parallel.serial_manager import SerialManager

GAMES = 128


def settings(
    preset: str,
    workers: int,
    mode: str = "async",
    length: int = 64,
    backend: str = "process",
    games: int = GAMES,
    more: Sequence[str] = (),
) -> AppConfig:
    """One shard per worker, of 128 games by default, and one epoch per rollout."""
    return load_config(
        overrides=[
            f"model.preset={preset}",
            "training.ppo_epochs=1",
            "training.target_kl=0",
            f"training.parallel.backend={backend}",
            f"training.parallel.mode={mode}",
            f"training.parallel.num_workers={workers}",
            f"training.parallel.num_envs_per_worker={games}",
            f"training.parallel.rollout_length={length}",
            # On a busy machine a large network may take long for a move; do not replace its worker.
            "training.parallel.worker_timeout=300",
            *more,
        ]
    )


def batch_sizes(config: AppConfig) -> list[int]:
    """How many positions the network gets at a time for one move of all games of a shard."""
    games, search = config.training.parallel.num_envs_per_worker, config.training.search
    if not config.training.searches:
        return [games]
    rounds = visits_by_round(search.visits, search.considered)
    return [games, *(games * moves for moves in rounds)]


def forward_alone(preset: str, seconds: float, games: int, more: Sequence[str]) -> None:
    """What each process of `PureForward` runs: batches of a worker's size, run as a worker does."""
    torch.set_num_threads(1)
    keep_freed_memory()
    config = settings(preset, 1, games=games, more=more)
    network = acting_network(config)
    forward = traced(network, games) if tracing_pays(network, games) else network
    sizes = batch_sizes(config)
    batches = [network.planes(np.zeros((size, OBSERVATION_BYTES), np.uint8)) for size in sizes]
    print("ready", flush=True)
    with torch.inference_mode():
        for _ in sys.stdin:
            count, end = 0, time.perf_counter() + seconds
            while time.perf_counter() < end:
                for planes in batches:
                    forward(planes)
                count += sum(sizes)
            print(count, flush=True)


class PureForward:
    """The network alone, in as many one-thread processes as there are workers."""

    def __init__(
        self, preset: str, processes: int, seconds: float, games: int, more: Sequence[str] = ()
    ) -> None:
        call = f"forward_alone({preset!r}, {seconds}, {games}, {list(more)!r})"
        code = f"from keisei.benchmarks.collect import forward_alone; {call}"
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(processes)
        ]
        for process in self._processes:
            _pipe(process.stdout).readline()  # it is ready

    def __call__(self) -> int:
        """Positions that all of them evaluated in one measurement."""
        for process in self._processes:
            _pipe(process.stdin).write("go\n")
            _pipe(process.stdin).flush()
        return sum(int(_pipe(process.stdout).readline()) for process in self._processes)

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.kill()
            process.wait(timeout=10)


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def collecting(config: AppConfig, agent: Learner, seconds: float) -> Contender:
    """Moves that workers play in about `seconds`, from the steps that they count in memory.

    With search, it is the positions that the network saw. The workers play alone: they are started
    for the measurement and stopped after it.
    """

    def run() -> tuple[int, float]:
        with ParallelManager(config, agent) as manager:
            for _ in range(4):  # the first moves set up PyTorch's kernels
                before, start = _next_move(manager, 0)
            after, end = _next_move(manager, seconds)
        return after - before, end - start

    return run


def in_one_process(config: AppConfig, agent: Learner, seconds: float) -> Contender:
    """Moves that the same shards play without workers, one after another."""
    manager = SerialManager(config, agent)
    manager.start_workers()

    def run() -> tuple[int, float]:
        steps, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            steps += sum(rollout.num_steps for rollout in manager.collect_experiences())
        return steps, time.perf_counter() - start

    return run


def _next_move(manager: ParallelManager, seconds: float) -> tuple[int, float]:
    """Let them play for `seconds`, then wait for a move; returns the steps so far and the time.

    Rollouts are taken and dropped: workers whose slots are all full would stop.
    """
    counted = "evaluations" if manager.config.training.searches else "steps"

    def steps() -> int:
        return int(sum(row[counted] for row in manager.get_statistics()["workers"].values()))

    end = time.perf_counter() + seconds
    while (left := end - time.perf_counter()) > 0:
        manager.collect_experiences(timeout=left)
    before, deadline = steps(), time.perf_counter() + 120
    while (now := steps()) == before:
        if time.perf_counter() > deadline:
            raise ParallelError("the workers have not played a move for 120 seconds")
        manager.collect_experiences(timeout=0.001)
    return now, time.perf_counter()


def single_game(agent: PPOAgent, learn: bool, seconds: float) -> Callable[[], int]:
    """The documents' plain way: one game, one position at a time, in this process."""
    shard = SelfPlayShard(1, 1, move_limit=512)
    buffer = ExperienceBuffer(1.0, 0.95)

    def run() -> int:
        steps, end = 0, time.perf_counter() + seconds
        while time.perf_counter() < end:
            rollout = empty_rollout(512, 1)
            shard.collect(agent.evaluate, rollout, agent.version)
            steps += rollout.num_steps
            if learn:
                _learn(agent, buffer, [rollout])
        return steps

    return run


def training(agent: PPOAgent, manager: ParallelManager, seconds: float) -> Callable[[], int]:
    """Collecting with workers and learning, in turn."""
    buffer = ExperienceBuffer(1.0, 0.95)

    def run() -> int:
        steps, end = 0, time.perf_counter() + seconds
        while time.perf_counter() < end:
            manager.synchronize_models()
            rollouts = manager.collect_experiences()
            steps += sum(rollout.num_steps for rollout in rollouts)
            _learn(agent, buffer, rollouts)
        return steps

    return run


def seconds_to_a_worker() -> float:
    """Time to get 10 million weights from the learner to a worker's network; median of 9."""
    network, received = nn.Linear(2500, 4000), nn.Linear(2500, 4000)
    synchronizer = ModelSynchronizer(network)
    receiver = ModelReceiver(received, os.dup(synchronizer.shared.fd))  # a mapping of its own
    times = []
    for version in range(10):
        start = time.perf_counter()
        synchronizer.publish(version)
        receiver.update()
        times.append(time.perf_counter() - start)
    synchronizer.shared.close()
    return statistics.median(times[1:])  # the first one touches new memory


def _learn(agent: PPOAgent, buffer: ExperienceBuffer, rollouts: list[Rollout]) -> None:
    buffer.clear()
    for rollout in rollouts:
        buffer.add_batch(rollout)
    buffer.compute_advantages_and_returns()
    agent.learn(buffer)


def contenders_of(
    preset: str, seconds: float, games: int, more: Sequence[str], running: contextlib.ExitStack
) -> dict[str, Contender]:
    """What is measured; `running` keeps the processes of some of it until the end.

    Learning is measured with the tiny network only: with larger ones it takes minutes. Other
    settings (`more`) are measured beside the same workers in float32, without the learning.
    """
    agent = make_learner(settings(preset, 2, more=more))
    forward = PureForward(preset, 2, seconds, games, more)
    running.callback(forward.close)
    contenders: dict[str, Contender] = {
        "forward_2": forward,
        "collect_2": collecting(settings(preset, 2, games=games, more=more), agent, seconds),
        "collect_1": collecting(settings(preset, 1, games=games, more=more), agent, seconds),
    }
    if any("precision" in setting for setting in more):
        usual = settings(preset, 2, games=games, more=[*more, "training.precision=float32"])
        contenders["collect_2_float32"] = collecting(usual, make_learner(usual), seconds)
    if preset == "tiny" and isinstance(agent, PPOAgent) and not more:
        in_turn = ParallelManager(settings(preset, 2, "sync", 32, games=games), agent)
        running.enter_context(in_turn)
        four = settings(preset, 4, games=games)
        short = settings(preset, 4, length=8, games=games)  # to look at the clock more often
        contenders["one_process"] = in_one_process(short, agent, seconds)
        contenders["collect_4"] = collecting(four, agent, seconds)
        contenders["single_game"] = single_game(agent, False, seconds)
        contenders["train_2"] = training(agent, in_turn, seconds)
        contenders["train_single_game"] = single_game(agent, True, seconds)
    return contenders


def run(
    json_file: Path | None = None,
    preset: str = "tiny",
    rounds: int | None = None,
    seconds: float | None = None,
    games: int = GAMES,
    more: Sequence[str] = (),
) -> None:
    """Measure (`seconds` for each figure in each round), print a table, write JSON."""
    is_tiny = preset == "tiny"
    rounds, seconds = rounds or (5 if is_tiny else 2), seconds or (3.0 if is_tiny else 20.0)
    keep_freed_memory()
    with contextlib.ExitStack() as running:
        contenders = contenders_of(preset, seconds, games, more, running)
        if is_tiny:
            interleave(contenders, 1)  # the first calls set up PyTorch's kernels
        rates = interleave(contenders, rounds)
    speed = {name: statistics.median(values) for name, values in rates.items()}
    pairs = {
        "ratio_to_forward": ("collect_2", "forward_2"),
        "scaling_2_workers": ("collect_2", "collect_1"),
        "ratio_to_float32": ("collect_2", "collect_2_float32"),
        "1_worker_to_one_process": ("collect_1", "one_process"),
        "2_workers_to_one_process": ("collect_2", "one_process"),
        "4_workers_to_one_process": ("collect_4", "one_process"),
        "ratio_to_single_game": ("collect_2", "single_game"),
        "training_parallel_to_serial": ("train_2", "train_single_game"),
    }
    ratios = {
        name: median_ratio(rates, *pair) for name, pair in pairs.items() if set(pair) <= set(rates)
    }
    rows = [(name, f"{value:,.0f} /s") for name, value in speed.items()]
    rows += [(name, f"{value:.2f}") for name, value in ratios.items()]
    milliseconds = 1000 * seconds_to_a_worker()
    rows.append(("10 million weights to a worker", f"{milliseconds:.1f} ms"))
    title = f"Collecting with worker processes, network {preset}, {games} games each"
    figures = {"preset": preset, **ratios, "steps_per_s": speed, "weights_ms": milliseconds}
    publish(title, rows, figures, json_file)
