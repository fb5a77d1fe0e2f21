"""What server and page tell each other about games that are kept, and their review."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, FiniteFloat

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


class VariationNode(Message):
    """A move beside the main line, the position after it, and where it is played from.

    Nodes 0 to the game's length are the positions of the main line.
    """

    node: int
    parent: int
    move: MoveText
    position: Position
    comment: str


class KeptGame(KeptRow):
    """A kept game with all its positions; `comments` are by node of the main line."""

    positions: list[Position]
    moves: list[MoveText]
    variations: list[VariationNode]
    comments: dict[str, str]


class VariationRequest(Message):
    """A move to add from a node."""

    parent: int = Field(ge=0, le=2**31)
    move: str = Field(max_length=5)


class VariationAnswer(Message):
    """The game with the move, and the move's own node."""

    game: KeptGame
    node: int


class CommentRequest(Message):
    """What to say at a node; nothing takes a comment away."""

    node: int = Field(ge=0, le=2**31)
    text: str = Field(max_length=2000)


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


class JudgeRequest(Message):
    """Moves from the start of a kept game to a position."""

    moves: list[Annotated[str, Field(max_length=5)]] = Field(max_length=1100)


class Judgement(Message):
    """What the search says of a position, and of the one before the last move to it."""

    move: MoveText | None
    before: Judged | None
    judged: Judged


class ReviewUpdate(Message):
    """What is new in a review: the data of a `review` event.

    When all positions are judged, those around mistakes are judged again, and `total` grows.
    `values` are what the network says at a glance, Black's, one for each position; only at first.
    """

    done: int
    total: int
    judged: list[Judged]
    values: list[float | None]


class AnalysedLine(Message):
    """A line that begins with one of the best moves; `value` and `mate` are Black's."""

    value: float
    mate: int | None
    moves: list[MoveText]


class AnalysisUpdate(Message):
    """What is known of a position so far: the data of an `analysis` event.

    The best line is the first. It is `over` when a mate is proven, or the tree as large as it may
    become.
    """

    nodes: int
    over: bool
    lines: list[AnalysedLine]
