"""A board for tree search: moves forward and back again, and tells what a search must know."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from rsshogi.core import Board, Move

from keisei.shogi.features import OBSERVATION_BYTES
from keisei.shogi.rules import Outcome, judge, repetitions

# Declaration is looked for in many positions at once: this one can never declare.
_NOTHING = np.zeros(OBSERVATION_BYTES, dtype=np.uint8)


class SearchBoard:
    """A position with its history; a search moves by 16-bit numbers (see `actions`).

    >>> from keisei.shogi import ShogiGame
    >>> board = ShogiGame("4k4/9/4G4/9/9/9/9/9/4K4 b G 1").search_board()
    >>> mate = board.mate_in_one()
    >>> board.push(mate)
    >>> str(board.outcome(can_move=False, at_limit=False))
    'black wins by checkmate'

    It belongs to the thread that made it, like every board.
    """

    def __init__(self, board: Board) -> None:
        self._board = board

    @classmethod
    def on(cls, board: Board) -> SearchBoard:
        """Search on this very board: what is played there must be taken back."""
        search = cls.__new__(cls)
        search._board = board
        return search

    def push(self, move: int) -> None:
        """Play a legal move."""
        self._board.apply_move(Move(move))

    def pop(self) -> None:
        """Take back the last move."""
        self._board.pop()

    def legal_moves(self) -> npt.NDArray[np.uint16]:
        """The legal moves as 16 bits, which are their hash (see `VectorShogi`)."""
        legal = self._board.legal_moves()
        return np.fromiter(map(hash, legal), dtype=np.uint16, count=len(legal))

    def mate_in_one(self) -> int | None:
        """A move that mates at once, if there is one."""
        move = self._board.solve_mate_in_one()
        return None if move is None else int(move) & 0xFFFF

    def outcome(self, can_move: bool, at_limit: bool) -> Outcome | None:
        """Whether the game is over, by whatever rule but declaration."""
        return judge(self._board, can_move, _NOTHING, at_limit, white_bonus=0)

    @property
    def white(self) -> bool:
        """Is White to move?"""
        return not self._board.turn.is_black()

    @property
    def in_check(self) -> bool:
        """Is the player to move in check?"""
        return self._board.is_in_check()

    @property
    def repetitions(self) -> int:
        """How often this very position stood before (at most 3)."""
        return repetitions(self._board)
