"""Treasure hunt: gems, coins and food to collect, bones to avoid; all of them come again."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from keisei.worlds.entities import Entity
from keisei.worlds.world import Floats, Ints, World, WorldSettings

VALUES = {"gem": 5.0, "coin": 3.0, "food": 1.0, "bone": -3.0}


class TreasureHuntSettings(WorldSettings):
    """What a treasure hunt can be told."""

    start_things: int = Field(
        20,
        ge=0,
        description="Gems, coins, food and bones at the start of an episode, in equal parts.",
    )
    spawn_chance: float = Field(
        0.7, ge=0, le=1, description="Chance per turn that something appears on a free cell."
    )


class TreasureHunt(World):
    """Walk onto a thing to get it: a gem is worth 5, a coin 3, food 1, and a bone costs 3.

    >>> world = TreasureHunt(copies=128, seed=1)
    >>> world.reset()
    >>> world.begin_turn()
    >>> world.pov().shape  # 2 agents see 9 x 9 cells each
    (2, 128, 81)
    >>> rewards, dones, truncated = world.step(np.zeros((2, 128), np.int64))
    >>> rewards.shape
    (2, 128)
    """

    name = "treasure_hunt"
    entities: ClassVar[tuple[Entity, ...]] = (
        Entity("sand", ".", color="#efe3c2"),
        Entity("wall", "#", solid=True, color="#4a4a55"),
        Entity("gem", "*", layer=1, color="#1f9e89", shape="diamond"),
        Entity("coin", "o", layer=1, color="#e0a810", shape="circle"),
        Entity("food", "+", layer=1, color="#79b94f", shape="circle"),
        Entity("bone", "x", layer=1, color="#ffffff", shape="diamond"),
        Entity("agent", "A", layer=1, solid=True, color="#c8443d", shape="circle"),
    )
    actions = ("up", "down", "left", "right")
    Settings = TreasureHuntSettings
    settings: TreasureHuntSettings

    def __init__(self, copies: int = 1, seed: int = 0, **settings: Any) -> None:
        super().__init__(copies, seed, **settings)
        self._values: Floats = np.zeros(256, np.float32)  # of what a cell shows
        for name, value in VALUES.items():
            self._values[self.code[name]] = value
        self._kinds = np.array([self.code[name] for name in VALUES], np.uint8)

    def populate(self) -> None:
        self.build_walls()
        things = self.draw_distinct(self.inside, self.settings.start_things)
        for name, cells in zip(VALUES, np.array_split(things, len(VALUES)), strict=True):
            self.put(name, cells)
        self.place_agents(self.inside)  # an agent that lands on a thing replaces it

    def transition(self) -> None:
        """One cell in each copy is looked at; if it is free, something may appear there."""
        cells = self.draw_from(self.inside)
        kinds = self._kinds[(self.streams.uniform() * len(self._kinds)).astype(np.int64)]
        happens = self.streams.uniform() < self.settings.spawn_chance
        happens &= self.look(cells) == 0
        self.grid[1][cells[happens]] = kinds[happens]

    def act(self, agent: int, actions: Ints) -> None:
        there = self.ahead(agent, actions)
        self.rewards[agent] += self._values[self.look(there)]
        self.walk(agent, there)
