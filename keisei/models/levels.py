"""The levels that people play against, from the weakest to the strongest, and their ratings.

`scripts/rate_levels.py` rates them on the yardstick and writes `levels.json`: run it again when a
level or one of the networks changes.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from keisei.models import NETWORKS, SHIPPED

TEMPERATURE = 0.5  # at which policies play in matches unless told otherwise
FILE = Path(__file__).parent / "levels.json"


@dataclass(frozen=True)
class Level:
    """A network, and how it plays: by a search, or by its policy alone."""

    name: str
    network: str
    nodes: int = 0  # searched per move
    temperature: float = TEMPERATURE  # of the policy alone

    @property
    def player(self) -> str:
        """The same as a player of matches.

        >>> [level.player for level in LEVELS[:2]]
        ['quick-131072,temperature=2', 'quick-131072']
        """
        if self.nodes:
            return f"{self.network},nodes={self.nodes}"
        if self.temperature != TEMPERATURE:
            return f"{self.network},temperature={self.temperature:g}"
        return self.network


LEVELS = (
    Level("First week", "quick-131072", temperature=2),
    Level("First month", "quick-131072"),
    Level("First season", "quick-262144", temperature=0.75),
    Level("First year", "quick-262144"),
    Level("School club", "quick-524288"),
    Level("Club evening", "quick-524288", nodes=8),
    Level("Club champion", "hour-5247503", nodes=12),
    Level("Town champion", "hour-5242880"),
    Level("Long think", "hour-5242880", nodes=100),
    Level("Longer think", SHIPPED, nodes=100),
    Level("Longest think", SHIPPED, nodes=800),
)


class Rated(NamedTuple):
    """Elo on the yardstick with its 95 % interval, as measured."""

    elo: float
    low: float
    high: float
    games: int


@cache
def ratings() -> dict[str, Rated]:
    """What was measured, by player."""
    rows = json.loads(FILE.read_text(encoding="utf-8"))["ratings"]
    return {row["player"]: Rated(row["elo"], row["low"], row["high"], row["games"]) for row in rows}


def fingerprint(network: str) -> str:
    """Tells whether a network is still the one that was rated."""
    return hashlib.sha256(NETWORKS[network].read_bytes()).hexdigest()[:16]
