"""A rollout: a block of experience [T steps, G games] from one shard, stored compactly."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from keisei.shogi.features import OBSERVATION_BYTES


@dataclass
class Rollout:
    """T steps of G games, each value from the side of who moved.

    The legal actions of all steps stand end to end in `legal`; those of step t in game g begin at
    `legal_offsets[t * G + g]`. `last_values` are of the positions after the last step.
    """

    observations: npt.NDArray[np.uint8]  # [T, G, 100]
    legal: npt.NDArray[np.int16]  # [sum]
    legal_offsets: npt.NDArray[np.int64]  # [T * G + 1]
    actions: npt.NDArray[np.int16]  # [T, G]
    log_probs: npt.NDArray[np.float32]  # [T, G]
    values: npt.NDArray[np.float32]  # [T, G]
    rewards: npt.NDArray[np.float32]  # [T, G]
    dones: npt.NDArray[np.bool_]  # [T, G]
    learned: npt.NDArray[np.bool_]  # [T, G]; False: an opponent's move, not to be learned from
    last_values: npt.NDArray[np.float32]  # [G]
    version: int

    def add_legal(self, legal: npt.NDArray[np.int16], end: int) -> int:
        """Write legal actions behind the first `end`; where they do not fit, into more room."""
        new_end = end + len(legal)
        if new_end > len(self.legal):
            room = np.empty(2 * new_end, np.int16)
            room[:end] = self.legal[:end]
            self.legal = room
        self.legal[end:new_end] = legal
        return new_end

    def copy(self) -> Rollout:
        """A rollout of its own, which does not look at anybody's memory."""
        arrays = {name: v.copy() for name, v in vars(self).items() if isinstance(v, np.ndarray)}
        return replace(self, **arrays)

    @property
    def nbytes(self) -> int:
        """The memory of its arrays."""
        return sum(v.nbytes for v in vars(self).values() if isinstance(v, np.ndarray))

    @property
    def num_steps(self) -> int:
        """How many moves it holds, over all games."""
        return self.actions.size


def empty_rollout(steps: int, games: int) -> Rollout:
    """A rollout to be filled, with room for some legal actions."""
    return Rollout(
        observations=np.empty((steps, games, OBSERVATION_BYTES), np.uint8),
        legal=np.empty(steps * games * 64, np.int16),
        legal_offsets=np.zeros(steps * games + 1, np.int64),
        actions=np.empty((steps, games), np.int16),
        log_probs=np.empty((steps, games), np.float32),
        values=np.empty((steps, games), np.float32),
        rewards=np.empty((steps, games), np.float32),
        dones=np.empty((steps, games), np.bool_),
        learned=np.ones((steps, games), np.bool_),
        last_values=np.empty(games, np.float32),
        version=-1,
    )
