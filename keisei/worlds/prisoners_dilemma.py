"""Prisoner's dilemma in an arena: collect what to cooperate or defect with, then meet somebody."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field, model_validator

from keisei.worlds.beams import BeamSettings, BeamWorld
from keisei.worlds.entities import Entity
from keisei.worlds.scripts import Strategy
from keisei.worlds.world import Bools, Codes, Floats, Ints

STONES = ("green", "red")  # to cooperate, to defect


class PrisonersDilemmaSettings(BeamSettings):
    """What the prisoner's dilemma can be told."""

    num_agents: int = Field(6, ge=2, le=200, description="Agents in the world.")
    height: int = Field(15, ge=5, le=200, description="Rows of the grid, walls included.")
    width: int = Field(15, ge=5, le=200, description="Columns of the grid, walls included.")
    max_turns: int = Field(200, ge=1, description="Turns of an episode.")
    stones: int = Field(10, ge=1, description="Cells with green stones, and as many with red ones.")
    growth: float = Field(
        0.04, ge=0, le=1, description="Chance per turn that a stone that was taken is there again."
    )
    reward: float = Field(3.0, description="What both get if both cooperate.")
    sucker: float = Field(0.0, description="What one gets who cooperates with one who defects.")
    temptation: float = Field(5.0, description="What one gets who defects against a cooperator.")
    punishment: float = Field(1.0, description="What both get if both defect.")

    @model_validator(mode="after")
    def _agents_meet_by_a_beam(self) -> PrisonersDilemmaSettings:
        if not self.facing:
            raise ValueError("facing: agents interact by a beam, so they must face somewhere")
        return self


class PrisonersDilemma(BeamWorld):
    """Agents take green and red stones; two who have some play by `interact` with what they have.

    The share of green ones is the chance that an agent cooperates. Then both drop all, and are away
    for `timeout` turns.

    >>> world = PrisonersDilemma(copies=2, seed=1)
    >>> world.reset()
    >>> [str(world).count(letter) for letter in "gr"]
    [10, 10]
    """

    name = "prisoners_dilemma"
    entities: ClassVar[tuple[Entity, ...]] = (
        Entity("floor", ".", color="#e9e4da"),
        Entity("wall", "#", solid=True, color="#4a4a55"),
        Entity("green", "g", layer=1, color="#2e9e4f", shape="circle"),
        Entity("red", "r", layer=1, color="#d22f27", shape="diamond"),
        Entity("agent", "A", layer=1, solid=True, color="#2563a8", shape="circle"),
        Entity("ready", "R", layer=1, solid=True, color="#f4d35e", shape="circle"),
        # What an agent sees in its own cell, and nobody else sees.
        Entity("mostly green", "G", layer=1, solid=True, color="#2e9e4f", shape="circle"),
        Entity("mostly red", "D", layer=1, solid=True, color="#d22f27", shape="circle"),
    )
    body_names = ("agent", "ready")
    actions = ("up", "down", "left", "right", "stay")
    facing_actions = ("interact",)
    Settings = PrisonersDilemmaSettings
    settings: PrisonersDilemmaSettings
    _of_each = ("green", "red", "met", "greens")
    state_names = (*BeamWorld.state_names, "stones", *_of_each)
    agent_names = (*BeamWorld.agent_names, *_of_each)

    def __init__(self, copies: int = 1, seed: int = 0, **settings: Any) -> None:
        super().__init__(copies, seed, **settings)
        shape = (self.num_agents, copies)
        self.stones: Ints = np.zeros((2 * self.settings.stones, copies), np.int64)  # where
        self._kinds: Codes = np.repeat([self.code[name] for name in STONES], self.settings.stones)
        self.green: Ints = np.zeros(shape, np.int64)  # stones that an agent has
        self.red = self.green.copy()
        self.met = self.green.copy()  # interactions in this episode
        self.greens: Floats = np.zeros(shape, np.float32)  # the sum of its shares of green in them

    def populate(self) -> None:
        self.build_walls()
        self.green[:] = self.red[:] = self.met[:] = 0
        self.greens[:] = 0
        count = len(self.stones)
        cells = self.draw_distinct(self.inside, count + self.num_agents)
        self.stones[:] = cells[:count]
        for place, code in zip(self.stones, self._kinds, strict=True):
            self.grid[1][place] = code
        self.positions[:] = cells[count:]
        self.show()

    def transition(self) -> None:
        comes = self.streams.uniforms(len(self.stones)) < self.settings.growth
        comes &= self.grid[1][self.stones] == 0
        kinds = np.broadcast_to(self._kinds[:, None], comes.shape)
        self.grid[1][self.stones[comes]] = kinds[comes]

    def act(self, agent: int, actions: Ints) -> None:
        there = self.ahead(agent, actions)
        thing = self.grid[1][there]
        self.green[agent] += thing == self.code["green"]
        self.red[agent] += thing == self.code["red"]
        self.bodies[agent] = np.where(self.ready[agent], self.code["ready"], self.code["agent"])
        self.walk(agent, there)
        firing = (actions == self.actions.index("interact")) & self.ready[agent]
        if firing.any():
            self._interact(agent, firing)

    @property
    def ready(self) -> Bools:
        """Who has a stone [agents, copies]."""
        return self.green + self.red > 0

    def _interact(self, agent: int, firing: Bools) -> None:
        """With the first agent in the beam that is ready, in each copy."""
        rows, copies = self.hits(agent, firing, "interact")
        ready = self.ready[rows, copies]
        copies, first = np.unique(copies[ready], return_index=True)
        others = rows[ready][first]
        pair = np.stack([np.full_like(others, agent), others])
        green, red = self.green[pair, copies], self.red[pair, copies]
        share = (green / (green + red)).astype(np.float32)
        self.rewards[pair, copies] += self._payoff(share, share[::-1])
        self.met[pair, copies] += 1
        self.greens[pair, copies] += share
        self.green[pair, copies] = self.red[pair, copies] = 0
        self.bodies[pair, copies] = self.code["agent"]
        self.show()
        self.time_out(pair, copies, self.settings.timeout)

    def _payoff(self, mine: Floats, yours: Floats) -> Floats:
        """What one gets who cooperates with this chance, and the other with that."""
        rules = self.settings
        with_friend = mine * rules.reward + (1 - mine) * rules.temptation
        with_foe = mine * rules.sucker + (1 - mine) * rules.punishment
        return yours * with_friend + (1 - yours) * with_foe

    def pov(self, agent: int | None = None) -> Codes:
        """An agent also sees which stones it has more of, in its own cell."""
        seen = super().pov(agent)
        who = slice(None) if agent is None else agent
        mostly = np.where(
            self.green[who] >= self.red[who], self.code["mostly green"], self.code["mostly red"]
        )
        more = (mostly - self.code["ready"]) * (self.ready & self.can_act)[who]
        centre = self.rim * (2 * self.settings.vision + 1) + self.settings.vision
        seen[..., centre] += more.astype(np.uint8)
        return seen

    def metrics(self) -> dict[str, Any]:
        share = self.greens.sum(axis=0) / np.maximum(self.met.sum(axis=0), 1)
        return {"meetings": self.met, "green share": share}

    @classmethod
    def strategies(cls, number: int) -> dict[str, Strategy]:
        meet = Strategy(("ready", "agent"), do="interact")
        return {
            "cooperate": Strategy(("green",), loaded=meet),
            "defect": Strategy(("red",), loaded=meet),
        }
