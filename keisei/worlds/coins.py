"""Coins: each of two agents has a colour; a coin of the other's colour pays, and costs the other.

After Lerer and Peysakhovich (2017), "Maintaining cooperation in complex social dilemmas using deep
reinforcement learning".
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from keisei.worlds.entities import Entity
from keisei.worlds.scripts import Strategy
from keisei.worlds.world import Ints, World, WorldSettings

NAMES = ("coin of 0", "coin of 1")


class CoinsSettings(WorldSettings):
    """What coins can be told."""

    num_agents: int = Field(2, ge=2, le=2, description="Agents in the world: always two.")
    height: int = Field(7, ge=4, le=200, description="Rows of the grid, walls included.")
    width: int = Field(7, ge=4, le=200, description="Columns of the grid, walls included.")
    coin_reward: float = Field(1.0, description="Reward for taking a coin, of whatever colour.")
    damage: float = Field(
        2.0, ge=0, description="What a coin costs its owner if the other agent takes it."
    )


class Coins(World):
    """A coin is worth 1 to the agent that takes it, and costs its owner 2 if that is the other.

    >>> world = Coins(copies=3, seed=1)
    >>> world.begin_turn()
    >>> str(world).count("0") + str(world).count("1")  # there is one coin at a time
    1
    """

    name = "coins"
    entities: ClassVar[tuple[Entity, ...]] = (
        Entity("sand", ".", color="#efe3c2"),
        Entity("wall", "#", solid=True, color="#4a4a55"),
        Entity(NAMES[0], "0", layer=1, color="#0072b2", shape="diamond"),
        Entity(NAMES[1], "1", layer=1, color="#d55e00", shape="diamond"),
        Entity("agent", "A", layer=1, solid=True, shape="circle"),
    )
    actions = ("up", "down", "left", "right", "stay")
    Settings = CoinsSettings
    settings: CoinsSettings
    state_names = (*World.state_names, "coins", "own", "others")
    agent_names = (*World.agent_names, "own", "others")

    def __init__(self, copies: int = 1, seed: int = 0, **settings: Any) -> None:
        super().__init__(copies, seed, **settings)
        self.coins: Ints = np.zeros(copies, np.int64)  # on the map: 0 or 1
        # Coins that each agent has taken in this episode, of its own colour and of the other's.
        self.own: Ints = np.zeros((2, copies), np.int64)
        self.others = self.own.copy()
        self._codes = np.array([self.code[name] for name in NAMES], np.uint8)

    def populate(self) -> None:
        self.build_walls()
        self.coins[:] = self.own[:] = self.others[:] = 0
        self.place_agents(self.inside)

    def transition(self) -> None:
        """Where there is no coin, one appears, if the cell that was drawn is free."""
        cells = self.draw_from(self.inside)
        color = (self.streams.uniform() * 2).astype(np.int64)
        appears = (self.coins == 0) & (self.grid[1][cells] == 0)
        self.grid[1][cells[appears]] = self._codes[color[appears]]
        self.coins += appears

    def act(self, agent: int, actions: Ints) -> None:
        there = self.ahead(agent, actions)
        thing, mine = self.grid[1][there], self._codes[self.numbers[agent]]
        own = thing == mine
        others = ~own & np.isin(thing, self._codes)
        self.rewards[agent] += self.settings.coin_reward * (own | others)
        self.rewards[1 - agent] -= self.settings.damage * others
        self.own[agent] += own
        self.others[agent] += others
        self.coins -= own | others
        self.walk(agent, there)

    def metrics(self) -> dict[str, Any]:
        return {"own coins": self.own, "coins of the other": self.others}

    @classmethod
    def strategies(cls, number: int) -> dict[str, Strategy]:
        return {"cooperate": Strategy((NAMES[number],)), "defect": Strategy(NAMES)}
