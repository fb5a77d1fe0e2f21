"""The manager's line to a worker on Ray: the actor, and what it was asked for."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import torch

import keisei
from keisei.selfplay.plan import ParallelError
from keisei.training.parallel.worker_status import ACTIVITIES


@dataclass
class Work:
    """A rollout that a worker was asked for."""

    done: Any  # references
    rollout: Any
    begun: float = field(default_factory=time.monotonic)


@dataclass(eq=False)
class RayLine:
    """One worker as the manager sees it."""

    index: int
    actor: Any
    hello: Any  # the question whether it is there, until it is answered
    away_since: float | None = field(default_factory=time.monotonic)  # None: it is here
    about: dict[str, Any] = field(default_factory=dict)  # its answer
    fresh: bool = True  # it knows nothing of the shard's games
    work: list[Work] = field(default_factory=list)
    asked: Any = None  # for a sign of life
    asked_at: float = 0.0
    heard: float = 0.0  # when it gave the last one
    version: int = -1  # of the weights that it was given last
    rollouts: int = 0  # since its start, like the rest
    steps: int = 0
    games: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    def arrive(self, about: dict[str, Any]) -> None:
        """It has answered: it is there, and begins to count."""
        self.about, self.hello, self.away_since = about, None, None
        self.heard = time.monotonic()
        self.rollouts = self.steps = self.games = 0
        self.seconds = dict.fromkeys(ACTIVITIES, 0.0)

    @property
    def last_sign(self) -> float:
        """When it was last known to be at work."""
        return max(self.heard, self.work[0].begun) if self.work else self.heard

    @property
    def is_here(self) -> bool:
        """Has it answered since it was started?"""
        return self.away_since is None

    @property
    def name(self) -> str:
        """As traces and messages call it."""
        return f"keisei-worker-{self.index}"


def check_versions(about: dict[str, Any]) -> None:
    """A worker that computes otherwise than the learner would spoil what is learned."""
    mine = (keisei.__version__, torch.__version__)
    if tuple(about["versions"]) != mine:
        raise ParallelError(
            f"on {about['host']} Keisei and PyTorch are {about['versions']}, here {mine}: "
            "install the same versions on all nodes"
        )


def describe(error: Exception) -> str:
    """One of Ray's errors in a few words."""
    kind = type(error).__name__
    if kind in ("ActorUnavailableError", "ActorDiedError"):
        return "its process or its node is gone"
    return f"{kind}: {' '.join(str(error).split())[:200]}"
