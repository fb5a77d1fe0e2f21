"""How a position stands, and for whom."""

from __future__ import annotations

from dataclasses import dataclass

from keisei.shogi.actions import Turn


@dataclass(frozen=True)
class Score:
    """How a position stands for one side: from -1 (lost) to 1 (won).

    `mate` is the number of moves, of both sides, until a proven mate; negative if `side` is mated.

    >>> Score("white", 0.5).seen_by("black")
    Score(side='black', value=-0.5, mate=None)
    >>> Score("white", 0.5).win_chance
    0.75
    """

    side: Turn
    value: float
    mate: int | None = None

    def seen_by(self, side: Turn) -> Score:
        """The same score for a side."""
        if side == self.side:
            return self
        return Score(side, -self.value, None if self.mate is None else -self.mate)

    @property
    def win_chance(self) -> float:
        """From 0 to 1."""
        return (1 + self.value) / 2
