"""What the cells of a grid hold, as numbers: the sum over a cell's layers tells all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keisei.settings import ConfigError

MAX_SUMS = 256  # a cell is one byte
WAYS = 4  # to face: up, right, down, left
SEEN_WAYS = ("faces right", "faces back", "faces left")  # as one sees it; none: as oneself


@dataclass(frozen=True)
class Entity:
    """Something that a cell may hold. The first of layer 0 is the ground: it covers all cells."""

    name: str
    letter: str
    layer: int = 0
    solid: bool = False  # nobody can walk there
    color: str = "#888888"
    shape: str = "square"  # square, circle or diamond


class Numbering:
    """The number of each entity, and what is known of each sum: is it solid, which planes show it.

    What can face in four ways, such as an agent, has a number for each of them.

    >>> ground, wall = Entity("ground", "."), Entity("wall", "#", solid=True)
    >>> numbers = Numbering("field", [ground, wall, Entity("agent", "A", layer=1)])
    >>> numbers.code, numbers.planes
    ({'ground': 0, 'wall': 1, 'agent': 2}, ('wall', 'agent'))
    """

    def __init__(self, world: str, entities: Sequence[Entity], facing: Sequence[str] = ()) -> None:
        self._layers: list[tuple[int, int, dict[int, tuple[Entity, int]]]] = []
        unit = 1  # from a number of the layer to the next
        for layer in range(max(entity.layer for entity in entities) + 1):
            things = [
                (entity, way)
                for entity in entities
                if entity.layer == layer
                for way in range(WAYS if entity.name in facing else 1)
            ]
            start = 0 if layer == 0 else 1  # above the ground, 0 is nothing
            codes = {unit * (i + start): thing for i, thing in enumerate(things)}
            self._layers.append((unit, len(things) + start, codes))
            unit *= len(things) + start
        if unit > MAX_SUMS:
            raise ConfigError(
                f"world {world}: its entities make {unit} sums over the layers, more than "
                f"{MAX_SUMS}; have fewer of them, or fewer agents if they are distinct"
            )
        every = [(code, *thing) for *_, codes in self._layers for code, thing in codes.items()]
        self.code = {entity.name: code for code, entity, way in every if way == 0}
        self.by_code = [
            {c: entity for c, (entity, _) in codes.items()} for *_, codes in self._layers
        ]
        self._make_tables(unit, facing)

    def _make_tables(self, sums: int, facing: Sequence[str]) -> None:
        every = [entity for codes in self.by_code for entity in codes.values()]
        shown = list(dict.fromkeys(every))[1:]  # all but the ground
        ways = SEEN_WAYS if facing else ()
        self.planes = (*(entity.name for entity in shown), *ways)
        self.solid: npt.NDArray[np.bool_] = np.zeros(MAX_SUMS, np.bool_)
        self.table: npt.NDArray[np.float32] = np.zeros((sums, len(self.planes)), np.float32)
        # What each sum looks like to one who faces that way [ways, sums].
        self.turned: npt.NDArray[np.uint8] = np.tile(np.arange(MAX_SUMS, dtype=np.uint8), (WAYS, 1))
        for code in range(sums):
            for unit, size, codes in self._layers:
                here, way = codes.get(code // unit % size * unit, (None, 0))
                if here is None:
                    continue
                self.solid[code] |= here.solid
                if here in shown:
                    self.table[code, shown.index(here)] = 1
                if here.name in facing:
                    self.table[code, len(shown) :] = np.arange(1, WAYS) == way
                    others = (way - np.arange(WAYS)) % WAYS
                    self.turned[:, code] = code + unit * (others - way)
