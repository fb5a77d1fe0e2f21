"""From a network's value to the score that it stands for."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Curve:
    """Straight lines between points: what players scored, on the average, at a value.

    A value is learned with a discount, or with rewards for material, and then it is not the chance
    to win: where one network says 0.1, its side may win three games of four. Without points it is.

    >>> Curve((-1.0, 0.0, 0.1, 1.0), (0.0, 0.5, 0.75, 1.0)).value(0.05)
    0.25
    """

    values: tuple[float, ...] = (-1.0, 1.0)  # growing
    scores: tuple[float, ...] = (0.0, 1.0)  # from 0 to 1, never falling

    def __post_init__(self) -> None:
        growing = all(one < two for one, two in pairwise(self.values))
        rising = all(one <= two for one, two in pairwise(self.scores))
        ends = self.values[:1] == (-1.0,) and self.values[-1:] == (1.0,)
        if not (growing and rising and ends and len(self.values) == len(self.scores)):
            raise ValueError("a curve must rise from the value -1 to 1")
        if not 0 <= self.scores[0] <= self.scores[-1] <= 1:
            raise ValueError("the scores of a curve must be from 0 to 1")

    def value(self, value: float) -> float:
        """What a value stands for, as a value: -1 is lost, 0 even, 1 won."""
        if self == PLAIN:
            return value
        value = min(max(value, -1.0), 1.0)
        at = min(bisect_right(self.values, value), len(self.values) - 1)
        left, right = self.values[at - 1], self.values[at]
        share = (value - left) / (right - left)
        score = self.scores[at - 1] + share * (self.scores[at] - self.scores[at - 1])
        return 2 * score - 1


PLAIN = Curve()  # of a network whose values are chances already, or of which nothing is known
