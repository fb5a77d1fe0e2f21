"""The small messages between the manager and its processes; everything big is in shared memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy.typing as npt

from keisei.config_schema import AppConfig
from keisei.core.rollout import Rollout
from keisei.shogi import FinishedGame

Span = tuple[str, float, float]  # what was done, from when to when (time.monotonic)


@dataclass(frozen=True)
class Hello:
    """A new process to the manager: it runs, and listens."""


@dataclass(frozen=True)
class Welcome:
    """Manager to a new process: its number, and what it works on."""

    config: AppConfig
    index: int
    num_slots: int
    capacity: int  # workers that the memory of requests has room for
    traced: bool = False  # run the network traced
    shard: dict[str, Any] | None = None  # games to go on with
    checkpoints: Path | None = None  # of the run, for past opponents


@dataclass(frozen=True)
class Ready:
    """Process to manager: set up, and waiting for work."""


@dataclass(frozen=True)
class Collect:
    """Manager to worker: play a rollout with the newest weights, into this slot."""

    slot: int
    version: int
    weights: npt.NDArray[Any] | None = None  # of that version, when they are not in shared memory


@dataclass(frozen=True)
class Stop:
    """Manager to process: leave."""


@dataclass(frozen=True)
class RolloutDone:
    """Worker to manager: the slot is full."""

    slot: int | None  # None: the rollout comes by itself
    version: int
    finished: list[FinishedGame]
    shard: dict[str, Any]  # its games now: continued anywhere, they are the same
    scores: list[float] = field(default_factory=list)  # of the learner, against an opponent
    spans: list[Span] = field(default_factory=list)  # what the worker did since the last one
    # What did not fit into the slot: arrays by legal action, or (without shared memory) all of it.
    overflow: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    rollout: Rollout | None = None


@dataclass(frozen=True)
class Failed:
    """Process to manager: an error that it cannot go on after."""

    traceback: str
