"""What the score of a match says about which player is stronger, and how surely."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from keisei.errors import KeiseiError
from keisei.evaluation.pairs import Pentanomial

Z95 = 1.959964


def elo_of_score(score: float) -> float:
    """The Elo difference at which this score is expected.

    >>> round(elo_of_score(0.75)), elo_of_score(1.0)
    (191, inf)
    """
    if score <= 0 or score >= 1:
        return math.inf if score >= 1 else -math.inf
    return -400 * math.log10(1 / score - 1)


def score_of_elo(elo: float) -> float:
    """The score expected at an Elo difference.

    >>> round(score_of_elo(191), 2)
    0.75
    """
    return float(1 / (1 + 10 ** (-elo / 400)))


@dataclass(frozen=True)
class Summary:
    """A match in numbers, from the first player's side."""

    games: int
    score: float  # a draw is half a point
    low: float  # of the 95 % interval of the score
    high: float
    superiority: float  # the probability that the first player is stronger

    @property
    def elo(self) -> float:
        """The Elo difference; infinite if one side won every point."""
        return elo_of_score(self.score)

    @property
    def elo_interval(self) -> tuple[float, float]:
        """The 95 % interval of the Elo difference."""
        return elo_of_score(self.low), elo_of_score(self.high)


def summarise(result: Pentanomial) -> Summary:
    """The score with Wilson's interval, which is also valid for 40 wins of 40.

    It is computed for the number of independent games that would tell as much as these pairs: more
    than were played if openings are one-sided or games drawn, fewer if a pair's games are alike.

    >>> match = summarise(Pentanomial.of_points([2.0] * 20))
    >>> round(match.low, 2), match.high, round(match.superiority, 3)
    (0.91, 1.0, 1.0)
    """
    if not result.pairs:
        raise ValueError("there are no pairs of games to count")
    score, games = result.score, result.games
    spread = result.variance(score)
    independent = score * (1 - score) * result.pairs / spread if spread else games
    shrink = 1 + Z95**2 / independent
    centre = (score + Z95**2 / (2 * independent)) / shrink
    variance = score * (1 - score) / independent + Z95**2 / (4 * independent**2)
    width = Z95 / shrink * math.sqrt(variance)
    lead = (score - 0.5) / math.sqrt(result.variance(0.5) / result.pairs)
    superiority = 0.5 * (1 + math.erf(lead / math.sqrt(2)))
    low, high = max(centre - width, 0.0), min(centre + width, 1.0)
    return Summary(
        round(games), score, low if score else 0.0, high if score < 1 else 1.0, superiority
    )


Verdict = Literal["stronger", "not stronger", "undecided"]


@dataclass(frozen=True)
class Sprt:
    """A test that stops a match once it is decided: Elo `elo1` or more, or `elo0` or less.

    It errs in at most `error` of the matches, either way. It counts pairs of games (one opening,
    both colours), because the two games of a pair are not independent.

    >>> Sprt(elo0=0, elo1=50).verdict([1.5, 2.0, 1.0, 1.5] * 20)
    'stronger'
    """

    elo0: float = 0.0
    elo1: float = 20.0
    error: float = 0.05

    def __post_init__(self) -> None:
        if not self.elo0 < self.elo1:
            raise KeiseiError(
                f"a test between {self.elo0:g} and {self.elo1:g} Elo shows nothing: "
                f"--sprt must be more than {self.elo0:g}"
            )

    @property
    def limit(self) -> float:
        """The log-likelihood ratio that decides, up or down."""
        return math.log((1 - self.error) / self.error)

    def ratio(self, pairs: Sequence[float]) -> float:
        """The log-likelihood ratio of the two hypotheses, from the points of each pair (0 to 2)."""
        if len(pairs) < 2:
            return 0.0
        shares = [points / 2 for points in pairs]
        mean = sum(shares) / len(shares)
        # One more pair of each extreme, so that even a clean sweep has a variance.
        spread = [*shares, 0.0, 1.0]
        variance = sum((share - mean) ** 2 for share in spread) / len(spread)
        low, high = score_of_elo(self.elo0), score_of_elo(self.elo1)
        return len(pairs) * (high - low) * (2 * mean - low - high) / (2 * variance)

    def verdict(self, pairs: Sequence[float]) -> Verdict:
        """Whether the first player is stronger, going by these pairs."""
        ratio = self.ratio(pairs)
        if abs(ratio) < self.limit:
            return "undecided"
        return "stronger" if ratio > 0 else "not stronger"
