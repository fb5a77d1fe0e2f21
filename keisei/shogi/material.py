"""Counting material: the oldest way to judge a position."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from keisei.shogi.actions import SQUARES
from keisei.shogi.features import HANDS, OTHER, Observations

# In pawns: P L N S B R G K +P +L +N +S +B +R. The king has no price.
_WORTH = np.array([1, 3, 4, 5, 8, 10, 6, 0, 6, 6, 6, 6, 10, 12], dtype=np.float32)
_ON_BOARD = np.zeros(32, dtype=np.float32)
_ON_BOARD[1:15], _ON_BOARD[1 + OTHER : 15 + OTHER] = _WORTH, -_WORTH
_IN_HAND = np.concatenate([_WORTH[:7], -_WORTH[:7]])


def piece_worth(codes: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """The worth of pieces on the board by code (see `features`); the opponent's is negative."""
    worth: npt.NDArray[np.float32] = _ON_BOARD[codes]
    return worth


def material(observations: Observations) -> npt.NDArray[np.float32]:
    """What the mover has more than the opponent, in pawns, for observations [N, 100].

    >>> from keisei.shogi import ShogiGame
    >>> material(ShogiGame(handicap="rook").observation()[None]).tolist()  # White gave a rook
    [-10.0]
    """
    on_board = piece_worth(observations[:, :SQUARES]).sum(1)
    worth: npt.NDArray[np.float32] = on_board + observations[:, HANDS] @ _IN_HAND
    return worth
