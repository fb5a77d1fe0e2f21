"""A board for tree search: it looks at what some moves lead to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rsshogi.core import Board, Move

from keisei.shogi.features import OBSERVATION_BYTES
from keisei.shogi.rules import judge, repetitions, side_to_move

# Declaration is looked for in many positions at once: this one can never declare.
_NOTHING = np.zeros(OBSERVATION_BYTES, dtype=np.uint8)


class Seen(NamedTuple):
    """What a position has for its mover."""

    moves: npt.NDArray[np.uint16]  # the legal ones as 16 bits, which are their hash
    in_check: bool
    repetitions: int  # how often this very position stood before (at most 3)
    result: int | None  # 1 won, 0 drawn, -1 lost: if the game is over, by any rule but declaration
    mating_move: int | None  # one that mates at once, if there is one


class SearchBoard:
    """A position with its history; a search moves by 16-bit numbers (see `actions`).

    >>> from keisei.shogi import ShogiGame
    >>> board = ShogiGame("4k4/9/4G4/9/9/9/9/9/4K4 b G 1").search_board()
    >>> mate = board.look().mating_move
    >>> board.look([mate]).result
    -1

    It belongs to the thread that made it, like every board.
    """

    def __init__(self, board: Board) -> None:
        self._board = board

    def look(self, moves: Sequence[int] = (), at_limit: bool = False) -> Seen:
        """The position after these moves, which are taken back; `at_limit`: no more are allowed."""
        board = self._board
        for move in moves:
            board.apply_move(Move(move))
        seen = self._look(at_limit)
        for _ in moves:
            board.pop()
        return seen

    def _look(self, at_limit: bool) -> Seen:
        board = self._board
        legal = board.legal_moves()
        moves = np.fromiter(map(hash, legal), dtype=np.uint16, count=len(legal))
        times, result = repetitions(board), None
        if not legal or at_limit or times == 3:
            outcome = judge(board, bool(legal), _NOTHING, at_limit, white_bonus=0)
            if outcome is not None:
                won = outcome.winner == side_to_move(board)
                result = 0 if outcome.winner is None else 1 if won else -1
        mate = board.solve_mate_in_one()
        mating_move = None if mate is None else int(mate) & 0xFFFF
        return Seen(moves, board.is_in_check(), times, result, mating_move)
