"""One game's search tree: it finds the leaves that the network should evaluate next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keisei.search.node import Node
from keisei.shogi import ShogiGame, VectorShogi, features
from keisei.shogi.actions import move_to_usi, usi_to_move
from keisei.shogi.rules import handicap_bonus
from keisei.shogi.search_board import Seen

Path = list[tuple[Node, int]]


@dataclass(slots=True)
class Leaf:
    """A position for the network to evaluate: how it was reached, and what the board says."""

    node: Node
    path: Path
    played: int  # moves since the game began
    seen: Seen
    white_bonus: int


class Tree:
    """The tree below a game's position; when moves are played, it keeps what is still useful.

    >>> tree = Tree(ShogiGame())
    >>> [leaf.played for leaf in tree.gather(8, exploration=1.0)]  # at first, the root alone
    [0]

    Its board belongs to the thread that set the position. Without a board (`rest`) the tree is just
    data, which another thread may continue.
    """

    def __init__(self, game: ShogiGame) -> None:
        self.root = Node()
        self._start, self._moves, self._move_limit = game.start_sfen, game.moves, game.move_limit
        self.set_position(game)

    def set_position(self, game: ShogiGame) -> None:
        """Go to a game's position; if it is the current one or below it, that part is kept."""
        start, moves, known = game.start_sfen, game.moves, len(self._moves)
        goes_on = (start, game.move_limit) == (self._start, self._move_limit)
        root = self._below(moves[known:]) if goes_on and moves[:known] == self._moves else None
        self._start, self._moves, self._move_limit = start, moves, game.move_limit
        self._played, self._bonus = len(moves), handicap_bonus(start)
        self._board, self.side = game.search_board(), game.turn
        if root is None or not root.expanded:
            root = self._new_root(game.observation())
        self.root = root
        self.kept_visits = self.root.visits

    @classmethod
    def of_game(cls, games: VectorShogi, row: int) -> Tree:
        """The tree of one of these games, on its own board; valid until its next move."""
        tree = cls.__new__(cls)
        tree._move_limit = games.move_limit
        tree._played, tree._bonus = int(games.move_counts[row]), games.bonus_of(row)
        tree._board = games.search_board(row)
        tree.root = tree._new_root(games.observations[row].copy())
        return tree

    def _new_root(self, observation: features.Observations) -> Node:
        root, self._root_seen = Node(), self._board.look()
        root.moves, root.mating_move = self._root_seen.moves, self._root_seen.mating_move
        root.observation = observation
        # The root is searched even where our rules end the game: whoever asks plays on.
        if not root.moves.size:
            root.mate = 0
        elif root.mating_move is not None:
            root.mate = 1
        return root

    def rest(self) -> None:
        """Let go of the board, until the next `set_position`."""
        del self._board

    def _below(self, moves: Sequence[str]) -> Node | None:
        """The node that these moves lead to, if it was visited."""
        node: Node | None = self.root
        for usi in moves:
            if node is None:
                return None
            found = np.flatnonzero(node.moves == usi_to_move(usi))
            node = node.children.get(int(found[0])) if found.size else None
        return node

    def usi(self, node: Node, index: int) -> str:
        """A move of a node in USI notation."""
        return move_to_usi(int(node.moves[index]))

    def winning_move(self) -> int:
        """The number of the root's move that is proven to win."""
        if self.root.mating_move is None:
            return self.root.best()
        return int(np.flatnonzero(self.root.moves == self.root.mating_move)[0])

    def gather(self, count: int, exploration: float) -> list[Leaf]:
        """Start up to `count` visits; returns the leaves that the network must evaluate.

        Visits that reach the end of a game are finished at once. It stops early at a leaf that is
        already waiting.
        """
        if not self.root.expanded:
            seen = self._root_seen
            return [] if self.root.mate == 0 else [self._leaf(self.root, [], seen)]
        leaves = []
        for _ in range(count):
            if self.root.mate is not None:
                break
            path, node = self._descend(exploration)
            if node.end_value is None and node.moves.size:  # already among the leaves
                cancel(path)
                break
            leaves += self._reach(path, node)
        return leaves

    def visit(self, index: int, exploration: float) -> list[Leaf]:
        """One visit to a move of an expanded root; returns the leaf to evaluate, if any."""
        return self._reach(*self._descend(exploration, index))

    def _reach(self, path: Path, node: Node) -> list[Leaf]:
        """Finish a visit if the game's result is known there; else return the leaf."""
        leaf = self._look(node, path) if node.end_value is None else None
        if leaf is not None:
            return [leaf]
        end_value = node.end_value
        assert end_value is not None
        finish(path, end_value)
        return []

    def _descend(self, exploration: float, first: int | None = None) -> tuple[Path, Node]:
        """Choose moves down to a node that is new or proven, beginning with `first` if given."""
        node: Node = self.root
        path: Path = []
        node.visits += 1
        if first is not None:
            path.append((node, first))
            node = node.start_visit(first)
        while node.open_moves >= 0 and node.mate is None:  # expanded, and nothing is proven
            index = node.choose(exploration)
            path.append((node, index))
            node = node.start_visit(index)
        return path, node

    def _look(self, node: Node, path: Path) -> Leaf | None:
        """Look at the board after the path; returns the leaf, unless the game is over there."""
        at_limit = self._move_limit is not None and self._played + len(path) >= self._move_limit
        seen = self._board.look([node.moves.item(index) for node, index in path], at_limit)
        node.moves = seen.moves
        if seen.result is not None:
            node.drawn = seen.result == 0
            node.mate = None if node.drawn else max(seen.result, 0)
            return None
        if seen.mating_move is not None:
            node.mate, node.mating_move = 1, seen.mating_move
            return None
        return self._leaf(node, path, seen)

    def _leaf(self, node: Node, path: Path, seen: Seen) -> Leaf:
        return Leaf(node, path, self._played + len(path), seen, self._bonus)


def finish(path: Path, value: float) -> None:
    """Add a leaf's value (its mover's) to all the moves that led to it."""
    for parent, index in reversed(path):
        value = -value
        parent.end_visit(index, value)
        if parent.mate is not None:  # a proof counts more than one visit
            value = 1.0 if parent.mate > 0 else -1.0


def cancel(path: Path) -> None:
    """Take back a visit that reached a leaf which is already waiting."""
    path[0][0].visits -= 1
    for parent, index in path:
        parent.cancel_visit(index)
