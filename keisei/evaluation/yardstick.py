"""The yardstick: reference players with frozen ratings, kept in `yardstick.json`.

`scripts/make_yardstick.py` played their games and fitted the ratings once; the random player is 0.
Ratings against them are on the same scale, today and in a year.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import resources
from pathlib import Path

from keisei.evaluation.contestants import Contestant
from keisei.evaluation.pairs import Pentanomial
from keisei.usi.client import UsiClient

log = logging.getLogger(__name__)

ANCHOR = "random"
FILE = "yardstick.json"
_GAMES = "/usr/games"  # where Debian installs engines; it may not be in PATH


@dataclass(frozen=True)
class Reference:
    """A player of the yardstick; `seconds` is what a game against a quick one takes."""

    name: str
    player: str
    elo: float
    error: float  # half the 95 % interval of the difference to the random player
    games: int
    seconds: float

    @property
    def engine(self) -> str | None:
        """The program that it needs, if any."""
        what = Contestant.read(self.player).what
        return shlex.split(what.removeprefix("usi:"))[0] if what.startswith("usi:") else None


@dataclass(frozen=True)
class Yardstick:
    """The references from weak to strong, and where their ratings come from."""

    references: Sequence[Reference]
    misfit: float = 0.0  # Elo by which results stray from what ratings predict; see `ratings.rate`
    versions: Mapping[str, str] = field(default_factory=dict)  # of the engines
    made: str = ""  # when
    results: Mapping[tuple[str, str], Pentanomial] = field(default_factory=dict)

    @property
    def ratings(self) -> dict[str, float]:
        """Elo by name."""
        return {reference.name: reference.elo for reference in self.references}

    @cached_property
    def playable(self) -> list[Reference]:
        """The references whose engines are installed here, with the paths of these."""
        found = [(r, find_engine(r.engine) if r.engine else "") for r in self.references]
        return [placed(r, path) for r, path in found if path is not None]

    def missing(self) -> str | None:
        """What to install for the whole yardstick, and what cannot be rated without it; or None."""
        gone = {r.engine for r in self.references if r.engine and not find_engine(r.engine)}
        if not gone:
            return None
        names = " and ".join(sorted(name for name in gone if name))
        top = self.playable[-1]
        count = len(self.references) - len(self.playable)
        said = f"not installed: {names}, so {count} references are missing"
        if top.elo < self.references[-1].elo:
            said += f"; there are none above {top.name} ({top.elo:.0f})"
        return said


def placed(reference: Reference, path: str) -> Reference:
    """The reference with its engine's path; unchanged if it needs no engine."""
    if not reference.engine:
        return reference
    player = reference.player.replace(f"usi:{reference.engine}", f"usi:{shlex.quote(path)}", 1)
    return replace(reference, player=f"{player},processes=1")


@cache
def find_engine(name: str) -> str | None:
    """The path of an installed program."""
    return shutil.which(name, path=os.environ.get("PATH", os.defpath) + os.pathsep + _GAMES)


def load_yardstick(path: Path | None = None) -> Yardstick:
    """The yardstick that comes with Keisei, or another one.

    >>> yardstick = load_yardstick()
    >>> yardstick.references[0].name, yardstick.references[0].elo
    ('random', 0.0)
    """
    file = path or resources.files("keisei.evaluation").joinpath(FILE)
    data = json.loads(file.read_text(encoding="utf-8"))
    references = [Reference(**reference) for reference in data["references"]]
    results = {(r["first"], r["second"]): Pentanomial(tuple(r["pairs"])) for r in data["results"]}
    references.sort(key=lambda reference: reference.elo)
    return Yardstick(references, data["misfit"], data["versions"], data["made"], results)


def check_engines(yardstick: Yardstick) -> None:
    """Warn if an installed engine is not the version that was rated."""
    for name, rated in yardstick.versions.items():
        path = find_engine(name)
        here = identify(path) if path else rated
        if here != rated:
            log.warning("%s is %s here; its ratings are for %s and may not hold", name, here, rated)


def identify(command: str) -> str:
    """The name that an engine gives itself."""
    engine = UsiClient([command])
    try:
        engine.launch()
        return engine.identity
    finally:
        engine.close()
