"""Keisei's environment alone: random play of 256 games with legal actions and planes, one core."""

from __future__ import annotations

import argparse
from importlib.metadata import version

import common
from measure import pin_to_one_core, publish

from keisei.benchmarks.env import vector_loop

GAMES = 256


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=6.0)
    options = parser.parse_args()
    rate = common.steps_per_second(vector_loop(GAMES), options.seconds)
    versions = {name: version(name) for name in ("keisei", "rsshogi", "numpy")}
    publish({"env": rate}, f"VectorShogi, {GAMES} games at once", versions)


if __name__ == "__main__":
    pin_to_one_core()
    main()
