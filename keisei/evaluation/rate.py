"""Rating players on the yardstick: they play the references against which the result is open.

It takes rounds: first a few games against references all over the scale, then against the nearest,
then more against all whose result is open, until the interval is narrow enough. The pairings of a
round depend only on the rounds before it, so a rating can be repeated, whatever the number of
processes.

Strength is not one number: a player may look 200 Elo stronger to one opponent than to another. So
what an opponent says counts by how open its result is, which falls smoothly to nothing as the
distance grows, and not by how many games happened to be played with it. Otherwise a rating would
depend on where the first games led it.
"""

from __future__ import annotations

import math
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

FIRST_OPPONENTS, FIRST_GAMES = 5, 2  # the round that finds the place on the scale
NEAR, NEAR_GAMES = 6, 4  # the round after it, or the first one if the place is known roughly
ROUND, LEAST = 96, 8  # games of each later round, and the least with an opponent in it
OPEN = 0.1  # a result is open if both sides can expect at least this score
MOST_GAMES = 2000
SEEDS = 1_000_000  # from one reference to the next; a match uses those that follow its own
_OVERHEAD = 0.2  # seconds that a game takes with any player
_PASSES = 4
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
        met = {(_ME, r): pairs for r, pairs in self.results.items() if r in ratings and pairs.pairs}
        if not met:
            return Rating(self.name, 0.0, -np.inf, np.inf, 0)
        rating = rate(met, ratings, yardstick.misfit)[_ME]
        for _ in range(_PASSES):  # the weights depend on the rating, and the rating on the weights
            near = shares_of_games(rating.elo, yardstick.references)
            wanted = {(_ME, r.name): share * self.games for r, share in near}
            # Within limits, so that the first few games cannot lead it astray.
            weights = {p: min(max(wanted.get(p, 0) / met[p].games, 0.05), 2.0) for p in met}
            rating = rate(met, ratings, yardstick.misfit, weights=weights)[_ME]
        return replace(rating, name=self.name)

    def add(self, reference: str, result: Pentanomial) -> None:
        """Count more games."""
        self.results[reference] = self.results.get(reference, Pentanomial()) + result

    def is_done(self, yardstick: Yardstick) -> bool:
        """Is the interval narrow enough, or would more games not help?"""
        rating = self.rating(yardstick)
        return (
            rating.width <= self.goal
            or self.games >= MOST_GAMES
            or (self.games >= ROUND and off_scale(rating, yardstick) is not None)
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
    elo = candidate.rating(yardstick).elo if candidate.games else candidate.guess
    if elo is None:
        return [(reference, FIRST_GAMES) for reference in _spread(yardstick.playable)]
    if candidate.games < NEAR * NEAR_GAMES:
        near = _nearest(yardstick.playable, elo, NEAR)
        return [(reference, NEAR_GAMES) for reference in near]
    chosen = shares_of_games(elo, yardstick.playable)
    played = [candidate.results.get(r.name, Pentanomial()).games for r, _ in chosen]
    total = sum(played) + ROUND
    lacks = [share * total - has for (_, share), has in zip(chosen, played, strict=True)]
    games = [LEAST * max(round(lack / LEAST), 0) for lack in lacks]
    if not any(games):
        games[int(np.argmax(lacks))] = LEAST
    return [(r, count) for (r, _), count in zip(chosen, games, strict=True) if count]


def shares_of_games(elo: float, references: Sequence[Reference]) -> list[tuple[Reference, float]]:
    """Whom a player of this strength should meet, and in which share of its games; most first.

    The more open a result is, the more it says, and slow opponents get fewer games.
    """

    def worth(reference: Reference) -> float:
        chance = score_of_elo(elo - reference.elo)
        openness = max(chance * (1 - chance) - OPEN * (1 - OPEN), 0.0)
        return openness / math.sqrt(_OVERHEAD + reference.seconds)

    worths = [(r, worth(r)) for r in references if worth(r)]
    worths = worths or [(r, 1.0) for r in _nearest(references, elo, 3)]
    total = sum(much for _, much in worths)
    return sorted(((r, much / total) for r, much in worths), key=lambda one: -one[1])


def _nearest(references: Sequence[Reference], elo: float, count: int) -> list[Reference]:
    return sorted(references, key=lambda r: abs(r.elo - elo))[:count]


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
