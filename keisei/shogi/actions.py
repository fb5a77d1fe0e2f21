"""The 13,527 actions of Shogi, and the tables between them and moves.

An action is a move as its mover sees it: for White the board is turned by 180 degrees, so that
"push the rook's pawn" is the same number for both sides.

| actions        | meaning                                                     |
|----------------|-------------------------------------------------------------|
| 0 .. 12,959    | board moves: `(from * 80 + to') * 2 + promote`, where `to'` |
|                | numbers the 80 squares other than `from`                    |
| 12,960 .. 13,526 | drops: `12,960 + piece * 81 + to`, pieces in order PLNSBRG |

Squares are numbered as in rsshogi: `9 * file + rank`, 1a = 0, 1i = 8, 9i = 80; turning the board
maps square s to 80 - s. A move on the board as it is has 16 bits (to: 7, from or dropped piece: 7,
drop: 1, promotion: 1), which are rsshogi's, so every conversion is a look-up in a table of 65,536
entries.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from rsshogi.core import Move

from keisei.errors import KeiseiError

Side = Literal["black", "white"]
SIDES: tuple[Side, Side] = ("black", "white")  # by their numbers in observations and tables
IntArray = npt.NDArray[np.integer]

SQUARES = 81
HAND_PIECES = "PLNSBRG"
NUM_BOARD_ACTIONS = SQUARES * (SQUARES - 1) * 2
NUM_ACTIONS = NUM_BOARD_ACTIONS + len(HAND_PIECES) * SQUARES

_DROP_BIT = 1 << 14
_PROMOTE_BIT = 1 << 15


def _describe_actions() -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """From-square (81 for drops), to-square, promotion and dropped piece (1..7) of each action."""
    board = np.arange(NUM_BOARD_ACTIONS)
    pair, promote = np.divmod(board, 2)
    frm, to = np.divmod(pair, SQUARES - 1)
    to = to + (to >= frm)
    drop = np.arange(NUM_ACTIONS - NUM_BOARD_ACTIONS)
    piece, drop_to = np.divmod(drop, SQUARES)
    return (
        np.concatenate([frm, np.full_like(drop, SQUARES)]),
        np.concatenate([to, drop_to]),
        np.concatenate([promote, np.zeros_like(drop)]),
        np.concatenate([np.zeros_like(board), piece + 1]),
    )


FROM_SQUARE, TO_SQUARE, PROMOTE, DROP_PIECE = (a.astype(np.int64) for a in _describe_actions())


def _move_bits() -> npt.NDArray[np.uint16]:
    """rsshogi's 16-bit move for [side, action]; side 0 is Black, 1 is White."""
    is_drop = DROP_PIECE > 0
    tables = []
    for turned in (False, True):
        frm = np.where(is_drop, DROP_PIECE, 80 - FROM_SQUARE if turned else FROM_SQUARE)
        to = 80 - TO_SQUARE if turned else TO_SQUARE
        tables.append(to | frm << 7 | is_drop * _DROP_BIT | PROMOTE * _PROMOTE_BIT)
    return np.stack(tables).astype(np.uint16)


MOVE_OF_ACTION = _move_bits()
ACTION_OF_MOVE = np.full((2, 1 << 16), -1, dtype=np.int16)
for _side in range(2):
    ACTION_OF_MOVE[_side, MOVE_OF_ACTION[_side]] = np.arange(NUM_ACTIONS)


def other_side(side: Side) -> Side:
    """The opponent's side."""
    return "white" if side == "black" else "black"


class IllegalActionError(KeiseiError, ValueError):
    """An action number or a move that cannot be played; the message names it."""


def read_usi(usi: str) -> Move:
    """The move that USI notation names."""
    try:
        return Move.from_usi(usi)
    except ValueError:
        raise IllegalActionError(
            f"{usi!r} is not a USI move (examples: 7g7f, 8h2b+, P*5e)"
        ) from None


def usi_to_move(usi: str) -> int:
    """The 16 bits of a move in USI notation."""
    return int(read_usi(usi))


def move_to_usi(move: int) -> str:
    """A 16-bit move in USI notation.

    >>> move_to_usi(usi_to_move("8h2b+"))
    '8h2b+'
    """
    return Move(move).to_usi()


def game_to_usi(start_sfen: str, actions: IntArray) -> list[str]:
    """The actions of a game from its start on, in USI notation.

    >>> game_to_usi("4k4/9/9/9/9/9/9/9/4K4 w - 1", np.array([7126, 7126]))
    ['5a5b', '5i5h']
    """
    sides = (np.arange(len(actions)) + (start_sfen.split()[1] == "w")) % 2
    return [move_to_usi(move) for move in MOVE_OF_ACTION[sides, actions].tolist()]


class PolicyOutputMapper:
    """Actions <-> moves, exact both ways, from the mover's side.

    >>> mapper = PolicyOutputMapper()
    >>> action = mapper.usi_to_action("7g7f", "black")
    >>> mapper.action_to_usi(action, "black")
    '7g7f'
    >>> mapper.action_to_usi(action, "white")  # the same push, seen from the other side
    '3c3d'
    """

    def action_to_usi(self, action: int, side: Side) -> str:
        """The USI move that `action` means for a side."""
        return self.action_to_move(action, side).to_usi()

    def usi_to_action(self, usi: str, side: Side) -> int:
        """The action number of a USI move that a side makes."""
        return self.move_to_action(read_usi(usi), side)

    def action_to_move(self, action: int, side: Side) -> Move:
        """The rsshogi move that `action` means for a side."""
        if not 0 <= action < NUM_ACTIONS:
            raise IllegalActionError(f"action {action} is outside 0 to {NUM_ACTIONS - 1}")
        return Move(int(MOVE_OF_ACTION[_index(side), action]))

    def move_to_action(self, move: Move, side: Side) -> int:
        """The action number of an rsshogi move that a side makes."""
        action = int(ACTION_OF_MOVE[_index(side), int(move)])
        if action < 0:
            raise IllegalActionError(f"{move.to_usi()!r} is not a move of a piece")
        return action

    def actions_to_moves(self, actions: IntArray, sides: IntArray) -> npt.NDArray[np.uint16]:
        """16-bit moves of many actions; `sides` are 0 (Black) or 1 (White), and broadcast."""
        return MOVE_OF_ACTION[sides, actions]

    def moves_to_actions(self, moves: IntArray, sides: IntArray) -> npt.NDArray[np.int16]:
        """Action numbers of many 16-bit moves (-1 for anything that is not a move of a piece)."""
        return ACTION_OF_MOVE[sides, moves]


def _index(side: Side) -> int:
    if side not in SIDES:
        raise ValueError(f'side is {side!r}; it must be "black" or "white"')
    return SIDES.index(side)
