"""Do ratings hold what their intervals promise? One player is rated again and again.

    python scripts/rate_again.py PLAYER [--times 21] [--width 80]

Each rating has another seed, so other openings and other random moves. Of two ratings one after the
other, the difference should be less than their intervals say in 95 % of all cases.
"""

from __future__ import annotations

import argparse
import math
import time
from itertools import pairwise

from keisei.evaluation.contestants import resolve
from keisei.evaluation.evaluate import play_batch
from keisei.evaluation.rate import Candidate, measure
from keisei.evaluation.ratings import Rating
from keisei.evaluation.yardstick import load_yardstick
from keisei.processes.pool import open_process_pool

SEED_STEP = 10_000  # a match takes the seeds that follow its own, two for each of its games


def is_close(one: Rating, two: Rating) -> bool:
    """Do they differ by less than the 95 % interval of their difference?"""
    return abs(one.elo - two.elo) < math.hypot(one.width, two.width) / 2


def main() -> None:
    """Rate, print each rating beside the one before, and count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("player")
    parser.add_argument("--times", type=int, default=21)
    parser.add_argument("--width", type=float, default=80.0, help="of the intervals, in Elo")
    asked = parser.parse_args()
    yardstick, player = load_yardstick(), resolve(asked.player)
    ratings: list[Rating] = []
    with open_process_pool(play_batch) as pool:
        for number in range(1, asked.times + 1):
            begin, candidate = time.monotonic(), Candidate(asked.player, player, asked.width)
            measure([candidate], yardstick, pool, seed=number * SEED_STEP)
            ratings.append(now := candidate.rating(yardstick))
            said = f"{now.elo:6.0f}  {now.low:.0f} to {now.high:.0f}  {now.games} games"
            close = "" if number == 1 else "close" if is_close(*ratings[-2:]) else "apart"
            print(f"{number:3}  {said}  {time.monotonic() - begin:.0f} s  {close}", flush=True)
    held = [is_close(one, two) for one, two in pairwise(ratings)]
    print(f"{sum(held)} of {len(held)} differences are less than the intervals say")


if __name__ == "__main__":
    main()
