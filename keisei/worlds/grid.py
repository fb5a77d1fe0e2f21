"""The cells of all copies of a world, as arrays, and the tools to look at them and change them."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import Field, ValidationError

from keisei.random_streams import RandomStreams
from keisei.settings import ConfigError, Section, explain, setting_names
from keisei.worlds.entities import WAYS, Entity, Numbering
from keisei.worlds.view import View

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]

SomeSettings = TypeVar("SomeSettings", bound=Section)

WAY_STEPS = ((-1, 0), (0, 1), (1, 0), (0, -1))  # rows and columns: up, right, down, left
# By the way that one faces: the name of a step, and how many quarters to the right it leads.
STEPS = {"up": 0, "down": 2, "left": 3, "right": 1, "forward": 0, "backward": 2}
FACING_NAMES = {"up": "forward", "down": "backward"}  # of actions, where agents face somewhere


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
    facing: bool = Field(
        False,
        description="Agents face somewhere: they step and turn, and see one row behind them and "
        "the rest of the rows ahead.",
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


class Grid:
    """What a `World` is made of, before anybody acts in it."""

    name: ClassVar[str]
    entities: ClassVar[tuple[Entity, ...]]
    body_names: ClassVar[tuple[str, ...]] = ("agent",)  # entities that agents can be
    settings: WorldSettings

    def __init__(self, settings: WorldSettings, copies: int, seed: int) -> None:
        self.settings, self.copies = settings, copies
        self.num_agents, self.max_turns = settings.num_agents, settings.max_turns
        self.streams = RandomStreams(seed, copies)
        self._number_entities()
        self._make_cells()

    def look(self, cells: Ints) -> Codes:
        """The entities of these cells, one number each: the sum over the layers."""
        seen: Codes = self.grid[0].take(cells)
        for layer in self.grid[1:]:
            seen += layer.take(cells)
        return seen

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

    def cell(self, row: int, column: int) -> int:
        """The number of a cell in the first copy."""
        pad = self.rim
        return (row + pad) * self._stride + column + pad

    def everywhere(self, cells: Ints) -> Ints:
        """These cells of the map, in all copies [copies, cells]."""
        return self.first_cell[:, None] + cells

    def build_walls(self) -> None:
        """Walls around the map."""
        self.put("wall", self.everywhere(self._border))

    def cells_of(self, copy: int = 0) -> list[list[tuple[Entity, ...]]]:
        """The entities of each cell of a copy, the ground first: rows of columns."""
        settings, pad = self.settings, self.rim
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

    def __str__(self) -> str:
        """The first copy, as letters."""
        rows = self.cells_of(0)
        return "\n".join("".join(cell[-1].letter for cell in row) for row in rows)

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
        facing = self.body_names if self.settings.facing else ()
        numbers = Numbering(self.name, [*self.entities, *marks], facing)
        self.code, self.planes = numbers.code, numbers.planes
        self._marks: Codes = np.array([self.code[mark.name] for mark in marks], np.uint8)
        self._layer = {entity.name: entity.layer for entity in self.entities}
        self._by_code, self._solid, self._table = numbers.by_code, numbers.solid, numbers.table
        self._turned = numbers.turned
        self._face = sum(entity.layer == 0 for entity in self.entities)  # from a way to the next

    def _make_cells(self) -> None:
        """The grid with a rim as wide as the agents see: no window ever leaves it."""
        height, width, reach = self.settings.height, self.settings.width, self.settings.vision
        behind = 1 if self.settings.facing else reach
        self.rim = pad = 2 * reach - behind
        self._stride = width + 2 * pad
        size = self._stride * (height + 2 * pad)
        self.first_cell: Ints = np.arange(self.copies, dtype=np.int64) * size
        self.grid: Codes = np.zeros((len(self._by_code), self.copies * size), np.uint8)
        # From a cell to the next one in each way, and the window of one who faces there.
        self.ways: Ints = np.array([row * self._stride + column for row, column in WAY_STEPS])
        ahead, aside = np.arange(pad, -behind - 1, -1), np.arange(-reach, reach + 1)
        there = (
            ahead[:, None] * self.ways[:, None, None]
            + aside * np.roll(self.ways, -1)[:, None, None]
        )
        self._windows: Ints = there.reshape(WAYS, -1)
        inner = np.arange(size).reshape(-1, self._stride)[pad:-pad, pad:-pad]
        self.inside: Ints = inner[1:-1, 1:-1].reshape(-1).copy()  # all cells within the walls
        self._border: Ints = np.setdiff1d(inner, self.inside)
        view = View((self._windows.shape[1],), np.dtype(np.uint8), self._table)
        self.views = [view] * self.num_agents
