"""Ratings of players from the games between them, counted in pairs.

The model is Elo's: the expected score of a player is 1 / (1 + 10 ** (-difference / 400)), and a
draw is half a point. Ratings maximise the likelihood: everyone's points are as expected. A weak
prior keeps a player that won every game from an infinite rating. Intervals come from how much the
points of pairs varied (a sandwich estimate).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keisei.errors import KeiseiError
from keisei.evaluation.pairs import Pentanomial, usual_variance
from keisei.evaluation.statistics import Z95

PRIOR_ELO = 2000.0  # standard deviation of the prior: 95 % within 4,000 Elo of the prior's middle
SCALE = 400 / np.log(10)
_STEPS = 200

Results = Mapping[tuple[str, str], Pentanomial]


@dataclass(frozen=True)
class Rating:
    """A player's Elo with its 95 % interval, and the number of its games."""

    name: str
    elo: float
    low: float
    high: float
    games: int

    @property
    def width(self) -> float:
        """The width of the interval."""
        return self.high - self.low


def rate(
    results: Results,
    frozen: Mapping[str, float],
    misfit: float = 0.0,
    centre: float = 0.0,
    prior_elo: float = PRIOR_ELO,
    weights: Mapping[tuple[str, str], float] | None = None,
) -> dict[str, Rating]:
    """The ratings of all players; the `frozen` ones are taken as exact.

    A game of a pairing counts as much as `weights` says, or else 1. `misfit` is how far (in Elo, as
    a standard deviation) the result of two players strays from what their ratings predict, because
    strength is not one number; with many opponents it matters less.

    >>> win = Pentanomial.of_games(30, 0, 10)
    >>> ratings = rate({("a", "random"): win, ("b", "a"): win}, {"random": 0})
    >>> [round(ratings[name].elo, -1) for name in ("random", "a", "b")]
    [0.0, 190.0, 380.0]
    """
    results = {pair: result for pair, result in results.items() if result.pairs}
    names = sorted({name for pair in results for name in pair})
    if results and not any(name in frozen for name in names):
        raise KeiseiError("no player with a known rating has played: there is no scale")
    free = [name for name in names if name not in frozen]
    design = np.zeros((len(results), len(free)))
    known = np.zeros(len(results))
    for row, pair in enumerate(results):
        for name, sign in zip(pair, (1.0, -1.0), strict=True):
            if name in frozen:
                known[row] += sign * frozen[name] / SCALE
            else:
                design[row, free.index(name)] = sign
    prior = ((centre / SCALE), (prior_elo / SCALE) ** -2)
    counts = np.array([(weights or {}).get(pair, 1.0) for pair in results])
    estimate, covariance = _fit(
        design, known, list(results.values()), counts, prior, misfit / SCALE
    )
    spread = Z95 * np.sqrt(np.diag(covariance)) * SCALE
    ratings = {}
    for name in names:
        games = round(sum(r.games for pair, r in results.items() if name in pair))
        if name in frozen:
            elo, width = float(frozen[name]), 0.0
        else:
            elo, width = estimate[free.index(name)] * SCALE, float(spread[free.index(name)])
        ratings[name] = Rating(name, float(elo), float(elo - width), float(elo + width), games)
    return ratings


def _fit(
    design: npt.NDArray[np.float64],
    known: npt.NDArray[np.float64],
    results: list[Pentanomial],
    counts: npt.NDArray[np.float64],
    prior: tuple[float, float],
    misfit: float,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Newton's method on the log-likelihood of the logistic model, and the sandwich."""
    centre, hold = prior
    games = counts * [result.games for result in results]
    points = games * [result.score for result in results]
    at = np.full(design.shape[1], centre)

    def expected(at: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return 1 / (1 + np.exp(-(design @ at + known)))

    def likelihood(at: npt.NDArray[np.float64]) -> float:
        gap = design @ at + known
        fit = points * gap - games * np.logaddexp(0, gap)
        return float(fit.sum() - hold * ((at - centre) ** 2).sum() / 2)

    for _ in range(_STEPS):
        chance = expected(at)
        gradient = design.T @ (points - games * chance) - hold * (at - centre)
        bend = design.T @ (design * (games * chance * (1 - chance))[:, None])
        bend += hold * np.eye(len(at))
        step = np.linalg.solve(bend, gradient)
        if not np.abs(step).max(initial=0.0) > 1e-9:
            break
        before = likelihood(at)
        while likelihood(at + step) < before and np.abs(step).max() > 1e-9:
            step /= 2  # too far: the likelihood has one peak, but is not a parabola
        at = at + step
    chance = expected(at)
    weight = games * chance * (1 - chance)
    usual = usual_variance(results, chance.tolist())
    noise = np.array(
        [4 * r.pairs * r.variance(float(p), usual) for r, p in zip(results, chance, strict=True)]
    )
    noise *= counts**2
    noise += (misfit * weight) ** 2
    inverse = np.linalg.inv(design.T @ (design * weight[:, None]) + hold * np.eye(len(at)))
    meat = design.T @ (design * noise[:, None]) + hold * np.eye(len(at))
    return at, inverse @ meat @ inverse


def ranked(ratings: Mapping[str, Rating]) -> list[Rating]:
    """All ratings, strongest first."""
    return sorted(ratings.values(), key=lambda rating: -rating.elo)
