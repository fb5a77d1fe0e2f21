"""Tag: one agent is it, and hands it on by touching another."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from keisei.worlds.world import Entity, Ints, World, WorldSettings


class TagSettings(WorldSettings):
    """What tag can be told."""

    num_agents: int = Field(4, ge=2, le=200, description="Agents in the world.")
    height: int = Field(13, ge=5, le=200, description="Rows of the grid, walls included.")
    width: int = Field(13, ge=5, le=200, description="Columns of the grid, walls included.")
    pillars: int = Field(8, ge=0, description="Walls inside the field, to hide behind.")
    pause: int = Field(
        5,
        ge=0,
        description="Turns that a tagged agent must stand still, including the turn of the tag.",
    )


class Tag(World):
    """The agent that is "it" gets 1 for tagging another, which loses 1, pauses, and is "it" next.

    >>> world = Tag(copies=3, seed=1)
    >>> world.reset()
    >>> [str(world).count(letter) for letter in "IA"]  # one is it, three run
    [1, 3]
    """

    name = "tag"
    entities: ClassVar[tuple[Entity, ...]] = (
        Entity("grass", ".", color="#d9e8c5"),
        Entity("wall", "#", solid=True, color="#4a4a55"),
        Entity("agent", "A", layer=1, solid=True, color="#2563a8", shape="circle"),
        Entity("it", "I", layer=1, solid=True, color="#d22f27", shape="diamond"),
        Entity("pausing", "P", layer=1, solid=True, color="#e39a95", shape="diamond"),
    )
    actions = ("up", "down", "left", "right", "stay")
    Settings = TagSettings
    settings: TagSettings
    state_names = (*World.state_names, "it", "pause")

    def __init__(self, copies: int = 1, seed: int = 0, **settings: Any) -> None:
        super().__init__(copies, seed, **settings)
        self.it: Ints = np.zeros(copies, np.int64)  # which agent
        self.pause: Ints = np.zeros(copies, np.int64)  # turns that it must still stand

    def populate(self) -> None:
        self.build_walls()
        self.put("wall", self.draw_distinct(self.inside, self.settings.pillars))
        self.pause[:] = 0
        self.it[:] = (self.streams.uniform() * self.num_agents).astype(np.int64)
        free = self.draw_distinct(self.inside, self.settings.pillars + self.num_agents)
        self._place_on_free(free)
        self._show_it()

    def _place_on_free(self, candidates: Ints) -> None:
        """Each agent takes the first free one; there are as many spare cells as pillars."""
        for agent in range(self.num_agents):
            rank = self.is_free(candidates).argmax(axis=0)
            self.positions[agent] = candidates[rank, np.arange(self.copies)]
            self.grid[1][self.positions[agent]] = self.bodies[agent]

    def _show_it(self) -> None:
        copies = np.arange(self.copies)
        self.bodies[:] = self.code["agent"]
        shown = np.where(self.pause > 0, self.code["pausing"], self.code["it"])
        self.bodies[self.it, copies] = shown
        for agent in range(self.num_agents):
            self.grid[1][self.positions[agent]] = self.bodies[agent]

    def transition(self) -> None:
        self.pause[:] = np.maximum(self.pause - 1, 0)
        self._show_it()

    def act(self, agent: int, actions: Ints) -> None:
        is_it = self.it == agent
        moves = ~(is_it & (self.pause > 0))
        there = np.where(moves, self.ahead(agent, actions), self.positions[agent])
        for other in range(self.num_agents):
            if other != agent:
                self._tag(agent, other, is_it & moves & (self.positions[other] == there))
        self.walk(agent, there)

    def _tag(self, agent: int, other: int, where: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
        self.rewards[agent, where] += 1
        self.rewards[other, where] -= 1
        self.it[where] = other
        self.pause[where] = self.settings.pause
        if where.any():
            self._show_it()
