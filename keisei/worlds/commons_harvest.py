"""Commons harvest: apples grow again only near others; a patch that is eaten bare is lost."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from keisei.worlds.beams import ZapSettings, ZapWorld
from keisei.worlds.entities import Entity
from keisei.worlds.scripts import Strategy
from keisei.worlds.world import Ints

BLOCK = 7  # cells of a side: a patch of 5 x 5, and what is around it
NEAR = 2.0  # how far apart apples help each other


class CommonsHarvestSettings(ZapSettings):
    """What commons harvest can be told."""

    num_agents: int = Field(6, ge=1, le=200, description="Agents in the world.")
    height: int = Field(19, ge=17, le=200, description="Rows of the grid, walls included.")
    width: int = Field(23, ge=9, le=200, description="Columns of the grid, walls included.")
    max_turns: int = Field(200, ge=1, description="Turns of an episode.")
    map: Literal["open", "closed"] = Field(
        "open", description="closed: there are walls around each patch, with one door."
    )
    growth: list[Annotated[float, Field(ge=0, le=1)]] = Field(
        default_factory=lambda: [0.0, 0.0025, 0.005, 0.025],
        min_length=1,
        description="Chance per turn that an apple grows again, by how many there are within two "
        "cells: none, one, two, three or more.",
    )


class CommonsHarvest(ZapWorld):
    """An apple is worth 1. It grows again on its cell, the sooner the more apples are near.

    There are two rows of patches, and a way between them on which the agents begin.

    >>> world = CommonsHarvest(copies=2, seed=1)
    >>> world.reset()
    >>> str(world).count("o")  # 6 patches of 13 apples
    78
    """

    name = "commons_harvest"
    entities: ClassVar[tuple[Entity, ...]] = (
        Entity("grass", ".", color="#d9e8c5"),
        Entity("wall", "#", solid=True, color="#4a4a55"),
        Entity("apple", "o", layer=1, color="#c8243d", shape="circle"),
        Entity("agent", "A", layer=1, solid=True, color="#2563a8", shape="circle"),
    )
    actions = ("up", "down", "left", "right", "stay")
    Settings = CommonsHarvestSettings
    settings: CommonsHarvestSettings

    def __init__(self, copies: int = 1, seed: int = 0, **settings: Any) -> None:
        super().__init__(copies, seed, **settings)
        apples: list[int] = []
        fences: list[int] = []
        for top in (1, self.settings.height - 1 - BLOCK):
            door = BLOCK - 1 if top == 1 else 0  # towards the way between the rows
            for left in range(1, self.settings.width - BLOCK, BLOCK):
                for row, column in np.ndindex(BLOCK, BLOCK):
                    cell = self.cell(top + row, left + column)
                    middle = BLOCK // 2
                    if (row - middle) ** 2 + (column - middle) ** 2 <= NEAR**2:
                        apples.append(cell)
                    elif (row in (0, 6) or column in (0, 6)) and (row, column) != (door, middle):
                        fences.append(cell)
        self._apples: Ints = np.array(apples)
        self._fences: Ints = np.array(fences if self.settings.map == "closed" else [], np.int64)
        way = np.arange(self.cell(1 + BLOCK, 0), self.cell(self.settings.height - 1 - BLOCK, 0))
        self.home = np.intersect1d(self.inside, way)
        rows, columns = np.divmod(self._apples, self.cell(1, 0) - self.cell(0, 0))
        apart = np.hypot(rows[:, None] - rows, columns[:, None] - columns)
        self._near = ((apart > 0) & (apart <= NEAR)).astype(np.float32)
        self._growth = np.array(self.settings.growth)

    def populate(self) -> None:
        self.build_walls()
        self.put("wall", self.everywhere(self._fences))
        self.put("apple", self.everywhere(self._apples))
        self.place_agents(self.home)

    def apples(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Where apples are now [copies, cells that can have one]."""
        return self.grid[1][self.everywhere(self._apples)] == self.code["apple"]

    def transition(self) -> None:
        cells = self.everywhere(self._apples)
        near = (self.apples() @ self._near).astype(np.int64)  # of each cell: how many are near
        chance = self._growth[np.minimum(near, len(self._growth) - 1)]
        grows = chance > self.streams.uniforms(len(self._apples)).T
        self.put("apple", cells, grows & (self.grid[1][cells] == 0))

    def act(self, agent: int, actions: Ints) -> None:
        there = self.ahead(agent, actions)
        self.rewards[agent] += self.grid[1][there] == self.code["apple"]
        self.walk(agent, there)
        self.zap(agent, actions)

    def metrics(self) -> dict[str, Any]:
        return super().metrics() | {"apples left": self.apples().sum(axis=1)}

    @classmethod
    def strategies(cls, number: int) -> dict[str, Strategy]:
        return {
            "cooperate": Strategy(("apple",), spare=len(cls.Settings().growth)),
            "defect": Strategy(("apple",)),
        }
