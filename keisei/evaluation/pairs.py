"""Games counted in pairs: one opening, played with both colours.

The two games of a pair are not independent: an opening that favours Black gives each side one of
them. So a match is counted by the points of its pairs, as Fishtest does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

POINTS = np.array([0, 0.5, 1, 1.5, 2])  # that a pair can bring
SHARES = POINTS / 2
_TRUST = 10.0  # pairs that a result needs before its own spread counts more than the usual one


@dataclass(frozen=True)
class Pentanomial:
    """How many pairs brought the first player 0, 0.5, 1, 1.5 and 2 points.

    >>> match = Pentanomial.of_points([2.0, 1.0, 1.5, 1.0])
    >>> match
    Pentanomial(counts=(0, 0, 2, 1, 1))
    >>> match.pairs, match.games, match.score
    (4, 8, 0.6875)
    >>> match + match.reversed
    Pentanomial(counts=(1, 1, 4, 1, 1))
    """

    counts: tuple[float, ...] = (0, 0, 0, 0, 0)

    @classmethod
    def of_points(cls, points: Iterable[float]) -> Pentanomial:
        """From the points of each pair."""
        found = list(points)
        return cls(tuple(found.count(worth) for worth in POINTS))

    @classmethod
    def of_games(cls, wins: float, draws: float, losses: float) -> Pentanomial:
        """From games whose pairing is unknown: as if they were independent.

        >>> Pentanomial.of_games(2, 0, 2)
        Pentanomial(counts=(0.5, 0.0, 1.0, 0.0, 0.5))
        """
        games = wins + draws + losses
        if not games:
            return cls()
        chances = np.array([losses, draws, wins]) / games
        return cls(tuple((np.convolve(chances, chances) * games / 2).tolist()))

    @property
    def pairs(self) -> float:
        """The number of pairs."""
        return sum(self.counts)

    @property
    def games(self) -> float:
        """The number of games."""
        return 2 * self.pairs

    @property
    def score(self) -> float:
        """The first player's share of the points."""
        return float(SHARES @ self.counts) / self.pairs

    @property
    def reversed(self) -> Pentanomial:
        """The same from the second player's side."""
        return Pentanomial(self.counts[::-1])

    def __add__(self, other: Pentanomial) -> Pentanomial:
        return Pentanomial(tuple(a + b for a, b in zip(self.counts, other.counts, strict=True)))

    def variance(self, expected: float, usual: float = 1.0) -> float:
        """The variance of the share of points from pair to pair, around the mean `expected`.

        With few pairs it is close to `usual`, which is in units of the variance of independent
        games without draws, p (1 - p) / 2.
        """
        unit = expected * (1 - expected) / 2
        return (_TRUST * usual * unit + self.deviations(expected)) / (_TRUST + self.pairs)

    def deviations(self, expected: float) -> float:
        """The sum of squared deviations of the pairs' shares from the expected one."""
        return float((SHARES - expected) ** 2 @ self.counts)


def usual_variance(results: Sequence[Pentanomial], expected: Sequence[float]) -> float:
    """The variance of many results together, in the unit of `usual`; close to 1 with few."""
    units = [p * (1 - p) / 2 for p in expected]
    observed = sum(r.deviations(p) for r, p in zip(results, expected, strict=True))
    expected_sum = sum(r.pairs * unit for r, unit in zip(results, units, strict=True))
    trust = _TRUST * sum(units) / max(len(units), 1)
    return (trust + observed) / (trust + expected_sum)


def join(results: Sequence[Pentanomial]) -> Pentanomial:
    """All of them together."""
    return sum(results, Pentanomial())
