"""Plays the games between the reference players of the yardstick, and fits their ratings.

    python scripts/make_yardstick.py play games.jsonl   # until Ctrl-C; goes on where it was
    python scripts/make_yardstick.py fit games.jsonl    # writes keisei/evaluation/yardstick.json
    python scripts/make_yardstick.py draw docs/images/yardstick.png

Pairs with an open result play, neighbours most of all. Results are appended to the file batch by
batch. The pairings of HELD_OUT are played but not fitted: `fit` says whether the ratings predict
them.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import date
from itertools import pairwise
from pathlib import Path

import numpy as np

from keisei.evaluation.contestants import resolve
from keisei.evaluation.evaluate import MatchSettings, play_batch
from keisei.evaluation.match import MatchResult
from keisei.evaluation.pairs import Pentanomial
from keisei.evaluation.ratings import SCALE, rate
from keisei.evaluation.statistics import Z95, score_of_elo, summarise
from keisei.evaluation.yardstick import (
    ANCHOR,
    FILE,
    Reference,
    find_engine,
    identify,
    load_yardstick,
    placed,
)
from keisei.figures import save_figure
from keisei.processes.pool import open_process_pool

Pair = tuple[str, str]

BATCH = 16
NEAR = 450.0  # Elo; whose ratings are farther apart than this say little about each other
TIED = 208  # games that neighbours must have
ENOUGH = 240  # games of a pair; more are played only when nothing else is left to do
FAIRY = "usi:fairy-stockfish,Hash=1"
# So wide that it pulls nobody: of many players on a long chain, the usual prior would shorten it.
PRIOR = 1e5
OUTPUT = Path(__file__).parents[1] / "keisei" / "evaluation" / FILE
# Drawn (seed 16) from pairings of different kinds, not neighbours, with an open result.
HELD_OUT = {
    ("quick-131072", "greedy, 57 % random"),
    ("fairy -20", "greedy, 34 % random"),
    ("hour-5247503, 12 nodes", "fairy d1, 25 % random"),
}


def mixtures(name: str, player: str, guesses: Mapping[int, float]) -> dict[str, tuple[str, float]]:
    """A player with shares of random moves, in percent."""
    return {
        f"{name}, {share} % random" if share else name: (
            f"{player},random={share}" if share else player,
            guess,
        )
        for share, guess in guesses.items()
    }


# By name: the player, and a first guess of its rating, which says whom it meets at first.
POOL: dict[str, tuple[str, float]] = {
    ANCHOR: ("random", 0),
    **mixtures(
        "greedy", "greedy", {88: 140, 82: 240, 75: 350, 65: 480, 57: 600, 50: 740, 34: 930, 0: 1190}
    ),
    "fairy -20": (f"{FAIRY},go=depth 1,Skill Level=-20", 700),
    "fairy 0": (f"{FAIRY},go=depth 1,Skill Level=0", 2300),
    **mixtures(
        "fairy d1",
        f"{FAIRY},go=depth 1",
        {50: 1500, 42: 1680, 30: 1900, 25: 2000, 20: 2120, 15: 2240, 10: 2360, 5: 2490}
        | {2: 2590, 0: 2730},
    ),
    **{
        f"fairy d{depth}": (f"{FAIRY},go=depth {depth}", guess)
        for depth, guess in {2: 2870, 3: 2980, 4: 3120, 5: 3350, 6: 3510}.items()
    },
    "fairy 1000 nodes": (f"{FAIRY},go=nodes 1000", 3050),
    **mixtures("hour-5247503", "hour-5247503", {30: 1200, 15: 1450, 0: 1650}),
    "hour-5247503, 12 nodes": ("hour-5247503,nodes=12", 1930),
    **{
        name: (name, guess)
        for name, guess in {"quick-131072": 400, "quick-262144": 700, "quick-524288": 950}.items()
    },
}
# Seconds of a game that the slow ones take, before any is measured.
SLOW = {"12 nodes": 0.2, "d5": 0.5, "d6": 1.0}


class Games:
    """The results of all pairs, and what a game of each pair costs; a file keeps them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results: dict[Pair, Pentanomial] = {}
        self.batches: Counter[Pair] = Counter()
        self.seconds: dict[Pair, float] = {}
        for line in path.read_text().splitlines() if path.is_file() else ():
            row = json.loads(line)
            self._count((row["first"], row["second"]), row["pairs"], row["seconds"])

    def _count(self, pair: Pair, pairs: Iterable[float], seconds: float) -> None:
        if pair[::-1] in self.results:
            pair, pairs = pair[::-1], tuple(pairs)[::-1]
        self.results[pair] = self.results.get(pair, Pentanomial()) + Pentanomial(tuple(pairs))
        self.batches[pair] += 1
        self.seconds[pair] = min(seconds / BATCH, self.seconds.get(pair, np.inf))

    def add(self, pair: Pair, result: MatchResult) -> None:
        """Count a batch."""
        pairs = Pentanomial.of_points(result.pairs()).counts
        row = {
            "first": pair[0],
            "second": pair[1],
            "pairs": pairs,
            "reasons": dict(result.reasons),
            "failures": dict(result.failures),
            "different": result.different_games,
            "moves": sum(len(game.moves) for game in result.games),
            "seconds": round(result.seconds, 2),
        }
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        self._count(pair, pairs, result.seconds)

    def of(self, one: str, two: str) -> Pentanomial:
        """The result of two players, from the first one's side."""
        found = self.results.get((two, one))
        return found.reversed if found else self.results.get((one, two), Pentanomial())

    def cost(self, one: str, two: str) -> float:
        """Seconds of a game."""
        guess = 0.2 + sum(cost for end, cost in SLOW.items() for n in (one, two) if n.endswith(end))
        return self.seconds.get((one, two), self.seconds.get((two, one), guess))

    def quickest(self, name: str) -> float:
        """Seconds of a game against the opponent with whom it is quickest."""
        return min((s for pair, s in self.seconds.items() if name in pair), default=1.0)


