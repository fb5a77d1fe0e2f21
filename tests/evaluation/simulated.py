"""Games between players whose strength is known, and a small yardstick."""

import numpy as np

from keisei.evaluation.statistics import score_of_elo
from keisei.evaluation.yardstick import Reference, Yardstick

# Three quick players, with about the ratings that they have on the real one.
QUICK = Yardstick(
    [
        Reference("random", "random", 0.0, 0.0, 100, 0.1),
        Reference("mix", "greedy,random=60", 650.0, 20.0, 100, 0.1),
        Reference("greedy", "greedy", 1450.0, 20.0, 100, 0.1),
    ],
    made="today",
)


def simulate_pairs(rng, elo, pairs, draws=0.3, one_sided=0.3):
    """The first player's points in pairs of games, at a difference of `elo`.

    Of `draws` and `one_sided` (openings that favour a colour), 1 is as much as there can be.
    """
    score = score_of_elo(elo)
    tilt = one_sided * min(score, 1 - score) * rng.choice([-1, 1], pairs)
    points = np.zeros(pairs)
    for colour in (1, -1):
        chance = score + colour * tilt
        drawn = draws * np.minimum(chance, 1 - chance) * 2
        luck = rng.random(pairs)
        points += np.where(luck < drawn, 0.5, luck < chance + drawn / 2)
    return points.tolist()
