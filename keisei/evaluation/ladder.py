"""`keisei ladder`: rates the checkpoints of a run and reference players in one pool."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from keisei.errors import KeiseiError
from keisei.evaluation.contestants import open_player, resolve
from keisei.evaluation.evaluate import MatchSettings, open_pair, play_all
from keisei.evaluation.match import MatchResult
from keisei.evaluation.players import Player
from keisei.evaluation.ratings import PRIOR_ELO, Ratings, Score, next_pairs, rate
from keisei.files import replace_file
from keisei.pool import Pool, open_ray_pool
from keisei.training.checkpoint import CheckpointStore
from keisei.training.run import Run
from keisei.training.trained import load_trained

log = logging.getLogger(__name__)

Pair = tuple[str, str]

ANCHOR = "random"
FAIRY_STOCKFISH = Path("/usr/games/fairy-stockfish")
GPS_SHOGI = Path("/usr/games/gpsusi")
_FAIRY = f"usi:{FAIRY_STOCKFISH}"
_GPS = f"usi:{GPS_SHOGI},Thread=1,processes=1"
NEAR = 400.0  # Elo; from so far below the strongest reference, a stronger one is worth its games
# Weak to strong. A player that wins every game against the next one says nothing of the distance:
# the mixtures with random moves are the steps between.
REFERENCES = {
    ANCHOR: "random",
    "greedy, 75 % random": "greedy,random=75",
    "greedy, 50 % random": "greedy,random=50",
    "greedy, 25 % random": "greedy,random=25",
    "greedy": "greedy",
}
ENGINES = {  # where Fairy-Stockfish is installed (Debian: apt install fairy-stockfish)
    "fairy -20 d1, 50 % random": f"{_FAIRY},go=depth 1,Skill Level=-20,random=50",
    "fairy -20 d1": f"{_FAIRY},go=depth 1,Skill Level=-20",
    "fairy -10 d1": f"{_FAIRY},go=depth 1,Skill Level=-10",
    "fairy d1, 50 % random": f"{_FAIRY},go=depth 1,random=50",
    "fairy d1, 25 % random": f"{_FAIRY},go=depth 1,random=25",
    "fairy d1": f"{_FAIRY},go=depth 1",
}
# They join one by one, when somebody of the run comes near the strongest that is there.
STRONGER = {
    **{f"fairy d{depth}": f"{_FAIRY},go=depth {depth}" for depth in (2, 3, 4, 6, 8)},
    "fairy 20,000 nodes": f"{_FAIRY},go=nodes 20000",
    # It aborts when it is told a depth; loading takes it 100 MB and some seconds.
    "gpsshogi d4": f"{_GPS},go=byoyomi 10000,LimitDepth=4,BookDepth=0",
}


@dataclass
class Entry:
    """A player of the pool: how to open it and, of a checkpoint, what training went into it."""

    name: str
    contestant: str
    steps: int | None = None
    cpu_hours: float | None = None


@dataclass
class Ladder:
    """The pool's players and results; `ladder.json` in the run's folder keeps them."""

    entries: dict[str, Entry] = field(default_factory=dict)
    results: dict[tuple[str, str], Score] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Ladder:
        """What was stored; an empty ladder if there is none."""
        if not path.is_file():
            return cls()
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            entries = [Entry(**entry) for entry in data["players"]]
            results = {
                (r["first"], r["second"]): (r["wins"], r["draws"], r["losses"])
                for r in data["results"]
            }
        except (ValueError, KeyError, TypeError) as error:
            raise KeiseiError(
                f"{path} is no ladder ({error}): move it away to begin a new one"
            ) from error
        return cls({entry.name: entry for entry in entries}, results)

    def save(self, path: Path) -> None:
        """Write it, with the ratings, so that the old file or the new one is there."""
        data: dict[str, Any] = {
            "anchor": ANCHOR,
            "prior_elo": PRIOR_ELO,
            "players": [vars(entry) for entry in self.entries.values()],
            "results": [
                {"first": a, "second": b, "wins": w, "draws": d, "losses": lost}
                for (a, b), (w, d, lost) in self.results.items()
            ],
            "ratings": [vars(rating) for rating in self.ratings().values()],
        }
        replace_file(path, (json.dumps(data, indent=1) + "\n").encode())

    def add(self, result: MatchResult, first: str, second: str) -> None:
        """Count the games of a match between two of the pool."""
        key, score = (first, second), (result.wins, result.draws, result.losses)
        if (second, first) in self.results:
            key, score = (second, first), (result.losses, result.draws, result.wins)
        old = self.results.get(key, (0, 0, 0))
        self.results[key] = (old[0] + score[0], old[1] + score[1], old[2] + score[2])

    def ratings(self) -> Ratings:
        """The pool's ratings, the random player being 0; who has not played is not in it."""
        anchored = any(ANCHOR in pair for pair in self.results)
        return rate(self.results, ANCHOR) if anchored else Ratings()

    def games_between(self, one: str, two: str) -> int:
        """How many games two players have had with each other."""
        return sum(sum(self.results.get(pair, ())) for pair in ((one, two), (two, one)))

    def games_of(self, name: str) -> int:
        """How many games a player has had."""
        return sum(sum(score) for pair, score in self.results.items() if name in pair)


