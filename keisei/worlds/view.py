"""What an agent observes, and how it becomes the input of a network."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt


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

    @property
    def inputs(self) -> int:
        """How many numbers a network gets."""
        return prod(self.shape) * (1 if self.table is None else self.table.shape[1])

    def encode(self, observations: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Observations [..., *shape] as numbers [..., inputs]."""
        lead = observations.shape[: observations.ndim - len(self.shape)]
        if self.table is None:
            numbers = np.ascontiguousarray(observations, np.float32)
        else:
            numbers = self.table.take(observations, axis=0)
        return numbers.reshape(*lead, self.inputs)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, View) or self.shape != other.shape or self.dtype != other.dtype:
            return False
        if self.table is None or other.table is None:
            return self.table is other.table
        return np.array_equal(self.table, other.table)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))
