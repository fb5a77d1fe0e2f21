"""`keisei benchmark worlds`: many agents and copies at once, beside one agent after another."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import torch

from keisei.benchmarks.report import interleave, median_ratio, publish
from keisei.worlds import Environment, make_environment

COPIES = 128
# Turns/s of Sorrel (2 agents in treasure hunt, 10 in cleanup) on one core, as issue 5 gives them.
# They are not measured in this run, so what is said beside them is no ratio within one run.
SORREL = {"treasure_hunt": 390.0, "cleanup": 29.0}

Contender = Callable[[], int]


def collection(environment: Environment, turns: int) -> Contender:
    """Turns without learning, over all copies."""
    environment.world.reset()

    def run() -> int:
        for _ in range(turns):
            environment.next_turn()
        return turns * environment.world.copies

    return run


def experiment(environment: Environment, epochs: int) -> Contender:
    """Turns with all the learning that the replay ratio asks for."""

    def run() -> int:
        environment.run_experiment(epochs)
        return epochs * environment.world.max_turns * environment.world.copies

    return run


def balanced_ratio(copies: int) -> float:
    """The replay ratio at which this machine spends as much time learning as collecting."""
    settings = [f"copies={copies}", "parallel.num_workers=1"]
    with make_environment("treasure_hunt", settings) as environment:
        environment.run_experiment(2)
        start = time.perf_counter()
        environment.collect_epoch()
        collecting = time.perf_counter() - start
        steps = int(environment.learners[0][1].owed)
        start = time.perf_counter()
        environment.train()
        per_step = (time.perf_counter() - start) / steps
    return collecting / per_step / (environment.world.max_turns * copies)


def run(
    json_file: Path | None = None, rounds: int = 5, scale: float = 1.0, copies: int = COPIES
) -> None:
    """Measure, print a table, write JSON; `scale` makes each measurement longer or shorter."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ExitStack() as opened:
            rates = _measure(opened, rounds, scale, copies)
    finally:
        torch.set_num_threads(threads)
    _publish(rates, copies, json_file)


def _measure(opened: ExitStack, rounds: int, scale: float, count: int) -> dict[str, list[float]]:
    """The turns/s of all contenders in each round."""

    def make(world: str, *overrides: str) -> Environment:
        return opened.enter_context(make_environment(world, overrides))

    copies = f"copies={count}"
    plain = ("copies=1", "parallel.enabled=false")
    many = max(int(8 * scale), 1)
    # One worker each, so that waiting means one core that acts, then learns.
    equal = (f"double_dqn.replay_ratio={balanced_ratio(count)}", "parallel.num_workers=1")
    turns = max(int(200 * scale), 2)
    contenders: dict[str, Contender] = {
        "sequential": collection(make("treasure_hunt", *plain), 4 * turns),
        "parallel": collection(make("treasure_hunt", copies), turns),
        "learning_sequential": experiment(make("treasure_hunt", *plain), many),
        "learning_parallel": experiment(make("treasure_hunt", copies), max(many // 4, 1)),
        "waiting": experiment(make("treasure_hunt", copies, *equal), 2 * many),
        "async": experiment(
            make("treasure_hunt", copies, *equal, "parallel.async_learning=true"), 2 * many
        ),
        "cleanup_10": collection(
            make("cleanup", copies, "world_settings.num_agents=10"), max(turns // 4, 1)
        ),
    }
    interleave(contenders, 1)  # the first calls set up PyTorch's kernels, and start the learner
    return interleave(contenders, rounds)


def _publish(rates: dict[str, list[float]], copies: int, json_file: Path | None) -> None:
    median = {name: statistics.median(values) for name, values in rates.items()}
    acting = median_ratio(rates, "parallel", "sequential")
    learning = median_ratio(rates, "learning_parallel", "learning_sequential")
    saved = 1 - 1 / median_ratio(rates, "async", "waiting")
    beside_sorrel = {
        "parallel_to_sorrel": median["parallel"] / SORREL["treasure_hunt"],
        "learning_to_sorrel": median["learning_parallel"] / SORREL["treasure_hunt"],
        "cleanup_to_sorrel": median["cleanup_10"] / SORREL["cleanup"],
    }
    result = {
        "copies": copies,
        "turns_per_s": median,
        "parallel_to_sequential": acting,
        "learning_parallel_to_sequential": learning,
        "async_epoch_time_saved": saved,
        **beside_sorrel,
    }
    rows = [
        ("2 agents, 1 copy, one after another", f"{median['sequential']:,.0f} turns/s"),
        (f"2 agents, {copies} copies at once", f"{median['parallel']:,.0f}  ({acting:.1f} times)"),
        ("with learning, one after another", f"{median['learning_sequential']:,.0f} turns/s"),
        (
            f"with learning, {copies} copies at once",
            f"{median['learning_parallel']:,.0f}  ({learning:.1f} times)",
        ),
        ("as much learning as acting, waiting", f"{median['waiting']:,.0f} turns/s"),
        ("the same, learning beside", f"{median['async']:,.0f}  ({saved:.0%} of the time saved)"),
        ("cleanup, 10 agents", f"{median['cleanup_10']:,.0f} turns/s"),
        (
            "beside Sorrel: acting, learning, cleanup",
            ", ".join(f"{times:.0f}" for times in beside_sorrel.values()) + " times",
        ),
    ]
    publish("Treasure hunt, double DQN, one thread a process", rows, result, json_file)
