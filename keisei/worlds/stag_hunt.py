"""Stag hunt: a stag takes two hunters acting together; a hare is small, but safe."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from keisei.worlds.entities import Entity
from keisei.worlds.scripts import Strategy
from keisei.worlds.world import Bools, Ints, World, WorldSettings


class StagHuntSettings(WorldSettings):
    """What the stag hunt can be told."""

    num_agents: int = Field(4, ge=2, le=200, description="Agents in the world.")
    height: int = Field(13, ge=5, le=200, description="Rows of the grid, walls included.")
    width: int = Field(13, ge=5, le=200, description="Columns of the grid, walls included.")
    stags: int = Field(3, ge=0, description="Stags in the world.")
    hares: int = Field(
        3, ge=0, description="Hares in the world; with 0, only hunting together pays."
    )
    stag_reward: float = Field(
        5.0, description="Reward for each of the agents that hunt a stag together."
    )
    hare_reward: float = Field(0.5, description="Reward for hunting a hare, alone.")


class StagHunt(World):
    """`hunt` catches a hare beside the agent, or a stag if another agent hunts it too, that turn.

    What was caught comes again elsewhere at once.

    >>> world = StagHunt(copies=3, seed=1, hares=2)
    >>> world.reset()
    >>> [str(world).count(letter) for letter in "Sh"]
    [3, 2]
    """

    name = "stag_hunt"
    entities: ClassVar[tuple[Entity, ...]] = (
        Entity("grass", ".", color="#d9e8c5"),
        Entity("wall", "#", solid=True, color="#4a4a55"),
        Entity("hare", "h", layer=1, solid=True, color="#b98a5a", shape="circle"),
        Entity("stag", "S", layer=1, solid=True, color="#6b3f1d", shape="diamond"),
        Entity("agent", "A", layer=1, solid=True, color="#2563a8", shape="circle"),
    )
    actions = ("up", "down", "left", "right", "hunt", "stay")
    Settings = StagHuntSettings
    settings: StagHuntSettings
    state_names = (*World.state_names, "prey", "stags", "hares")
    agent_names = (*World.agent_names, "stags", "hares")

    def __init__(self, copies: int = 1, seed: int = 0, **settings: Any) -> None:
        super().__init__(copies, seed, **settings)
        count = self.settings.stags + self.settings.hares
        self.prey: Ints = np.zeros((count, copies), np.int64)  # where; the stags first
        self._kinds = ["stag"] * self.settings.stags + ["hare"] * self.settings.hares
        # What each agent has caught in this episode, alone or with another.
        self.stags: Ints = np.zeros((self.num_agents, copies), np.int64)
        self.hares = self.stags.copy()
        # The first agent to hunt this prey in this turn; -1 for none.
        self._hunter: Ints = np.full((count, copies), -1)
        self._next = self.prey.copy()  # where prey that is caught in this turn comes again

    def populate(self) -> None:
        self.build_walls()
        cells = self.draw_distinct(self.inside, len(self._kinds) + self.num_agents)
        self.stags[:] = self.hares[:] = 0
        self.prey[:] = cells[: len(self._kinds)]
        for kind, where in zip(self._kinds, self.prey, strict=True):
            self.put(kind, where)
        self.positions[:] = cells[len(self._kinds) :]
        self.show()

    def transition(self) -> None:
        self._hunter[:] = -1
        # Drawn every turn: what a copy draws must not depend on what is caught in another.
        for number in range(len(self._kinds)):
            self._next[number] = self.draw_from(self.inside)

    def act(self, agent: int, actions: Ints) -> None:
        self.walk(agent, self.ahead(agent, actions))
        hunting = actions == self.actions.index("hunt")
        if not hunting.any():
            return
        stride = self.cell(1, 0) - self.cell(0, 0)
        for number, kind in enumerate(self._kinds):
            distance = np.abs(self.prey[number] - self.positions[agent])
            beside = hunting & ((distance == 1) | (distance == stride))
            if kind == "hare":
                self.rewards[agent, beside] += self.settings.hare_reward
                self.hares[agent] += beside
                self._comes_again(number, beside)
            else:
                self._hunt_stag(agent, number, beside)

    def metrics(self) -> dict[str, Any]:
        return {"stags": self.stags, "hares": self.hares}

    @classmethod
    def strategies(cls, number: int) -> dict[str, Strategy]:
        return {
            "cooperate": Strategy(("stag",), do="hunt"),
            "defect": Strategy(("hare",), do="hunt"),
        }

    def _hunt_stag(self, agent: int, number: int, beside: Bools) -> None:
        first = self._hunter[number]
        together = beside & (first >= 0)
        copies = np.flatnonzero(together)
        for hunter in (agent, first[together]):
            self.rewards[hunter, copies] += self.settings.stag_reward
            self.stags[hunter, copies] += 1
        first[beside] = np.where(together, -1, agent)[beside]
        self._comes_again(number, together)

    def _comes_again(self, number: int, caught: Bools) -> None:
        """Move the prey to the cell that was drawn; if that one is taken, it stays."""
        there = self._next[number]
        caught = caught & self.is_free(there)
        self.grid[1][self.prey[number][caught]] = 0
        self.put(self._kinds[number], there, caught)
        self.prey[number][caught] = there[caught]
