"""Left and right exchanged: Shogi has the same rules in a mirror, though not the same start."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from keisei.shogi.actions import (
    DROP_PIECE,
    FROM_SQUARE,
    NUM_ACTIONS,
    NUM_BOARD_ACTIONS,
    PROMOTE,
    SQUARES,
    TO_SQUARE,
)
from keisei.shogi.features import Observations

_SQUARE = 9 * (8 - np.arange(SQUARES + 1) // 9) + np.arange(SQUARES + 1) % 9  # files turned round


def _actions() -> npt.NDArray[np.int16]:
    frm, to = _SQUARE[FROM_SQUARE], _SQUARE[TO_SQUARE]
    on_board = (frm * (SQUARES - 1) + to - (to > frm)) * 2 + PROMOTE
    dropped = NUM_BOARD_ACTIONS + (DROP_PIECE - 1) * SQUARES + to
    return np.where(np.arange(NUM_ACTIONS) < NUM_BOARD_ACTIONS, on_board, dropped).astype(np.int16)


MIRRORED_ACTION = _actions()


def mirrored(observations: Observations) -> Observations:
    """Observations [N, 100] with their boards mirrored.

    >>> from keisei.shogi import ShogiGame
    >>> seen = ShogiGame().observation()[None]
    >>> bool((mirrored(mirrored(seen)) == seen).all()), bool((mirrored(seen) == seen).all())
    (True, False)
    """
    turned = observations.copy()
    turned[:, :SQUARES] = observations[:, _SQUARE[:SQUARES]]
    return turned
