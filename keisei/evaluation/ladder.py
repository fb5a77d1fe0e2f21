"""`keisei ladder`: rates the checkpoints of a run on the yardstick, and stores the results."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keisei.errors import KeiseiError
from keisei.evaluation.contestants import resolve
from keisei.evaluation.evaluate import play_batch
from keisei.evaluation.match import MatchResult
from keisei.evaluation.pairs import Pentanomial
from keisei.evaluation.rate import Candidate, measure
from keisei.evaluation.ratings import Rating, rate
from keisei.evaluation.yardstick import ANCHOR, Yardstick, load_yardstick
from keisei.files import read_regular, replace_file
from keisei.processes.pool import open_process_pool, open_ray_pool
from keisei.runs.checkpoint import CheckpointStore
from keisei.runs.run import Run
from keisei.trained import load_trained

_MAX_FILE = 16 * 1024 * 1024  # bytes; a stranger may have made it


@dataclass
class Entry:
    """A player of the ladder: how to open it and, for a checkpoint, how much it was trained."""

    name: str
    contestant: str
    steps: int | None = None
    cpu_hours: float | None = None


@dataclass
class Ladder:
    """The players and their results, stored in `ladder.json` in the run's folder."""

    entries: dict[str, Entry] = field(default_factory=dict)
    results: dict[tuple[str, str], Pentanomial] = field(default_factory=dict)
    yardstick: Yardstick = field(default_factory=lambda: load_yardstick())

    @classmethod
    def load(cls, path: Path) -> Ladder:
        """The stored ladder, or an empty one."""
        if not path.is_file():
            return cls()
        try:
            data = json.loads(read_regular(path, _MAX_FILE))
            entries = [_read_entry(row) for row in data["players"]]
            results = {
                (_new_name(row["first"]), _new_name(row["second"])): _read_result(row)
                for row in data["results"]
            }
        except (ValueError, KeyError, TypeError, OSError, RecursionError) as error:
            raise KeiseiError(
                f"{path} is not a ladder ({error}): move it away to start a new one"
            ) from error
        return cls({entry.name: entry for entry in entries}, results)

    def save(self, path: Path) -> None:
        """Write it, with the ratings; the file is always the old one or the new one."""
        data: dict[str, Any] = {
            "anchor": ANCHOR,
            "yardstick": self.yardstick.made,
            "players": [vars(entry) for entry in self.entries.values()],
            "results": [
                {"first": a, "second": b, "pairs": result.counts}
                for (a, b), result in self.results.items()
            ],
            "ratings": [vars(rating) for rating in self.ratings().values()],
        }
        replace_file(path, (json.dumps(data, indent=1) + "\n").encode())

    def add(self, result: MatchResult, first: str, second: str) -> None:
        """Count the games of a match between two players."""
        key, pairs = (first, second), Pentanomial.of_points(result.pairs())
        if (second, first) in self.results:
            key, pairs = (second, first), pairs.reversed
        self.results[key] = self.results.get(key, Pentanomial()) + pairs

    def ratings(self) -> dict[str, Rating]:
        """Everyone's rating on the yardstick, whose references are taken as exact."""
        frozen = self.yardstick.ratings
        if not any(name in frozen for pair in self.results for name in pair):
            return {}
        return rate(self.results, frozen, self.yardstick.misfit)

    def results_of(self, name: str) -> dict[str, Pentanomial]:
        """A player's results, by opponent."""
        first = {b: result for (a, b), result in self.results.items() if a == name}
        second = {a: result.reversed for (a, b), result in self.results.items() if b == name}
        return {**first, **second}

    def games_of(self, name: str) -> int:
        """How many games a player has played."""
        return round(sum(result.games for result in self.results_of(name).values()))


def _new_name(name: str) -> str:
    """A reference is not called after the network that is shipped, which changes."""
    return name.replace("shipped", "hour-5247503", 1) if name.startswith("shipped") else name


def _read_entry(row: dict[str, Any]) -> Entry:
    names = {key: _new_name(row[key]) for key in ("name", "contestant")}
    return Entry(**{**row, **names})


def _read_result(row: dict[str, Any]) -> Pentanomial:
    if "pairs" in row:
        return Pentanomial(tuple(row["pairs"]))
    return Pentanomial.of_games(row["wins"], row["draws"], row["losses"])  # of an old ladder


@dataclass(frozen=True)
class LadderSettings:
    """How much to play, and which players."""

    checkpoints: int = 8  # at most, spread over the run
    nodes: tuple[int, ...] = ()  # rate them also with searches of these sizes
    games: int = 5000
    minutes: float = 10.0
    width: float = 100.0  # of each 95 % interval, if games and minutes allow it
    seed: int = 1
    processes: int = 10**6  # at most, and no more than cores


def find_entries(run: Run, settings: LadderSettings) -> list[Entry]:
    """The players to rate: checkpoints spread over the run, including the newest."""
    entries = []
    paths = CheckpointStore(run.checkpoints_dir).paths()
    if not paths:
        raise KeiseiError(f"the run {run.folder} has no checkpoint yet: wait for its first one")
    for path in spread(paths, settings.checkpoints):
        trained = load_trained(path)
        trained_by = (trained.steps, trained.cpu_hours)
        name = f"step {trained.steps:,}"
        entries.append(Entry(name, str(path), *trained_by))
        entries += [
            Entry(f"{name}, {nodes} nodes", f"{path},nodes={nodes}", *trained_by)
            for nodes in settings.nodes
        ]
    return entries


def spread(paths: Sequence[Path], count: int) -> list[Path]:
    """At most `count` of the paths, evenly spread and including the last one.

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
    entries: Sequence[Entry],
    settings: LadderSettings,
    path: Path,
    tell: Callable[[str], None] | None = None,
    ray: str | None = None,
) -> None:
    """Rate the entries until the intervals are narrow enough, or games or minutes run out.

    Every result is stored and reported as it comes.
    """
    end = time.monotonic() + settings.minutes * 60
    references = {reference.name: reference for reference in ladder.yardstick.references}
    for entry in entries:
        ladder.entries[entry.name] = entry
    candidates = []
    for entry in entries:
        met = {name: r for name, r in ladder.results_of(entry.name).items() if name in references}
        candidates.append(Candidate(entry.name, resolve(entry.contestant), settings.width, met))

    def count(name: str, reference: str, result: MatchResult) -> None:
        player = references[reference].player
        ladder.entries.setdefault(reference, Entry(reference, player))
        ladder.add(result, name, reference)
        ladder.save(path)
        if tell:
            tell(f"{name} - {reference}: +{result.wins} ={result.draws} -{result.losses}")

    here = open_process_pool(play_batch, settings.processes)
    with open_ray_pool(ray, play_batch) if ray else here as pool:
        measure(candidates, ladder.yardstick, pool, settings.seed, end, settings.games, count)
