"""Agents with a simple strategy: they go to the nearest thing they seek, and act there."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from keisei.random_streams import RandomStreams

if TYPE_CHECKING:
    from keisei.worlds.world import World

Script = Callable[[npt.NDArray[Any]], npt.NDArray[np.int64]]

WANDER = 0.1  # the share of random steps, so that nobody waits forever for what does not come
STEPS = ("up", "down", "left", "right")


@dataclass(frozen=True)
class Strategy:
    """What an agent goes for."""

    seek: tuple[str, ...]  # entities; the first is better than the second if both are seen
    do: str | None = None  # the action beside the first of them, or on it; else it walks there
    drift: str | None = None  # where to go if none is seen; else anywhere
    then: Strategy | None = None  # what it does in turn with this
    turns: int = 50  # of each


def make_script(world: World, strategy: Strategy, seed: int) -> Script:
    """A function from what an agent sees [copies, cells] to its actions [copies].

    Agents with odd seeds begin with `then`, if there is one: so that not all do the same.
    """
    scripts = [_make_script(world, strategy, seed)]
    if strategy.then:
        scripts.append(_make_script(world, strategy.then, seed))
    clock = itertools.count(strategy.turns * (seed % 2))
    return lambda seen: scripts[next(clock) // strategy.turns % len(scripts)](seen)


def _make_script(world: World, strategy: Strategy, seed: int) -> Script:
    reach = world.settings.vision
    side = 2 * reach + 1
    rows, columns = np.divmod(np.arange(side * side), side) - np.array(reach)
    distance = np.abs(rows) + np.abs(columns)
    near_first = np.argsort(distance, kind="stable")
    up, down, left, right = (world.actions.index(name) for name in STEPS)
    across = np.where(columns < 0, left, right)
    towards = np.where(np.abs(rows) > np.abs(columns), np.where(rows < 0, up, down), across)
    beside = np.zeros(len(world.actions), np.int64) + side * reach + reach  # where a step leads
    beside[[up, down, left, right]] += [-side, side, -1, 1]
    moves = np.array([up, down, left, right])
    streams = RandomStreams(seed, world.copies)

    def script(seen: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        chance = moves[(streams.uniform() * 4).astype(np.int64)]
        wanders = streams.uniform() < WANDER
        drift = world.actions.index(strategy.drift) if strategy.drift else chance
        actions = np.where(wanders, chance, drift)
        for name in reversed(strategy.seek):
            there = world.shows(name)[seen][:, near_first]
            nearest = near_first[there.argmax(axis=1)]
            found = there.any(axis=1)
            actions = np.where(found & (distance[nearest] > 0), towards[nearest], actions)
            if strategy.do and name == strategy.seek[0]:
                close = found & (distance[nearest] <= 1)
                actions = np.where(close, world.actions.index(strategy.do), actions)
        # What is in the way is walked around by chance.
        ahead = seen[np.arange(len(seen)), beside[actions]]
        blocked = np.isin(actions, moves) & world.is_solid(ahead)
        return np.where(wanders | blocked, chance, actions)

    return script
