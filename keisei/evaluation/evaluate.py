"""`keisei evaluate`: a match between any two players, and what it says."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from keisei.errors import KeiseiError
from keisei.evaluation.contestants import open_player
from keisei.evaluation.match import MatchResult, play_match
from keisei.evaluation.openings import load_openings
from keisei.evaluation.players import Player
from keisei.evaluation.statistics import Sprt, Summary, summarise
from keisei.shogi.records import write_record
from keisei.shogi.rules import DEFAULT_MOVE_LIMIT


@dataclass(frozen=True)
class MatchSettings:
    """How to play; `at_once` games run side by side, in one batch for a network."""

    games: int = 100
    seed: int = 1
    at_once: int = 32
    move_limit: int = DEFAULT_MOVE_LIMIT
    sprt: Sprt | None = None

    def __post_init__(self) -> None:
        for name in ("games", "at_once"):
            if getattr(self, name) < 2 or getattr(self, name) % 2:
                raise KeiseiError(
                    f"{name} is {getattr(self, name)}: it must be even, "
                    "because every opening is played with both colours"
                )


def evaluate(
    first: str,
    second: str,
    settings: MatchSettings,
    save: Path | None = None,
    suffix: str = "kif",
    json_file: Path | None = None,
) -> MatchResult:
    """Play a match between two players by name, show it, and keep what was asked for."""
    console = Console()
    if suffix not in ("kif", "kifu", "csa"):
        raise KeiseiError(f"games are saved as kif, kifu or csa, not {suffix!r}")
    limit = settings.move_limit
    with (
        open_player(first, settings.seed, limit) as one,
        open_player(second, settings.seed + 1, limit) as two,
    ):
        if one.name == two.name:
            two.name += " (2)"
        result = play_in_batches(one, two, settings, console)
    if save:
        save_games(result, save, suffix)
    show(result, settings.sprt, console)
    if json_file:
        json_file.write_text(json.dumps(as_data(result), indent=2) + "\n")
    return result


def play_in_batches(
    one: Player, two: Player, settings: MatchSettings, console: Console | None = None
) -> MatchResult:
    """Play until all games are played or the test is decided."""
    openings = load_openings(settings.seed)
    result = MatchResult(one.name, two.name)
    while len(result.games) < settings.games:
        begin = len(result.games)
        count = min(settings.at_once, settings.games - begin)
        result.extend(
            play_match(
                one,
                two,
                count,
                seed=settings.seed + begin,
                move_limit=settings.move_limit,
                openings=openings,
                first_number=begin,
            )
        )
        if console:
            console.print(str(result), highlight=False)
        if settings.sprt and settings.sprt.verdict(result.pairs()) != "undecided":
            break
    return result


def save_games(result: MatchResult, folder: Path, suffix: str) -> None:
    """Write each game as a record with both names."""
    folder.mkdir(parents=True, exist_ok=True)
    for game in result.games:
        write_record(result.record(game), folder / f"{game.number + 1:04d}.{suffix}")


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
