"""Pgx: random play of Shogi with legal actions and observations, compiled by JAX, on one core.

It tries several numbers of games at once, and the best of them counts.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import pgx
from measure import pin_to_one_core, publish
from pgx.experimental import auto_reset

# Compiling takes half a minute: later rounds find it done.
jax.config.update("jax_compilation_cache_dir", str(Path(sys.prefix) / "jax-cache"))


def compiled(env: pgx.Env, games: int) -> Callable[[Any, Any], tuple[Any, Any]]:
    """A random move in all games; what it returns has their observations and legal actions."""
    step = jax.vmap(auto_reset(env.step, env.init))

    def move(state: Any, key: Any) -> tuple[Any, Any]:
        key, choice, restart = jax.random.split(key, 3)
        logits = jax.numpy.log(state.legal_action_mask.astype(jax.numpy.float32))
        actions = jax.random.categorical(choice, logits, axis=-1)
        return step(state, actions, jax.random.split(restart, games)), key

    return jax.jit(move)


def rate(env: pgx.Env, games: int, seconds: float) -> float:
    """Steps per second with so many games at once."""
    move = compiled(env, games)
    key = jax.random.PRNGKey(1)
    state = jax.jit(jax.vmap(env.init))(jax.random.split(key, games))
    state, key = jax.block_until_ready(move(state, key))  # compiles
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        state, key = jax.block_until_ready(move(state, key))
        steps += games
    return steps / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--games", type=int, nargs="+", default=[64, 256, 1024])
    options = parser.parse_args()
    env = pgx.make("shogi")
    rates = {games: rate(env, games, options.seconds) for games in options.games}
    best = max(rates, key=lambda games: rates[games])
    versions = {name: version(name) for name in ("pgx", "jax")}
    publish({"env": rates[best]}, f"{best} games at once", versions, by_games=rates)


if __name__ == "__main__":
    pin_to_one_core()
    main()
