"""A match against a player of one's own: all it takes is a name, and a choice among legal moves."""

import numpy as np
import numpy.typing as npt

import keisei
from keisei.evaluation.players import Turns
from keisei.shogi.actions import PROMOTE


class Promoter:
    """Promotes as soon as it can; otherwise it plays at random."""

    name = "promoter"

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def choose(self, turns: Turns) -> npt.NDArray[np.int64]:
        """For each of many positions, where its move stands in `turns.legal`."""
        liking = PROMOTE[turns.legal] + self._rng.random(len(turns.legal))
        best = [
            turns.segment(row).start + liking[turns.segment(row)].argmax()
            for row in range(len(turns))
        ]
        return np.array(best)


result = keisei.play_match("shipped", Promoter(seed=1), games=10)
print(result)
print(f"the network won {result.win_rate:.0%}; games ended by {dict(result.reasons)}")
