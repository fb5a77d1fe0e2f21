"""The sets of planes that a network can be given, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from keisei.shogi.attacks import NUM_ATTACK_PLANES, fill_attacks
from keisei.shogi.features import NUM_PLANES, Observations, Planes, fill_squares, planes


class PlaneSet(NamedTuple):
    """How many planes there are, and how they are made from compact observations [N, 100]."""

    number: int
    make: Callable[[Observations], Planes]


def _with_attacks(observations: Observations) -> Planes:
    squares = np.empty((len(observations), 9, 9, NUM_PLANES + NUM_ATTACK_PLANES), dtype=np.float32)
    fill_squares(observations, squares)
    fill_attacks(observations, squares)
    return squares.transpose(0, 3, 1, 2)


PLANE_SETS = {
    "core46": PlaneSet(NUM_PLANES, planes),
    "attack60": PlaneSet(NUM_PLANES + NUM_ATTACK_PLANES, _with_attacks),
}
