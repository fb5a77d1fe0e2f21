"""`keisei evaluate`: a match between any two players, and what it says."""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from keisei.errors import KeiseiError
from keisei.evaluation.contestants import open_player, resolve
from keisei.evaluation.match import MatchResult, play_match
from keisei.evaluation.openings import load_openings
from keisei.evaluation.players import Player
from keisei.evaluation.statistics import Sprt, Summary, summarise
from keisei.pool import open_ray_pool
from keisei.shogi.records import write_record
from keisei.shogi.rules import DEFAULT_MOVE_LIMIT


@dataclass(frozen=True)
class MatchSettings:
    """How to play; `at_once` games run side by side, in one batch for a network.

    The seed says in which order openings come, `first_opening` where in it the match begins.
    """

    games: int = 100
    seed: int = 1
    at_once: int = 32
    move_limit: int = DEFAULT_MOVE_LIMIT
    sprt: Sprt | None = None
    first_opening: int = 0

    def __post_init__(self) -> None:
        for name in ("games", "at_once"):
            if getattr(self, name) < 2 or getattr(self, name) % 2:
                raise KeiseiError(
                    f"{name} is {getattr(self, name)}: it must be even and at least 2, "
                    "because every opening is played with both colours"
                )


def evaluate(
    first: str,
    second: str,
    settings: MatchSettings,
    save: Path | None = None,
    suffix: str = "kif",
    json_file: Path | None = None,
    ray: str | None = None,
) -> MatchResult:
    """Play a match between two players by name, show it, and keep what was asked for."""
    console = Console()
    if suffix not in ("kif", "kifu", "csa"):
        raise KeiseiError(f"games are saved as kif, kifu or csa, not {suffix!r}")
    for folder in (save, json_file and json_file.parent):
        if folder:  # where it cannot be made, nobody wants to know after the match
            folder.mkdir(parents=True, exist_ok=True)
    result, stopped = None, False
    try:
        with closing(_play(first, second, settings, ray)) as course:
            for result in course:
                console.print(str(result), highlight=False, markup=False)
    except KeyboardInterrupt:
        stopped = True
    if result is None:
        raise KeyboardInterrupt  # before anything was played
    if stopped:
        console.print(f"stopped after {len(result.games)} of {settings.games} games")
    show(result, settings.sprt, console)
    if json_file:
        json_file.write_text(json.dumps(as_data(result), indent=2) + "\n")
    if save:
        if suffix == "kif" and not _is_in_cp932(result.first + result.second):
            suffix = "kifu"
            console.print("games are saved as .kifu: .kif lacks a character of the names")
        save_games(result, save, suffix)
    if stopped:
        raise KeyboardInterrupt
    return result


def _play(
    first: str, second: str, settings: MatchSettings, ray: str | None
) -> Generator[MatchResult]:
    if ray:
        yield from play_on_cluster(first, second, settings, ray)
    else:
        with open_pair(first, second, settings) as (one, two):
            yield from play_in_batches(one, two, settings)


@contextmanager
def open_pair(first: str, second: str, settings: MatchSettings) -> Iterator[tuple[Player, Player]]:
    """Two players by name; namesakes are told apart."""
    limit = settings.move_limit
    with (
        open_player(first, settings.seed, limit) as one,
        open_player(second, settings.seed + 1, limit) as two,
    ):
        if one.name == two.name:
            two.name += " (2)"
        yield one, two


def play_in_batches(one: Player, two: Player, settings: MatchSettings) -> Iterator[MatchResult]:
    """Play until all games are played or the test is decided; what there is after each batch."""
    result = MatchResult(one.name, two.name)
    while len(result.games) < settings.games and not _is_decided(result, settings):
        result.extend(_play_batch(one, two, settings, len(result.games)))
        yield result


def play_all(one: Player, two: Player, settings: MatchSettings) -> MatchResult:
    """The whole match."""
    *_, result = play_in_batches(one, two, settings)
    return result


