"""OpenSpiel: random play of Shogi with legal actions and observations, by its Python API, one core.

Three ways to see the position, which differ by a factor of ten:

- `list`: `state.observation_tensor()`, which gives a Python list, made an array for a network;
- `array`: `make_observation(game).set_from(state, player)`, which writes into one NumPy array;
- `batch`: 256 games in turn by the latter, each copied into its row of one array, which is what
  `VectorShogi.planes()` gives.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from importlib.metadata import version

import numpy as np
import pyspiel
from measure import pin_to_one_core, publish
from open_spiel.python.observation import make_observation

GAME = pyspiel.load_game("shogi")
RNG = random.Random(1)


def watch_lists(state: pyspiel.State, row: int) -> None:
    np.asarray(state.observation_tensor(state.current_player()), dtype=np.float32)


def watch_array() -> Callable[[pyspiel.State, int], None]:
    seen = make_observation(GAME)
    return lambda state, row: seen.set_from(state, state.current_player())


def watch_batch(games: int) -> Callable[[pyspiel.State, int], None]:
    seen = make_observation(GAME)
    rows = np.zeros((games, len(seen.tensor)), dtype=np.float32)

    def watch(state: pyspiel.State, row: int) -> None:
        seen.set_from(state, state.current_player())
        rows[row] = seen.tensor

    return watch


def rate(games: int, watch: Callable[[pyspiel.State, int], None], seconds: float) -> float:
    """Steps per second of so many games in turn, from the middle of the games."""
    states = [GAME.new_initial_state() for _ in range(games)]

    def play(moves: int) -> int:
        for _ in range(moves):
            for row, state in enumerate(states):
                legal = state.legal_actions()
                watch(state, row)
                state.apply_action(legal[int(RNG.random() * len(legal))])
                if state.is_terminal():
                    states[row] = GAME.new_initial_state()
        return moves * games

    play(300)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        steps += play(max(1, 256 // games))
    return steps / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=6.0)
    options = parser.parse_args()
    rates = {
        "list": rate(1, watch_lists, options.seconds),
        "array": rate(1, watch_array(), options.seconds),
        "batch": rate(256, watch_batch(256), options.seconds),
    }
    publish(rates, "its Python API", {"open_spiel": version("open_spiel")})


if __name__ == "__main__":
    pin_to_one_core()
    main()
