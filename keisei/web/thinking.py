"""How the agent chooses its moves, and what it would advise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rsshogi.core import Move

from keisei.shogi import ShogiGame
from keisei.web.networks import TOP, Network, view_of

if TYPE_CHECKING:
    from keisei.search.node import Node

HINT_NODES = 100  # at least
HINT_SECONDS = 3.0
THINK_SECONDS = 15.0  # for one move, at most

Found = list[tuple[str, float, float | None]]  # moves, probabilities, values for the mover


class Choice(NamedTuple):
    """A move, and the value of the position for Black."""

    move: str
    value: float


def choose(
    network: Network,
    start: str,
    moves: Sequence[str],
    nodes: int,
    seconds: float,
    stop: Callable[[], bool],
) -> Choice:
    """The agent's move after these; without nodes, its policy's likeliest."""
    if not nodes:
        opinion = network.look_at([view_of(ShogiGame.from_moves(start, moves))])[0]
        return Choice(opinion.top[0][0], opinion.value)
    # Here and not above: the search needs PyTorch, which takes seconds to import.
    from keisei.search import Search, Tree

    search, tree = Search(network.policy), Tree(start, moves)
    search.run([tree], nodes, min(seconds, THINK_SECONDS), stop)
    report = search.report(tree)
    return Choice(report.move, _for_black(report.value, start, moves))


def advise(
    network: Network, start: str, moves: Sequence[str], nodes: int, stop: Callable[[], bool]
) -> tuple[Found, float]:
    """The moves to think of, best first, and the value of the position for Black."""
    from keisei.search import Search, Tree

    search, tree = Search(network.policy), Tree(start, moves)
    search.run([tree], max(nodes, HINT_NODES), HINT_SECONDS, stop)
    report = search.report(tree)
    found = _top_moves(tree.root)
    # A mate that was seen at once has no visits; it comes first in any case.
    best = next((one for one in found if one[0] == report.move), (report.move, 1.0, report.value))
    found = [best, *(one for one in found if one[0] != report.move)]
    return found[:TOP], _for_black(report.value, start, moves)


def _top_moves(root: Node) -> Found:
    if not root.expanded:
        return []
    visits = np.zeros(len(root.moves))
    for index, child in root.children.items():
        visits[index] = child.visits
    order = np.lexsort((-root.priors, -visits)).tolist()
    return [
        (Move(int(root.moves[i])).to_usi(), float(root.priors[i]), _worth(root.children.get(i)))
        for i in order[:TOP]
    ]


def _worth(child: Node | None) -> float | None:
    """What moving there is worth for the mover, as far as it was looked at."""
    if child is None or not child.visits:
        return None
    if child.end_value is not None:
        return -child.end_value
    return child.total / child.visits


def _for_black(value: float, start: str, moves: Sequence[str]) -> float:
    black = (start.split()[1] == "b") == (len(moves) % 2 == 0)
    return round(value if black else -value, 4)
