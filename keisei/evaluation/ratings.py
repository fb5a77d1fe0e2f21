"""Ratings of a pool of players from the games between them.

The model is Davidson's: with strengths p and q (10 ** (Elo / 400)), a win, a loss and a draw are as
likely as p, q and v * sqrt(p * q) to each other; v, the liking for draws, is fitted too. The
ratings are those under which the results are most likely, times a weak prior that pulls each
towards the anchor: without it, who won all its games would be rated infinite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keisei.errors import KeiseiError

PRIOR_ELO = 2000.0  # standard deviation of the prior: 95 % within 4,000 Elo of the anchor
_SCALE = 400 / np.log(10)
_Z95 = 1.959964
_STEPS = 200

Score = tuple[int, int, int]  # wins, draws, losses of the first of a pair
Results = Mapping[tuple[str, str], Score]


@dataclass(frozen=True)
class Rating:
    """The Elo of a player above the anchor, with its 95 % interval, and how many games it had."""

    name: str
    elo: float
    low: float
    high: float
    games: int


class Ratings(dict[str, Rating]):
    """Ratings by name, and how well the difference of any two of them is known."""

    covariance: npt.NDArray[np.float64]  # in Elo, in the order of the names

    def spread_between(self, one: str, two: str) -> float:
        """The standard deviation of the difference of two ratings.

        It may be small where both are far from the anchor and little is known of that way.
        """
        a, b = (list(self).index(name) for name in (one, two))
        between = self.covariance
        return float(np.sqrt(max(between[a, a] + between[b, b] - 2 * between[a, b], 0.0)))


def rate(results: Results, anchor: str, prior_elo: float = PRIOR_ELO) -> Ratings:
    """Maximum-likelihood ratings (with draws) of all players, the anchor being 0.

    >>> ratings = rate({("a", "random"): (30, 0, 10), ("b", "a"): (30, 0, 10)}, "random")
    >>> [round(ratings[name].elo, -1) for name in ("random", "a", "b")]
    [0.0, 190.0, 380.0]
    """
    names = sorted({name for pair in results for name in pair})
    if anchor not in names:
        raise KeiseiError(f"the anchor {anchor!r} of the ratings has played no game")
    free = [name for name in names if name != anchor]
    number = {name: index for index, name in enumerate(free)}
    pairs = np.array([[number.get(a, -1), number.get(b, -1)] for a, b in results]).reshape(-1, 2)
    counts = np.array(list(results.values()), dtype=np.float64).reshape(-1, 3)
    estimate, covariance = _fit(pairs, counts, len(free), (prior_elo / _SCALE) ** -2)
    spread = _Z95 * np.sqrt(np.diag(covariance)) * _SCALE
    games = {
        name: int(sum(sum(score) for pair, score in results.items() if name in pair))
        for name in names
    }
    ratings = Ratings({anchor: Rating(anchor, 0.0, 0.0, 0.0, games[anchor])})
    ratings.covariance = np.zeros((len(names), len(names)))
    ratings.covariance[1:, 1:] = covariance[:-1, :-1] * _SCALE**2  # without the liking for draws
    for name, index in number.items():
        elo, width = float(estimate[index] * _SCALE), float(spread[index])
        ratings[name] = Rating(name, elo, elo - width, elo + width, games[name])
    return ratings


def _fit(
    pairs: npt.NDArray[np.intp], counts: npt.NDArray[np.float64], free: int, prior: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Newton's method on the log-likelihood; strengths as logarithms, log v last."""
    at, now = np.zeros(free + 1), -np.inf
    value, gradient, hessian = _likelihood(at, pairs, counts, prior)
    for _ in range(_STEPS):
        step = np.linalg.solve(-hessian, gradient)
        while True:  # a step too far is halved: the likelihood has one peak, but is not a parabola
            tried = _likelihood(at + step, pairs, counts, prior)
            if tried[0] >= value or np.abs(step).max() < 1e-9:
                break
            step /= 2
        at, now = at + step, value
        value, gradient, hessian = tried
        if abs(value - now) < 1e-10:
            break
    return at, np.linalg.inv(-hessian).astype(np.float64)


def _likelihood(
    at: npt.NDArray[np.float64],
    pairs: npt.NDArray[np.intp],
    counts: npt.NDArray[np.float64],
    prior: float,
) -> tuple[float, npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The log-likelihood with its prior, its gradient and its Hessian.

    Of each pair, the three results' logits are linear in (strengths, log v): a softmax regression.
    """
    size = len(at)
    logit_of = np.zeros((len(pairs), 3, size))  # win, draw, loss of the first
    for row, (first, second) in enumerate(pairs):
        for player, parts in ((first, (1, 0.5, 0)), (second, (0, 0.5, 1))):
            if player >= 0:  # the anchor's strength is 0
                logit_of[row, :, player] += parts
        logit_of[row, 1, -1] = 1
    logits = logit_of @ at
    logits -= logits.max(1, keepdims=True)
    chance = np.exp(logits)
    chance /= chance.sum(1, keepdims=True)
    games = counts.sum(1)
    # The liking for draws is held too, lightly, for pools without a draw.
    hold = np.full(size, prior)
    value = float((counts * np.log(chance)).sum() - (hold * at**2).sum() / 2)
    expected = games[:, None] * chance
    gradient = np.einsum("rk,rkp->p", counts - expected, logit_of) - hold * at
    mean = np.einsum("rk,rkp->rp", chance, logit_of)
    hessian = np.einsum("r,rp,rq->pq", games, mean, mean) - np.einsum(
        "rk,rkp,rkq->pq", expected, logit_of, logit_of
    )
    return value, gradient, hessian - np.diag(hold)


def ranked(ratings: Mapping[str, Rating]) -> list[Rating]:
    """The strongest first."""
    return sorted(ratings.values(), key=lambda rating: -rating.elo)


def next_pairs(
    ratings: Ratings,
    playable: Sequence[str],
    count: int,
    cost: Callable[[tuple[str, str]], float] = lambda pair: 1.0,
) -> list[tuple[str, str]]:
    """The pairs whose games tell most: the result is open, and their difference little known.

    A pair whose games cost more plays less, by the root of the cost: with a given time to spend,
    this makes the sum of the variances least (Neyman's allocation).

    >>> ratings = rate({("a", "b"): (9, 0, 9), ("b", "c"): (9, 0, 0)}, "a")
    >>> next_pairs(ratings, ["a", "b", "c"], 1)  # a and b are known to be alike
    [('a', 'c')]
    """

    def worth(pair: tuple[str, str]) -> float:
        one, two = (ratings[name].elo for name in pair)
        spread = ratings.spread_between(*pair) / _SCALE
        # The expected chance when the difference is uncertain (MacKay's approximation).
        logit = (one - two) / _SCALE / np.sqrt(1 + np.pi * spread**2 / 8)
        chance = 1 / (1 + np.exp(-logit))
        return float(chance * (1 - chance) * spread**2 / np.sqrt(cost(pair)))

    names = sorted(playable)
    pairs = [(a, b) for index, a in enumerate(names) for b in names[index + 1 :]]
    return sorted(pairs, key=worth, reverse=True)[:count]