def _play_batch(one: Player, two: Player, settings: MatchSettings, begin: int) -> MatchResult:
    return play_match(
        one,
        two,
        min(settings.at_once, settings.games - begin),
        seed=settings.seed + begin,
        move_limit=settings.move_limit,
        openings=load_openings(settings.seed, settings.first_opening),
        first_number=begin,
    )


def _is_decided(result: MatchResult, settings: MatchSettings) -> bool:
    sprt = settings.sprt
    return sprt is not None and sprt.verdict(result.pairs()) != "undecided"


def play_on_cluster(
    first: str, second: str, settings: MatchSettings, address: str
) -> Iterator[MatchResult]:
    """The same over a Ray cluster: every batch is played by players of its own, on one CPU."""
    first, second = resolve(first), resolve(second)
    result: MatchResult | None = None
    with open_ray_pool(address, _open_and_play) as pool:
        for begin in range(0, settings.games, settings.at_once):
            pool.submit(begin, first, second, settings, begin)
        for _, batch in pool.finished(wait_for_all=True):
            result = result or MatchResult(batch.first, batch.second)
            result.extend(batch)
            result.games.sort(key=lambda game: game.number)
            yield result
            if _is_decided(result, settings):
                break


def _open_and_play(first: str, second: str, settings: MatchSettings, begin: int) -> MatchResult:
    with open_pair(first, second, replace(settings, seed=settings.seed + 2 * begin)) as players:
        return _play_batch(*players, settings, begin)


def save_games(result: MatchResult, folder: Path, suffix: str) -> None:
    """Write each game as a record with both names."""
    for game in result.games:
        write_record(result.record(game), folder / f"{game.number + 1:04d}.{suffix}")


def _is_in_cp932(text: str) -> bool:
    """Can `.kif` write it?"""
    try:
        text.encode("cp932")
    except UnicodeEncodeError:
        return False
    return True


def as_data(result: MatchResult) -> dict[str, object]:
    """The match as plain data."""
    data: dict[str, object] = {
        "first": result.first,
        "second": result.second,
        "wins": result.wins,
        "draws": result.draws,
        "losses": result.losses,
        "different_games": result.different_games,
        "reasons": dict(result.reasons),
        "broken_off_by": dict(result.failures),
    }
    if result.played:
        match = summarise(result.wins, result.draws, result.losses)
        finite = math.isfinite(match.elo)
        data["score"] = match.score
        data["score_interval"] = [match.low, match.high]
        data["elo"] = match.elo if finite else None
        data["superiority"] = match.superiority
    return data


def show(result: MatchResult, sprt: Sprt | None, console: Console) -> None:
    """Say what came of the match."""
    lines = [str(result)]
    if result.played:
        lines += _describe(summarise(result.wins, result.draws, result.losses))
    lines.append(
        f"{result.different_games} different games of {len(result.games)}; ended by "
        + ", ".join(f"{reason} {count}" for reason, count in result.reasons.most_common())
    )
    lines += [
        f"{count} games broken off by {name} (crash, silence or illegal move): they do not count"
        for name, count in result.failures.items()
    ]
    if sprt:
        pairs = result.pairs()
        lines.append(
            f"SPRT {sprt.elo0:g} to {sprt.elo1:g} Elo: the first is {sprt.verdict(pairs)} "
            f"(ratio {sprt.ratio(pairs):.2f}, limits ±{sprt.limit:.2f}, {len(pairs)} pairs)"
        )
    for line in lines:
        console.print(line, highlight=False, markup=False)


def _describe(match: Summary) -> list[str]:
    low, high = match.elo_interval
    return [
        f"score {match.score:.1%}, 95 % interval {match.low:.1%} to {match.high:.1%}",
        f"Elo difference {match.elo:+.0f}, 95 % interval {low:+.0f} to {high:+.0f}; "
        f"stronger with likelihood {match.superiority:.1%}",
    ]
