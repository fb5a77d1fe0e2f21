"""Moves beside the main line of a game: a tree of them, and KIF with its branches.

rsshogi writes such trees so that neither it nor others can read them again, and what comes after
the end of the main line it does not read. So branches are put together here from lines that it
wrote, as other programs expect them, and the ends of lines are taken out before it reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

from rsshogi.record import Record

from keisei.shogi.records import GameRecord, RecordError, record_bytes

FIRST_NODE = 100_000  # the first number of a node beside the main line
MAX_VARIATIONS = 500
_ENDING = re.compile(r"まで|\s*\d+\s+[^\s１-９同]")  # a line of KIF with the end of a game


@dataclass(frozen=True)
class Variation:
    """A move beside the main line: its node's number, and that of the node that it is played from.

    Nodes 0 to the length of the game are those of the main line.
    """

    node: int
    parent: int
    move: str  # USI
    comment: str = ""


@dataclass(frozen=True)
class GameTree:
    """A game with variations.

    >>> tree = GameTree(GameRecord(moves=("7g7f", "3c3d")))
    >>> tree, node = tree.play(1, "8c8d")
    >>> tree.moves_to(node)
    ['7g7f', '8c8d']
    >>> tree.play(0, "7g7f")[1]  # the main line's own move
    1
    """

    record: GameRecord
    variations: tuple[Variation, ...] = ()

    def _by_node(self) -> dict[int, Variation]:
        return {one.node: one for one in self.variations}

    def moves_to(self, node: int) -> list[str]:
        """The moves from the start to a node."""
        by_node, moves = self._by_node(), []
        while node in by_node:
            moves.append(by_node[node].move)
            if by_node[node].parent >= node:  # they only ever grow: anything else is not a tree
                raise RecordError(f"the variations of this game are broken at node {node}")
            node = by_node[node].parent
        if not 0 <= node <= len(self.record.moves):
            raise RecordError(f"this game has no node {node}")
        return [*self.record.moves[:node], *reversed(moves)]

    def play(self, parent: int, move: str) -> tuple[GameTree, int]:
        """The tree with a move from a node, and the move's own node, which may be there already."""
        before = self.moves_to(parent)
        if parent < len(self.record.moves) and self.record.moves[parent] == move:
            return self, parent + 1
        for one in self.variations:
            if (one.parent, one.move) == (parent, move):
                return self, one.node
        if len(self.variations) >= MAX_VARIATIONS:
            raise RecordError(f"a game may have at most {MAX_VARIATIONS} moves beside its own")
        GameRecord(self.record.start_sfen, (*before, move))  # an illegal one is an error
        node = max((one.node for one in self.variations), default=FIRST_NODE) + 1
        return replace(self, variations=(*self.variations, Variation(node, parent, move))), node

    def prune(self, node: int) -> GameTree:
        """The tree without a move beside the main line and what follows it."""
        gone = {node} - set(range(FIRST_NODE))
        for one in self.variations:
            if one.parent in gone:
                gone.add(one.node)
        return replace(self, variations=tuple(v for v in self.variations if v.node not in gone))

    def comment(self, node: int, text: str) -> GameTree:
        """The tree with this comment at a node, in place of the one that was there."""
        self.moves_to(node)
        if node <= len(self.record.moves):
            comments = {**self.record.comments, node: text}
            comments = {ply: said for ply, said in comments.items() if said}
            return replace(self, record=replace(self.record, comments=comments))
        changed = (replace(v, comment=text) if v.node == node else v for v in self.variations)
        return replace(self, variations=tuple(changed))

    def noted_as(self, other: GameTree) -> GameTree:
        """This game with the variations and comments of another, as far as both go the same way.

        >>> early, _ = GameTree(GameRecord(moves=("7g7f", "3c3d"))).play(1, "8c8d")
        >>> later = GameTree(GameRecord(moves=("7g7f", "8c8d"))).noted_as(early.comment(1, "usual"))
        >>> later.record.comments, later.variations  # what was tried is played now
        ({1: 'usual'}, ())
        """
        pairs = zip(self.record.moves, other.record.moves, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        said = {ply: text for ply, text in other.record.comments.items() if ply <= same}
        tree = replace(self, record=replace(self.record, comments={**said, **self.record.comments}))
        nodes = {ply: ply for ply in range(same + 1)}
        for one in other.variations:  # parents come before what is played from them
            if one.parent in nodes:
                tree, node = tree.play(nodes[one.parent], one.move)
                nodes[one.node] = node
                tree = tree.comment(node, one.comment) if one.comment else tree
        return tree

    def children(self, node: int) -> list[Variation]:
        """The moves beside the main line that are played from a node."""
        return [one for one in self.variations if one.parent == node]


def tree_bytes(tree: GameTree, path: str) -> bytes:
    """The game as a file of that name; KIF has its variations."""
    if not tree.variations or not path.endswith((".kif", ".kifu")):
        return record_bytes(tree.record, path)
    encoding = "cp932" if path.endswith(".kif") else "utf-8"
    text = record_bytes(tree.record, "main.kifu").decode()
    for ply in range(len(tree.record.moves), -1, -1):  # readers expect the last branch first
        for one in tree.children(ply):
            text += "".join(_branch(tree, one))
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        raise RecordError(
            f"{path}: CP932 has no {text[error.start]!r}; use .kifu, which is UTF-8"
        ) from None


def _branch(tree: GameTree, first: Variation) -> Iterator[str]:
    """A branch and, after it, those that leave it: the last one first."""
    line = [first]
    while following := tree.children(line[-1].node):
        line.append(following[0])
    before = tree.moves_to(first.parent)
    start = len(before)
    moves = (*before, *(one.move for one in line))
    comments = {start + n: one.comment for n, one in enumerate(line, 1) if one.comment}
    whole = record_bytes(
        GameRecord(tree.record.start_sfen, moves, comments=comments), "line.kifu"
    ).decode()
    lines = whole.split("\n")
    begin = next(n for n, t in enumerate(lines) if re.match(rf"\s*{start + 1} ", t))
    ends = (n for n, t in enumerate(lines) if n > begin and t.startswith("まで"))
    yield f"\n変化：{start + 1}手\n"
    yield "\n".join(lines[begin : next(ends, len(lines))]).rstrip("\n") + "\n"
    for one in reversed(line):
        for other in tree.children(one.node)[1:]:
            yield from _branch(tree, other)


def read_tree(text: str, record: GameRecord) -> GameTree:
    """The record's game with the branches of the KIF that it was read from, if they can be read."""
    tree = GameTree(record)
    if "\n変化" not in text.replace("\r", "\n"):
        return tree
    lines = [line for line in re.split(r"\r\n|\r|\n", text) if not _ENDING.match(line)]
    try:
        raw = Record.from_kif_str("\n".join(lines) + "\n")
        return _grown(tree, raw, raw.root_node_id(), 0)
    except ValueError:  # they are extras: the game itself is sound
        return tree


def _grown(tree: GameTree, raw: Record, raw_node: int, node: int) -> GameTree:
    """The tree with everything that follows a node of rsshogi's."""
    todo = [(raw_node, node)]
    while todo and len(tree.variations) < MAX_VARIATIONS:
        raw_node, node = todo.pop()
        for child in raw.children(raw_node):
            entry = raw.node_move(child)
            if entry is None or len(tree.variations) >= MAX_VARIATIONS:
                continue
            tree, own = tree.play(node, entry.move.to_usi())
            if entry.comment and own > FIRST_NODE:
                tree = tree.comment(own, entry.comment)
            todo.append((child, own))
    return tree
