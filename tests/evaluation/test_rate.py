"""Rating on the yardstick, with players whose strength is known because they are simulated."""

from dataclasses import dataclass

import numpy as np
import pytest

from keisei.evaluation.rate import Candidate, measure
from keisei.evaluation.statistics import score_of_elo
from keisei.evaluation.yardstick import Reference, Yardstick
from keisei.pool import Pool
from tests.evaluation.simulated import simulate_pairs


@dataclass
class Simulated:
    """What a match of simulated players came to."""

    points: list[float]

    @property
    def played(self):
        return 2 * len(self.points)

    def pairs(self):
        return self.points


def yardstick_of(elos, misfit=0.0):
    names = [f"{elo:g}" for elo in elos]
    references = [
        Reference(name, name, elo, 0, 1000, 0.1 + elo / 2000)
        for name, elo in zip(names, elos, strict=True)
    ]
    return Yardstick(references, misfit)


def simulated_pool(rng, misfit=0.0):
    """Players' names are their strengths; results stray from them by `misfit` Elo."""
    strays = {}

    def play(first, second, settings, begin):
        stray = strays.setdefault((first, second), misfit * rng.standard_normal())
        gap = float(first) - float(second) + stray
        return Simulated(simulate_pairs(rng, gap, settings.batch // 2))

    return Pool(play)


@pytest.mark.parametrize("misfit", [0.0, 30.0])
def test_over_200_players_the_intervals_hold_the_truth_as_often_as_they_say(misfit):
    rng = np.random.default_rng(1)
    yardstick = yardstick_of(np.arange(0, 4600, 120.0), misfit)
    held, widths = [], []
    for elo in rng.uniform(50, 4400, 200):
        player = Candidate("me", str(elo))
        measure([player], yardstick, simulated_pool(rng, misfit))
        rating = player.rating(yardstick)
        held.append(rating.low <= elo <= rating.high)
        widths.append(rating.width)
    assert 0.93 <= np.mean(held) <= 0.97
    assert max(widths) <= 80
