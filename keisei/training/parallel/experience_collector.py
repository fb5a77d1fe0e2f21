"""Full slots on their way to the learner: counted once, none lost, none too old."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from keisei.core.rollout import Rollout
from keisei.processes.shared_memory import SharedArrays
from keisei.selfplay.plan import Tally
from keisei.shogi import FinishedGame
from keisei.training.parallel.messages import RolloutDone
from keisei.training.parallel.slots import poison, rollout_in

# Tests set it: reading what was never written then gives NaN.
POISON_SLOTS = bool(os.environ.get("KEISEI_POISON_SLOTS"))


@dataclass(frozen=True)
class Finished:
    """A rollout that waits for the learner."""

    worker: int
    number: int  # how many the worker had finished before in this collection
    slot: int | None  # None: it has been copied out of its slot
    rollout: Rollout
    games: list[FinishedGame]
    scores: list[float]


@dataclass
class Record:
    """What came of a shard's games, since the manager started."""

    steps: int = 0
    reward: float = 0.0  # of all moves together, each for its mover
    results: Counter[str] = field(default_factory=Counter)  # black, white, drawn

    def figures(self) -> dict[str, Any]:
        """As statistics show it."""
        return {"mean_reward": self.reward / max(self.steps, 1), "results": dict(self.results)}


class ExperienceCollector:
    """Hands out slots, takes full ones back, and gives the learner rollouts that look at them.

    A slot is free, in a worker's hands, waiting, or held by the learner (until `release`).
    """

    def __init__(self, max_policy_lag: int, slots: SharedArrays | None = None) -> None:
        self._max_lag = max_policy_lag
        self.slots = slots  # none where rollouts come by another way
        self.num_slots = len(slots["actions"]) if slots else 0
        self.free = list(range(self.num_slots))
        self.waiting: list[Finished] = []
        self._held: list[int] = []
        self.totals: Counter[str] = Counter()
        self.lags: list[int] = []  # of the rollouts handed over last
        self.records: dict[int, Record] = {}  # of each worker's shard

    def take_slot(self) -> int | None:
        """A free slot to fill, if there is one."""
        if not self.free:
            return None
        slot = self.free.pop(0)
        if POISON_SLOTS and self.slots:
            poison(self.slots, slot)
        return slot

    def accept(self, worker: int, done: RolloutDone) -> None:
        """A slot is full; from now on its rollout counts."""
        rollout = done.rollout
        if rollout is None:
            assert self.slots
            assert done.slot is not None
            rollout = rollout_in(self.slots, done.slot)
            for name, array in done.overflow.items():
                setattr(rollout, name, array)
            rollout.cut_legal(int(rollout.legal_offsets[-1]))
            rollout.version = done.version
        number = sum(one.worker == worker for one in self.waiting)
        self.waiting.append(
            Finished(worker, number, done.slot, rollout, done.finished, done.scores)
        )
        self.totals["rollouts"] += 1
        self.totals["steps"] += rollout.num_steps
        self.totals["games"] += len(done.finished)
        record = self.records.setdefault(worker, Record())
        record.steps += rollout.num_steps
        record.reward += float(rollout.rewards.sum())
        record.results.update(game.outcome.winner or "drawn" for game in done.finished)

    def drop_old(self, version: int) -> None:
        """Drop rollouts that lag too far behind the learner's version, and count them."""
        old = [one for one in self.waiting if version - one.rollout.version > self._max_lag]
        for one in old:
            self.waiting.remove(one)
            self._free_slot(one)
        self.totals["dropped_rollouts"] += len(old)

    def make_room(self) -> None:
        """Copy what waits out of its slots: more is wanted at once than there are slots."""
        for i, one in enumerate(self.waiting):
            if one.slot is not None:
                self.waiting[i] = replace(one, slot=None, rollout=one.rollout.copy())
                self._free_slot(one)

    def take(self, version: int, steps: int | None = None) -> list[Finished]:
        """What waits, in order of round and worker: all of it, or the oldest `steps` steps."""
        sizes = np.cumsum([one.rollout.num_steps for one in self.waiting])
        count = len(sizes) if steps is None else int(np.searchsorted(sizes, steps)) + 1
        taken = sorted(self.waiting[:count], key=lambda one: (one.number, one.worker))
        del self.waiting[:count]
        self._held += [one.slot for one in taken if one.slot is not None]
        self.lags = [version - one.rollout.version for one in taken]
        return taken

    def release(self) -> None:
        """The learner is done with what it took: its slots are free again."""
        self.free += self._held
        self._held = []

    def _free_slot(self, one: Finished) -> None:
        if one.slot is not None:
            self.free.append(one.slot)

    def tally(self, in_work: Mapping[int, int]) -> Tally:
        """What there is for an update: what waits here, and what each worker is playing."""
        tally = Tally(in_work=Counter(in_work))
        for one in self.waiting:
            tally.finished[one.worker] += 1
            tally.games[one.worker] += len(one.games)
            tally.steps += one.rollout.num_steps
        return tally
