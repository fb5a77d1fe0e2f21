"""PUCT search: the network proposes moves and judges positions, the tree finds where they lead.

As in AlphaZero, with three additions: many leaves (even of many games) are evaluated in one batch,
spread because visits under way count; each leaf is checked for a mate in one; and what is proven (a
mate, a lost position) is carried up the tree and never searched again.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from keisei.curve import Curve
from keisei.search.limit import Limit
from keisei.search.node import Node
from keisei.search.tree import Leaf, Tree, finish
from keisei.shogi import Positions, features
from keisei.shogi.actions import ACTION_OF_MOVE, Side, move_to_usi
from keisei.shogi.moving import move_pieces
from keisei.shogi.rules import can_declare

if TYPE_CHECKING:  # PyTorch takes seconds to import, and the network comes from elsewhere
    from keisei.core.policy import Policy


@dataclass(frozen=True)
class SearchSettings:
    """What shapes the tree. Searches with the same settings and seed are identical."""

    exploration: float = 0.7  # c in PUCT: how much priors count against values
    fpu_reduction: float = 0.2  # a move not tried yet has its position's value less this
    leaves: int = 16  # per tree and batch
    noise: float = 0.0  # share of random noise in the root's priors (0.25 to vary self-play)
    noise_alpha: float = 0.15
    root_temperature: float = 1.0  # above 1, a position is looked at more widely (for analysis)
    seed: int = 0


@dataclass(frozen=True)
class Score:
    """How a position stands for one side: from -1 (lost) to 1 (won).

    `mate` is the number of moves, of both sides, until a proven mate; negative if `side` is mated.

    >>> Score("white", 0.5).seen_by("black")
    Score(side='black', value=-0.5, mate=None)
    >>> Score("white", 0.5).win_chance
    0.75
    """

    side: Side
    value: float
    mate: int | None = None

    def seen_by(self, side: Side) -> Score:
        """The same score for a side."""
        if side == self.side:
            return self
        return Score(side, -self.value, None if self.mate is None else -self.mate)

    def by(self, curve: Curve) -> Score:
        """The same as a chance to win, by the curve of the network whose value it is."""
        proven = self.mate is not None or abs(self.value) == 1
        return self if proven else replace(self, value=curve.value(self.value))

    @property
    def win_chance(self) -> float:
        """From 0 to 1."""
        return (1 + self.value) / 2


@dataclass(frozen=True)
class Report:
    """What a search found."""

    move: str  # USI
    score: Score  # of the player to move
    line: list[str] = field(default_factory=list)  # the expected moves, its own first
    visits: int = 0  # of the position
    nodes: int = 0  # of these, since it was set up


@contextmanager
def no_search_for_cycles() -> Iterator[None]:
    """Python looks through new objects for cycles again and again; trees have many, and no cycle.

    It took a sixth of the time that self-play by search needs beside the network.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Search:
    """Searches any number of trees at once with one network."""

    def __init__(self, policy: Policy, settings: SearchSettings | None = None) -> None:
        self.settings = settings or SearchSettings()
        self.evaluated = 0  # positions that the network saw
        self._policy = policy
        self._rng = np.random.default_rng(self.settings.seed)

    @no_search_for_cycles()
    def run(self, trees: Sequence[Tree], limit: Limit) -> None:
        """Visit each tree until the limit is reached; one whose root is proven is done."""
        is_over = limit.start()
        self.expand(trees)
        more = math.inf if limit.nodes is None else limit.nodes
        goals = [tree.root.visits + more for tree in trees]
        while True:
            leaves: list[Leaf] = []
            searching = False
            for tree, goal in zip(trees, goals, strict=True):
                left = goal - tree.root.visits
                if left > 0 and tree.root.mate is None:
                    searching = True
                    count = int(min(left, self.settings.leaves))
                    leaves += tree.gather(count, self.settings.exploration)
            if not searching:
                return
            self.evaluate(leaves)
            if is_over():
                return

    def expand(self, trees: Sequence[Tree]) -> None:
        """Have the network evaluate the roots that it has not seen yet."""
        new = [tree for tree in trees if not tree.root.expanded]
        self.evaluate([leaf for tree in new for leaf in tree.gather(1, 0)])
        if self.settings.root_temperature != 1:
            for tree in new:
                if tree.root.expanded:
                    flat = tree.root.priors ** (1 / self.settings.root_temperature)
                    _set_priors(tree.root, flat / flat.sum())
        if self.settings.noise:
            for tree in trees:
                if tree.root.expanded:
                    self._add_noise(tree.root)

    def _add_noise(self, root: Node) -> None:
        share = self.settings.noise
        noise = self._rng.dirichlet(np.full(len(root.moves), self.settings.noise_alpha))
        _set_priors(root, (1 - share) * root.priors + share * noise)

    def evaluate(self, leaves: list[Leaf]) -> None:
        """Have the network evaluate the leaves, and finish their visits with its values."""
        if not leaves:
            return
        observations = _observe(leaves)
        bonus = np.array([leaf.white_bonus for leaf in leaves])
        declared = can_declare(observations, bonus) & [bool(leaf.path) for leaf in leaves]
        for row in np.flatnonzero(declared):
            leaf = leaves[row]
            leaf.node.mate = 1
            finish(leaf.path, 1.0)
        self._ask_network(
            [leaves[row] for row in np.flatnonzero(~declared)], observations[~declared]
        )

    def _ask_network(self, leaves: list[Leaf], observations: features.Observations) -> None:
        if not leaves:
            return
        moves = [leaf.node.moves for leaf in leaves]
        counts = [len(own) for own in moves]
        # With NumPy's own kind of index, `take` is twice as fast as with any other.
        bits = np.concatenate(moves, dtype=np.intp)
        bits += np.repeat(observations[:, features.SIDE].astype(np.intp) << 16, counts)
        legal = ACTION_OF_MOVE.take(bits)
        positions = Positions(observations, legal, np.concatenate([[0], np.cumsum(counts)]))
        seen = self._policy(positions)
        priors = np.exp(seen.log_probs)
        u = priors.copy()
        first_q = (seen.values.astype(np.float64) - self.settings.fpu_reduction).astype(np.float32)
        q = np.repeat(first_q, counts)
        self.evaluated += len(leaves)
        ends = positions.offsets.tolist()
        found = zip(leaves, seen.values.tolist(), observations, ends, ends[1:], strict=False)
        for leaf, value, observation, start, end in found:
            # Slices, not copies: small arrays between the big ones of the network leave holes in
            # memory that nothing fits into (20 kB for a node instead of 10).
            leaf.node.observation, leaf.node.actions = observation, legal[start:end]
            leaf.node.expand(value, priors[start:end], q[start:end], u[start:end])
            finish(leaf.path, value)

    def report(self, tree: Tree) -> Report:
        """The result of a searched tree; its position must have a legal move."""
        root = tree.root
        line = _line(tree, root)
        if not line:  # stopped before the first visit: the network's first choice, or any move
            line = [tree.usi(root, int(root.priors.argmax()) if root.expanded else 0)]
        score = Score(tree.side, _root_value(root), root.mate)
        return Report(line[0], score, line, root.visits, root.visits - tree.kept_visits)

    def reports(self, tree: Tree, count: int) -> list[Report]:
        """The same of the best moves, each with its own line and score, the best first."""
        first, root = self.report(tree), tree.root
        found = [first]
        for index in root.ranked()[1:count] if root.mating_move is None else []:
            child = root.children[index]
            line = [tree.usi(root, index), *_line(tree, child)]
            found.append(replace(first, move=line[0], score=_score(tree.side, child), line=line))
        return found


