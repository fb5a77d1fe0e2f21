"""What the cells of a grid hold, as numbers: the sum over a cell's layers tells all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from keisei.settings import ConfigError

MAX_SUMS = 256  # a cell is one byte


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

    >>> ground, wall = Entity("ground", "."), Entity("wall", "#", solid=True)
    >>> numbers = Numbering("field", [ground, wall, Entity("agent", "A", layer=1)])
    >>> numbers.code, numbers.planes
    ({'ground': 0, 'wall': 1, 'agent': 2}, ('wall', 'agent'))
    """

    def __init__(self, world: str, entities: Sequence[Entity]) -> None:
        depth = max(entity.layer for entity in entities) + 1
        layers = [[e for e in entities if e.layer == layer] for layer in range(depth)]
        self.code: dict[str, int] = {}
        self.by_code: list[dict[int, Entity]] = []  # of each layer
        unit = 1
        for layer, members in enumerate(layers):
            start = 0 if layer == 0 else 1  # above the ground, 0 is nothing
            codes = {unit * (i + start): entity for i, entity in enumerate(members)}
            self.by_code.append(codes)
            self.code |= {entity.name: code for code, entity in codes.items()}
            unit *= len(members) + start
        if unit > MAX_SUMS:
            raise ConfigError(
                f"world {world}: its entities make {unit} sums over the layers, more than "
                f"{MAX_SUMS}; have fewer of them, or fewer agents if they are distinct"
            )
        self._make_tables(layers, unit)

    def _make_tables(self, layers: list[list[Entity]], sums: int) -> None:
        shown = [entity for members in layers for entity in members][1:]  # all but the ground
        self.planes = tuple(entity.name for entity in shown)
        self.solid: npt.NDArray[np.bool_] = np.zeros(MAX_SUMS, np.bool_)
        self.table: npt.NDArray[np.float32] = np.zeros((sums, len(shown)), np.float32)
        sizes = [len(members) + (layer > 0) for layer, members in enumerate(layers)]
        for code in range(sums):
            for layer, size in enumerate(sizes):
                unit = prod(sizes[:layer])
                here = self.by_code[layer].get(code // unit % size * unit)
                if here is None:
                    continue
                self.solid[code] |= here.solid
                if here in shown:
                    self.table[code, shown.index(here)] = 1
