"""`keisei benchmark worlds`: many agents and copies at once, beside one agent after another."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import torch

from keisei.benchmarks.report import Contender, interleave, median_ratio, publish
from keisei.processes.machine import keep_freed_memory
from keisei.processes.other_load import OtherLoad
from keisei.worlds import Environment, make_environment

COPIES = 128
# Turns/s of Sorrel (2 agents in treasure hunt, 10 in cleanup) on one core, as issue 5 gives them.
# They are not measured in this run, so they are not compared as ratios within one run.
SORREL = {"treasure_hunt": 390.0, "cleanup": 29.0}

# One worker, so that waiting means one core that acts, then learns; and beside means two.
ONE_LEARNER = ("parallel.num_workers=1",)

Rates = dict[str, list[float]]


@dataclass(frozen=True)
class Beside:
    """Learning after acting or beside it, where both take equally long."""

    rates: Rates  # of "waiting" and "async"
    replay_ratio: float  # at which both take equally long
    acting: float  # seconds of an epoch, waiting
    learning: float
    other_load: float  # cores that other programs took while both went on


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


class UnderWay:
    """Epochs of a run that is under way, with the time that acting and learning took in each.

    An epoch runs before the clock does, so that in the first measured one, too, the training of
    the one before is taken over; and the newest training is waited for after the clock has
    stopped. So as many trainings end as epochs do, with `async_learning` and without.
    """

    def __init__(self, environment: Environment, epochs: int) -> None:
        self.environment, self.epochs = environment, epochs
        self.acting: list[float] = []
        self.learning: list[float] = []  # what `train` takes: all of it, or handing it over
        self.others: list[float] = []  # cores that other programs took meanwhile, in each round

    def __call__(self) -> tuple[int, float]:
        environment = self.environment
        environment.run_epoch()
        others = OtherLoad()
        for _ in range(self.epochs):
            self.acting.append(seconds_of(environment.collect_epoch))
            self.learning.append(seconds_of(environment.train))
        self.others.append(others.look())
        environment.finish()
        seconds = sum(self.acting[-self.epochs :]) + sum(self.learning[-self.epochs :])
        return self.epochs * environment.world.max_turns * environment.world.copies, seconds


def seconds_of(work: Callable[[], object]) -> float:
    """How long it takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def balanced_ratio(copies: int, epochs: int) -> float:
    """The replay ratio at which learning takes as long as acting, when learning is waited for.

    The rule: the median, over so many epochs, of how many times as long as its learning an
    epoch's acting took; and again, at the ratio which that gave.
    """
    ratio = 0.3 / copies
    for _ in range(2):
        settings = [f"copies={copies}", f"double_dqn.replay_ratio={ratio}", *ONE_LEARNER]
        with make_environment("treasure_hunt", settings) as environment:
            environment.run_experiment(2)
            measured = UnderWay(environment, epochs)
            measured()
        pairs = zip(measured.acting, measured.learning, strict=True)
        ratio *= statistics.median(acting / learning for acting, learning in pairs)
    return ratio


def run(
    json_file: Path | None = None, rounds: int = 5, scale: float = 1.0, copies: int = COPIES
) -> None:
    """Measure, print a table, write JSON; `scale` makes each measurement longer or shorter."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    keep_freed_memory()  # as `keisei worlds train` does
    try:
        rates = _measure(rounds, scale, copies)
        beside = _measure_async(4 * rounds, scale, copies)
    finally:
        torch.set_num_threads(threads)
    _publish(rates, beside, copies, json_file)


def _measure(rounds: int, scale: float, count: int) -> Rates:
    """The turns/s in each round: acting, and acting with learning."""
    copies = f"copies={count}"
    plain = ("copies=1", "parallel.enabled=false")
    epochs = max(int(8 * scale), 1)
    turns = max(int(200 * scale), 2)
    with ExitStack() as opened:

        def make(world: str, *overrides: str) -> Environment:
            return opened.enter_context(make_environment(world, overrides))

        contenders: dict[str, Contender] = {
            "sequential": collection(make("treasure_hunt", *plain), 4 * turns),
            "parallel": collection(make("treasure_hunt", copies), turns),
            "learning_sequential": experiment(make("treasure_hunt", *plain), epochs),
            "learning_parallel": experiment(make("treasure_hunt", copies), max(epochs // 4, 1)),
            "cleanup_10": collection(
                make("cleanup", copies, "world_settings.num_agents=10"), max(turns // 4, 1)
            ),
        }
        interleave(contenders, 1)  # the first calls set up PyTorch's kernels
        return interleave(contenders, rounds)


def _measure_async(rounds: int, scale: float, copies: int) -> Beside:
    """Learning beside acting or after it, where both take equally long, in many short rounds."""
    epochs = max(int(4 * scale), 1)
    ratio = balanced_ratio(copies, 3 * epochs)
    settings = [f"copies={copies}", f"double_dqn.replay_ratio={ratio}", *ONE_LEARNER]
    with (
        make_environment("treasure_hunt", settings) as waiting,
        make_environment("treasure_hunt", [*settings, "parallel.async_learning=true"]) as beside,
    ):
        waiting.run_experiment(2)
        beside.load_state_dict(waiting.state_dict())  # the same weights, memories, way to train
        beside.run_experiment(1)  # starts the learner's process
        contenders = {"waiting": UnderWay(waiting, epochs), "async": UnderWay(beside, epochs)}
        rates = interleave(contenders, rounds)
    parts = contenders["waiting"]
    acting, learning = statistics.median(parts.acting), statistics.median(parts.learning)
    return Beside(rates, ratio, acting, learning, statistics.median(contenders["async"].others))


def _publish(rates: Rates, beside: Beside, copies: int, json_file: Path | None) -> None:
    rates = rates | beside.rates
    median = {name: statistics.median(values) for name, values in rates.items()}
    acting = median_ratio(rates, "parallel", "sequential")
    learning = median_ratio(rates, "learning_parallel", "learning_sequential")
    saved = 1 - 1 / median_ratio(rates, "async", "waiting")
    each = f"{beside.acting * 1000:.0f} and {beside.learning * 1000:.0f} ms an epoch"
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
        "async_replay_ratio": beside.replay_ratio,
        "acting_s": beside.acting,
        "learning_s": beside.learning,
        "other_load": beside.other_load,
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
        (f"acting and learning at replay ratio {beside.replay_ratio:.4f}", each),
        ("as much learning as acting, waiting", f"{median['waiting']:,.0f} turns/s"),
        ("the same, learning beside", f"{median['async']:,.0f}  ({saved:.0%} of the time saved)"),
        ("cores that other programs took from that", f"{beside.other_load:.1f}"),
        ("cleanup, 10 agents", f"{median['cleanup_10']:,.0f} turns/s"),
        (
            "beside Sorrel: acting, learning, cleanup",
            ", ".join(f"{times:.0f}" for times in beside_sorrel.values()) + " times",
        ),
    ]
    publish("Treasure hunt, double DQN, one thread a process", rows, result, json_file)