class Costs:
    """How long games take, by what was seen: seconds for each game of a pair."""

    def __init__(self) -> None:
        self._seen: dict[Pair, float] = {}

    def add(self, pair: Pair, result: MatchResult) -> None:
        """Learn from a match."""
        self._seen[pair] = self._seen[pair[::-1]] = result.seconds / len(result.games)

    def of(self, pair: Pair) -> float:
        """The last match's of this pair, or else the slower player's quickest games."""
        if pair in self._seen:
            return self._seen[pair]
        return max(self._quickest(name) for name in pair)

    def _quickest(self, name: str) -> float:
        own = [cost for (one, _), cost in self._seen.items() if one == name]
        return min(own, default=1.0)


@dataclass(frozen=True)
class LadderSettings:
    """How much to play, and with whom."""

    checkpoints: int = 8  # at most so many, spread over the run
    nodes: tuple[int, ...] = ()  # the newest one also plays by search with so many nodes
    games: int = 600
    minutes: float = 10.0
    batch: int = 16  # games of one pairing before the ratings are looked at again
    seed: int = 1


def find_entries(run: Run, settings: LadderSettings) -> list[Entry]:
    """The pool: references, and checkpoints spread over the run with the newest among them."""
    entries = [Entry(name, text) for name, text in REFERENCES.items()]
    if FAIRY_STOCKFISH.is_file():
        entries += [Entry(name, text) for name, text in ENGINES.items()]
    else:
        log.warning("%s is not installed: the ladder has no engine in it", FAIRY_STOCKFISH)
    paths = CheckpointStore(run.checkpoints_dir).paths()
    if not paths:
        raise KeiseiError(f"the run {run.folder} has no checkpoint yet; wait for its first one")
    for path in spread(paths, settings.checkpoints):
        trained = load_trained(path)
        entries.append(
            _entry(f"step {trained.steps:,}", path, "", trained.steps, trained.cpu_hours)
        )
    for nodes in settings.nodes:
        name = f"step {trained.steps:,}, {nodes} nodes"
        entries.append(_entry(name, path, f",nodes={nodes}", trained.steps, trained.cpu_hours))
    return entries


def find_stronger() -> list[Entry]:
    """References for strong networks, weak to strong: those that are installed."""
    installed = {"fairy": FAIRY_STOCKFISH.is_file(), "gpsshogi": GPS_SHOGI.is_file()}
    return [Entry(n, text) for n, text in STRONGER.items() if installed[n.partition(" ")[0]]]


def _entry(name: str, path: Path, how: str, steps: int, cpu_hours: float) -> Entry:
    return Entry(name, f"{path}{how}", steps, cpu_hours)


def spread(paths: Sequence[Path], count: int) -> list[Path]:
    """At most `count` of the paths, evenly spread, the last one among them.

    >>> [str(path) for path in spread([Path(c) for c in "abcdefg"], 3)]
    ['a', 'd', 'g']
    """
    if len(paths) <= count:
        return list(paths)
    if count == 1:
        return [paths[-1]]
    return [paths[round(i * (len(paths) - 1) / (count - 1))] for i in range(count)]


