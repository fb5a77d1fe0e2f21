"""The small messages between the manager and its workers; everything big is in shared memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keisei.config_schema import AppConfig
from keisei.core.rollout import Rollout
from keisei.shogi import FinishedGame


@dataclass(frozen=True)
class Welcome:
    """Manager to a new worker: who it is and what it plays."""

    config: AppConfig
    index: int
    incarnation: int  # how many workers of this index there were before
    num_slots: int
    parent: int  # the manager's process


@dataclass(frozen=True)
class Ready:
    """Worker to manager: set up, and waiting for work."""

    pid: int


@dataclass(frozen=True)
class Collect:
    """Manager to worker: play a rollout with the newest weights, into this slot."""

    slot: int


@dataclass(frozen=True)
class Stop:
    """Manager to worker: leave."""


@dataclass(frozen=True)
class RolloutDone:
    """Worker to manager: the slot is full."""

    slot: int
    version: int
    legal_count: int
    finished: list[FinishedGame]
    game: tuple[str, list[str]]  # start and moves of the shard's first game, to be looked at
    # What did not fit into the slot: its legal actions, or (without shared memory) all of it.
    legal: npt.NDArray[np.int16] | None = None
    rollout: Rollout | None = None


@dataclass(frozen=True)
class Failed:
    """Worker to manager: an error that it cannot go on after."""

    traceback: str
