"""A position in the search tree, and what is known about its moves."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from keisei.shogi.features import Observations

Floats = npt.NDArray[np.float32]
NO_MOVES: npt.NDArray[np.uint16] = np.empty(0, dtype=np.uint16)
_REFUTED = -1e9  # Q of a move that is proven to lose


class Node:
    """A position with its moves as arrays, so that choosing one is three NumPy calls.

    `visits` counts those under way, too; `total` is of the values of the others, from the side of
    the player who moved here. `mate` is None while nothing is proven; k > 0 means that the
    mover wins in k moves (of both sides), k <= 0 that it loses in -k. `drawn` is a game that ended
    in a draw. Nothing points back to the parent, so a dropped tree is freed at once.
    """

    __slots__ = (
        "actions",
        "children",
        "drawn",
        "mate",
        "mating_move",
        "moves",
        "observation",
        "open_moves",
        "pending",
        "priors",
        "q",
        "total",
        "u",
        "value",
        "visits",
    )

    observation: Observations
    value: float  # the network's, for the mover
    actions: npt.NDArray[np.int16]  # by number of the move, as are the three below
    priors: Floats
    q: Floats  # mean value of each move for the mover
    u: Floats  # prior / (1 + visits)

    def __init__(self) -> None:
        self.moves = NO_MOVES  # as 16 bits, once the board was looked at
        self.children: dict[int, Node] = {}
        self.visits = 0
        self.pending = 0  # visits whose value is not known yet
        self.total = 0.0
        self.mate: int | None = None
        self.mating_move: int | None = None  # if one is known that no child shows
        self.drawn = False
        self.open_moves = -1  # how many are not refuted; -1 before the network has seen it

    @property
    def expanded(self) -> bool:
        """Has the network evaluated it, so that moves can be chosen?"""
        return self.open_moves >= 0

    @property
    def end_value(self) -> float | None:
        """The mover's result if the outcome is known from here on; else None."""
        if self.mate is not None:
            return 1.0 if self.mate > 0 else -1.0
        return 0.0 if self.drawn else None

    def expand(self, value: float, priors: Floats, q: Floats, u: Floats) -> None:
        """Take the network's view, and what each move's Q and U are before any visit."""
        self.value, self.priors, self.q, self.u = value, priors, q, u
        self.open_moves = len(priors)

    def choose(self, exploration: float) -> int:
        """The number of the move with the greatest Q + exploration * sqrt(visits) * U (PUCT)."""
        return int((self.q + self.u * (exploration * self.visits**0.5)).argmax())

    def start_visit(self, index: int) -> Node:
        """Go to a move's child. The visit counts at once, its value when it is known.

        So the visits of a batch spread, but no move is thought to be worse for being looked at.
        """
        child = self.children.get(index)
        if child is None:
            child = self.children[index] = Node()
        child.visits += 1
        child.pending += 1
        self.u[index] = self.priors.item(index) / (1 + child.visits)
        return child

    def end_visit(self, index: int, value: float) -> None:
        """Add the value of a visit to a move's child, from the mover's side."""
        child = self.children[index]
        child.pending -= 1
        child.total += value
        if self.q.item(index) != _REFUTED:
            self.q[index] = child.total / (child.visits - child.pending)
        if child.mate is not None:
            self._learn_mate(index, child.mate)

    def cancel_visit(self, index: int) -> None:
        """Take back `start_visit`."""
        child = self.children[index]
        child.visits -= 1
        child.pending -= 1
        self.u[index] = self.priors.item(index) / (1 + child.visits)

    def _learn_mate(self, index: int, mate: int) -> None:
        """A child is proven: one lost child wins; if all children are won, this is lost."""
        if mate <= 0:
            if self.mate is None or self.mate <= 0 or 1 - mate < self.mate:
                self.mate = 1 - mate
        elif self.q.item(index) != _REFUTED:
            self.q[index] = _REFUTED
            self.open_moves -= 1
            if not self.open_moves and self.mate is None:
                longest = max(child.mate or 0 for child in self.children.values())
                self.mate = -(longest + 1)

    def best(self) -> int:
        """The number of the move to play: a proven win, or the most visited that does not lose."""
        return max(self.children, key=self._rank)

    def ranked(self) -> list[int]:
        """The numbers of the moves that were tried, the one to play first."""
        tried = (index for index, child in self.children.items() if child.visits)
        return sorted(tried, key=self._rank, reverse=True)

    def _rank(self, index: int) -> tuple[int, int, float]:
        child = self.children[index]
        if child.mate is None:
            return 1, child.visits, float(self.priors[index])
        # Win as fast as possible, lose as slowly as possible.
        return (2, child.mate, 0.0) if child.mate <= 0 else (0, child.mate, 0.0)
