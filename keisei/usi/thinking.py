"""Thinking about a position for as long as USI's `go` says, and telling what was found."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from keisei.models import SHIPPED
from keisei.shogi.actions import Turn
from keisei.usi.options import Options
from keisei.usi.protocol import Go, Position, centipawns

if TYPE_CHECKING:
    from keisei.core.policy import Policy
    from keisei.search import Report, Search, Tree

_NODE_BYTES = 8000  # measured: 2,700 with some 80 moves, the rest is lost between the batches
_LONGEST_BATCH = 0.04  # seconds; the clock and `stop` wait for a batch
_UNLIMITED_NODES = 800  # for a `go` without any limit
_INFO_EVERY = 1.0  # seconds

Hear = Callable[[bool], "str | None"]


def load_thinker(model: str, threads: int) -> Thinker:
    """A thinker with the network of a checkpoint file or a run; "" is the one that is shipped."""
    # Here and not above: PyTorch takes seconds to import.
    import torch

    from keisei.trained import find_checkpoint, load_trained

    torch.set_num_threads(threads)
    return Thinker(load_trained(find_checkpoint(model or SHIPPED)).policy)


class Thinker:
    """A network with its search, and the tree of the game in play."""

    def __init__(self, policy: Policy, longest_batch: float = _LONGEST_BATCH) -> None:
        from keisei.search import Search, SearchSettings

        # What shapes the tree must not depend on how busy the machine is...
        self._search = Search(policy)
        # ...unless time does anyway: then batches are small enough to look at the clock in between.
        self._timely = self._search
        leaves = self._search.settings.leaves
        while leaves > 1 and self._seconds_of_a_batch(leaves) > longest_batch:
            leaves //= 2
            self._timely = Search(policy, SearchSettings(leaves=leaves))
        self._tree: Tree | None = None

    def _seconds_of_a_batch(self, leaves: int) -> float:
        """The shortest of three: the first also sets PyTorch up."""
        from keisei.search import Tree

        tree, times = Tree(Position().start_sfen), []
        self._timely.run([tree], nodes=1)
        for _ in range(3):
            start = time.monotonic()
            self._timely.run([tree], nodes=leaves)
            times.append(time.monotonic() - start)
        return min(times)

    def forget(self) -> None:
        """Drop the tree: another game begins."""
        self._tree = None

    def think(
        self,
        position: Position,
        turn: Turn,
        go: Go,
        options: Options,
        hear: Hear,
        write: Callable[[str], None],
    ) -> str:
        """What to answer after `bestmove`, or after `checkmate` if a mate was asked for."""
        start = time.monotonic()
        tree = self._tree_of(position)
        search = self._search if go.by_nodes_alone else self._timely
        thought = _Thought(search, tree, go, hear, write, start)
        if go.mate is not None:
            thought.seconds = go.mate / 1000
        else:
            thought.seconds = go.seconds(turn, options.number("MoveOverhead"))
        report = thought.run(self._nodes(tree, go, options))
        if go.mate is not None:
            return _mate_answer(report)
        chance = 50 * (1 + report.value)
        if chance < options.number("Resign"):
            return "resign"
        ponder = f" ponder {report.line[1]}" if len(report.line) > 1 else ""
        return report.move + (ponder if options.number("USI_Ponder") else "")

    def _tree_of(self, position: Position) -> Tree:
        from keisei.search import Tree

        if self._tree is None:
            self._tree = Tree(position.start_sfen, position.moves)
        self._tree.set_position(position.start_sfen, position.moves)
        return self._tree

    def _nodes(self, tree: Tree, go: Go, options: Options) -> int:
        """How many visits are allowed: what was asked for, and what the memory holds."""
        room = options.number("USI_Hash") * 1_000_000 // _NODE_BYTES - tree.root.visits
        wanted = go.nodes or options.number("Nodes")
        if not wanted and go.by_nodes_alone:
            wanted = _UNLIMITED_NODES
        return max(min(wanted or room, room), 1)


class _Thought:
    """One search: when it ends, and what it says on the way."""

    def __init__(
        self,
        search: Search,
        tree: Tree,
        go: Go,
        hear: Hear,
        write: Callable[[str], None],
        start: float,
    ) -> None:
        self._search, self._tree = search, tree
        self._hear, self._write = hear, write
        self.seconds: float | None = None
        self._start = self._clock_from = start
        self._pondering = go.ponder
        self._waits = go.infinite  # for `stop`, even when there is nothing more to find
        self._visits_before = tree.root.visits
        self._last_info = self._last_look = start
        self._stopped = False

    def run(self, nodes: int) -> Report:
        """Search until time, nodes or `stop` end it, and tell what was found."""
        self._search.run([self._tree], nodes, stop=self._should_stop)
        report = self._search.report(self._tree)
        self._inform(report)  # before it waits: what is proven is known long before `stop`
        while not self._stopped and (self._waits or self._pondering):
            self._take(self._hear(True))
        return report

    def _should_stop(self) -> bool:
        self._take(self._hear(False))
        now = time.monotonic()
        if now - self._last_info >= _INFO_EVERY:
            self._last_info = now
            self._inform(self._search.report(self._tree))
        batch, self._last_look = now - self._last_look, now
        # The next batch must fit in, too: on a busy machine one may take tenths of a second.
        late = self.seconds is not None and now + batch - self._clock_from >= self.seconds
        return self._stopped or (late and not self._pondering)

    def _take(self, command: str | None) -> None:
        # Whoever sends other work has given up an endless search; others it may await.
        if command == "stop" or (command == "next" and (self._waits or self._pondering)):
            self._stopped = True
        elif command == "ponderhit":
            self._pondering = False
            self._clock_from = time.monotonic()  # our clock starts now

    def _inform(self, report: Report) -> None:
        """Tell the GUI what is known."""
        passed = max(time.monotonic() - self._start, 1e-3)
        visits = self._tree.root.visits - self._visits_before
        score = f"mate {report.mate}" if report.mate else f"cp {centipawns(report.value)}"
        self._write(
            f"info depth {len(report.line)} time {passed * 1000:.0f} nodes {visits} "
            f"nps {visits / passed:.0f} score {score} pv {' '.join(report.line)}"
        )


def _mate_answer(report: Report) -> str:
    if report.mate is None:
        return "timeout"
    return " ".join(report.line) if report.mate > 0 else "nomate"
