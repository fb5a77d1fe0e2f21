"""Thinking about games move after move: what engine, page, terminal and matches have in common."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from keisei.curve import Curve
from keisei.search.limit import Limit
from keisei.search.search import Report, Score, Search, SearchSettings
from keisei.search.tree import Tree
from keisei.shogi import ShogiGame

if TYPE_CHECKING:  # PyTorch takes seconds to import, and the network comes from elsewhere
    from keisei.core.policy import Policy


@dataclass(frozen=True)
class RankedMove:
    """A move to consider: how likely the policy plays it, and what the search found."""

    move: str  # USI
    probability: float
    score: Score | None = None
    visits: int = 0


class Thinker:
    """A network with its search, and the trees of the games that it plays.

    A tree is kept when the game goes on, and what lies below the moves that were played is used
    again. No tree has a board between two calls, so any thread may make the next one.

    >>> from keisei.config_schema import AppConfig
    >>> from keisei.core.ppo_agent import PPOAgent
    >>> thinker = Thinker(PPOAgent(AppConfig(), "cpu").evaluate)
    >>> report = thinker.think(ShogiGame("4k4/9/4G4/9/9/9/9/9/4K4 b G 1"), Limit(nodes=50))
    >>> report.move, report.score
    ('G*5b', Score(side='black', value=1.0, mate=1))
    """

    def __init__(
        self,
        policy: Policy,
        settings: SearchSettings | None = None,
        *,
        curve: Curve | None = None,
        most_nodes: int | None = None,
        longest_batch: float | None = None,
    ) -> None:
        """`most_nodes` bounds a tree; `longest_batch` is in seconds, for searches by time.

        `curve` says what the network's values stand for: scores are given by it.
        """
        self.most_nodes = most_nodes
        self._curve = curve or Curve()
        self._trees: dict[int, Tree] = {}
        # What shapes the tree must not depend on how busy the machine is...
        self._search = self._timed = Search(policy, settings)
        # ...unless time does anyway: then batches are small enough to look at the clock in between.
        leaves = self._search.settings.leaves
        while longest_batch is not None and leaves > 1 and self._batch_seconds() > longest_batch:
            leaves //= 2
            self._timed = Search(policy, replace(self._search.settings, leaves=leaves))

    def _batch_seconds(self) -> float:
        """The shortest of three: the first also sets PyTorch up."""
        tree, times = Tree(ShogiGame()), []
        self._timed.run([tree], Limit(nodes=1))
        for _ in range(3):
            start = time.monotonic()
            self._timed.run([tree], Limit(nodes=self._timed.settings.leaves))
            times.append(time.monotonic() - start)
        return min(times)

    @property
    def nodes(self) -> int:
        """The size of all trees."""
        return sum(tree.root.visits for tree in list(self._trees.values()))

    def forget(self) -> None:
        """Drop the trees."""
        self._trees.clear()

    def think(self, game: ShogiGame, limit: Limit) -> Report:
        """What to play in a game's position, which must have a legal move."""
        return self.think_together({0: game}, limit)[0]

    def think_together(self, games: Mapping[int, ShogiGame], limit: Limit) -> list[Report]:
        """Think about many games, each with the number that it keeps from move to move.

        They share batches, unless time is the limit: then each has the network for itself.
        """
        if limit.seconds is not None and len(games) > 1:
            return [self.think_together({n: game}, limit)[0] for n, game in games.items()]
        search = self._timed if limit.timed else self._search
        trees = [self._tree(number, game) for number, game in games.items()]
        if self.most_nodes is not None:
            room = max(self.most_nodes - max(tree.root.visits for tree in trees), 1)
            limit = replace(limit, nodes=room if limit.nodes is None else min(limit.nodes, room))
        try:
            search.run(trees, limit)
            return [self._report(tree) for tree in trees]
        except BaseException:
            self.forget()  # a tree may be half-changed
            raise
        finally:
            for tree in trees:
                tree.rest()

    def _tree(self, number: int, game: ShogiGame) -> Tree:
        if number in self._trees:
            self._trees[number].set_position(game)
        else:
            self._trees[number] = Tree(game)
        return self._trees[number]

    def reports(self, count: int) -> list[Report]:
        """What is known of the game's best moves so far, the best first.

        A limit's `stop` may ask for it while the search goes on.
        """
        found = self._search.reports(self._trees[0], count)
        return [replace(report, score=report.score.by(self._curve)) for report in found]

    def _report(self, tree: Tree) -> Report:
        report = self._search.report(tree)
        return replace(report, score=report.score.by(self._curve))

    def ranked_moves(self, count: int, number: int = 0) -> list[RankedMove]:
        """The moves to consider in a game that was thought about, the best one first."""
        tree = self._trees[number]
        root, best = tree.root, self._report(tree)
        found = []
        for index, prior in enumerate(root.priors.tolist()):
            move, child = tree.usi(root, index), root.children.get(index)
            visits = child.visits if child else 0
            value = max(float(root.q[index]), -1.0)
            score = Score(tree.side, value).by(self._curve) if visits else None
            is_best = move == best.move
            ranked = RankedMove(move, prior, best.score if is_best else score, visits)
            found.append(((is_best, visits, prior), ranked))
        return [ranked for _, ranked in sorted(found, key=lambda one: one[0], reverse=True)[:count]]
