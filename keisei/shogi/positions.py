"""Positions with their legal actions: what policies, players, search and buffers pass around."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keisei.shogi.actions import IntArray
from keisei.shogi.features import Observations


@dataclass(frozen=True)
class Positions:
    """N positions: their legal actions stand end to end, with the offset where each one's begin.

    >>> from keisei.shogi import ShogiGame
    >>> game = ShogiGame()
    >>> two = Positions.of([game.observation()] * 2, [game.legal_actions()] * 2)
    >>> len(two), two.offsets.tolist(), two.segment(1)
    (2, [0, 30, 60], slice(30, 60, None))
    """

    observations: Observations  # [N, 100]
    legal: npt.NDArray[np.int16]  # [sum]
    offsets: npt.NDArray[np.int64]  # [N + 1]

    @classmethod
    def of(
        cls, observations: Observations | Sequence[Observations], legal: Sequence[IntArray]
    ) -> Positions:
        """Positions from each one's observation and legal actions."""
        offsets = np.concatenate([[0], np.cumsum([len(actions) for actions in legal])])
        return cls(np.asarray(observations), np.concatenate(legal).astype(np.int16), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def segment(self, row: int) -> slice:
        """Where the legal actions of one position stand."""
        return slice(int(self.offsets[row]), int(self.offsets[row + 1]))

    def rows(self) -> npt.NDArray[np.int64]:
        """For each legal action, the number of its position: offsets 0 2 5 give 0 0 1 1 1."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def take(self, rows: IntArray) -> Positions:
        """Some of the positions, in this order.

        >>> legal, offsets = np.array([7, 8, 9], np.int16), np.array([0, 2, 3])
        >>> some = Positions(np.zeros((2, 100), np.uint8), legal, offsets).take(np.array([1, 0]))
        >>> some.legal.tolist(), some.offsets.tolist()
        ([9, 7, 8], [0, 1, 3])
        """
        counts = self.offsets[rows + 1] - self.offsets[rows]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        return Positions(self.observations[rows], self.legal[self.places(rows)], offsets)

    def places(self, rows: IntArray) -> npt.NDArray[np.int64]:
        """Where the legal actions of some of the positions stand, in this order."""
        starts = self.offsets[rows]
        counts = self.offsets[rows + 1] - starts
        before = np.cumsum(counts) - counts
        places: npt.NDArray[np.int64] = np.arange(counts.sum()) + np.repeat(starts - before, counts)
        return places


def join(parts: Sequence[Positions]) -> Positions:
    """Positions one after the other."""
    ends = np.cumsum([0] + [len(part.legal) for part in parts])
    offsets = [part.offsets[:-1] + end for part, end in zip(parts, ends, strict=False)]
    return Positions(
        np.concatenate([part.observations for part in parts]),
        np.concatenate([part.legal for part in parts]),
        np.concatenate([*offsets, ends[-1:]]),
    )
