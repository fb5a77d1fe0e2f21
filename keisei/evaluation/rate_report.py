"""`keisei rate`: a player's Elo on the yardstick, as a table and as JSON."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from keisei.evaluation.contestants import Contestant, open_player, resolve
from keisei.evaluation.evaluate import play_batch
from keisei.evaluation.match import MatchResult
from keisei.evaluation.rate import Candidate, measure, off_scale
from keisei.evaluation.statistics import score_of_elo
from keisei.evaluation.yardstick import Yardstick, check_engines, load_yardstick
from keisei.files import write_json
from keisei.processes.pool import open_process_pool, open_ray_pool

NODES = 100  # a network is rated by its policy alone, and with a search of this size
WIDTH, SEARCH_WIDTH = 80.0, 120.0  # of the interval; searching takes ten times as long


def run_rate(
    player: str,
    width: float | None = None,
    minutes: float = 30.0,
    seed: int = 1,
    json_file: Path | None = None,
    ray: str | None = None,
    yardstick: Yardstick | None = None,
    runs: Path = Path("runs"),
) -> list[Candidate]:
    """Rate a player and show the result; a network is rated by its policy and with search."""
    console, begin = Console(), time.monotonic()
    if json_file:  # if the folder cannot be made, say so before the games
        json_file.parent.mkdir(parents=True, exist_ok=True)
    yardstick = yardstick or load_yardstick()
    if missing := yardstick.missing():
        console.print(missing, highlight=False)
    candidates = [_candidate(resolve(text, runs), width, seed) for text in ways_to_play(player)]
    check_engines(yardstick)
    where = open_ray_pool(ray, play_batch) if ray else open_process_pool(play_batch)
    stopped = False

    def tell(name: str, reference: str, result: MatchResult) -> None:
        console.print(f"{name} - {reference}: {_counts(result)}", highlight=False, markup=False)

    try:
        with where as pool:
            measure(candidates, yardstick, pool, seed, begin + 60 * minutes, tell=tell)
    except KeyboardInterrupt:
        stopped = True
    for candidate in candidates:
        if candidate.games:
            show(candidate, yardstick, console)
    console.print(f"{time.monotonic() - begin:.0f} seconds; {_scale(yardstick)}", highlight=False)
    if json_file:
        rows = [as_data(candidate, yardstick) for candidate in candidates if candidate.games]
        write_json(json_file, {"yardstick": yardstick.made, "seed": seed, "ratings": rows})
    if stopped:
        raise KeyboardInterrupt
    return candidates


def ways_to_play(player: str) -> list[str]:
    """A network is rated both ways, unless its name says how it plays.

    >>> ways_to_play("shipped"), ways_to_play("greedy")
    (['shipped', 'shipped,nodes=100'], ['greedy'])
    """
    asked = Contestant.read(player)
    is_network = asked.what not in ("random", "greedy") and not asked.what.startswith("usi:")
    told = {"nodes", "seconds", "temperature"} & asked.settings.keys()
    return [player, f"{player},nodes={NODES}"] if is_network and not told else [player]


def _candidate(player: str, width: float | None, seed: int) -> Candidate:
    with open_player(player, seed) as opened:  # a wrong name is an error at once
        name = opened.name
    searches = {"nodes", "seconds"} & Contestant.read(player).settings.keys()
    return Candidate(name, player, width or (SEARCH_WIDTH if searches else WIDTH))


def _counts(result: MatchResult) -> str:
    return f"+{result.wins} ={result.draws} -{result.losses}"


def _scale(yardstick: Yardstick) -> str:
    return f"the scale: random is 0, the references' ratings are those of {yardstick.made}"


def show(candidate: Candidate, yardstick: Yardstick, console: Console) -> None:
    """Print the rating, and the results that it comes from."""
    rating = candidate.rating(yardstick)
    table = Table(title=f"{candidate.name}: Elo {rating.elo:.0f}")
    table.caption = f"95 % interval {rating.low:.0f} to {rating.high:.0f}, {rating.games} games"
    table.add_column("opponent")
    for name in ("Elo", "games", "score", "expected"):
        table.add_column(name, justify="right")
    for reference in reversed(yardstick.references):
        if result := candidate.results.get(reference.name):
            expected = score_of_elo(rating.elo - reference.elo)
            table.add_row(
                reference.name,
                f"{reference.elo:.0f}",
                f"{result.games:.0f}",
                f"{result.score:.0%}",
                f"{expected:.0%}",
            )
    console.print(table)
    if beyond := off_scale(rating, yardstick):
        console.print(f"{candidate.name} is {beyond}: its Elo is a guess", highlight=False)


def as_data(candidate: Candidate, yardstick: Yardstick) -> dict[str, Any]:
    """The rating as plain data."""
    rating = candidate.rating(yardstick)
    return {
        "player": candidate.player,
        "name": candidate.name,
        "elo": round(rating.elo, 1),
        "low": round(rating.low, 1),
        "high": round(rating.high, 1),
        "games": rating.games,
        "off_scale": off_scale(rating, yardstick),
        "opponents": [
            {"name": name, "pairs": list(result.counts), "score": round(result.score, 4)}
            for name, result in candidate.results.items()
        ],
    }
