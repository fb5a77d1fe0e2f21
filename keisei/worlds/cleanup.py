"""Cleanup: apples grow only while somebody cleans the river, and cleaning feeds nobody."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field, model_validator

from keisei.worlds.beams import ZapSettings, ZapWorld
from keisei.worlds.entities import Entity
from keisei.worlds.scripts import Strategy
from keisei.worlds.world import Bools, Floats, Ints


class CleanupSettings(ZapSettings):
    """What cleanup can be told."""

    num_agents: int = Field(5, ge=1, le=200, description="Agents in the world.")
    height: int = Field(13, ge=6, le=200, description="Rows of the grid, walls included.")
    width: int = Field(17, ge=9, le=200, description="Columns of the grid, walls included.")
    max_turns: int = Field(200, ge=1, description="Turns of an episode.")
    facing: bool = Field(
        False,
        description="Agents face somewhere: they step, turn, clean by a beam and zap, and see one "
        "row behind them and the rest of the rows ahead.",
    )
    river_width: int = Field(4, ge=1, description="Columns of river, on the left.")
    orchard_width: int = Field(5, ge=1, description="Columns of orchard, on the right.")
    dirt_chance: float = Field(
        0.5, ge=0, le=1, description="Chance per turn that a river cell becomes dirty."
    )
    apple_chance: float = Field(
        1.0, ge=0, le=1, description="Chance per turn that an apple grows while the river is clean."
    )
    dirt_limit: float = Field(
        0.4, gt=0, le=1, description="Share of dirty river at which apples stop growing."
    )
    shared_reward: float = Field(
        0.0, ge=0, le=1, description="Share of every reward that is split equally among all agents."
    )

    @model_validator(mode="after")
    def _both_fit(self) -> CleanupSettings:
        if self.river_width + self.orchard_width > self.width - 2:
            raise ValueError(
                f"{self.river_width} columns of river and {self.orchard_width} of orchard do not "
                f"fit beside each other in {self.width - 2} (the width without its walls)"
            )
        return self


class Cleanup(ZapWorld):
    """An apple is worth 1. `clean` cleans the river cells around the agent, and is worth nothing.

    The dirtier the river, the fewer apples: each agent is better off if the others clean.

    >>> world = Cleanup(copies=2, seed=1)
    >>> world.reset()
    >>> world.dirt_share().tolist()  # an episode begins with a river as dirty as can be borne
    [0.4090909090909091, 0.4090909090909091]
    """

    name = "cleanup"
    entities: ClassVar[tuple[Entity, ...]] = (
        Entity("sand", ".", color="#efe3c2"),
        Entity("wall", "#", solid=True, color="#4a4a55"),
        Entity("river", "~", color="#6fb7e0"),
        Entity("dirt", "%", color="#7d6a4f"),
        Entity("orchard", ",", color="#cfe3b4"),
        Entity("apple", "o", layer=1, color="#c8243d", shape="circle"),
        Entity("agent", "A", layer=1, solid=True, color="#c8443d", shape="circle"),
    )
    actions = ("up", "down", "left", "right", "clean", "stay")
    Settings = CleanupSettings
    settings: CleanupSettings
    state_names = (*ZapWorld.state_names, "cleaned")
    agent_names = (*ZapWorld.agent_names, "cleaned")

    def __init__(self, copies: int = 1, seed: int = 0, **settings: Any) -> None:
        super().__init__(copies, seed, **settings)
        rows = self.inside.reshape(self.settings.height - 2, self.settings.width - 2)
        self._river: Ints = rows[:, : self.settings.river_width].reshape(-1)
        self._orchard: Ints = rows[:, -self.settings.orchard_width :].reshape(-1)
        self.home = rows[:, self.settings.river_width :].reshape(-1)
        self.cleaned: Ints = np.zeros((self.num_agents, copies), np.int64)  # cells, this episode
        reach = np.arange(-1, 2)
        self._around: Ints = (reach[:, None] * (rows[1, 0] - rows[0, 0]) + reach).reshape(-1)

    def populate(self) -> None:
        self.build_walls()
        self.put("river", self.everywhere(self._river))
        self.put("orchard", self.everywhere(self._orchard))
        dirty = int(np.ceil(self.settings.dirt_limit * len(self._river)))
        self.put("dirt", self.draw_distinct(self._river, dirty))
        self.cleaned[:] = 0
        self.place_agents(self.home)

    def dirt_share(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """How much of the river is dirty, in each copy."""
        river = self.grid[0][self.everywhere(self._river)]
        return (river == self.code["dirt"]).mean(axis=1)

    def transition(self) -> None:
        river = self.draw_from(self._river)
        self.put("dirt", river, self.streams.uniform() < self.settings.dirt_chance)
        cleanness = 1 - self.dirt_share() / self.settings.dirt_limit
        tree = self.draw_from(self._orchard)
        grows = self.streams.uniform() < self.settings.apple_chance * cleanness
        self.put("apple", tree, grows & (self.grid[1][tree] == 0))

    def act(self, agent: int, actions: Ints) -> None:
        there = self.ahead(agent, actions)
        self.rewards[agent] += self.grid[1][there] == self.code["apple"]
        self.walk(agent, there)
        cleaning = actions == self.actions.index("clean")
        if cleaning.any():
            self._clean(agent, cleaning)
        self.zap(agent, actions)

    def _clean(self, agent: int, cleaning: Bools) -> None:
        """Around the agent, or by a beam, each ray of which ends at the first dirt."""
        if self.settings.facing:
            copies, near, reached = self.beam(agent, cleaning, "clean", ends_at="dirt")
            near, reached = near.reshape(len(copies), -1), reached.reshape(len(copies), -1)
        else:
            copies = np.flatnonzero(cleaning)
            near = self.positions[agent, copies][:, None] + self._around
            reached = np.ones_like(near, np.bool_)
        dirty = reached & (self.grid[0][near] == self.code["dirt"])
        self.cleaned[agent, copies] += dirty.sum(axis=1)
        self.put("river", near, dirty)

    def metrics(self) -> dict[str, Any]:
        return super().metrics() | {"cleaned": self.cleaned, "dirt": self.dirt_share()}

    @classmethod
    def strategies(cls, number: int) -> dict[str, Strategy]:
        eat = Strategy(("apple", "orchard"), drift="right")
        clean = Strategy(("dirt", "river"), do="clean", drift="left", then=eat)
        return {"cooperate": clean, "defect": eat}

    def end_turn(self) -> tuple[Floats, Bools, Bools]:
        share = self.settings.shared_reward
        if share:
            self.rewards += share * (self.rewards.mean(axis=0) - self.rewards)
        return super().end_turn()
