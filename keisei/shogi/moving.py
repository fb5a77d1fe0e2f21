"""Playing actions on compact observations, for many positions at once and without a board."""

from __future__ import annotations

import numpy as np

from keisei.shogi import features
from keisei.shogi.actions import (
    DROP_PIECE,
    FROM_SQUARE,
    PROMOTE,
    SQUARES,
    TO_SQUARE,
    IntArray,
)

# The byte that a moved piece comes from: its square, or how many there are in the hand.
_IS_DROP = DROP_PIECE > 0
_SOURCE = np.where(_IS_DROP, 80 + DROP_PIECE, FROM_SQUARE)
# A piece's code after the board is turned: own becomes the opponent's and the other way round.
_TURNED = np.zeros(32, dtype=np.uint8)
_TURNED[1:15], _TURNED[17:31] = np.arange(17, 31), np.arange(1, 15)
# The hand byte that a captured piece goes to (promoted pieces turn back); for an empty square the
# byte after the hands, which is overwritten in every step anyway.
_HAND_OF_CAPTURED = np.full(32, features.SIDE)
for _piece in (1, 2, 3, 4, 5, 6, 7):
    _HAND_OF_CAPTURED[[16 + _piece, 24 + _piece if _piece < 7 else 16 + _piece]] = 80 + _piece


def move_pieces(observations: features.Observations, actions: IntArray) -> None:
    """Bring the boards, hands and sides of observations [N, 100] to after the moves, in place.

    What needs the history (repetitions, check, the number of moves) is left to the caller.

    >>> from keisei.shogi import PolicyOutputMapper, ShogiGame
    >>> game = ShogiGame()
    >>> seen = game.observation()[None]
    >>> move_pieces(seen, np.array([PolicyOutputMapper().usi_to_action("7g7f", "black")]))
    >>> game.push_usi("7g7f")
    >>> bool((seen[0, :96] == game.observation()[:96]).all())
    True
    """
    seen, rows = observations, np.arange(len(observations))
    source, to, is_drop = _SOURCE[actions], TO_SQUARE[actions], _IS_DROP[actions]
    held = seen[rows, source]
    piece = np.where(is_drop, DROP_PIECE[actions], held + 8 * PROMOTE[actions])
    captured = _HAND_OF_CAPTURED[seen[rows, to]]
    side = 1 - seen[:, features.SIDE]
    seen[rows, captured] += 1
    seen[rows, source] = np.where(is_drop, held - 1, 0)
    seen[rows, to] = piece
    seen[:, :SQUARES] = _TURNED.take(seen[:, SQUARES - 1 :: -1])
    own = seen[:, features.OWN_HAND].copy()
    seen[:, features.OWN_HAND] = seen[:, features.OTHER_HAND]
    seen[:, features.OTHER_HAND] = own
    seen[:, features.SIDE] = side