def climb(
    ladder: Ladder,
    entries: Iterable[Entry],
    settings: LadderSettings,
    path: Path,
    tell: Callable[[str], None] | None = None,
    ray: str | None = None,
    stronger: Sequence[Entry] = (),
) -> None:
    """Play among the entries until games or minutes are used up; store and tell every match.

    The `stronger` ones join when they are needed.
    """
    entries, reserve = list(entries), list(stronger)
    for entry in entries:
        ladder.entries[entry.name] = entry
    end = time.monotonic() + settings.minutes * 60
    begun: Counter[Pair] = Counter()  # games of each pair that are being played
    costs = Costs()
    left = settings.games

    def count_finished(wait_for_all: bool = False) -> None:
        for (one, two), result in pool.finished(wait_for_all):
            begun[one, two] -= len(result.games)
            if not result.played:
                raise KeiseiError(f"no game between {one} and {two} came to its end")
            ladder.add(result, one, two)
            costs.add((one, two), result)
            ladder.save(path)
            if tell:
                tell(f"{one} - {two}: +{result.wins} ={result.draws} -{result.losses}")

    with _open_pool([*entries, *reserve], settings, ray) as pool:
        while left >= 2 and time.monotonic() < end:
            if any(begun.values()) and not all(ladder.games_of(entry.name) for entry in entries):
                count_finished(wait_for_all=True)  # who has no result yet cannot be paired
            if reserve and _is_near_the_top(ladder, entries):
                entries.append(reserve.pop(0))
                ladder.entries[entries[-1].name] = entries[-1]
            for pair in _pairs_to_play(ladder, entries, costs):
                games = min(settings.batch, left - left % 2)
                if games < 2 or time.monotonic() >= end:
                    break
                # Every match of a pair goes on where its last one ended in the order of openings.
                before = ladder.games_between(*pair) + begun[pair] + begun[pair[::-1]]
                match = MatchSettings(
                    games, settings.seed, at_once=games, first_opening=(before + 1) // 2
                )
                pool.submit(pair, *pair, match)
                begun[pair] += games
                left -= games
                count_finished()
        count_finished(wait_for_all=True)


@contextmanager
def _open_pool(
    entries: list[Entry], settings: LadderSettings, ray: str | None
) -> Iterator[Pool[Pair, MatchResult]]:
    """Where the pairs play: here, by players that stay open, or on a cluster."""
    if ray:
        names = {entry.name: resolve(entry.contestant) for entry in entries}
        with open_ray_pool(ray, partial(_play_on_cluster, names)) as pool:
            yield pool
        return
    seeds = {entry.name: settings.seed + n for n, entry in enumerate(entries)}
    names = {entry.name: entry.contestant for entry in entries}
    with ExitStack() as open_players:

        @cache  # opened when it first plays, and kept
        def player(name: str) -> Player:
            return open_players.enter_context(open_player(names[name], seeds[name]))

        yield Pool(lambda one, two, match: play_all(player(one), player(two), match))


def _play_on_cluster(
    contestants: dict[str, str], one: str, two: str, settings: MatchSettings
) -> MatchResult:
    # Its players are made anew for every match: they must not play as they did in the last one.
    own = replace(settings, seed=settings.seed + 2 * settings.first_opening)
    with open_pair(contestants[one], contestants[two], own) as players:
        return play_all(*players, settings)


def _is_near_the_top(ladder: Ladder, entries: list[Entry]) -> bool:
    """Is somebody of the run nearly as strong as the strongest reference?"""
    ratings = ladder.ratings()
    rated = [entry for entry in entries if entry.name in ratings]
    ours = [ratings[entry.name].elo for entry in rated if entry.steps is not None]
    top = max((ratings[e.name].elo for e in rated if e.steps is None), default=0.0)
    return len(rated) == len(entries) and bool(ours) and max(ours) > top - NEAR


def _pairs_to_play(ladder: Ladder, entries: list[Entry], costs: Costs) -> list[Pair]:
    """At first everybody plays its neighbour in the list; then the pairs that tell most."""
    names = [entry.name for entry in entries]
    new = [name for name in names if not ladder.games_of(name)]
    if new:
        return [(a, b) for a, b in pairwise(names) if a in new or b in new]
    return next_pairs(ladder.ratings(), names, 4, costs.of)
