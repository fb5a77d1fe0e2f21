"""How games end, and the one rule that rsshogi leaves to us: declaration by 27 points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from rsshogi.core import Board
from rsshogi.initial_positions import InitialPosition
from rsshogi.types import RepetitionState

from keisei.errors import KeiseiError
from keisei.shogi.actions import SQUARES, Side, other_side
from keisei.shogi.features import IN_CHECK, OWN_HAND, SIDE, Observations

Reason = Literal[
    "checkmate",
    "no legal move",
    "repetition",
    "perpetual check",
    "declaration",
    "move limit",
    "resignation",
]
DEFAULT_MOVE_LIMIT = 512
MAX_LEGAL_MOVES = 593  # no position has more
_LAST_START = 60_000  # a start's move number; rsshogi counts to 65,535
START_SFEN: str = InitialPosition["STANDARD"].value
# "lance", "bishop", "rook", "2_pieces", ...: White starts without these pieces, and moves first.
HANDICAPS: dict[str, str] = {
    name.removeprefix("HANDICAP_").lower(): position.value
    for name, position in InitialPosition.__members__.items()
    if name.startswith("HANDICAP_")
}


@dataclass(frozen=True)
class Outcome:
    """How a game ended. `winner` is None when it was drawn."""

    winner: Side | None
    reason: Reason

    def __str__(self) -> str:
        return f"{self.winner} wins by {self.reason}" if self.winner else f"draw by {self.reason}"


class InvalidSfenError(KeiseiError, ValueError):
    """A SFEN that is broken or that no game of Shogi can be played from."""


class MissingKingError(InvalidSfenError):
    """A SFEN that lacks nothing but one king, as problems of mate (tsume) do."""


def new_board(sfen: str) -> Board:
    """A board set to `sfen`, or an error that says what is wrong with it."""
    try:
        board = Board(sfen)
    except ValueError as error:
        raise InvalidSfenError(f"cannot read SFEN {sfen!r}: {error}") from None
    issues = board.validate_all().issues
    if issues:
        one_king = [issue.kind for issue in issues] == ["NO_KING"]
        kind = MissingKingError if one_king else InvalidSfenError
        raise kind(f"impossible position {sfen!r}: {issues[0].message}")
    waiting = board.turn.opponent()
    if board.is_attacked_by(board.king_square(waiting), board.turn):
        raise InvalidSfenError(
            f"impossible position {sfen!r}: the side that is not to move is in check"
        )
    if board.game_ply > _LAST_START:
        raise InvalidSfenError(
            f"move number {board.game_ply} in {sfen!r} leaves no room for a game: "
            f"it must be at most {_LAST_START}"
        )
    return board


_KING = 8
_CAMP = np.flatnonzero(np.arange(SQUARES) % 9 < 3)  # the mover's three farthest ranks
_POINTS = np.zeros(32, dtype=np.int64)  # of the mover's own pieces, by code
_POINTS[1:15] = [1, 1, 1, 1, 5, 5, 1, 0, 1, 1, 1, 1, 5, 5]
_HAND_POINTS = np.array([1, 1, 1, 1, 5, 5, 1])
_ALL_POINTS = 54


def declaration_points(observations: Observations) -> npt.NDArray[np.int64]:
    """Points of the mover: pieces in the far camp and in hand; rook and bishop 5, others 1."""
    in_camp = _POINTS[observations[..., _CAMP]].sum(-1)
    points: npt.NDArray[np.int64] = in_camp + observations[..., OWN_HAND] @ _HAND_POINTS
    return points


def can_declare(
    observations: Observations, white_bonus: int | npt.NDArray[np.int64] = 0
) -> npt.NDArray[np.bool_]:
    """Which of the movers [N] can win by declaration, by the 27-point rule.

    The king stands in the far camp with ten or more other pieces of its side, is not in check,
    and the points reach 28 for Black or 27 for White. `white_bonus` are the points of the pieces
    that White gave as a handicap: they count as White's.
    """
    able = np.zeros(len(observations), dtype=np.bool_)
    # Kings rarely enter, and more rarely with ten others: count for the few games where one did.
    rows = np.flatnonzero((observations[:, _CAMP] == _KING).any(1))
    own = observations[rows[:, None], _CAMP] - np.uint8(1) < 15  # an empty square, 0, becomes 255
    rows = rows[own.sum(1) > 10]
    if rows.size:
        few = observations[rows]
        white = few[:, SIDE] == 1
        bonus = np.broadcast_to(white_bonus, able.shape)[rows]
        points = declaration_points(few) + white * bonus
        able[rows] = (few[:, IN_CHECK] == 0) & (points >= 28 - white)
    return able


def handicap_bonus(sfen: str) -> int:
    """Points of the pieces that White gave away in a handicap position; 0 for any other."""
    if " ".join(sfen.split()[:3]) not in _HANDICAP_FIELDS:
        return 0
    placed = sum({"r": 5, "b": 5, "k": 0}.get(c.lower(), 1) for c in sfen.split()[0] if c.isalpha())
    return _ALL_POINTS - placed


_HANDICAP_FIELDS = frozenset(sfen.rpartition(" ")[0] for sfen in HANDICAPS.values())


def side_to_move(board: Board) -> Side:
    """Whose turn it is."""
    return "black" if board.turn.is_black() else "white"


def repetitions(board: Board) -> int:
    """How often the position, hands and mover included, stood before in its game (at most 3)."""
    if not board.is_repetition(1):
        return 0
    return 1 + board.is_repetition(2) + board.is_repetition(3)


def judge(
    board: Board,
    can_move: bool,
    observation: Observations,
    at_limit: bool,
    white_bonus: int,
) -> Outcome | None:
    """Whether the game on `board` is over, and how; `can_move`: the mover has a legal move.

    Mate comes first: a mate on the last allowed move wins. The limit comes before declaration,
    because a player declares instead of making a move.
    """
    mover = side_to_move(board)
    other = other_side(mover)
    if not can_move:
        return Outcome(other, "checkmate" if board.is_in_check() else "no legal move")
    repetition = board.repetition_state()
    if repetition == RepetitionState.DRAW:
        return Outcome(None, "repetition")
    if repetition == RepetitionState.WIN:
        return Outcome(mover, "perpetual check")
    if repetition == RepetitionState.LOSE:
        return Outcome(other, "perpetual check")
    if at_limit:
        return Outcome(None, "move limit")
    if can_declare(observation[None], white_bonus)[0]:
        return Outcome(mover, "declaration")
    return None
