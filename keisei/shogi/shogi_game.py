"""One game of Shogi, in the game's own words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from rsshogi.core import Move
from rsshogi.types import Color, PieceType

from keisei.shogi import features
from keisei.shogi.actions import (
    HAND_PIECES,
    SQUARES,
    IllegalActionError,
    PolicyOutputMapper,
    Side,
    other_side,
    read_usi,
)
from keisei.shogi.notation import MoveName, move_name
from keisei.shogi.plane_sets import PLANE_SETS
from keisei.shogi.rules import (
    DEFAULT_MOVE_LIMIT,
    HANDICAPS,
    START_SFEN,
    Outcome,
    handicap_bonus,
    judge,
    new_board,
    repetitions,
    side_to_move,
)
from keisei.shogi.search_board import SearchBoard

_MAPPER = PolicyOutputMapper()
_HAND_TYPES = [PieceType.from_usi(letter) for letter in HAND_PIECES]


class ShogiGame:
    """A game of Shogi from the start position, a SFEN or a handicap.

    >>> game = ShogiGame()
    >>> game.push_usi("7g7f")
    >>> game.turn, len(game.legal_actions())
    ('white', 30)
    >>> game.step(int(game.legal_actions()[0]))
    >>> game.undo()
    >>> game.moves, game.outcome
    (['7g7f'], None)

    The game ends when the player to move is mated or cannot move (and loses), by fourfold
    repetition (a draw, unless one side gave check all the time: it loses), by declaration (the
    player to move has 27 points, see `rules.can_declare`; the win is claimed at once), after
    `move_limit` moves (a draw, unless the last one mates), or by resignation.

    A game belongs to the thread that made it: rsshogi ends the process when another one touches its
    board. Between threads, pass the start and the moves (`from_moves`).
    """

    _observation: features.Observations  # of the position now

    def __init__(
        self,
        sfen: str | None = None,
        *,
        handicap: str | None = None,
        move_limit: int | None = DEFAULT_MOVE_LIMIT,
    ) -> None:
        if sfen is not None and handicap is not None:
            raise ValueError("give an SFEN or a handicap, not both")
        if handicap is not None and handicap not in HANDICAPS:
            raise ValueError(f"unknown handicap {handicap!r}; choose from {', '.join(HANDICAPS)}")
        if move_limit is not None and move_limit < 1:
            raise ValueError(f"move_limit is {move_limit}; it must be at least 1, or None")
        self.move_limit = move_limit
        self.reset(HANDICAPS[handicap] if handicap else sfen)

    def reset(self, sfen: str | None = None) -> None:
        """Start again, from `sfen` or the normal start position."""
        board = new_board(START_SFEN if sfen is None else sfen)
        self._board = board
        self._start = board.to_sfen()
        self._white_bonus = handicap_bonus(self._start)
        self._moves: list[Move] = []
        self._look()

    def _look(self) -> None:
        """Read what is legal now, and whether the game is over."""
        self._legal = self._board.legal_moves()
        self._observation = self._observe()
        at_limit = self.move_limit is not None and len(self._moves) >= self.move_limit
        self.outcome: Outcome | None = judge(
            self._board, bool(self._legal), self._observation, at_limit, self._white_bonus
        )

    # -- what is seen ------------------------------------------------------------------------

    @property
    def turn(self) -> Side:
        """The side to move: "black" (sente) or "white" (gote)."""
        return side_to_move(self._board)

    @property
    def moves(self) -> list[str]:
        """The moves so far, in USI notation."""
        return [move.to_usi() for move in self._moves]

    @property
    def start_sfen(self) -> str:
        """The position that the game started from."""
        return self._start

    @property
    def in_check(self) -> bool:
        """Is the player to move in check?"""
        return self._board.is_in_check()

    @property
    def has_legal_move(self) -> bool:
        """Can the player to move move, even where the game is over by another rule?"""
        return bool(self._legal)

    @property
    def repetitions(self) -> int:
        """How often this very position, hands and mover included, stood before (at most 3)."""
        return repetitions(self._board)

    def sfen(self) -> str:
        """The position as a SFEN.

        >>> ShogiGame().sfen()
        'lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1'
        """
        return self._board.to_sfen()

    def legal_actions(self) -> npt.NDArray[np.int64]:
        """The action numbers that may be played; none when the game is over."""
        if self.outcome:
            return np.empty(0, dtype=np.int64)
        bits = np.array([int(move) for move in self._legal], dtype=np.int64)
        return _MAPPER.moves_to_actions(bits, np.int64(self.turn == "white")).astype(np.int64)

    def legal_usi(self) -> list[str]:
        """The moves that may be played, in USI notation; none when the game is over."""
        return [] if self.outcome else [move.to_usi() for move in self._legal]

    def name(self, usi: str) -> MoveName:
        """What people call a legal move.

        >>> ShogiGame().name("7g7f").western
        'P-7f'
        """
        return move_name(self._board, read_usi(usi))

    def observation(self) -> features.Observations:
        """The position as 100 bytes from the mover's side (see `features`)."""
        return self._observation.copy()

    def _observe(self) -> features.Observations:
        seen = np.zeros(features.OBSERVATION_BYTES, dtype=np.uint8)
        state = self._board.to_position_state()
        board = np.array([int(piece) for piece in state.board], dtype=np.uint8)
        white = self.turn == "white"
        if white:
            board = np.where(board > 0, board ^ features.OTHER, 0)[::-1]
        seen[:SQUARES] = board
        own, other = (Color.WHITE, Color.BLACK) if white else (Color.BLACK, Color.WHITE)
        seen[features.OWN_HAND] = [self._board.hand(own).count(t) for t in _HAND_TYPES]
        seen[features.OTHER_HAND] = [self._board.hand(other).count(t) for t in _HAND_TYPES]
        seen[features.SIDE] = white
        seen[features.REPETITIONS] = self.repetitions
        seen[features.IN_CHECK] = self.in_check
        count = min(len(self._moves), 65535)
        seen[features.MOVE_COUNT :] = count % 256, count // 256
        return seen

    def planes(self, name: str = "core46") -> features.Planes:
        """The planes of the position, from the mover's side: [46, 9, 9], or another of the sets.

        >>> ShogiGame().planes("attack60").shape
        (60, 9, 9)
        """
        planes: features.Planes = PLANE_SETS[name].make(self.observation()[None])[0]
        return planes

    def svg(self) -> str:
        """A picture of the board, the last move marked."""
        return str(self._board.to_svg(last_move=self._board.last_move()))

    def _repr_svg_(self) -> str:
        """What notebooks show."""
        return self.svg()

    def __str__(self) -> str:
        """The board as a diagram, with the hands."""
        return self._board.to_bod()

    def __repr__(self) -> str:
        return f"ShogiGame({self.sfen()!r})"

    # -- what is done ------------------------------------------------------------------------

    def step(self, action: int) -> None:
        """Play an action number of `legal_actions()`."""
        self._play(_MAPPER.action_to_move(int(action), self.turn), f"action {action}")

    def push_usi(self, usi: str) -> None:
        """Play a move in USI notation: `7g7f`, `8h2b+`, `P*5e`."""
        self._play(read_usi(usi), f"move {usi!r}")

    def _play(self, move: Move, name: str) -> None:
        if self.outcome:
            raise IllegalActionError(f"{name} comes after the end of the game ({self.outcome})")
        if move not in self._legal:
            raise IllegalActionError(
                f"{name} ({move.to_usi()}) is not legal for {self.turn} in {self.sfen()}"
            )
        self._board.apply_move(move)
        self._moves.append(move)
        self._look()

    def resign(self) -> None:
        """The player to move gives up."""
        if self.outcome:
            raise IllegalActionError(f"resignation after the end of the game ({self.outcome})")
        self.outcome = Outcome(other_side(self.turn), "resignation")

    def undo(self) -> None:
        """Take back the last move, or the resignation."""
        if not self._resigned:
            if not self._moves:
                raise IndexError("there is no move to take back")
            self._moves.pop()
            self._board.pop()
        self._look()

    @property
    def _resigned(self) -> bool:
        return self.outcome is not None and self.outcome.reason == "resignation"

    # -- copies ------------------------------------------------------------------------------

    def copy(self) -> ShogiGame:
        """The same game, with its history; changing one does not change the other."""
        twin = ShogiGame.from_moves(self._start, self.moves, move_limit=self.move_limit)
        if self._resigned:
            twin.resign()
        return twin

    __copy__ = copy

    def search_board(self) -> SearchBoard:
        """A copy of the board, with its history, to try moves on."""
        return SearchBoard(self._board.copy())

    def __getstate__(self) -> dict[str, Any]:
        # rsshogi boards do not pickle: the start and the moves say everything.
        return {
            "start": self._start,
            "moves": self.moves,
            "resigned": self._resigned,
            "move_limit": self.move_limit,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.move_limit = state["move_limit"]
        self.reset(state["start"])
        self._replay(state["moves"])
        if state["resigned"]:
            self.resign()

    @classmethod
    def from_moves(
        cls,
        start_sfen: str,
        moves: Iterable[str],
        move_limit: int | None = DEFAULT_MOVE_LIMIT,
        *,
        check: bool = False,
    ) -> ShogiGame:
        """The game that these USI moves lead to, also beyond what our rules call its end.

        The moves must be legal; with `check`, one that is not raises an `IllegalActionError`.

        >>> ShogiGame.from_moves(ShogiGame().sfen(), ["7g7f", "3c3d"]).turn
        'black'
        """
        game = cls(start_sfen, move_limit=move_limit)
        game._replay(moves, check)
        return game

    def _replay(self, moves: Iterable[str], check: bool = False) -> None:
        for number, usi in enumerate(moves, 1):
            move = read_usi(usi)
            if check and move not in self._board.legal_moves():
                raise IllegalActionError(f"move {number} ({usi}) is not legal in {self.sfen()}")
            self._board.apply_move(move)
            self._moves.append(move)
        self._look()
