"""Who can be played against: the levels, and every checkpoint of every run."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from keisei.errors import KeiseiError
from keisei.models import NETWORKS
from keisei.models.levels import LEVELS, TEMPERATURE, Level, ratings
from keisei.web.runs import RunsFolder
from keisei.web.schema import Elo, PlayerList, PlayerRow
from keisei.web.threads import NotFound

AGENT = "Keisei"


@dataclass(frozen=True)
class Opponent:
    """A network to play against; a level also says how it plays."""

    label: str
    path: Path
    temperature: float = TEMPERATURE
    nodes: int | None = None
    elo: Elo | None = None


def list_players(runs: RunsFolder) -> PlayerList:
    """The levels, weakest first, and the checkpoints of all Shogi runs, newest first per run."""
    players = [
        PlayerRow(id=f"level/{number}", label=level.name, nodes=level.nodes, elo=_elo(level))
        for number, level in enumerate(LEVELS, 1)
    ]
    for row in runs.rows():
        if row.kind == "shogi" and row.state != "broken":
            checkpoints = []
            with suppress(KeiseiError):  # of a broken run, or one that was just removed
                checkpoints = runs.checkpoints(runs.open(row.name))
            for one in checkpoints:
                label = f"{row.name}, step {one.steps:,}"
                name = f"run/{row.name}/{one.file}"
                players.append(PlayerRow(id=name, label=label, steps=one.steps))
    return PlayerList(players=players)


def find_opponent(runs: RunsFolder, name: str) -> Opponent:
    """The player that the list calls by this name."""
    kind, _, rest = name.partition("/")
    for number, level in enumerate(LEVELS, 1):
        if name == f"level/{number}":
            path, label = NETWORKS[level.network], f"{AGENT}, {level.name}"
            return Opponent(label, path, level.temperature, level.nodes, _elo(level))
    run, _, file = rest.rpartition("/")
    if kind != "run" or not run:
        raise NotFound(f"unknown player {name!r}: GET /api/players lists them all")
    path = runs.checkpoint_path(run, file)
    steps = int(file.removeprefix("step_").removesuffix(".pt"))
    return Opponent(f"{run}, step {steps:,}", path)


def _elo(level: Level) -> Elo | None:
    rated = ratings().get(level.player)
    if rated is None:
        return None
    return Elo(rating=rated.elo, low=rated.low, high=rated.high, nodes=level.nodes or None)
