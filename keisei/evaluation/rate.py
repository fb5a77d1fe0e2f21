"""Rating players on the yardstick: they play the references against which the result is open.

It takes rounds: first a few games against references all over the scale, then equally many against
each of those close in strength, until the interval is narrow enough. The pairings of a round depend
only on the rounds before it, so a rating can be repeated, whatever the number of processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from keisei.errors import KeiseiError
from keisei.evaluation.evaluate import MatchSettings
from keisei.evaluation.match import MatchResult
from keisei.evaluation.pairs import Pentanomial, join
from keisei.evaluation.ratings import Rating, rate
from keisei.evaluation.statistics import score_of_elo
from keisei.evaluation.yardstick import Reference, Yardstick
from keisei.processes.pool import Pool

FIRST_OPPONENTS, FIRST_GAMES = 10, 4  # the round that finds the place on the scale
NEAR_GUESS = 6  # opponents of the first round, if the place is known roughly
OPPONENTS, GAMES = 8, 16  # of each later round: at most so many, and games with each
OPEN = 0.1  # a result is open if both sides can expect at least this score
MOST_GAMES = 2000
SEEDS = 1_000_000  # from one reference to the next; a match uses those that follow its own
_OVERHEAD = 0.2  # seconds that a game takes with any player
_ME = "?"  # while rating: a reference may have the same name

Task = tuple[str, str]  # the player and the reference


@dataclass
class Candidate:
    """A player to rate until the 95 % interval is `goal` Elo wide, and its results so far.

    With a `guess` of its Elo it begins against references near there.
    """

    name: str
    player: str
    goal: float = 80.0
    results: dict[str, Pentanomial] = field(default_factory=dict)  # by reference
    guess: float | None = None

    @property
    def games(self) -> int:
        """How many games it has played."""
        return round(join(list(self.results.values())).games)

    def rating(self, yardstick: Yardstick) -> Rating:
        """Its rating from games against references, whose ratings are taken as exact."""
        ratings = yardstick.ratings
        met = {(_ME, r): pairs for r, pairs in self.results.items() if r in ratings}
        if not any(pairs.pairs for pairs in met.values()):
            return Rating(self.name, 0.0, -np.inf, np.inf, 0)
        return replace(rate(met, ratings, yardstick.misfit)[_ME], name=self.name)

    def add(self, reference: str, result: Pentanomial) -> None:
        """Count more games."""
        self.results[reference] = self.results.get(reference, Pentanomial()) + result

    def is_done(self, yardstick: Yardstick) -> bool:
        """Is the interval narrow enough, or would more games not help?"""
        rating = self.rating(yardstick)
        return (
            rating.width <= self.goal
            or self.games >= MOST_GAMES
            or (self.games >= 6 * GAMES and off_scale(rating, yardstick) is not None)
        )


def off_scale(rating: Rating, yardstick: Yardstick) -> str | None:
    """Which end of the yardstick it is so far beyond that no result is open; None if neither."""
    here = yardstick.playable
    weakest, strongest = here[0], here[-1]
    if score_of_elo(strongest.elo - rating.elo) < OPEN:
        return f"stronger than {strongest.name}, the strongest reference here"
    if score_of_elo(rating.elo - weakest.elo) < OPEN:
        return f"weaker than {weakest.name}, the weakest reference"
    return None


def next_opponents(candidate: Candidate, yardstick: Yardstick) -> list[tuple[Reference, int]]:
    """Its opponents in the next round, with the number of games."""
    if not candidate.games:
        if candidate.guess is None:
            first = _spread(yardstick.playable)
        else:
            first = _nearest(yardstick, candidate.guess, NEAR_GUESS)
        return [(reference, FIRST_GAMES) for reference in first]
    rating = candidate.rating(yardstick)
    chosen = _open_results(rating, yardstick)
    met = [candidate.results.get(r.name, Pentanomial()).games for r in chosen]
    # Equally many with each. Strength is not one number: with other shares of the opponents the
    # rating would be another, by more than luck.
    return [(r, GAMES) for r, has in zip(chosen, met, strict=True) if has < min(met) + GAMES]


def _open_results(rating: Rating, yardstick: Yardstick) -> list[Reference]:
    """The references that say most about the rating for the time that their games take."""

    def worth(reference: Reference) -> float:
        chance = score_of_elo(rating.elo - reference.elo)
        return chance * (1 - chance) / np.sqrt(_OVERHEAD + reference.seconds)

    near = [
        reference
        for reference in yardstick.playable
        if OPEN < score_of_elo(rating.elo - reference.elo) < 1 - OPEN
    ]
    near = near or _nearest(yardstick, rating.elo, 3)
    return sorted(near, key=worth, reverse=True)[:OPPONENTS]


def _nearest(yardstick: Yardstick, elo: float, count: int) -> list[Reference]:
    return sorted(yardstick.playable, key=lambda r: abs(r.elo - elo))[:count]


def _spread(references: Sequence[Reference]) -> list[Reference]:
    """Some references over the whole scale, preferably quick ones."""
    low, high = references[0].elo, references[-1].elo
    step = (high - low) / FIRST_OPPONENTS or 1.0
    boxes: dict[int, Reference] = {}
    for reference in sorted(references, key=lambda reference: -reference.seconds):
        boxes[min(int((reference.elo - low) / step), FIRST_OPPONENTS - 1)] = reference
    return [boxes[box] for box in sorted(boxes)]


def measure(
    candidates: Sequence[Candidate],
    yardstick: Yardstick,
    pool: Pool[Task, MatchResult],
    seed: int = 1,
    until: float = np.inf,
    games_left: float = np.inf,
    tell: Callable[[str, str, MatchResult], None] | None = None,
) -> None:
    """Play rounds until every interval is narrow enough, or no games are left.

    No game begins after `until`, by the monotonic clock.
    """
    players = {candidate.name: candidate for candidate in candidates}

    def count(finished: Iterable[tuple[Task, MatchResult]]) -> None:
        for (name, reference), result in finished:
            if not result.played:
                raise KeiseiError(f"no game between {name} and {reference} came to its end")
            players[name].add(reference, Pentanomial.of_points(result.pairs()))
            if tell:
                tell(name, reference, result)

    while todo := [c for c in candidates if not c.is_done(yardstick)]:
        tasks = [(c, r, games) for c in todo for r, games in next_opponents(c, yardstick)]
        for candidate, reference, games in sorted(tasks, key=lambda task: -task[1].seconds):
            games = int(min(games, games_left // 2 * 2))
            games_left -= games
            if time.monotonic() >= until or not games:
                count(pool.finished(wait_for_all=True))
                return
            # The next games of one long match between the two. Each reference has its own openings
            # and random numbers: luck that all matches share would not be in the interval.
            own = seed + SEEDS * list(yardstick.ratings).index(reference.name)
            match = MatchSettings(seed=own, at_once=games)
            begin = 2 * int(candidate.results.get(reference.name, Pentanomial()).pairs)
            key = candidate.name, reference.name
            pool.submit(key, candidate.player, reference.player, match, begin, games)
            count(pool.finished())
        count(pool.finished(wait_for_all=True))
