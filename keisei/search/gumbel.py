"""Gumbel search at the root: a better policy and value from a handful of visits, for many games.

The paper is "Policy improvement by planning with Gumbel" (Danihelka and others, 2022). Noise says
which moves are considered; rounds of visits halve them until the best is left. What came of them
improves the whole policy: the network learns to play at once what it had to search for. Below the
root it is the usual search, with mates proven and carried up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keisei.core.policy import Policy, segment_log_softmax
from keisei.search.node import Node
from keisei.search.search import Search, SearchSettings, no_search_for_cycles
from keisei.search.tree import Tree
from keisei.shogi import VectorShogi

Floats = npt.NDArray[np.float32]

_FIRST_VISITS = 50  # a value weighs more with the visits to the best move, as if it had had these
_LEAST_PRIOR = 1e-12  # even a move that the network rules out can be searched


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

    @no_search_for_cycles()
    def improve(self, games: VectorShogi) -> Improved:
        """Search each game's position, and choose its move; the noise is from its own stream."""
        offsets = games.positions.offsets
        trees = [Tree.of_game(games, row) for row in range(games.num_games)]
        self._search.expand(trees)
        logits = np.log(np.concatenate([tree.root.priors for tree in trees]) + _LEAST_PRIOR)
        noisy = logits + _gumbel_noise(games.streams.uniforms_of_each(np.diff(offsets)))
        roots = [
            _Root(tree, own.tolist(), self._settings)
            for tree, own in zip(trees, np.split(noisy, offsets[1:-1]), strict=True)
        ]
        self._visit(roots)
        return _improved(roots, logits, offsets)

    def _visit(self, roots: Sequence[_Root]) -> None:
        """Make all visits, round by round, each round of all roots in one batch."""
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

    def __init__(self, tree: Tree, noisy: list[float], settings: GumbelSettings) -> None:
        self.tree = tree
        self.node = tree.root
        self._settings = settings
        self._noisy = noisy  # the moves' logits with the noise
        considered = min(settings.considered, settings.visits)  # each gets a visit at least
        moves = sorted(range(len(noisy)), key=noisy.__getitem__, reverse=True)
        self._candidates = moves[:considered]

    def rounds(self) -> Iterator[list[int]]:
        """The moves to visit, once each, round by round; the worse half is left out in between."""
        for count in visits_by_round(self._settings.visits, len(self._candidates)):
            if self.node.mate is not None:
                return
            if count < len(self._candidates):
                self._candidates = self._best_first()[: max(2, count)]
            yield self._candidates[:count]

    def _best_first(self) -> list[int]:
        """The candidates, which all had a visit."""
        children, noisy, scale = self.node.children, self._noisy, self.scale
        scores = {move: noisy[move] + scale * _value(children[move]) for move in self._candidates}
        return sorted(self._candidates, key=scores.__getitem__, reverse=True)

    @property
    def scale(self) -> float:
        """Of a value in logits: it grows with the visits."""
        most = max((child.visits for child in self.node.children.values()), default=0)
        return self._settings.scale * (_FIRST_VISITS + most)

    @property
    def unvisited(self) -> float:
        """The value of a move without a visit: what network and visits say of the position."""
        node, total, weights, visits = self.node, 0.0, 0.0, 0
        if not node.children:
            return node.value
        for move, child in node.children.items():
            weight = node.priors.item(move) + _LEAST_PRIOR
            total += weight * _value(child)
            weights += weight
            visits += child.visits
        return (node.value + visits * total / weights) / (1 + visits)

    def pick(self) -> int:
        """The move to play."""
        if self.node.mate is not None and self.node.mate > 0:
            return self.tree.winning_move()
        return self._best_first()[0] if self.node.children else self._candidates[0]


def _improved(roots: Sequence[_Root], logits: Floats, offsets: npt.NDArray[np.int64]) -> Improved:
    """What came of all visits; where a mate is proven, it is played and nothing else."""
    starts, counts = offsets[:-1], np.diff(offsets)
    values = np.repeat([root.unvisited for root in roots], counts)
    for root, start in zip(roots, starts.tolist(), strict=True):
        for move, child in root.node.children.items():
            values[start + move] = _value(child)
    scaled = logits + np.repeat([root.scale for root in roots], counts) * values
    policy = np.exp(segment_log_softmax(scaled.astype(np.float32), offsets))
    expected = np.add.reduceat(policy * values, starts).astype(np.float32)
    picks = starts + np.array([root.pick() for root in roots])
    for row, root in enumerate(roots):
        end_value = root.node.end_value
        if end_value is not None:
            expected[row] = end_value
            if end_value > 0:
                policy[starts[row] : offsets[row + 1]] = 0
                policy[picks[row]] = 1
    return Improved(policy, expected, picks)


def _gumbel_noise(uniforms: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    noise: npt.NDArray[np.float64] = -np.log(-np.log(np.maximum(uniforms, 2.0**-54)))
    return noise


def _value(child: Node) -> float:
    """What moving to this child is worth to the one who does."""
    end = child.end_value
    return child.total / child.visits if end is None else -end
