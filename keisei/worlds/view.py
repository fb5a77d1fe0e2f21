"""What an agent observes, and how it becomes the input of a network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isqrt, prod
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Ones:
    """Inputs of networks that are all 0 or 1, as the numbers of those that are 1: most are not."""

    places: npt.NDArray[np.int32]  # of all observations, end to end
    bounds: npt.NDArray[np.int32]  # where those of each begin, and where the last ones end
    agents: int  # observations are as many for each


@dataclass(frozen=True, eq=False)
class View:
    """The shape and dtype of an observation, and the planes of each code if it is made of codes.

    >>> view = View((2,), np.dtype(np.uint8), table=np.eye(3, dtype=np.float32))
    >>> view.encode(np.array([[2, 0]], np.uint8)).tolist()
    [[0.0, 0.0, 1.0, 1.0, 0.0, 0.0]]
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    table: npt.NDArray[np.float32] | None = None  # [codes, planes]
    mask: int = 0  # so many numbers at the end say which actions are possible
    moves: int = 0  # so many numbers are an action; 0: actions are one of several
    own: View | None = None  # the first part, if it is what several agents see

    def of_all(self, agents: int) -> View:
        """What so many agents with this view see together."""
        return View((agents, *self.shape), self.dtype, self.table, self.mask, self.moves, own=self)

    @property
    def inputs(self) -> int:
        """How many numbers a network gets."""
        return prod(self.shape) * (1 if self.table is None else self.table.shape[1])

    @property
    def picture(self) -> tuple[int, int, int] | None:
        """Rows, columns and planes, if it is a square window of cells, or pixels; else None.

        >>> View((84, 96, 3), np.dtype(np.uint8)).picture
        (84, 96, 3)
        """
        if self.table is not None:
            side = isqrt(prod(self.shape))
            square = len(self.shape) == 1 and side * side == self.shape[0]
            return (side, side, self.table.shape[1]) if square else None
        if len(self.shape) != 3:
            return None
        first, middle, last = self.shape
        return (middle, last, first) if self.planes_first else (first, middle, last)

    @property
    def planes_first(self) -> bool:
        """Do the planes of a picture come before its rows? There are fewer of them."""
        return self.table is None and len(self.shape) == 3 and self.shape[0] < self.shape[2]

    def encode(self, observations: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Observations [..., *shape] as numbers [..., inputs]; those of pixels from 0 to 1."""
        lead = observations.shape[: observations.ndim - len(self.shape)]
        if self.table is None:
            numbers = np.ascontiguousarray(observations, np.float32)
            if self.dtype == np.uint8 and self.picture:
                numbers /= np.float32(255)
        else:
            numbers = self.table.take(observations, axis=0)
        return numbers.reshape(*lead, self.inputs)

    def ones(self, observations: npt.NDArray[Any]) -> Ones | None:
        """Where `encode` has a 1, for observations [agents, batch, *shape]; None if it has more.

        >>> view = View((2,), np.dtype(np.uint8), table=np.eye(3, dtype=np.float32))
        >>> view.ones(np.array([[[2, 0]]], np.uint8)).places.tolist()
        [2, 3]
        """
        if self._shown is None:
            return None
        cells, codes = prod(self.shape), observations.reshape(-1)
        count_of, planes_of = self._shown
        counts = count_of.take(codes)
        here = np.flatnonzero(counts > 0)
        planes = planes_of.take(codes.take(here), axis=0)
        places = (here % cells * (self.inputs // cells)).astype(np.int32)[:, None] + planes
        sums = counts.reshape(-1, cells).sum(axis=1, dtype=np.int32)
        bounds = np.concatenate([[0], sums.cumsum()]).astype(np.int32)
        return Ones(places[planes >= 0], bounds, len(observations))

    @cached_property
    def _shown(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]] | None:
        """By code: in how many planes it is 1, and in which ones; -1 after the last of them."""
        if self.table is None or not np.isin(self.table, (0, 1)).all():
            return None
        counts = self.table.sum(axis=1).astype(np.uint8)
        planes = np.full((len(counts), counts.max(initial=1)), -1, np.int32)
        for code, row in enumerate(self.table):
            planes[code, : counts[code]] = np.flatnonzero(row)
        return counts, planes

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, View):
            return False
        if (self.mask, self.moves) != (other.mask, other.moves):
            return False
        if self.shape != other.shape or self.dtype != other.dtype:
            return False
        if self.table is None or other.table is None:
            return self.table is other.table
        return np.array_equal(self.table, other.table)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))