def _set_priors(root: Node, priors: npt.NDArray[np.floating]) -> None:
    root.priors = priors.astype(np.float32)
    visits = np.zeros(len(root.moves), dtype=np.float32)
    for index, child in root.children.items():
        visits[index] = child.visits
    root.u = root.priors / (1 + visits)


def _line(tree: Tree, node: Node) -> list[str]:
    """The moves that are expected from a node on."""
    line: list[str] = []
    while node.children or node.mating_move is not None:
        if node.mating_move is not None:
            return [*line, move_to_usi(node.mating_move)]
        index = node.best()
        line.append(tree.usi(node, index))
        node = node.children[index]
    return line


def _score(side: Side, child: Node) -> Score:
    """What a move is worth to the side that makes it, from the position that it leads to."""
    if child.mate is not None:
        return (
            Score(side, 1.0, 1 - child.mate)
            if child.mate <= 0
            else Score(side, -1.0, -1 - child.mate)
        )
    return Score(side, child.total / max(child.visits, 1))


def _root_value(root: Node) -> float:
    if root.end_value is not None:
        return root.end_value
    if not root.children:
        return root.value if root.expanded else 0.0
    child = root.children[root.best()]
    return child.total / max(child.visits, 1)


def _observe(leaves: list[Leaf]) -> features.Observations:
    """The leaves' observations: their parents', with the last move played."""
    if not leaves[0].path:  # roots: they know theirs
        return _stacked([leaf.node for leaf in leaves])
    parents = [leaf.path[-1] for leaf in leaves]
    seen = _stacked([node for node, _ in parents])
    move_pieces(seen, np.array([node.actions.item(index) for node, index in parents]))
    played = np.minimum([leaf.played for leaf in leaves], 65535)
    seen[:, features.MOVE_COUNT], seen[:, features.MOVE_COUNT + 1] = played & 255, played >> 8
    seen[:, features.IN_CHECK] = [leaf.seen.in_check for leaf in leaves]
    seen[:, features.REPETITIONS] = [leaf.seen.repetitions for leaf in leaves]
    return seen


def _stacked(nodes: list[Node]) -> features.Observations:
    """The nodes' observations [N, 100]; `np.stack` takes three times as long for so many."""
    ends_to_ends = np.concatenate([node.observation for node in nodes])
    return ends_to_ends.reshape(len(nodes), features.OBSERVATION_BYTES)
