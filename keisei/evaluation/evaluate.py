"""`keisei evaluate`: a match between any two players, and its result."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from rich.console import Console

from keisei.errors import KeiseiError
from keisei.evaluation.contestants import open_player, resolve
from keisei.evaluation.match import MatchResult, play_games
from keisei.evaluation.openings import load_openings
from keisei.evaluation.pairs import Pentanomial
from keisei.evaluation.players import Player
from keisei.evaluation.statistics import Sprt, summarise
from keisei.files import write_json
from keisei.network import Network
from keisei.processes.pool import Pool, open_process_pool, open_ray_pool
from keisei.shogi.records import write_record
from keisei.shogi.rules import DEFAULT_MOVE_LIMIT

_BATCHES, _LEAST_BATCH, _GENERATIONS = 8, 8, 4


@dataclass(frozen=True)
class MatchSettings:
    """How to play; at most `at_once` games run side by side in one process.

    The seed sets the order of the openings.
    """

    games: int = 100
    seed: int = 1
    at_once: int = 32
    move_limit: int = DEFAULT_MOVE_LIMIT
    sprt: Sprt | None = None

    def __post_init__(self) -> None:
        for name in ("games", "at_once"):
            if getattr(self, name) < 2 or getattr(self, name) % 2:
                raise KeiseiError(
                    f"{name} is {getattr(self, name)}: it must be even and at least 2, "
                    "because every opening is played with both colours"
                )

    def batches(self) -> list[range]:
        """The numbers of each batch's games: enough to be efficient, few enough for all cores.

        In a batch, the next game begins where one has ended, so the network sees many positions at
        a time almost until the end. The last batches are half as large: whoever gets none waits
        less for the others. The number of cores must not matter: batches decide what is played.

        >>> [len(batch) for batch in MatchSettings(games=100).batches()]
        [12, 12, 12, 12, 12, 12, 12, 6, 6, 4]
        """
        size = max(_LEAST_BATCH, self.games // _BATCHES // 2 * 2)
        size = min(size, _GENERATIONS * self.at_once)
        whole = max(-(-self.games // size) - 2, 0) * size  # games in batches of full size
        begins = [*range(0, whole, size), *range(whole, self.games, size // 4 * 2)]
        return [range(begin, end) for begin, end in pairwise([*begins, self.games])]


def play_match(
    first: Network | Player | str, second: Network | Player | str, games: int = 100, seed: int = 1
) -> MatchResult:
    """A match between any two players: the one that `keisei evaluate` plays with this seed.

    A player is a network, a name as the command takes it ("random", "shipped,nodes=100", ...) or an
    object of your own with a `name` and `choose` (see `Player`). Networks and names play on all
    cores, your own player in this process.

    >>> result = play_match("greedy", "random", games=2)
    >>> result.played, result.first, result.second
    (2, 'greedy', 'random')
    """
    settings = MatchSettings(games=games, seed=seed)
    one, two = (str(p.path) if isinstance(p, Network) else p for p in (first, second))
    if not (isinstance(one, str) and isinstance(two, str)):
        return play_batch(one, two, settings, 0, games)
    *_, result = _play(one, two, settings, None)
    return result


def evaluate(
    first: str,
    second: str,
    settings: MatchSettings,
    save: Path | None = None,
    suffix: str = "kif",
    json_file: Path | None = None,
    ray: str | None = None,
    runs: Path = Path("runs"),
) -> MatchResult:
    """Play a match between two named players, show the result, and save what was asked for."""
    console = Console()
    if suffix not in ("kif", "kifu", "csa"):
        raise KeiseiError(f"games are saved as kif, kifu or csa, not {suffix!r}")
    for folder in (save, json_file and json_file.parent):
        if folder:  # if it cannot be made, say so before the match
            folder.mkdir(parents=True, exist_ok=True)
    first, second = resolve(first, runs), resolve(second, runs)
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
        write_json(json_file, as_data(result))
    if save:
        if suffix == "kif" and not _is_in_cp932(result.first + result.second):
            suffix = "kifu"
            console.print("games are saved as .kifu: .kif cannot hold a character in the names")
        save_games(result, save, suffix)
    if stopped:
        raise KeyboardInterrupt
    return result


def _play(
    first: str, second: str, settings: MatchSettings, ray: str | None
) -> Generator[MatchResult]:
    pieces = len(settings.batches())
    where = open_ray_pool(ray, play_batch) if ray else open_process_pool(play_batch, pieces)
    with where as pool:
        yield from play_in_batches(first, second, settings, pool)


def play_in_batches(
    first: str, second: str, settings: MatchSettings, pool: Pool[int, MatchResult]
) -> Iterator[MatchResult]:
    """Play all games, or until the test is decided; yields the result so far after each batch.

    Which games are played, and where the test ends, does not depend on which batch is done first.
    """
    first, second = resolve(first), resolve(second)
    done: dict[int, MatchResult] = {}
    for begin, batch in _batches(first, second, settings, pool):
        done[begin] = batch
        decided = _decided(done, settings)
        yield decided or _join(done)
        if decided:
            return


def _batches(
    first: str, second: str, settings: MatchSettings, pool: Pool[int, MatchResult]
) -> Iterator[tuple[int, MatchResult]]:
    for batch in settings.batches():
        pool.submit(batch.start, first, second, settings, batch.start, len(batch))
        yield from pool.finished()
    yield from pool.finished(wait_for_all=True)


def _decided(done: dict[int, MatchResult], settings: MatchSettings) -> MatchResult | None:
    """The match up to the batch that decides the test, if there is one."""
    if settings.sprt is None:
        return None
    for last in settings.batches():
        if last.start not in done:
            return None  # a batch that is done early must not decide the test
        result = _join({begin: batch for begin, batch in done.items() if begin <= last.start})
        if settings.sprt.verdict(result.pairs()) != "undecided":
            return result
    return None


def _join(batches: dict[int, MatchResult]) -> MatchResult:
    first, *others = (batches[begin] for begin in sorted(batches))
    result = MatchResult(first.first, first.second)
    for batch in (first, *others):
        result.extend(batch)
    result.games.sort(key=lambda game: game.number)
    return result


def play_batch(
    first: str | Player, second: str | Player, settings: MatchSettings, begin: int, games: int
) -> MatchResult:
    """Play `games` games from number `begin` on with new players; equal names are told apart."""
    seed, limit = settings.seed + 2 * begin, settings.move_limit
    with open_player(first, seed, limit) as one, open_player(second, seed + 1, limit) as two:
        if one.name == two.name:
            two.name += " (2)"
        return play_games(
            one,
            two,
            games,
            seed=settings.seed + begin,
            move_limit=limit,
            openings=load_openings(settings.seed),
            first_number=begin,
            at_once=settings.at_once,
        )


def save_games(result: MatchResult, folder: Path, suffix: str) -> None:
    """Write each game as a record with both names."""
    for game in result.games:
        write_record(result.record(game), folder / f"{game.number + 1:04d}.{suffix}")


def _is_in_cp932(text: str) -> bool:
    """Can a `.kif` file hold it?"""
    try:
        text.encode("cp932")
    except UnicodeEncodeError:
        return False
    return True


def as_data(result: MatchResult) -> dict[str, object]:
    """The match as plain data."""
    pairs = Pentanomial.of_points(result.pairs())
    data: dict[str, object] = {
        "first": result.first,
        "second": result.second,
        "wins": result.wins,
        "draws": result.draws,
        "losses": result.losses,
        "pairs": pairs.counts,
        "different_games": result.different_games,
        "reasons": dict(result.reasons),
        "broken_off_by": dict(result.failures),
    }
    if pairs.pairs:
        match = summarise(pairs)
        finite = math.isfinite(match.elo)
        data["score"] = match.score
        data["score_interval"] = [match.low, match.high]
        data["elo"] = match.elo if finite else None
        data["superiority"] = match.superiority
    return data


def show(result: MatchResult, sprt: Sprt | None, console: Console) -> None:
    """Print the result of the match."""
    lines = [str(result)]
    if result.pairs():
        lines += _describe(Pentanomial.of_points(result.pairs()))
    lines.append(
        f"{result.different_games} different games of {len(result.games)}; ended by "
        + ", ".join(f"{reason} {count}" for reason, count in result.reasons.most_common())
    )
    lines += [
        f"{count} games aborted by {name} (crash, timeout or illegal move): they do not count"
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


def _describe(pairs: Pentanomial) -> list[str]:
    match = summarise(pairs)
    low, high = match.elo_interval
    return [
        f"score {match.score:.1%}, 95 % interval {match.low:.1%} to {match.high:.1%}",
        f"Elo difference {match.elo:+.0f}, 95 % interval {low:+.0f} to {high:+.0f}; "
        f"stronger with likelihood {match.superiority:.1%}",
    ]
