"""Analysis of one position: several lines, deeper and deeper, as long as somebody looks on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from threading import Event

from keisei.errors import KeiseiError
from keisei.models import SHIPPED_PATH
from keisei.search import Limit, SearchSettings, Thinker
from keisei.shogi import ShogiGame
from keisei.shogi.records import GameRecord
from keisei.web.events import encode
from keisei.web.kept import KeptGames
from keisei.web.kept_schema import AnalysedLine, AnalysisUpdate
from keisei.web.networks import Networks
from keisei.web.positions import blacks_value, line_names
from keisei.web.schema import Problem
from keisei.web.threads import Places, Threads

LINES = 3
LINE = 8  # moves that are shown of each
FIRST = 48  # nodes before there is something to see
STEP = 400  # and between two updates: a fifth of a second on an idle core
# The policy may be so sure of one move that it would have no other looked at, and a search for the
# best move alone looks at too few others to show three lines.
SEARCH = SearchSettings(root_temperature=2.5, exploration=1.5)
# A node takes about 10 kB, so that one analysis takes up to 200 MB, and all of them 800.
MOST_NODES = 20_000
MAX_ANALYSES = 4


class Analyses:
    """All analyses under way. They take turns in the thread of the reviews."""

    def __init__(
        self, kept: KeptGames, networks: Networks, threads: Threads, closing: Callable[[], bool]
    ) -> None:
        self._kept, self._networks = kept, networks
        self._threads, self._closing = threads, closing
        self._places = Places("positions are already being analysed here")

    def refuse_too_many(self) -> None:
        """Say so if no other analysis can begin now."""
        self._places.refuse_too_many(MAX_ANALYSES)

    async def stream(self, number: int, node: int) -> AsyncIterator[bytes]:
        """Analyse the position at a node of a kept game as long as somebody listens."""
        left = Event()
        try:
            with self._places.take(MAX_ANALYSES):
                line, thinker = await self._threads.run(self._begin, number, node)
                over = False
                while not over:
                    update = await self._threads.run(self._go_on, line, thinker, left)
                    yield encode("analysis", update)
                    over = update.over
        except KeiseiError as error:
            yield encode("problem", Problem(detail=str(error)))
        finally:
            left.set()

    # -- in the thread of the reviews ------------------------------------------------------------

    def _begin(self, number: int, node: int) -> tuple[GameRecord, Thinker]:
        tree = self._kept.open(number).tree
        network = self._networks.load(SHIPPED_PATH)
        thinker = Thinker(network.policy, SEARCH, curve=network.curve, most_nodes=MOST_NODES)
        return GameRecord(tree.record.start_sfen, tuple(tree.moves_to(node))), thinker

    def _go_on(self, line: GameRecord, thinker: Thinker, left: Event) -> AnalysisUpdate:
        """Search a little deeper."""
        board = line.game(len(line.moves))
        if not board.has_legal_move:
            return AnalysisUpdate(nodes=0, over=True, lines=[])

        def stop() -> bool:
            return left.is_set() or self._closing()

        report = thinker.think(board, Limit(STEP if thinker.nodes else FIRST, stop=stop))
        proven = report.score.mate is not None
        return AnalysisUpdate(
            nodes=report.visits,
            over=proven or report.visits >= MOST_NODES or self._closing(),
            lines=_lines(line, thinker),
        )


def _lines(line: GameRecord, thinker: Thinker) -> list[AnalysedLine]:
    def board() -> ShogiGame:
        return line.game(len(line.moves))

    return [
        AnalysedLine(
            value=blacks_value(report.score),
            mate=report.score.seen_by("black").mate,
            moves=line_names(board(), report.line[:LINE]),
        )
        for report in thinker.reports(LINES)
    ]
