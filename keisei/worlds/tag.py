"""Tag: one agent is it, and hands it on by touching another."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from keisei.worlds.entities import Entity
from keisei.worlds.world import Bools, Ints, World, WorldSettings


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
    body_names = ("agent", "it", "pausing")
    actions = ("up", "down", "left", "right", "stay")
    Settings = TagSettings
    settings: TagSettings
    state_names = (*World.state_names, "it", "pause")
    agent_names = (*World.agent_names, "it")

    def __init__(self, copies: int = 1, seed: int = 0, **settings: Any) -> None:
        super().__init__(copies, seed, **settings)
        self.it: Bools = np.zeros((self.num_agents, copies), np.bool_)  # one agent in each copy
        self.pause: Ints = np.zeros(copies, np.int64)  # turns that it must still stand

    def populate(self) -> None:
        self.build_walls()
        self.put("wall", self.draw_distinct(self.inside, self.settings.pillars))
        self.pause[:] = 0
        first = (self.streams.uniform() * self.num_agents).astype(np.int64)
        self.it[:] = self.numbers == first
        free = self.draw_distinct(self.inside, self.settings.pillars + self.num_agents)
        self._place_on_free(free)
        self._show_it()

    def _place_on_free(self, candidates: Ints) -> None:
        """The agents take the first free ones; there are as many spare cells as pillars."""
        free_first = (~self.is_free(candidates)).argsort(axis=0, kind="stable")
        rank = free_first[: self.num_agents]
        self.positions[:] = np.take_along_axis(candidates, rank, axis=0)

    def _show_it(self) -> None:
        shown = np.where(self.pause > 0, self.code["pausing"], self.code["it"])
        self.bodies[:] = np.where(self.it, shown, self.code["agent"])
        self.show()

    def transition(self) -> None:
        self.pause[:] = np.maximum(self.pause - 1, 0)
        self._show_it()

    def act(self, agent: int, actions: Ints) -> None:
        here = self.positions[agent]
        moves = ~(self.it[agent] & (self.pause > 0))
        there = np.where(moves, self.ahead(agent, actions), here)
        tags = self.it[agent] & (there != here) & (self.grid[1][there] > 0)
        if tags.any():
            self._tag(agent, np.flatnonzero(tags), there[tags])
        self.walk(agent, there)

    def timed_out(self) -> Bools:
        return self.it & (self.pause > 0)

    def _tag(self, agent: int, copies: Ints, there: Ints) -> None:
        """In these copies, hand it on to the agent who stands there."""
        other = (self.positions[:, copies] == there).argmax(axis=0)
        self.rewards[agent, copies] += 1
        self.rewards[other, copies] -= 1
        self.it[agent, copies] = False
        self.it[other, copies] = True
        self.pause[copies] = self.settings.pause
        self.bodies[agent, copies] = self.code["agent"]
        self.bodies[other, copies] = self.code["pausing" if self.settings.pause else "it"]
        self.show()
