"""What the server and the page tell each other, as JSON. Sides are "black" and "white"."""

from __future__ import annotations

from typing import Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, FiniteFloat

from keisei.shogi.actions import Side

Kind = Literal["shogi", "world"]
State = Literal["training", "stopped", "finished", "broken"]


class Message(BaseModel):
    """Anything that is sent; unknown fields are refused.

    The page's types are made of these classes (web/src/schema.ts): run `make web` after a change.
    """

    # Defaults are sent, too: a client can count on every field.
    model_config = ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True)


class Problem(Message):
    """Why a request was refused or failed, in one sentence."""

    detail: str


# -- runs ----------------------------------------------------------------------------------------


class Elo(Message):
    """A rating on the yardstick with its 95 % interval, of a checkpoint and a way of playing."""

    rating: FiniteFloat
    low: FiniteFloat
    high: FiniteFloat
    steps: int | None = None
    nodes: int | None = Field(None, description="Searched per move; none: the policy alone.")


class RunRow(Message):
    """A run in the list."""

    name: str
    kind: Kind = "shogi"
    state: State
    error: str | None = None
    world: str | None = None
    steps: int = 0
    total_steps: int | None = None
    steps_per_s: float | None = None
    games: int | None = None
    elo: list[Elo] = []
    mean_return: float | None = Field(None, serialization_alias="return")
    started: float | None = None
    updated: float | None = None


class RunList(Message):
    """All runs of the folder."""

    runs: list[RunRow]


class WorkerRow(Message):
    """A worker of a run, and how it spends its time (shares from 0 to 1)."""

    worker: int
    state: str
    busy: FiniteFloat
    waiting: FiniteFloat
    syncing: FiniteFloat
    restarts: int
    lag: FiniteFloat
    steps_per_s: FiniteFloat
    resident_mb: FiniteFloat | None = Field(
        None,
        validation_alias=AliasChoices("resident_mb", "memory_mb"),  # as old runs call it
    )
    node: str | None = None


class Checkpoint(Message):
    """A checkpoint file of a run."""

    file: str
    steps: int


class RunEvent(Message):
    """Something that happened in a run."""

    time: FiniteFloat
    level: str
    message: str


class LadderPlayer(Elo):
    """A player of the run's ladder: a checkpoint, or a reference."""

    name: str
    games: int
    cpu_hours: FiniteFloat | None = None


class Ladder(Message):
    """The ratings of `keisei ladder`, strongest first, or why they cannot be read."""

    players: list[LadderPlayer]
    error: str | None = None


class RunDetail(RunRow):
    """A run with everything but its curves and games."""

    config: str = ""
    names: list[str] = []
    latest: dict[str, float | None] = {}
    latest_steps: dict[str, int] = {}
    checkpoints: list[Checkpoint] = []
    workers: list[WorkerRow] = []
    events: list[RunEvent] = []
    ladder: Ladder | None = None
    random_return: list[float] | None = None
    agents: int | None = None


class SeriesAnswer(Message):
    """Curves by metric: pairs of step (or second) and value, null where it was NaN or infinite."""

    series: dict[str, list[tuple[int, float | None]]]


# -- positions and games -------------------------------------------------------------------------


class Position(Message):
    """Everything needed to draw a board."""

    sfen: str
    turn: Side
    check: bool
    last: str | None = None


class PositionAnswer(Message):
    """A position and its legal moves."""

    position: Position
    legal: list[str]


class MoveText(Message):
    """A move as programs and as people write it."""

    usi: str
    western: str
    japanese: str


class TopMove(Message):
    """A move that the network considers."""

    move: str
    western: str
    japanese: str
    probability: float
    value: float | None = None  # for the player who makes it


class LiveGame(Message):
    """A game in progress; values are Black's, from -1 to 1, by number of moves."""

    game: int
    position: Position
    move_number: int
    top: list[TopMove]
    values: list[tuple[int, float]]