def estimate(games: Games) -> dict[str, float]:
    """Ratings from the games so far; the guess for those with few."""
    known = {pair: result for pair, result in games.results.items() if set(pair) <= set(POOL)}
    ratings = (
        rate(known, {ANCHOR: 0.0}, prior_elo=PRIOR) if any(ANCHOR in pair for pair in known) else {}
    )
    elo = {name: guess for name, (_, guess) in POOL.items()}
    return elo | {name: r.elo for name, r in ratings.items() if r.games >= 32 and r.width < 900}


def choose(games: Games, begun: Counter[Pair]) -> Pair:
    """The pair that plays next."""
    elo = estimate(games)
    order = sorted(POOL, key=lambda name: elo[name])

    def worth(at: int, to: int) -> float:
        one, two = order[at], order[to]
        result, gap = games.of(one, two), elo[two] - elo[one]
        played = result.games + BATCH * (begun[one, two] + begun[two, one])
        if to - at > 1 and gap > NEAR:
            return 0.0
        # By the result itself, too: strength is not one number.
        if played >= 64 and result.pairs and not 0.05 < result.score < 0.95:
            return 0.0
        tie = to - at == 1 or not HELD_OUT.isdisjoint({(one, two), (two, one)})
        near = (50.0 if tie and played < TIED else 1.0) * score_of_elo(gap) * score_of_elo(-gap)
        rest = 0.05 if played >= ENOUGH else 1.0
        return float(rest * near / (played + BATCH) / max(games.cost(one, two), 0.1) ** 0.4)

    pairs = [(at, to) for at in range(len(order)) for to in range(at + 1, len(order))]
    at, to = max(pairs, key=lambda pair: worth(*pair))
    return order[at], order[to]


def play(path: Path, hours: float) -> None:
    """Play, two games of each opening, until the time is over."""
    games = Games(path)
    begun: Counter[Pair] = Counter()
    end = time.monotonic() + hours * 3600
    match = MatchSettings(at_once=BATCH, seed=1)

    def count(finished: Iterable[tuple[Pair, MatchResult]]) -> None:
        for pair, result in finished:
            begun[pair] -= 1
            games.add(pair, result)

    with open_process_pool(play_batch) as pool:
        while time.monotonic() < end:
            one, two = choose(games, begun)
            done = sum(n[p] for n in (games.batches, begun) for p in ((one, two), (two, one)))
            begun[one, two] += 1
            players = (player_here(one), player_here(two))
            pool.submit((one, two), *players, match, done * BATCH, BATCH)
            count(pool.finished())
        count(pool.finished(wait_for_all=True))


def player_here(name: str) -> str:
    """A player of the pool as it is called on this machine."""
    reference = Reference(name, POOL[name][0], 0, 0, 0, 0)
    return resolve(placed(reference, find_engine(reference.engine or "") or "").player)


def predictions(results: Mapping[Pair, Pentanomial], misfit: float) -> list[tuple[Pair, float]]:
    """How far off every pairing is from what the others predict, in standard deviations.

    Each is left out in turn: the rating of the first is fitted by all other games, the second being
    0. `misfit` counts twice: in what the others say, and in this pairing itself.
    """
    found = []
    for (one, two), result in results.items():
        others = {pair: other for pair, other in results.items() if pair != (one, two)}
        if result.games < 3 * BATCH or not 0.05 < result.score < 0.95:
            continue
        rating = rate(others, {two: 0.0}, misfit, prior_elo=PRIOR)[one]
        expected = score_of_elo(rating.elo)
        slope = expected * (1 - expected) / SCALE  # of the score, for each Elo
        doubt = (rating.width / 2 / Z95) ** 2 + misfit**2
        variance = result.variance(expected) / result.pairs + slope**2 * doubt
        found.append(((one, two), float((result.score - expected) / np.sqrt(variance))))
    return found


