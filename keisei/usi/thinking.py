"""Thinking for as long as USI's `go` allows, and reporting to the GUI."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from keisei.models import SHIPPED
from keisei.processes.machine import give_back_memory
from keisei.search import Limit, Report, Thinker
from keisei.shogi import ShogiGame
from keisei.usi.options import Options
from keisei.usi.protocol import Go, centipawns

_NODE_BYTES = 8000  # measured: 2,700 with some 80 moves, the rest is lost between the batches
_GIVE_BACK_EVERY = 500  # nodes
_LONGEST_BATCH = 0.04  # seconds; the clock and `stop` wait for a batch
_INFO_EVERY = 1.0  # seconds

Hear = Callable[[bool], str | None]
Write = Callable[[str], None]


def load_thinker(model: str, threads: int) -> Thinker:
    """A thinker with the network of a checkpoint file or a run; "" is the shipped one."""
    # Here and not above: PyTorch takes seconds to import.
    import torch

    from keisei.trained import find_checkpoint, load_trained

    torch.set_num_threads(threads)
    trained = load_trained(find_checkpoint(model or SHIPPED))
    return Thinker(trained.policy, curve=trained.curve, longest_batch=_LONGEST_BATCH)


def think(
    thinker: Thinker, game: ShogiGame, go: Go, options: Options, hear: Hear, write: Write
) -> str:
    """The answer after `bestmove`, or after `checkmate` to `go mate`."""
    thinker.most_nodes = options.number("USI_Hash") * 1_000_000 // _NODE_BYTES
    limit = go.limit(game.turn, options.number("Nodes"), options.number("MoveOverhead"))
    lines = options.number("MultiPV")
    report = _Thought(thinker, game, go, lines, hear, write).run(limit)
    mate = report.score.mate
    if go.mate is not None:
        return "timeout" if mate is None else " ".join(report.line) if mate > 0 else "nomate"
    if 100 * report.score.win_chance < options.number("Resign"):
        return "resign"
    ponder = f" ponder {report.line[1]}" if len(report.line) > 1 else ""
    return report.move + (ponder if options.number("USI_Ponder") else "")


class _Thought:
    """One `go`: what ends it, and what it reports on the way."""

    def __init__(
        self, thinker: Thinker, game: ShogiGame, go: Go, lines: int, hear: Hear, write: Write
    ) -> None:
        self._thinker, self._game, self._lines = thinker, game, lines
        self._hear, self._write = hear, write
        self._pondering = go.ponder
        self._waits = go.infinite  # for `stop`, even when there is nothing left to find
        self._ended_by: str | None = None  # the command that ended it
        self._start = self._last_info = time.monotonic()
        self._pondered = 0  # nodes
        self._given_back = 0  # the number of nodes when memory was

    def run(self, limit: Limit) -> Report:
        """Search until time, nodes or a command ends it, and report what was found."""
        if self._pondering:
            report = self._search(replace(limit, seconds=None))
            self._await_end()
            if self._ended_by != "ponderhit":
                return report
            self._pondering, self._ended_by, self._pondered = False, None, report.nodes
            if limit.nodes is not None:
                limit = replace(limit, nodes=max(limit.nodes - report.nodes, 0))
        report = self._search(limit)  # our clock starts now
        if self._waits:
            self._await_end()
        return report

    def _search(self, limit: Limit) -> Report:
        report = self._thinker.think(self._game, replace(limit, stop=self._should_stop))
        self._inform()  # before waiting: a proof may be found long before `stop`
        return report

    def _should_stop(self) -> bool:
        self._take(self._hear(False))
        if abs(self._thinker.nodes - self._given_back) >= _GIVE_BACK_EVERY:
            self._given_back = self._thinker.nodes
            give_back_memory()
        now = time.monotonic()
        if now - self._last_info >= _INFO_EVERY:
            self._last_info = now
            self._inform()
        return self._ended_by is not None

    def _await_end(self) -> None:
        while self._ended_by is None:
            self._take(self._hear(True))

    def _take(self, command: str | None) -> None:
        # A GUI that sends other work has given up on an endless search, not on one with a limit.
        endless = self._waits or self._pondering
        ends = {"stop": True, "next": endless, "ponderhit": self._pondering}
        if command is not None and ends[command]:
            self._ended_by = command

    def _inform(self) -> None:
        """Tell the GUI what is known so far, in as many lines as it wants."""
        passed = max(time.monotonic() - self._start, 1e-3)
        for number, report in enumerate(self._thinker.reports(self._lines), start=1):
            nodes, score = self._pondered + report.nodes, report.score
            shown = f"mate {score.mate}" if score.mate else f"cp {centipawns(score.value)}"
            which = f"multipv {number} " if self._lines > 1 else ""
            self._write(
                f"info {which}depth {len(report.line)} time {passed * 1000:.0f} nodes {nodes} "
                f"nps {nodes / passed:.0f} score {shown} pv {' '.join(report.line)}"
            )
