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
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import Field, ValidationError

from keisei.random_streams import RandomStreams
from keisei.settings import ConfigError, Section, explain, setting_names
from keisei.worlds.entities import Entity, Numbering
from keisei.worlds.scripts import Strategy
from keisei.worlds.view import View

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Codes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]

SomeSettings = TypeVar("SomeSettings", bound=Section)

STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


class WorldSettings(Section):
    """What every grid world can be told."""

    num_agents: int = Field(2, ge=1, le=200, description="Agents in the world.")
    height: int = Field(21, ge=3, le=200, description="Rows of the grid, walls included.")
    width: int = Field(21, ge=3, le=200, description="Columns of the grid, walls included.")
    vision: int = Field(
        4, ge=1, le=20, description="How many cells an agent sees in each direction."
    )
    max_turns: int = Field(100, ge=1, description="Turns of an episode.")
    distinct_agents: bool = Field(
        False, description="Agents can tell each other apart: each has a plane of its own."
    )


def read_world_settings(
    kind: type[SomeSettings], world: str, given: dict[str, Any]
) -> SomeSettings:
    """The settings of a world; what cannot be used is refused with the world's name."""
    try:
        return kind(**given)
    except ValidationError as error:
        names = setting_names(kind)
        lines = "; ".join(explain(e, names) for e in error.errors())
        lines = lines.replace("`keisei config`", f"`keisei worlds config {world}`")
        raise ConfigError(f"world {world}: {lines}") from None


