"""Pgx: random play of Shogi with legal actions and observations, compiled by JAX, on one core."""

from __future__ import annotations

import argparse
import time
from importlib.metadata import version

import jax
import pgx
from measure import pin_to_one_core, publish
from pgx.experimental import auto_reset

STEPS = 16  # moves of all games in one call: long enough that calling costs nothing


def compiled(env: pgx.Env, games: int):
    """A function that plays `STEPS` random moves in all games, as Pgx's own benchmark does it."""
    step = jax.vmap(auto_reset(env.step, env.init))

    def move(carry, _):
        state, key = carry
        key, choice, restart = jax.random.split(key, 3)
        logits = jax.numpy.log(state.legal_action_mask.astype(jax.numpy.float32))
        action = jax.random.categorical(choice, logits, axis=-1)
        state = step(state, action, jax.random.split(restart, games))
        # The sum makes sure that the compiler cannot leave the observations out.
        return (state, key), state.observation.sum(dtype=jax.numpy.int32)

    return jax.jit(lambda state, key: jax.lax.scan(move, (state, key), None, length=STEPS))


def rate(env: pgx.Env, games: int, seconds: float) -> float:
    """Steps per second with so many games at once."""
    run = compiled(env, games)
    key = jax.random.PRNGKey(1)
    state = jax.jit(jax.vmap(env.init))(jax.random.split(key, games))
    (state, key), seen = jax.block_until_ready(run(state, key))  # compiles
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        (state, key), seen = jax.block_until_ready(run(state, key))
        steps += STEPS * games
    return steps / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=6.0)
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
