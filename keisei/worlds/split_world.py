"""A world whose copies are stepped by several workers at once, each its shard of them.

Agents stay where the run is: their networks answer for all copies together. Each copy has a random
stream of its own, so it goes on as it would in one process, and a run has the same numbers with
any number of workers, wherever they are. A worker that is lost is replaced: the new one does again
what its shard was asked since the epoch began.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from keisei.errors import KeiseiError
from keisei.random_streams import RandomStreams
from keisei.worlds.config import WorldRunConfig
from keisei.worlds.registry import AnyWorld, make_world
from keisei.worlds.shard import Answer, Task
from keisei.worlds.shard_workers import ProcessWorker, RayWorker, Worker, WorkerLost
from keisei.worlds.world import Bools, Floats, Ints

log = logging.getLogger(__name__)

ATTEMPTS = 3  # to replace a worker, one after another

Asked = tuple[str, list[tuple[Any, ...]]]  # a call, and its arguments for each worker


class SplitWorld:
    """What an `Environment` asks of a world, passed on to workers."""

    def __init__(self, config: WorldRunConfig) -> None:
        self.copies, self._config = config.copies, config
        one = make_world(config.model_copy(update={"copies": 1}))
        self.name, self.max_turns, self.num_agents = one.name, one.max_turns, one.num_agents
        self.num_actions, self.views = one.num_actions, one.views
        one.close()
        self.moves = [np.zeros((self.copies, view.moves), np.float32) for view in self.views]
        self.streams = RandomStreams(config.seed, self.copies)
        self.turn, self.populated = 0, False
        self.present: Bools | None = None
        self.over: Bools = np.zeros(self.copies, np.bool_)
        self._timed_out: Bools | None = None
        self._seen: list[Any] = []
        self._asked: list[Asked] = []  # since the epoch began
        self._open = ExitStack()
        shards = np.array_split(np.arange(self.copies), self._count_workers())
        self._shards = [slice(int(part[0]), int(part[-1]) + 1) for part in shards]
        self.workers: list[Worker] = []
        try:
            self.workers += (self._start(number) for number in range(len(shards)))
        except BaseException:
            self.close()
            raise

    # -- what an environment asks --------------------------------------------------------------

    def reset(self) -> None:
        """Begin a new episode in every copy."""
        self.turn, self.populated = 0, True
        self._asked = []
        self._ask("reset", [(self.streams.state[shard],) for shard in self._shards])

    def begin_turn(self) -> None:
        """The world's own part of a turn; where an episode is over, a new one begins."""
        if not self.populated or self.turn >= self.max_turns:
            self.reset()
        answers = self._ask("begin_turn")
        self._seen, self.present = _seen_in(answers), _joined(answers, "present")

    def pov(self, agent: int | None = None) -> Any:
        """What an agent sees [copies, ...], or a list of what each agent sees."""
        return self._seen if agent is None else self._seen[agent]

    def step(self, actions: Ints, in_random_order: bool = False) -> tuple[Floats, Bools, Bools]:
        """Let all agents act [agents, copies]; answers as a `World` does."""
        self.turn += 1
        given = [
            (actions[:, shard], [moves[shard] for moves in self.moves], in_random_order)
            for shard in self._shards
        ]
        answers = self._ask("step", given)
        self.over, self.present = _joined(answers, "over"), _joined(answers, "present")
        self._timed_out = _joined(answers, "timed_out")
        rewards, dones, truncated = (_joined(answers, n) for n in ("rewards", "dones", "truncated"))
        return rewards, dones, truncated

    def step_in_random_order(self, actions: Ints) -> tuple[Floats, Bools, Bools]:
        """The same, in an order that is drawn for each copy by its own stream."""
        return self.step(actions, in_random_order=True)

    def let_act(self, agent: int, actions: Ints) -> Floats:
        """Refused: it would take a message for each agent."""
        raise KeiseiError(f"{self.name}: step all agents of a world with workers together")

    def end_turn(self) -> tuple[Floats, Bools, Bools]:
        """Refused, as `let_act` is."""
        raise KeiseiError(f"{self.name}: step all agents of a world with workers together")

    def after_cut(self) -> list[Any]:
        """What each agent would have seen next where its episode was cut off by time."""
        return _seen_in(self._ask("after_cut"))

    def timed_out(self) -> Bools | None:
        """Who cannot act for a while [agents, copies]; None in a world where everybody can."""
        return self._timed_out

    def metrics(self) -> dict[str, Any]:
        """The world's own numbers, of all copies."""
        told = [answer["metrics"] for answer in self._ask("metrics")]
        sizes = [shard.stop - shard.start for shard in self._shards]
        return {
            name: np.concatenate(
                [_of_copies(one[name], size) for one, size in zip(told, sizes, strict=True)],
                axis=-1,
            )
            for name in told[0]
        }

    def state_dict(self) -> dict[str, Any]:
        """What the next epoch depends on: an episode in play is not kept."""
        return {"streams": self.streams.state.copy(), "turn": 0, "populated": False}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a `state_dict()` with a new epoch, also from that of an undivided world."""
        self.streams.state = state["streams"].copy()
        self.populated = False

    def close(self) -> None:
        """End all workers, and leave the cluster."""
        for worker in self.workers:
            worker.close()
        self.workers = []
        self._open.close()

    # -- workers -------------------------------------------------------------------------------

    def _count_workers(self) -> int:
        parallel = self._config.parallel
        count = parallel.world_workers or 1
        if parallel.backend == "ray":
            from keisei.processes.ray_cluster import cluster, cluster_cpus

            self._open.enter_context(cluster(parallel.ray_address))
            cpus = max(cluster_cpus(), 1)
            count = min(parallel.world_workers or cpus, cpus)  # others would wait for a place
        return min(count, self.copies)

    def _start(self, number: int) -> Worker:
        shard = self._shards[number]
        task = Task(self._config, shard.stop - shard.start, os.getcwd())
        kind = RayWorker if self._config.parallel.backend == "ray" else ProcessWorker
        return kind(task, f"the worker of the copies {shard.start} to {shard.stop - 1}")

    def _ask(self, call: str, arguments: Sequence[tuple[Any, ...]] | None = None) -> list[Answer]:
        """Ask all workers at once, and wait for all."""
        given = list(arguments or [()] * len(self.workers))
        self._asked.append((call, given))
        for worker, own in zip(self.workers, given, strict=True):
            worker.ask(call, *own)
        answers = [self._answer(number) for number in range(len(self.workers))]
        self.streams.state = _joined(answers, "streams")
        return answers

    def _answer(self, number: int) -> Answer:
        try:
            return self.workers[number].answer()
        except WorkerLost as error:
            return self._replace(number, error)

    def _replace(self, number: int, problem: WorkerLost) -> Answer:
        """Let another worker do again what this one was asked; the answer to the last of it."""
        for _ in range(ATTEMPTS):
            log.warning("%s; another one takes its place", problem)
            self.workers[number].close()
            try:
                worker = self.workers[number] = self._start(number)
                for call, given in self._asked:
                    worker.ask(call, *given[number])
                    answer = worker.answer()
            except WorkerLost as error:
                problem = error
            else:
                return answer
        raise KeiseiError(f"{problem}, and so were {ATTEMPTS} that took its place")


def _joined(answers: Sequence[Answer], name: str) -> Any:
    """An array over all copies; None if the world has none."""
    parts = [answer[name] for answer in answers]
    return None if parts[0] is None else np.concatenate(parts, axis=-1)


def _seen_in(answers: Sequence[Answer]) -> list[Any]:
    """What each agent sees in all copies [copies, ...]."""
    by_agent = zip(*(answer["pov"] for answer in answers), strict=True)
    return [np.concatenate(parts) for parts in by_agent]


def _of_copies(number: Any, copies: int) -> Any:
    """A number of each copy; one of all copies stands for each of them."""
    array = np.asarray(number, np.float64)
    return np.full(copies, array) if array.ndim == 0 else array


def open_world(config: WorldRunConfig) -> AnyWorld:
    """The world of a run, split among workers if the settings ask for it."""
    split = config.parallel.splits_world and config.copies > 1
    return SplitWorld(config) if split else make_world(config)
