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

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Script = Callable[[npt.NDArray[Any]], Ints]

WANDER = 0.1  # the share of random steps, so that nobody waits forever for what does not come
STEPS = ("up", "down", "left", "right")
FACING_STEPS = ("forward", "backward", "left", "right")
WAYS = ("up", "right", "down", "left")


@dataclass(frozen=True)
class Strategy:
    """What an agent goes for."""

    seek: tuple[str, ...]  # entities; the first is better than the second if both are seen
    do: str | None = None  # the action beside the first of them, or on it; else it walks there
    drift: str | None = None  # where to go if none is seen; else anywhere
    spare: int = 0  # it leaves alone what has fewer of its kind within two cells
    then: Strategy | None = None  # what it does in turn with this
    turns: int = 50  # of each
    loaded: Strategy | None = None  # what it does while its own cell shows more than an agent


def make_script(world: World, strategy: Strategy, seed: int, agent: int) -> Script:
    """A function from what this agent sees [copies, cells] to its actions [copies].

    Agents with odd seeds begin with `then`, if there is one: so that not all do the same.
    """
    in_turn = [Seeker(world, one, agent, seed) for one in (strategy, strategy.then) if one]
    loaded = Seeker(world, strategy.loaded, agent, seed) if strategy.loaded else None
    clock = itertools.count(strategy.turns * (seed % 2))
    plain = world.code["agent"]

    def script(seen: npt.NDArray[Any]) -> Ints:
        actions = in_turn[next(clock) // strategy.turns % len(in_turn)].act(seen)
        if loaded is None:
            return actions
        return np.where(seen[:, loaded.own] == plain, actions, loaded.act(seen))

    return script


class Seeker:
    """One agent with one strategy, in all copies of a world."""

    def __init__(self, world: World, strategy: Strategy, agent: int, seed: int) -> None:
        self._strategy, self._agent = strategy, agent
        self._world, self._turns = world, world.settings.facing
        self._streams = RandomStreams(seed, world.copies)
        reach, ahead = world.settings.vision, world.rim
        self._side = side = 2 * reach + 1
        rows, columns = np.divmod(np.arange(side * side), side)
        self._rows, self._columns = rows - ahead, columns - reach
        self.own = ahead * side + reach  # its own cell in the window
        self._distance = np.abs(self._rows) + np.abs(self._columns)
        self._near_first = np.argsort(self._distance, kind="stable")
        names = FACING_STEPS if self._turns else STEPS
        self._moves = np.array([world.actions.index(name) for name in names])
        up, down, left, right = self._moves
        across = np.where(self._columns < 0, left, right)
        along = np.where(self._rows < 0, up, down)
        self._towards = np.where(np.abs(self._rows) > np.abs(self._columns), along, across)
        self._there = np.full(len(world.actions), self.own)  # where a step leads, in the window
        self._there[self._moves] += [-side, side, -1, 1]

    def act(self, seen: npt.NDArray[Any]) -> Ints:
        """What to do about what is seen."""
        world, strategy = self._world, self._strategy
        chance = self._any_move()
        wanders = self._streams.uniform() < WANDER
        actions = np.where(wanders, chance, self._drift(chance))
        for name in reversed(strategy.seek):
            there = world.shows(name)[seen]
            if strategy.spare:
                there &= self._crowded(there, strategy.spare)
            near = there[:, self._near_first]
            nearest, found = self._near_first[near.argmax(axis=1)], near.any(axis=1)
            away = found & (self._distance[nearest] > 0)
            actions = np.where(away, self._towards[nearest], actions)
            if strategy.do and name == strategy.seek[0]:
                actions = np.where(found, self._use(strategy.do, nearest, actions), actions)
        # What is in the way is walked around by chance.
        ahead = seen[np.arange(len(seen)), self._there[actions]]
        blocked = np.isin(actions, self._moves) & world.is_solid(ahead)
        return np.where(wanders | blocked, chance, actions)

    def _any_move(self) -> Ints:
        """A step anywhere; of those who face somewhere, a turn as often as a step."""
        choices = self._moves
        if self._turns:
            turns = [self._world.actions.index(f"turn {way}") for way in ("left", "right")]
            choices = np.array([*self._moves, *turns, *turns])
        return choices[(self._streams.uniform() * len(choices)).astype(np.int64)]

    def _drift(self, chance: Ints) -> Ints:
        """Where to go if nothing is seen: who faces somewhere goes on, or turns to where it is."""
        actions, drift = self._world.actions, self._strategy.drift
        if not self._turns:
            return np.full_like(chance, actions.index(drift)) if drift else chance
        forward = np.full_like(chance, actions.index("forward"))
        if not drift:
            return forward
        way = (WAYS.index(drift) - self._world.facing[self._agent]) % len(WAYS)
        turn = np.where(way == 3, actions.index("turn left"), actions.index("turn right"))
        return np.where(way == 0, forward, turn)

    def _use(self, action: str, nearest: Ints, actions: Ints) -> Ints:
        """The action where the nearest thing is close enough; a beam must face it."""
        do = self._world.actions.index(action)
        rows, columns = self._rows[nearest], self._columns[nearest]
        if not self._turns:
            return np.where(self._distance[nearest] <= 1, do, actions)
        length = getattr(self._world.settings, "beam_length", 1)
        hit = (rows < 0) & (rows >= -length) & (np.abs(columns) <= 1)
        left, right = (self._world.actions.index(f"turn {way}") for way in ("left", "right"))
        turned = np.where(rows >= 0, np.where(columns < 0, left, right), actions)
        return np.where(hit, do, turned)

    def _crowded(self, there: Bools, least: int) -> Bools:
        """Which cells [copies, cells] have so many of these things within two cells of them."""
        side = self._side
        padded = np.pad(there.reshape(-1, side, side), ((0, 0), (2, 2), (2, 2)))
        count = np.zeros((len(there), side, side), np.int64)
        for row, column in itertools.product(range(-2, 3), repeat=2):
            if 0 < row * row + column * column <= 4:
                count += padded[:, 2 + row : 2 + row + side, 2 + column : 2 + column + side]
        crowded: Bools = (count >= least).reshape(there.shape)
        return crowded
