"""Rates the levels of keisei/models/levels.py on the yardstick.

Writes levels.json beside it, from which the page has its ratings, and the table in docs/web.md.

    python scripts/rate_levels.py              # a quarter of an hour
    python scripts/rate_levels.py --minutes 1 -o try.json

A level that is a reference of the yardstick has its rating. The others play until their intervals
are narrow enough, those that search least first. Their games are kept in the file as long as
neither a level nor its network changes, so the command can be stopped and goes on where it was. A
level that did change begins against references close to its old rating, a new one a step above the
level before.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

from keisei.evaluation.contestants import resolve
from keisei.evaluation.evaluate import play_batch
from keisei.evaluation.match import MatchResult
from keisei.evaluation.pairs import Pentanomial
from keisei.evaluation.rate import Candidate, measure
from keisei.evaluation.ratings import Rating
from keisei.evaluation.yardstick import Yardstick, check_engines, load_yardstick
from keisei.files import replace_file
from keisei.models import SHIPPED
from keisei.models.levels import FILE, LEVELS, Level, fingerprint
from keisei.processes.pool import open_process_pool

STEP = 200.0  # Elo that a new level is expected to be above the one before
DOCS = Path(__file__).parents[1] / "docs" / "web.md"
# How wide an interval may be, by the nodes that a level searches at most: games cost that much.
WIDTHS = {0: 120.0, 100: 160.0, 300: 230.0, 10**6: 330.0}


def known_rows(file: Path, yardstick: Yardstick) -> dict[str, dict[str, Any]]:
    """What the file says of each level; games against other references do not count any more."""
    if not file.is_file():
        return {}
    old = json.loads(file.read_text(encoding="utf-8"))
    lost: dict[str, Any] = {} if old["yardstick"] == yardstick.made else {"results": {}}
    rows = {row["level"]: {**row, **lost} for row in old["ratings"]}
    return {level.name: rows[level.name] for level in LEVELS if level.name in rows}


def candidate(level: Level, known: dict[str, Any]) -> Candidate:
    """A level to rate, with the games that it has played already."""
    width = next(width for nodes, width in WIDTHS.items() if level.nodes <= nodes)
    one = Candidate(level.name, resolve(level.player), width, guess=known.get("elo"))
    if known.get("player") == level.player and known["network"] == fingerprint(level.network):
        one.results = {name: Pentanomial(tuple(pairs)) for name, pairs in known["results"].items()}
    return one


def row(level: Level, rating: Rating, results: Mapping[str, Pentanomial]) -> dict[str, Any]:
    """A level as the file has it."""
    return {
        "level": level.name,
        "player": level.player,
        "network": fingerprint(level.network),
        "elo": round(rating.elo),
        "low": round(rating.low),
        "high": round(rating.high),
        "games": rating.games,
        "results": {name: list(pairs.counts) for name, pairs in results.items()},
    }


def reference_row(level: Level, yardstick: Yardstick) -> dict[str, Any] | None:
    """The same for a level that is a reference."""
    for one in yardstick.references:
        if one.player == level.player and level.network != SHIPPED:  # which may change
            low, high = one.elo - one.error, one.elo + one.error
            return row(level, Rating(one.name, one.elo, low, high, one.games), {})
    return None


def write_table(rows: list[dict[str, Any]]) -> None:
    """Put the ratings into the documentation, in place of the old ones."""
    lines = []
    levels = {level.name: level for level in LEVELS}
    for row in rows:
        level = levels[row["level"]]
        how = (
            f"{level.nodes:,} nodes"
            if level.nodes
            else f"policy, temperature {level.temperature:g}"
        )
        elo = f"{row['elo']:,} ({row['low']:,} to {row['high']:,})"
        lines.append(f"| {level.name} | `{level.network}` | {how} | {elo} | {row['games']} |\n")
    text = DOCS.read_text(encoding="utf-8")
    new = re.sub(
        r"(\| level \|.*\n\|---.*\n)(?:\|.*\n)*", lambda old: old[1] + "".join(lines), text
    )
    replace_file(DOCS, new.encode())


def write(file: Path, rows: list[dict[str, Any]], yardstick: Yardstick) -> None:
    """Keep what was measured so far."""
    data = {
        "made": date.today().isoformat(),
        "command": "scripts/rate_levels.py",
        "yardstick": yardstick.made,
        "ratings": rows,
    }
    replace_file(file, (json.dumps(data, indent=1) + "\n").encode())


def main(file: Path, minutes: float) -> None:
    """Rate all levels."""
    yardstick = load_yardstick()
    if missing := yardstick.missing():
        print(missing)
    check_engines(yardstick)
    known = known_rows(file, yardstick)
    known |= {one.name: rated for one in LEVELS if (rated := reference_row(one, yardstick))}
    unknown = [level for level in LEVELS if reference_row(level, yardstick) is None]
    unknown.sort(key=lambda level: level.nodes)
    candidates = [candidate(level, known.get(level.name, {})) for level in unknown]
    begin = time.monotonic()

    def keep() -> list[dict[str, Any]]:
        for level, one in zip(unknown, candidates, strict=True):
            if one.games:
                known[level.name] = row(level, one.rating(yardstick), one.results)
        rows = [known[level.name] for level in LEVELS if level.name in known]
        write(file, rows, yardstick)
        return rows

    def tell(name: str, reference: str, result: MatchResult) -> None:
        print(f"{name} - {reference}: +{result.wins} ={result.draws} -{result.losses}", flush=True)
        keep()

    with suppress(KeyboardInterrupt), open_process_pool(play_batch) as pool:
        for level, one in zip(unknown, candidates, strict=True):
            below = [known[o.name]["elo"] for o in LEVELS[: LEVELS.index(level)] if o.name in known]
            if one.guess is None and below:
                one.guess = below[-1] + STEP
            measure([one], yardstick, pool, until=begin + 60 * minutes, tell=tell)
    rows = keep()
    for found in rows:
        print("{level}: {elo} ({low} to {high}), {games} games, {player}".format(**found))
    if file == FILE:
        write_table(rows)
    print(f"{time.monotonic() - begin:.0f} seconds")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("-o", "--output", type=Path, default=FILE)
    asked = parser.parse_args()
    main(asked.output, asked.minutes)
