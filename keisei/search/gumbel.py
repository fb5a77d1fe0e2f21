"""Gumbel search at the root: a better policy and value from a handful of visits, for many games.

The paper is "Policy improvement by planning with Gumbel" (Danihelka and others, 2022). Noise says
which moves are considered; rounds of visits halve them until the best is left. What came of them
improves the whole policy: the network learns to play at once what it had to search for. Below the
root it is the usual search, with mates proven and carried up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keisei.core.policy import Policy
from keisei.search.node import Node
from keisei.search.search import Search, SearchSettings
from keisei.search.tree import Tree
from keisei.shogi import VectorShogi

Floats = npt.NDArray[np.float32]

_FIRST_VISITS = 50  # a value weighs more with the visits to the best move, as if it had had these


@dataclass(frozen=True)
class GumbelSettings:
    """How much is searched, and how far its result moves the policy."""

    visits: int = 16  # of each root
    considered: int = 8  # moves of a root that get any
    scale: float = 0.5  # of a value in the logits of the improved policy


@dataclass(frozen=True)
class Improved:
    """What the search made of the policy, for all games."""

    policy: Floats  # [sum], the improved probabilities of the legal actions
    values: Floats  # [N], what the improved policy may expect
    picks: npt.NDArray[np.int64]  # [N], where in the legal actions the move to play stands


class GumbelSearch:
    """Searches all games of a `VectorShogi`, in batches of all their leaves.

    >>> from keisei.core.policy import uniform
    >>> games = VectorShogi(num_games=2, seed=1)
    >>> found = GumbelSearch(uniform).improve(games)
    >>> found.policy.shape, found.values.shape, found.picks.shape
    ((60,), (2,), (2,))
    """

    def __init__(self, policy: Policy, settings: GumbelSettings | None = None) -> None:
        self._settings = settings or GumbelSettings()
        self._search = Search(policy, SearchSettings())

    def improve(self, games: VectorShogi) -> Improved:
        """Search each game's position, and choose its move; the noise is from its own stream."""
        trees = [Tree.of_game(games, row) for row in range(games.num_games)]
        self._search.expand(trees)
        seeds = (games.streams.uniform() * 2**53).astype(np.int64).tolist()
        roots = [_Root(tree, seed, self._settings) for tree, seed in zip(trees, seeds, strict=True)]
        going = [(root, root.rounds()) for root in roots]
        while going:
            leaves, still_going = [], []
            for root, rounds in going:
                visited = next(rounds, None)
                if visited is not None:
                    still_going.append((root, rounds))
                    for index in visited:
                        leaves += root.tree.visit(index, self._search.settings.exploration)
            self._search.evaluate(leaves)
            going = still_going
        results = [root.result() for root in roots]
        return Improved(
            np.concatenate([policy for policy, _, _ in results]),
            np.array([value for _, value, _ in results], dtype=np.float32),
            games.positions.offsets[:-1] + np.array([pick for _, _, pick in results]),
        )


def visits_by_round(visits: int, considered: int) -> list[int]:
    """How many moves get a visit in each round: sequential halving, until all visits are made.

    >>> visits_by_round(visits=16, considered=8)
    [8, 4, 2, 2]
    """
    halvings, rounds, left = max(1, math.ceil(math.log2(max(considered, 1)))), [], visits
    moves = considered
    while left > 0 and considered > 1:
        for _ in range(max(1, visits // (halvings * moves))):
            if left > 0:
                rounds.append(min(moves, left))
                left -= moves
        moves = max(2, moves // 2)
    return rounds


class _Root:
    """The root of one game: which moves are visited next, and what came of it."""

    def __init__(self, tree: Tree, seed: int, settings: GumbelSettings) -> None:
        self.tree = tree
        self._settings = settings
        self._node = tree.root
        self._logits = np.log(self._node.priors + 1e-12)
        self._noisy = self._logits + np.random.default_rng(seed).gumbel(size=len(self._logits))
        self._candidates: list[int] = []

    def rounds(self) -> Iterator[list[int]]:
        """The moves to visit, once each, round by round; the worse half is left out in between."""
        self._candidates = self._best_first(range(len(self._noisy)))[: self._settings.considered]
        for count in visits_by_round(self._settings.visits, len(self._candidates)):
            if self._node.mate is not None:
                return
            if count < len(self._candidates):
                self._candidates = self._best_first(self._candidates)[: max(2, count)]
            yield self._candidates[:count]

    def _best_first(self, moves: range | list[int]) -> list[int]:
        score = (self._noisy + self._scale() * self._completed()).tolist()
        return sorted(moves, key=score.__getitem__, reverse=True)

    def _scale(self) -> float:
        most = max((child.visits for child in self._node.children.values()), default=0)
        return self._settings.scale * (_FIRST_VISITS + most)

    def _completed(self) -> npt.NDArray[np.float64]:
        """Each move's value to the mover; one without a visit has what the position is worth."""
        node, values = self._node, np.full(len(self._logits), self._node.value)
        if not node.children:
            return values
        visited = list(node.children)
        found = np.array([_value(child) for child in node.children.values()])
        weights = node.priors[visited].astype(np.float64)
        visits = sum(child.visits for child in node.children.values())
        values[:] = (node.value + visits * (weights @ found) / weights.sum()) / (1 + visits)
        values[visited] = found
        return values

    def result(self) -> tuple[Floats, float, int]:
        """The improved policy, its value, and the move to play."""
        node = self._node
        if node.mate is not None and node.mate > 0:  # play the mate, and nothing else
            sure = np.zeros(len(self._logits), dtype=np.float32)
            best = self.tree.winning_move()
            sure[best] = 1
            return sure, 1.0, best
        values = self._completed()
        logits = self._logits + self._scale() * values
        policy = np.exp(logits - logits.max())
        policy /= policy.sum()
        value = -1.0 if node.mate is not None else float(policy @ values)
        best = self._best_first(self._candidates)[0]
        return policy.astype(np.float32), value, best


def _value(child: Node) -> float:
    """What moving to this child is worth to the one who does."""
    end = child.end_value
    return child.total / child.visits if end is None else -end