class GameRow(Message):
    """A game of a run."""

    id: int
    step: int
    time: FiniteFloat
    kind: str
    black: str
    white: str
    winner: Side | None
    reason: str
    length: int
    has_record: bool


class GameList(Message):
    """Some games of a run, newest first; `reasons` are how any of its games ended."""

    total: int
    games: list[GameRow]
    reasons: list[str]


class GameDetail(GameRow):
    """A game with all its positions; values are Black's, one for each position."""

    positions: list[Position]
    moves: list[MoveText]
    values: list[float | None]


# -- play ----------------------------------------------------------------------------------------


class PlayerRow(Message):
    """A player to play against: a level, which has `nodes`, or a run's checkpoint with `steps`."""

    id: str
    label: str
    steps: int | None = None
    nodes: int | None = Field(None, description="Searched per move; 0: it plays by the policy.")
    elo: Elo | None = Field(None, description="As measured on the yardstick.")


class PlayerList(Message):
    """All players to play against."""

    players: list[PlayerRow]


class ClockSettings(Message):
    """Seconds for the whole game, then for each move."""

    main: float = Field(0, ge=0, le=86_400)
    byoyomi: float = Field(0, ge=0, le=3_600)


class NewGame(Message):
    """A game to begin; `start` is "startpos", a handicap's name or an SFEN."""

    player: str = Field(max_length=500)
    side: Side = "black"
    nodes: int = Field(0, ge=0, le=3200, description="A level has its own.")
    start: str = Field("startpos", max_length=200)
    clock: ClockSettings | None = None


class MoveRequest(Message):
    """The human's move."""

    move: str = Field(max_length=5)


class NoBody(Message):
    """An empty body."""


class Result(Message):
    """How a game ended; `text` is for the human."""

    winner: Side | None
    reason: str
    text: str


class ClockNow(Message):
    """Each side's main time, and what the player to move has left, including byoyomi; seconds."""

    black: float
    white: float
    byoyomi: float
    running: Side | None = None
    left: float | None = None


class PlayedGame(Message):
    """A game against a human."""

    id: str
    player: str
    label: str
    elo: Elo | None
    side: Side
    nodes: int
    position: Position
    legal: list[str]
    moves: list[MoveText]
    positions: list[Position]
    values: list[float | None]
    your_turn: bool
    result: Result | None
    clock: ClockNow | None
    kept: int | None = Field(None, description="Its number among the games that are kept.")


class Hint(Message):
    """What the agent would play in the human's place; `value` is Black's."""

    top: list[TopMove]
    value: float | None


# -- worlds, and the rest ------------------------------------------------------------------------


class LegendEntry(Message):
    """What a number in a frame's cells means."""

    model_config = ConfigDict(extra="ignore")  # of an entity, what is needed to draw it

    name: str
    color: str
    symbol: str
    shape: Literal["square", "circle", "diamond"]
    layer: int


class Frame(Message):
    """A turn: the lowest and the topmost thing in each cell, the agents, and their rewards."""

    ground: list[list[int]]
    cells: list[list[int]]
    agents: list[tuple[int, int, str | None]]
    rewards: list[float]


class Episode(Message):
    """An episode of a world."""

    height: int
    width: int
    legend: list[LegendEntry]
    agents: int
    agent_colors: list[str]
    turns: int
    frames: list[Frame]
    returns: list[float]


class Handicap(Message):
    """A start position with fewer pieces for White, who moves first."""

    name: str
    label: str
    sfen: str


class Info(Message):
    """What this server is."""

    version: str
    handicaps: list[Handicap]
    token_required: bool


class RunUpdate(Message):
    """What is new in a run: the data of an `update` event."""

    row: RunRow
    latest: dict[str, float | None]
    latest_steps: dict[str, int]
    workers: list[WorkerRow]
    events: list[RunEvent]


class LiveUpdate(Message):
    """The games in progress: the data of a `live` event."""

    games: list[LiveGame]