class World:
    """The base of all grid worlds; see the module's text for how to write one."""

    name: ClassVar[str]
    entities: ClassVar[tuple[Entity, ...]]
    actions: ClassVar[tuple[str, ...]]
    Settings: ClassVar[type[WorldSettings]] = WorldSettings
    present: ClassVar[None] = None  # all agents are there, always
    state_names: ClassVar[tuple[str, ...]] = ("grid", "positions", "bodies", "done")  # kept
    # Arrays with a row for each agent: a random order of acting shuffles their rows for the turn.
    agent_names: ClassVar[tuple[str, ...]] = ("positions", "bodies", "rewards", "numbers")

    def __init__(self, copies: int = 1, seed: int = 0, **settings: Any) -> None:
        self.settings = read_world_settings(self.Settings, self._command_name(), settings)
        self.copies = copies
        self.num_agents = self.settings.num_agents
        self.max_turns = self.settings.max_turns
        self.turn = 0
        self.streams = RandomStreams(seed, copies)
        self._number_entities()
        self._make_grid()
        self.rewards: Floats = np.zeros((self.num_agents, copies), np.float32)
        self.done: Bools = np.zeros(copies, np.bool_)  # a world sets it where an episode has ended
        self.numbers: Ints = np.repeat(np.arange(self.num_agents)[:, None], copies, axis=1)
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
        return None

    # -- an episode ----------------------------------------------------------------------------

    def reset(self) -> None:
        """Begin a new episode in every copy."""
        self.turn = 0
        self.grid[:] = 0
        self.bodies[:] = self.code["agent"]
        self.rewards[:] = 0
        self.done[:] = False
        self.populate()
        self.populated = True

    def begin_turn(self) -> None:
        """The world's own part of a turn; where an episode is over, a new one begins."""
        if not self.populated or self.turn >= self.max_turns:
            self.reset()
        elif self.done.any():
            self._begin_again()
        self.rewards[:] = 0
        self.transition()

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
            self.act(agent, actions[agent])
        if order is not None:
            self._arrange(order.argsort(axis=0))
        return self.end_turn()

    @property
    def over(self) -> Bools:
        """Where an episode is over before its time [copies]."""
        return self.done

    def draw_order(self) -> Ints:
        """An order of acting for each copy [agents, copies], by each copy's own stream."""
        return self.streams.uniforms(self.num_agents).argsort(axis=0)

    def after_cut(self) -> Codes:
        """What all agents would see next, had time not cut the episode off."""
        self.transition()
        return self.pov()

    def pov(self, agent: int | None = None) -> Codes:
        """The window that an agent sees [copies, cells], or all agents [agents, copies, cells].

        One byte a cell: the sum of its entities' numbers. `view.encode` turns it into planes.
        """
        centre = self.positions if agent is None else self.positions[agent]
        if not self.settings.distinct_agents:
            return self.look(centre[..., None] + self._window)
        # Only while somebody looks: else the marks would have to move with every step.
        self.grid[-1][self.positions] = self._marks[self.numbers]
        seen = self.look(centre[..., None] + self._window)
        self.grid[-1][self.positions] = 0
        return seen

    def close(self) -> None:
        """Nothing is open; a world that wraps something else closes it here."""

    # -- tools for writing a world -------------------------------------------------------------

    def look(self, cells: Ints) -> Codes:
        """The entities of these cells, one number each: the sum over the layers."""
        seen: Codes = self.grid[0].take(cells)
        for layer in self.grid[1:]:
            seen += layer.take(cells)
        return seen

    def ahead(self, agent: int, actions: Ints) -> Ints:
        """Where an agent's action leads; its own cell if the action is not a step."""
        there: Ints = self.positions[agent] + self._step_of[actions]
        return there

    def walk(self, agent: int, there: Ints) -> Bools:
        """Move an agent, in each copy where nothing solid is there; returns where it moved."""
        here = self.positions[agent]
        free = self.is_free(there)
        now = np.where(free, there, here)
        self.grid[1][here] = 0
        self.grid[1][now] = self.bodies[agent]
        self.positions[agent] = now
        return free

    def is_free(self, cells: Ints) -> Bools:
        """Can one walk there?"""
        return ~self._solid[self.look(cells)]

    def is_solid(self, codes: Codes) -> Bools:
        """Which of these cells, as `look` and `pov` show them, cannot be walked into?"""
        return self._solid[codes]

    def shows(self, name: str) -> Bools:
        """By number, as `look` and `pov` give it: is this entity there? Not for the ground."""
        shown: Bools = self._table[:, self.planes.index(name)] > 0
        return shown

    def put(self, name: str, cells: Ints, where: Bools | None = None) -> None:
        """Put an entity into cells (only those that `where` picks)."""
        chosen = cells if where is None else cells[where]
        self.grid[self._layer[name]][chosen] = self.code[name]

    def draw_from(self, cells: Ints) -> Ints:
        """One of these cells of the map in each copy [copies], by each copy's own stream."""
        rank = (self.streams.uniform() * len(cells)).astype(np.int64)
        return cells[rank] + self.first_cell

    def draw_distinct(self, cells: Ints, count: int) -> Ints:
        """`count` different ones of these cells in each copy [count, copies]."""
        if count > len(cells):
            raise ConfigError(f"world {self.name}: {count} things do not fit on {len(cells)} cells")
        pool = np.repeat(cells[None], self.copies, axis=0)
        rows = np.arange(self.copies)
        for place in range(count):
            other = place + (self.streams.uniform() * (len(cells) - place)).astype(np.int64)
            pool[rows, place], pool[rows, other] = pool[rows, other], pool[rows, place]
        return pool[:, :count].T + self.first_cell

    def place_agents(self, cells: Ints) -> None:
        """Put the agents on different ones of these cells."""
        self.positions[:] = self.draw_distinct(cells, self.num_agents)
        for agent in range(self.num_agents):
            self.grid[1][self.positions[agent]] = self.bodies[agent]

    def cell(self, row: int, column: int) -> int:
        """The number of a cell in the first copy."""
        pad = self.settings.vision
        return (row + pad) * self._stride + column + pad

    def everywhere(self, cells: Ints) -> Ints:
        """These cells of the map, in all copies [copies, cells]."""
        return self.first_cell[:, None] + cells

    def build_walls(self) -> None:
        """Walls around the map."""
        self.put("wall", self.everywhere(self._border))

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

    def cells_of(self, copy: int = 0) -> list[list[tuple[Entity, ...]]]:
        """The entities of each cell of a copy, the ground first: rows of columns."""
        settings, pad = self.settings, self.settings.vision
        shape = (len(self.grid), self.copies, settings.height + 2 * pad, self._stride)
        layers = self.grid.reshape(shape)[:, copy, pad:-pad, pad:-pad]
        return [
            [
                tuple(
                    self._by_code[layer][code]
                    for layer, code in enumerate(layers[:, row, column].tolist())
                    if layer == 0 or code
                )
                for column in range(settings.width)
            ]
            for row in range(settings.height)
        ]

    def places(self, copy: int = 0) -> list[tuple[int, int]]:
        """Where the agents of a copy stand: (row, column)."""
        pad = self.settings.vision
        cells = (self.positions[:, copy] - self.first_cell[copy]).tolist()
        return [(cell // self._stride - pad, cell % self._stride - pad) for cell in cells]

    def __str__(self) -> str:
        """The first copy, as letters."""
        rows = self.cells_of(0)
        return "\n".join("".join(cell[-1].letter for cell in row) for row in rows)

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

    # -- setting up ----------------------------------------------------------------------------

    def _command_name(self) -> str:
        """What commands call this world: those that others wrote have a module before it."""
        kind = type(self)
        ours = kind.__module__.startswith("keisei.worlds.")
        return self.name if ours else f"{kind.__module__}:{kind.__name__}"

    def _number_entities(self) -> None:
        """Give each entity a number; and what is known of each sum of them."""
        top = max(entity.layer for entity in self.entities) + 1
        distinct = self.num_agents if self.settings.distinct_agents else 0
        marks = [Entity(f"agent {i}", str(i), layer=top) for i in range(distinct)]
        numbers = Numbering(self.name, [*self.entities, *marks])
        self.code, self.planes = numbers.code, numbers.planes
        self._marks: Codes = np.array([self.code[mark.name] for mark in marks], np.uint8)
        self._layer = {entity.name: entity.layer for entity in self.entities}
        self._by_code, self._solid, self._table = numbers.by_code, numbers.solid, numbers.table

    def _make_grid(self) -> None:
        """The grid with a rim as wide as the agents see: no window ever leaves it."""
        height, width, pad = self.settings.height, self.settings.width, self.settings.vision
        self._stride = width + 2 * pad
        size = self._stride * (height + 2 * pad)
        self.first_cell: Ints = np.arange(self.copies, dtype=np.int64) * size
        self.grid: Codes = np.zeros((len(self._by_code), self.copies * size), np.uint8)
        self.positions: Ints = np.zeros((self.num_agents, self.copies), np.int64)
        self.bodies: Codes = np.zeros((self.num_agents, self.copies), np.uint8)
        reach = np.arange(-pad, pad + 1)
        self._window: Ints = (reach[:, None] * self._stride + reach).reshape(-1)
        inner = np.arange(size).reshape(-1, self._stride)[pad:-pad, pad:-pad]
        self.inside: Ints = inner[1:-1, 1:-1].reshape(-1).copy()  # all cells within the walls
        self._border: Ints = np.setdiff1d(inner, self.inside)
        steps = [STEPS.get(action, (0, 0)) for action in self.actions]
        self._step_of: Ints = np.array([down * self._stride + right for down, right in steps])
        view = View((len(self._window),), np.dtype(np.uint8), self._table)
        self.views = [view] * self.num_agents
        self.num_actions = [len(self.actions)] * self.num_agents
