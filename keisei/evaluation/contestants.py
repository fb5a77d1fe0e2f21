"""Players by name, as commands take them.

| name                                 | player                                                   |
|--------------------------------------|----------------------------------------------------------|
| `random`, `greedy`                   | uniformly random; takes the most valuable piece          |
| `RUN` or `FILE.pt`                   | the policy of a run's newest checkpoint, or of a file    |
| `RUN,temperature=0`                  | always its likeliest move (0.5 unless told otherwise)    |
| `RUN,nodes=400`                      | tree search over the network                             |
| `RUN,seconds=1`                      | tree search, this long per move, on one core             |
| `usi:COMMAND,go=depth 3`             | any USI engine; `go` is what it is told after that word  |
| `usi:COMMAND,go=depth 1,Skill Level=-20` | with an option of the engine                         |
| `anything,random=30`                 | plays 30 % of its moves at random                        |
| `anything,name=Me`                   | is called so                                             |
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from keisei.core.policy import Policy
from keisei.errors import KeiseiError
from keisei.evaluation.players import (
    GreedyPlayer,
    MixedPlayer,
    Player,
    PolicyPlayer,
    RandomPlayer,
    SearchPlayer,
)
from keisei.evaluation.usi_player import UsiPlayer
from keisei.models import NETWORKS
from keisei.processes.machine import cores
from keisei.search import Limit
from keisei.shogi.rules import DEFAULT_MOVE_LIMIT
from keisei.trained import find_checkpoint, load_trained
from keisei.usi.protocol import read_go

GRACE = 60.0  # seconds that an engine may be late, or think if its `go` sets no time
POLICY_TEMPERATURE = 0.5  # at 0, won games often end as draws by repetition (docs/experiments.md)


@dataclass
class Contestant:
    """A player's name, parsed."""

    what: str
    settings: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> Contestant:
        """
        >>> Contestant.read("usi:/usr/games/gpsusi,go=byoyomi 1000,BookDepth=0").settings
        {'go': 'byoyomi 1000', 'BookDepth': '0'}
        """
        what, *parts = text.split(",")
        settings = {}
        for part in parts:
            name, equals, value = part.partition("=")
            if not equals or not name.strip():
                raise KeiseiError(f"player {text!r}: {part!r} is not of the form name=value")
            settings[name.strip()] = value.strip()
        if not what.strip():
            raise KeiseiError(f"no player named in {text!r}")
        return cls(what.strip(), settings)

    def number(self, name: str, default: float, least: float, most: float) -> float:
        """Take a number out of the settings."""
        text = self.settings.pop(name, str(default))
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not least <= value <= most:
            raise KeiseiError(f"{self.what}: {name}={text} is not between {least:g} and {most:g}")
        return value


@contextmanager
def open_player(
    text: str | Player, seed: int, move_limit: int = DEFAULT_MOVE_LIMIT
) -> Iterator[Player]:
    """The player of this name, or one that is there; an engine's processes end with the block."""
    if not isinstance(text, str):
        yield text
        return
    asked = Contestant.read(text)
    share = asked.number("random", 0, 0, 100) / 100
    name = asked.settings.pop("name", None)
    player = _make(asked, seed, move_limit)
    try:
        if asked.settings:
            raise KeiseiError(f"player {text!r} has no setting {next(iter(asked.settings))!r}")
        shown: Player = MixedPlayer(player, share, seed) if share else player
        if name:
            shown.name = name
        yield shown
    finally:
        if isinstance(player, UsiPlayer):
            player.close()


def resolve(text: str, runs: Path = Path("runs")) -> str:
    """A name for the same player that is valid in any folder, for play on one core.

    A run (one of those in `runs`) becomes its newest checkpoint, and an engine gets one process.
    """
    asked = Contestant.read(text)
    if asked.what in ("random", "greedy"):
        return text
    if asked.what.startswith("usi:"):
        return text if "processes" in asked.settings else f"{text},processes=1"
    path = find_checkpoint(asked.what, runs).resolve()
    return ",".join([str(path), *(f"{name}={value}" for name, value in asked.settings.items())])


def _make(asked: Contestant, seed: int, move_limit: int) -> Player:
    if asked.what == "random":
        return RandomPlayer(seed)
    if asked.what == "greedy":
        return GreedyPlayer(seed)
    if asked.what.startswith("usi:"):
        return _make_engine(asked)
    path = find_checkpoint(asked.what)
    policy = _load_policy(path, path.stat().st_mtime_ns)
    name = _name_of_checkpoint(path)
    if "nodes" in asked.settings:
        nodes = int(asked.number("nodes", 0, 1, 10**7))
        name = f"{name} {nodes} nodes"
        return SearchPlayer(policy, name, Limit(nodes), move_limit=move_limit)
    if "seconds" in asked.settings:
        seconds = asked.number("seconds", 0, 0.001, 3600)
        name = f"{name} {seconds:g} seconds"
        return SearchPlayer(policy, name, Limit(seconds=seconds), move_limit=move_limit)
    temperature = asked.number("temperature", POLICY_TEMPERATURE, 0, 100)
    return PolicyPlayer(policy, f"{name} policy", seed, temperature)


@lru_cache(maxsize=4)  # a process plays many batches with the same few networks
def _load_policy(path: Path, written: int) -> Policy:
    return load_trained(path).policy


def _make_engine(asked: Contestant) -> UsiPlayer:
    command = shlex.split(asked.what.removeprefix("usi:"))
    if not command:
        raise KeiseiError("usi: needs an engine's command, as in usi:/usr/games/gpsusi")
    go = asked.settings.pop("go", "byoyomi 1000")
    processes = int(asked.number("processes", cores(), 1, 256))
    options, asked.settings = asked.settings, {}  # the rest are the engine's own
    name = " ".join([Path(command[0]).name, go, *(f"{k}={v}" for k, v in options.items())])
    return UsiPlayer(command, go, name, options, processes, GRACE + _allowed_seconds(go))


def _allowed_seconds(go: str) -> float:
    """The longest that an engine may think about a move with this `go`.

    >>> _allowed_seconds("btime 60000 wtime 60000 byoyomi 1000"), _allowed_seconds("depth 3")
    (61.0, 0.0)
    """
    asked = read_go(go.split())
    if asked.movetime is not None:
        return asked.movetime / 1000
    left, gain = max(asked.btime or 0, asked.wtime or 0), max(asked.binc, asked.winc)
    return (left + gain + asked.byoyomi) / 1000


def _name_of_checkpoint(path: Path) -> str:
    """Such as "quick 524288" for runs/quick/checkpoints/step_000000524288.pt, or "shipped"."""
    for name, shipped in NETWORKS.items():
        if path.resolve() == shipped.resolve():
            return name
    step = path.stem.removeprefix("step_").lstrip("0") or "0"
    if path.parent.name == "checkpoints":
        return f"{path.resolve().parent.parent.name} {step}"
    return path.stem