def find_misfit(results: Mapping[Pair, Pentanomial]) -> float:
    """By how many Elo results stray from what ratings say: so that predictions are as sure as said.

    The least for which the mean square of what they are off is 1.
    """
    for misfit in range(0, 200, 5):
        if np.mean([off**2 for _, off in predictions(results, misfit)]) <= 1:
            return float(misfit)
    raise SystemExit("results have little to do with ratings: look at the games")


def fit(path: Path) -> None:
    """Fit the ratings, say how well they fit, and write the yardstick."""
    games = Games(path)
    fitted = {
        (one, two): result
        for (one, two), result in games.results.items()
        if {one, two} <= set(POOL) and {(one, two), (two, one)}.isdisjoint(HELD_OUT)
    }
    misfit = find_misfit(fitted)
    ratings = rate(fitted, {ANCHOR: 0.0}, misfit, prior_elo=PRIOR)
    references = [
        Reference(
            name,
            POOL[name][0],
            round(rating.elo, 1),
            round(rating.width / 2, 1),
            rating.games,
            round(games.quickest(name), 3),
        )
        for name, rating in sorted(ratings.items(), key=lambda item: item[1].elo)
    ]
    off = predictions(fitted, misfit)
    held = np.mean([abs(z) < Z95 for _, z in off])
    print(f"of {len(off)} pairings, {held:.0%} are in the 95 % interval that the others predict")
    for pair, z in sorted(off, key=lambda one: -abs(one[1]))[:8]:
        print(f"  {z:+.1f} standard deviations: {' - '.join(pair)}, {fitted[pair]}")
    report(games, references, misfit)
    data = {
        "made": date.today().isoformat(),
        "command": "scripts/make_yardstick.py",
        "anchor": ANCHOR,
        "versions": {name: identify(find_engine(name) or name) for name in engines(references)},
        "misfit": round(misfit, 1),
        "references": [asdict(reference) for reference in references],
        "results": [
            {"first": one, "second": two, "pairs": result.counts}
            for (one, two), result in sorted(fitted.items())
        ],
    }
    text = json.dumps(data, indent=1)
    OUTPUT.write_text(text + "\n")


def engines(references: Iterable[Reference]) -> list[str]:
    return sorted({reference.engine for reference in references if reference.engine})


def report(games: Games, references: list[Reference], misfit: float) -> None:
    """Gaps, ties between neighbours, and what became of the held-out pairings."""
    elo = {reference.name: reference.elo for reference in references}
    total = sum(result.games for result in games.results.values())
    print(f"{total:.0f} games of {len(games.results)} pairings; misfit {misfit:.0f} Elo")
    for one, two in pairwise(references):
        result = games.of(two.name, one.name)
        score = f"{result.score:.0%}" if result.pairs else "-"
        print(
            f"{two.name:28} {two.elo:6.0f} ±{two.error:3.0f}  gap {two.elo - one.elo:4.0f} to "
            f"{one.name:28} {result.games:4.0f} games {score:>5}  {two.games:5} games in all, "
            f"{two.seconds:.2f} s"
        )
    for first, second in sorted(HELD_OUT):
        result, gap = games.of(first, second), elo[first] - elo[second]
        if result.pairs:
            seen = summarise(result)
            low, high = (score_of_elo(gap + sign * 1.96 * misfit) for sign in (-1, 1))
            print(
                f"held out: {first} - {second}: {result.games:.0f} games, {seen.score:.1%} "
                f"({seen.low:.1%} to {seen.high:.1%}); ratings say "
                f"{score_of_elo(gap):.1%} ({low:.1%} to {high:.1%})"
            )


COLUMNS = {  # by what the player's name begins with
    "random and greedy": ("random", "greedy"),
    "our networks": ("hour", "quick"),
    "Fairy-Stockfish": ("fairy",),
}


def draw(path: Path) -> None:
    """The references on the scale, a column for each kind."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8), dpi=100, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    references = load_yardstick().references
    step = references[-1].elo / 55  # of the labels, which must not overlap
    for at, (title, beginnings) in enumerate(COLUMNS.items()):
        below = -np.inf
        axes.text(at, references[-1].elo + 6 * step, title, fontsize=12, fontweight="bold")
        for reference in references:
            if reference.name.startswith(beginnings):
                below = max(reference.elo, below + step)
                color = f"C{at}"
                axes.errorbar(
                    at, reference.elo, reference.error, color=color, marker="o", ms=4, lw=1
                )
                axes.plot([at, at + 0.08], [reference.elo, below], color=color, lw=0.7)
                axes.text(at + 0.1, below, reference.name, va="center", fontsize=8)
    axes.set_xlim(-0.15, len(COLUMNS))
    axes.set_xticks([])
    axes.set_ylabel("Elo above the random player, with the 95 % interval", fontsize=11)
    axes.grid(axis="y", color="#e4e4e4", lw=0.8)
    axes.spines[:].set_visible(False)
    save_figure(figure, path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["play", "fit", "draw"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--hours", type=float, default=24)
    options = parser.parse_args()
    if options.what == "play":
        os.nice(19)
        play(options.file, options.hours)
    elif options.what == "fit":
        fit(options.file)
    else:
        draw(options.file)
