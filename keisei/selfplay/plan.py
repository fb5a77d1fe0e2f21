"""The plan of an update: who plays next, when there is enough, and what follows a failure.

Plain objects that know neither processes nor clocks. Every manager, serial, process or Ray, tells
them what was begun, finished and lost, and does what they say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from keisei.errors import KeiseiError
from keisei.parallel_config import ParallelConfig

MAX_FAILED_STARTS = 3  # by themselves and in a row; what fails so early will fail again
MAX_SAME_GAMES = 2  # failures in a row that a shard's games are to blame for


class ParallelError(KeiseiError):
    """The workers cannot continue; the message says why."""


@dataclass
class Tally:
    """What there is for an update, by shard."""

    finished: Counter[int] = field(default_factory=Counter)  # rollouts that wait for the learner
    games: Counter[int] = field(default_factory=Counter)  # that ended in them
    in_work: Counter[int] = field(default_factory=Counter)  # rollouts that are being played
    steps: int = 0  # in the finished rollouts


@dataclass(frozen=True)
class UpdatePlan:
    """What an update wants: a minimum of steps, and of finished games per shard.

    In sync mode each shard plays its share of the rollouts, however fast it is, so the same
    rollouts are played wherever the shards are. In async mode all shards play all the time.

    >>> plan = UpdatePlan(steps=500, rollout_steps=128)
    >>> plan.to_begin([0, 1], Tally())
    [0, 1]
    >>> plan.to_begin([0, 1], Tally(finished=Counter({0: 2}), in_work=Counter({1: 1})))
    [1]
    """

    steps: int
    rollout_steps: int
    games: int = 0
    mode: Literal["sync", "async"] = "sync"

    @classmethod
    def of(cls, parallel: ParallelConfig, steps: int | None = None) -> UpdatePlan:
        """The plan of an update with these settings, or with this many steps."""
        return cls(
            steps or parallel.update_steps,
            parallel.rollout_steps,
            parallel.episodes_per_worker,
            parallel.mode,
        )

    def to_begin(self, playing: Sequence[int], tally: Tally) -> list[int]:
        """The shards, of those that play, that should begin another rollout now."""
        if self.mode == "async":
            return list(playing)
        have = tally.finished + tally.in_work
        rollouts = -(-self.steps // self.rollout_steps)
        rollouts -= sum(count for shard, count in have.items() if shard not in playing)
        wanted = []
        for place, shard in enumerate(playing):
            share = max(-(-(rollouts - place) // len(playing)), 1)
            must_end_games = not tally.in_work[shard] and tally.games[shard] < self.games
            if have[shard] < share or must_end_games:
                wanted.append(shard)
        return wanted

    def is_met(self, playing: Sequence[int], tally: Tally) -> bool:
        """Is everything there that the update wants?"""
        if self.mode == "sync":
            return not self.to_begin(playing, tally) and not tally.in_work.total()
        return tally.steps >= self.steps and all(tally.games[i] >= self.games for i in playing)


class FailurePolicy:
    """Counts failures, and says what follows: another try, other games, or the end."""

    def __init__(self, max_restarts: int) -> None:
        self._max_restarts = max_restarts
        self.restarts: Counter[int] = Counter()  # of each worker
        self._failed_starts = 0  # in a row
        self._in_a_row: Counter[int] = Counter()  # failures of each shard

    def started(self) -> None:
        """A worker is ready."""
        self._failed_starts = 0

    def finished(self, shard: int) -> None:
        """A shard's rollout is finished."""
        self._in_a_row[shard] = 0

    def failed_to_start(self, name: str, why: str) -> None:
        """A worker ended before it was ready, and nobody killed it."""
        self._failed_starts += 1
        if self._failed_starts >= MAX_FAILED_STARTS:
            raise ParallelError(
                f"{name} ended before it was ready ({why}), as did the {MAX_FAILED_STARTS - 1} "
                "workers started before it"
            )

    def failed(self, shard: int, name: str, why: str, blames_games: bool) -> bool:
        """A worker ended and must be replaced; must its shard begin other games?

        Games are not to blame if it was not playing them, or if somebody killed it.
        """
        self.restarts[shard] += 1
        self._in_a_row[shard] += blames_games
        if self.restarts.total() > self._max_restarts:
            raise ParallelError(
                f"{name} ended ({why}), and workers were replaced {self._max_restarts} times "
                "already (training.parallel.max_restarts)"
            )
        return blames_games and self._in_a_row[shard] >= MAX_SAME_GAMES
