"""What server and page tell each other about games that are kept, and their review."""

from __future__ import annotations

from typing import Literal

from pydantic import FiniteFloat

from keisei.shogi.actions import Side
from keisei.web.schema import Message, MoveText, Position, TopMove

KeptKind = Literal["played", "imported", "recorded"]


class Kept(Message):
    """The number of a kept game."""

    id: int


class KeptRow(Message):
    """A kept game in the list; `side` is the human's, `reason` how it ended, if it did."""

    id: int
    kind: KeptKind
    time: FiniteFloat
    black: str
    white: str
    side: Side | None
    winner: Side | None
    reason: str | None
    length: int


class KeptList(Message):
    """Some of the kept games, newest first; `problem` is why they are not kept for good."""

    total: int
    games: list[KeptRow]
    problem: str | None


class KeptGame(KeptRow):
    """A kept game with all its positions."""

    positions: list[Position]
    moves: list[MoveText]


# -- review --------------------------------------------------------------------------------------


class Judged(Message):
    """What the search found in the position after `ply` moves; `value` and `mate` are Black's.

    `loss` is how much of the mover's chance to win the move that led here gave away, from 0 to 1.
    """

    ply: int
    value: float
    mate: int | None
    best: str | None
    line: list[MoveText]
    top: list[TopMove]
    loss: float | None


class ReviewUpdate(Message):
    """What is new in a review: the data of a `review` event.

    `values` are what the network says at a glance, Black's, one for each position; only at first.
    """

    done: int
    total: int
    judged: list[Judged]
    values: list[float | None]
