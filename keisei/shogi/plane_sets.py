"""The sets of planes that a network can be given, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.shogi.attacks import NUM_ATTACK_PLANES, fill_attacks
from keisei.shogi.features import NUM_PLANES, Observations, fill_squares


class PlaneSet(NamedTuple):
    """How many planes there are, and what writes them, one after the other."""

    number: int
    fills: tuple[Callable[[Observations, npt.NDArray[Any]], None], ...]

    def make(self, observations: Observations, kind: npt.DTypeLike = np.float32) -> Any:
        """The planes [N, number, 9, 9] of compact observations [N, 100], channels last in memory.

        With `uint16` they are the bits of bfloat16, to be viewed as that by who knows it.
        """
        squares = np.empty((len(observations), 9, 9, self.number), dtype=kind)
        for fill in self.fills:
            fill(observations, squares)
        return squares.transpose(0, 3, 1, 2)


PLANE_SETS = {
    "core46": PlaneSet(NUM_PLANES, (fill_squares,)),
    "attack60": PlaneSet(NUM_PLANES + NUM_ATTACK_PLANES, (fill_squares, fill_attacks)),
}
