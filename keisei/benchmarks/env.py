"""`keisei benchmark env`: steps per second of `VectorShogi` beside the bare rules library."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path

from keisei.benchmarks.report import interleave, median_ratio, publish
from keisei.shogi import VectorShogi
from keisei.shogi.bare_play import bare_loop
from keisei.shogi.rules import DEFAULT_MOVE_LIMIT

GAMES = (1, 16, 64, 256)
# Beside observation and legal actions, a stored step has these scalars: the action (2 bytes), its
# log-probability, the value and the reward (4 each), done (1), where its legal actions begin (4).
SCALAR_BYTES = 2 + 3 * 4 + 1 + 4


def vector_loop(num_games: int) -> Callable[[], int]:
    """Random play of many games with legal actions and planes, from the middle of the games."""
    games = VectorShogi(num_games, seed=1)
    buffer = games.planes()
    for _ in range(DEFAULT_MOVE_LIMIT):  # so that games of all ages are in play
        games.step(games.random_actions())
    rounds = max(40, 2_000 // num_games)

    def run() -> int:
        for _ in range(rounds):
            games.planes(buffer)
            games.step(games.random_actions())
        return rounds * num_games

    return run


def bytes_per_step(num_games: int = 64, steps: int = 1_000) -> float:
    """Average size of a stored step over random games."""
    games = VectorShogi(num_games, seed=1)
    total = 0
    for _ in range(steps):
        legal, _ = games.legal_actions()
        total += games.observations.nbytes + legal.nbytes + num_games * SCALAR_BYTES
        games.step(games.random_actions())
    return total / (steps * num_games)


def run(json_file: Path | None = None, rounds: int = 11) -> None:
    """Measure on one core, print a table, write JSON."""
    contenders = {"bare": bare_loop(), **{str(g): vector_loop(g) for g in GAMES}}
    rates = interleave(contenders, rounds)
    speed = {name: statistics.median(values) for name, values in rates.items()}
    ratio = {str(g): median_ratio(rates, str(g), "bare") for g in GAMES}
    size = bytes_per_step()
    rows = [("bare rsshogi loop, one game", f"{speed['bare']:,.0f} steps/s")]
    rows += [
        (
            f"VectorShogi, {g} games, with 46 planes",
            f"{speed[str(g)]:,.0f} steps/s  ({ratio[str(g)]:.2f} of bare)",
        )
        for g in GAMES
    ]
    rows.append(("a stored step", f"{size:.0f} bytes"))
    result = {
        "steps_per_s": {str(g): speed[str(g)] for g in GAMES},
        "bare_steps_per_s": speed["bare"],
        "ratio_to_bare": ratio[str(GAMES[-1])],
        "ratio_to_bare_by_games": ratio,
        "bytes_per_stored_step": size,
        "rounds": rounds,
    }
    publish("Shogi environment, one core, random play", rows, result, json_file)
