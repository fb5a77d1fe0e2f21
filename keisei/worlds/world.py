"""A grid world, in as many copies as you like: everything is an array over the copies.

A world is a class with a list of entities, a list of actions and three methods::

    class Meadow(World):
        name = "meadow"
        entities = (
            Entity("grass", "."),
            Entity("wall", "#", solid=True),
            Entity("flower", "*", layer=1),
            Entity("agent", "A", layer=1, solid=True),
        )
        actions = ("up", "down", "left", "right")

        def populate(self): ...            # the start of an episode
        def transition(self): ...          # what changes by itself, before the agents look
        def act(self, agent, actions): ... # what an agent does, in all copies at once

A cell of the grid has one entity in each layer. Entities are numbers: look at a cell with `look`,
which adds up the layers, and compare with `code["flower"]`. A place is one number as well, and
counts through all copies, so that `self.positions[agent]` [copies] picks the agent's cell in each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from keisei.settings import ConfigError
from keisei.worlds.entities import MAX_SUMS, WAYS
from keisei.worlds.grid import (
    FACING_NAMES,
    STEPS,
    Bools,
    Codes,
    Grid,
    Ints,
    WorldSettings,
    read_world_settings,
)
from keisei.worlds.scripts import Strategy

__all__ = ["Bools", "Codes", "Floats", "Ints", "World", "WorldSettings", "read_world_settings"]

Floats = npt.NDArray[np.float32]

WAY_NAMES = ("up", "right", "down", "left")
TURNS = {"turn left": -1, "turn right": 1}  # quarters to the right


class World(Grid):
    """The base of all grid worlds; see the module's text for how to write one."""

    actions: tuple[str, ...]
    facing_actions: ClassVar[tuple[str, ...]] = ()  # more of them, where agents face somewhere
    Settings: ClassVar[type[WorldSettings]] = WorldSettings
    present: ClassVar[None] = None  # all agents are there, always
    moves: ClassVar[tuple[Floats, ...]] = ()  # no action is a row of numbers
    times_out = False  # can agents be timed out?
    # What is kept; and arrays with a row for each agent, which a random order of acting shuffles.
    _of_agents = ("positions", "bodies", "facing", "out")
    state_names: ClassVar[tuple[str, ...]] = ("grid", "done", *_of_agents)
    agent_names: ClassVar[tuple[str, ...]] = ("rewards", "numbers", *_of_agents)

    def __init__(self, copies: int = 1, seed: int = 0, **settings: Any) -> None:
        given = read_world_settings(self.Settings, self._command_name(), settings)
        super().__init__(given, copies, seed)
        self.turn = 0
        if given.facing:
            renamed = (FACING_NAMES.get(action, action) for action in self.actions)
            self.actions = (*renamed, *TURNS, *self.facing_actions)
        self._make_agents()
        self.done: Bools = np.zeros(copies, np.bool_)  # a world sets it where an episode has ended
        self.populated = False

    # -- what a world defines ------------------------------------------------------------------

    def populate(self) -> None:
        """Fill the empty grid for a new episode, and place the agents."""
        raise NotImplementedError

    def transition(self) -> None:
        """Change what changes by itself; called before the agents look."""

    def act(self, agent: int, actions: Ints) -> None:
        """Let one agent act in all copies; its rewards are added to `self.rewards[agent]`.

        In a random order, `agent` is a row of the arrays in `agent_names`, and the number of the
        agent in it differs between the copies: `self.numbers[agent]`.
        """
        raise NotImplementedError

    def metrics(self) -> Mapping[str, Any]:
        """Numbers for the run's metrics, called when an epoch is over, before the next begins.

        Each is a number, an array [copies], or an array [agents, copies], which is shown by agent.
        """
        return {}

    @classmethod
    def strategies(cls, number: int) -> dict[str, Strategy]:
        """How an agent of this number can `cooperate` and `defect`: see `schelling.py`."""
        return {}

    def timed_out(self) -> Bools | None:
        """Who cannot act for a while [agents, copies]; None in a world where everybody can."""
        return ~self.can_act if self.times_out else None

    # -- an episode ----------------------------------------------------------------------------

    def reset(self) -> None:
        """Begin a new episode in every copy."""
        self.turn = 0
        self.grid[:] = 0
        self.bodies[:] = self.code["agent"]
        self.rewards[:] = self.out[:] = 0
        self.done[:] = False
        if self.settings.facing:
            self.facing[:] = self.streams.uniforms(self.num_agents) * WAYS
        self.populate()
        self.populated = True

    def begin_turn(self) -> None:
        """The world's own part of a turn; where an episode is over, a new one begins."""
        if not self.populated or self.turn >= self.max_turns:
            self.reset()
        elif self.done.any():
            self._begin_again()
        self.rewards[:] = 0
        self._change()

    def end_turn(self) -> tuple[Floats, Bools, Bools]:
        """Rewards of this turn, where the episode has ended, and where it is cut off by time.

        Each is [agents, copies]. What would follow an end is nothing; what would follow a cut is
        only not played, and `after_cut` shows it.
        """
        self.turn += 1
        done = np.repeat(self.done[None], self.num_agents, axis=0)
        return self.rewards.copy(), done, ~done & (self.turn >= self.max_turns)

    def step(self, actions: Ints, order: Ints | None = None) -> tuple[Floats, Bools, Bools]:
        """Let all agents act [agents, copies], the first one first, or in the order of each copy.

        `order` [agents, copies] has the agents' numbers, the first to act first: `draw_order`.
        """
        if order is not None:
            actions = np.take_along_axis(actions, order, axis=0)
            self._arrange(order)
        for agent in range(self.num_agents):
            self.let_act(agent, actions[agent])
        if order is not None:
            self._arrange(order.argsort(axis=0))
        return self.end_turn()

    def step_in_random_order(self, actions: Ints) -> tuple[Floats, Bools, Bools]:
        """The same, in an order that is drawn for each copy."""
        return self.step(actions, self.draw_order())

    def let_act(self, agent: int, actions: Ints) -> Floats:
        """Let one agent act, in the copies in which it can; returns what it got by that at once.

        It turns before anything else.
        """
        before = self.rewards[agent].copy()
        if self.times_out:
            actions = np.where(self.out[agent] > 0, self.actions.index("stay"), actions)
        if self.settings.facing:
            self.facing[agent] = (self.facing[agent] + self._turn_of[actions]) % WAYS
            self.show(agent)
        self.act(agent, actions)
        return self.rewards[agent] - before

    @property
    def can_act(self) -> Bools:
        """Who is not timed out [agents, copies]."""
        return self.out == 0

    @property
    def over(self) -> Bools:
        """Where an episode is over before its time [copies]."""
        return self.done

    def draw_order(self) -> Ints:
        """An order of acting for each copy [agents, copies], by each copy's own stream."""
        return self.streams.uniforms(self.num_agents).argsort(axis=0)

    def after_cut(self) -> Codes:
        """What all agents would see next, had time not cut the episode off."""
        self._change()
        return self.pov()

    def pov(self, agent: int | None = None) -> Codes:
        """The window that an agent sees [copies, cells], or all agents [agents, copies, cells].

        One byte a cell: the sum of its entities' numbers. `view.encode` turns it into planes. Where
        agents face somewhere, that is up in their window. Who is timed out sees nothing.
        """
        who = slice(None) if agent is None else agent
        window = self._windows[self.facing[who]] if self.settings.facing else self._windows[0]
        cells = self.positions[who][..., None] + window
        if not self.settings.distinct_agents:
            seen = self.look(cells)
        else:
            # Only while somebody looks: else the marks would have to move with every step.
            self.grid[-1][self.positions] = self._marks[self.numbers]
            seen = self.look(cells)
            self.grid[-1][self.positions] = 0
        if self.settings.facing:
            seen = self._turned.take(self.facing[who][..., None] * MAX_SUMS + seen)
        if self.times_out:
            seen[self.out[who] > 0] = 0
        return seen

    def close(self) -> None:
        """Nothing is open; a world that wraps something else closes it here."""

    # -- tools for writing a world -------------------------------------------------------------

    def ahead(self, agent: int, actions: Ints) -> Ints:
        """Where an agent's action leads; its own cell if the action is not a step."""
        way = self.facing[agent] if self.settings.facing else 0
        there: Ints = self.positions[agent] + self._step_of[way, actions]
        return there

    def walk(self, agent: int, there: Ints) -> Bools:
        """Move an agent, in each copy where nothing solid is there; returns where it moved."""
        here = self.positions[agent]
        free = self.is_free(there)
        now = np.where(free, there, here)
        self.grid[1][here] = 0
        self.positions[agent] = now
        self.show(agent)
        return free

    def show(self, agent: int | slice = slice(None)) -> None:
        """Put an agent's body, or those of all, where it is: whenever it has changed or turned."""
        body = self.bodies[agent]
        if self.settings.facing:
            body = body + (self._face * self.facing[agent]).astype(np.uint8)
        self.grid[1][self.positions[agent]] = body

    def time_out(self, agents: Ints, copies: Ints, turns: int) -> None:
        """Take these agents off the grid, for so many turns with this one.

        Then they come back on a random free cell of `home`, which is all of the map if a world does
        not say otherwise.
        """
        if not turns:
            return
        self.grid[1][self.positions[agents, copies]] = 0
        self.positions[agents, copies] = self.first_cell[copies]  # a corner that nobody sees
        self.out[agents, copies] = turns

    def place_agents(self, cells: Ints) -> None:
        """Put the agents on different ones of these cells."""
        self.positions[:] = self.draw_distinct(cells, self.num_agents)
        self.show()

    # -- keeping and showing -------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next turn depends on."""
        arrays = {name: getattr(self, name).copy() for name in self.state_names}
        streams = self.streams.state.copy()
        return {**arrays, "streams": streams, "turn": self.turn, "populated": self.populated}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a `state_dict()` of the same world with as many copies."""
        for name in self.state_names:
            if name not in state:
                continue  # an older checkpoint: the next episode sets it
            mine = getattr(self, name)
            if mine.shape != state[name].shape:
                raise ValueError(f"{name} has the shape {state[name].shape}, not {mine.shape}")
            mine[:] = state[name]
        self.streams.state = state["streams"].copy()
        self.turn, self.populated = state["turn"], state["populated"]

    def places(self, copy: int = 0) -> list[tuple[int, int]]:
        """Where the agents of a copy stand: (row, column); below 0 for one that is timed out."""
        pad = self.rim
        cells = (self.positions[:, copy] - self.first_cell[copy]).tolist()
        return [(cell // self._stride - pad, cell % self._stride - pad) for cell in cells]

    def heading(self, agent: int, copy: int = 0) -> str | None:
        """Where an agent of a copy faces; None if agents do not."""
        return WAY_NAMES[self.facing[agent, copy]] if self.settings.facing else None

    # -- within an episode ---------------------------------------------------------------------

    def _arrange(self, order: Ints) -> None:
        """Sort the rows of all arrays of agents, in each copy by its own order."""
        for name in self.agent_names:
            array = getattr(self, name)
            index = order.reshape(order.shape + (1,) * (array.ndim - 2))
            array[:] = np.take_along_axis(array, index, axis=0)

    def _begin_again(self) -> None:
        """A new episode where the last one has ended; the other copies notice nothing of it."""
        ended, before, turn = self.done.copy(), self.state_dict(), self.turn
        self.reset()
        self.turn = turn
        for name in self.state_names:
            array = getattr(self, name)
            if array.shape[-1] % self.copies:
                raise ConfigError(
                    f"world {self.name}: {name} must have the copies as its last axis, so that an "
                    "episode can end in one of them"
                )
            others = np.repeat(~ended, array.shape[-1] // self.copies)
            np.copyto(array, before[name], where=others)
        self.streams.state = np.where(ended, self.streams.state, before["streams"])

    def _change(self) -> None:
        if self.times_out:
            self._come_back()
        self.transition()

    def _come_back(self) -> None:
        """Bring agents back whose time is over, where the cell that was drawn for them is free."""
        self.out[:] = np.maximum(self.out - 1, 0)
        # Drawn for all: what a copy draws must not depend on who is out in another.
        ranks = (self.streams.uniforms(self.num_agents) * len(self.home)).astype(np.int64)
        away = self.positions == self.first_cell
        for agent in np.flatnonzero(away.any(axis=1)).tolist():
            there = self.home[ranks[agent]] + self.first_cell
            free = self.is_free(there)
            back = away[agent] & (self.out[agent] == 0)
            self.out[agent, back & ~free] = 1
            self.positions[agent] = np.where(back & free, there, self.positions[agent])
            self.show(agent)

    # -- setting up ----------------------------------------------------------------------------

    def _make_agents(self) -> None:
        """The arrays of agents, and what their actions do by themselves."""
        shape = (self.num_agents, self.copies)
        self.positions: Ints = np.zeros(shape, np.int64)
        self.bodies: Codes = np.zeros(shape, np.uint8)
        self.facing: Ints = np.zeros(shape, np.int64)  # up, right, down or left
        self.out: Ints = np.zeros(shape, np.int64)  # turns that it is still timed out
        self.rewards: Floats = np.zeros(shape, np.float32)
        self.numbers: Ints = np.repeat(np.arange(self.num_agents)[:, None], self.copies, axis=1)
        self.home = self.inside  # where those who were timed out come back
        steps = [STEPS.get(action) for action in self.actions]
        ways = [self.ways.take(np.arange(WAYS) + (step or 0), mode="wrap") for step in steps]
        known = np.array([step is not None for step in steps])
        self._step_of: Ints = np.stack(ways, axis=1) * known  # by the way that an agent faces
        self._turn_of: Ints = np.array([TURNS.get(action, 0) for action in self.actions])
        self.num_actions = [len(self.actions)] * self.num_agents
