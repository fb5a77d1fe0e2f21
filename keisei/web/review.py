"""Reviews: every position of a game searched, a few at a time, while somebody looks on."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from threading import Event

from keisei.errors import KeiseiError
from keisei.models import SHIPPED_PATH
from keisei.search import Limit, Score, Thinker
from keisei.shogi import ShogiGame
from keisei.shogi.actions import other_side
from keisei.shogi.records import GameRecord, RecordError
from keisei.web.events import encode
from keisei.web.games import values_of
from keisei.web.kept import KeptGames
from keisei.web.kept_schema import Judged, Judgement, ReviewUpdate
from keisei.web.networks import Network, Networks, observe
from keisei.web.positions import blacks_value, line_names, top_moves
from keisei.web.schema import Problem
from keisei.web.threads import Places, Threads, WebError

NODES = 200  # for each position: a game of 100 moves takes 10 s on one idle core
MISTAKE = 0.05  # of the chance to win: a move that loses so much is marked, and looked at again
# The second look: so many nodes for each position of the game are spent on those before and after
# mistakes (8 s more for 100 moves), at least and at most so many on each of them.
MORE = 170
LEAST, MOST = 500, 1500
GROUP = 8  # positions that are searched together: they share batches
FIRST = 2  # and at first, so that there is something to see at once
LINE = 8  # moves that are shown of the best line
TOP = 3
MAX_REVIEWS = 20  # under way at the same time; they take turns
KEPT = 32  # reviews whose results are remembered


@dataclass
class _Review:
    record: GameRecord
    network: Network
    values: list[float | None]  # at a glance
    found: list[Judged] = field(default_factory=list)  # of all positions, then of some again
    again: list[int] = field(default_factory=list)  # the positions before and after mistakes

    @property
    def positions(self) -> int:
        return len(self.record.moves) + 1

    @property
    def total(self) -> int:
        return self.positions + len(self.again)

    def add(self, judged: Sequence[Judged]) -> None:
        """Add what was found in positions, with what the moves before them lost."""
        found = {one.ply: one for one in self.found}
        for one in judged:
            old = found.get(one.ply)
            if old is None or (old.loss or 0) >= MISTAKE:
                one = _with_loss(self.record, found.get(one.ply - 1), one)
            else:  # looked at again for the sake of the next move alone
                one = one.model_copy(update={"loss": old.loss})
            found[one.ply] = one
        if not self.again and len(found) == self.positions:
            self.again = _doubtful(list(found.values()))
        self.found = [*self.found, *(found[one.ply] for one in judged)]  # last: others read along


class Reviews:
    """All reviews. One thread does their work, a group of positions at a time, in turns."""

    def __init__(self, kept: KeptGames, networks: Networks, closing: Callable[[], bool]) -> None:
        self._kept, self._networks, self._closing = kept, networks, closing
        self.threads = Threads("reviewing", 1, waiting=2 * MAX_REVIEWS)
        self._known: OrderedDict[object, _Review] = OrderedDict()
        self._places = Places("reviews are already under way here")
        self._ready = False

    def get_ready(self) -> None:
        """Load the network, and PyTorch with it: the first review would wait two seconds for it."""
        if not self._ready:
            self._ready = True
            self.threads.begin(self._networks.load, SHIPPED_PATH)

    def refuse_too_many(self) -> None:
        """Say so if no other review can begin now."""
        self._places.refuse_too_many(MAX_REVIEWS)

    async def stream(self, number: int) -> AsyncIterator[bytes]:
        """Review a kept game as long as somebody listens."""
        left = Event()
        sent = 0
        try:
            with self._places.take(MAX_REVIEWS):  # many that begin at once were not refused yet
                review = await self.threads.run(self._begin, number)
                values = review.values
                while True:
                    judged, sent = review.found[sent:], len(review.found)
                    total = review.total
                    update = ReviewUpdate(done=sent, total=total, judged=judged, values=values)
                    yield encode("review", update)
                    values = []
                    if sent == total:
                        return
                    await self.threads.run(self._go_on, review, left)
        except KeiseiError as error:
            yield encode("problem", Problem(detail=str(error)))
        finally:
            left.set()

    # -- in the thread of the reviews ------------------------------------------------------------

    def _begin(self, number: int) -> _Review:
        """The review of this game: where it was left, if it is still known."""
        record = self._kept.open(number).tree.record
        key = (record.start_sfen, record.moves)
        if key not in self._known:
            network = self._networks.load(SHIPPED_PATH)
            self._known[key] = _Review(record, network, values_of(network, record))
        self._known.move_to_end(key)
        while len(self._known) > KEPT:
            self._known.popitem(last=False)
        return self._known[key]

    def _go_on(self, review: _Review, left: Event) -> None:
        """Search the next positions, unless the last listener leaves meanwhile."""
        first, count = len(review.found), review.positions
        if first == review.total:  # somebody else's turn has just ended it
            return
        plies: Sequence[int] = range(first, min(first + (GROUP if first else FIRST), count))
        nodes = NODES
        if first >= count:  # the second look: as many nodes at a time
            nodes = min(_more_nodes(count) // len(review.again), MOST)
            plies = review.again[first - count :][: max(GROUP * NODES // nodes, 1)]
        found = judge(review.network, review.record, plies, nodes, left.is_set)
        if not left.is_set() and not self._closing():
            review.add(found)

    def judge_line(self, number: int, moves: Sequence[str]) -> Judgement:
        """Judge any position that can be reached from the start of a kept game, and its move."""
        game = self._kept.open(number).tree.record
        try:
            line = GameRecord(game.start_sfen, tuple(moves))
        except RecordError as error:
            raise WebError(400, str(error)) from None
        network = self._networks.load(SHIPPED_PATH)
        last = len(line.moves)
        before = self._reviewed(game, line.moves[:-1]) if last else None
        plies = range(last if before else max(last - 1, 0), last + 1)
        found = judge(network, line, plies, LEAST, self._closing)
        if last and before is None:
            before = found[0]
        name = line_names(line.game(last - 1), line.moves[-1:])[0] if last else None
        return Judgement(move=name, before=before, judged=_with_loss(line, before, found[-1]))

    def _reviewed(self, game: GameRecord, moves: Sequence[str]) -> Judged | None:
        """What its review says of a position of the game: its best move must stay the best."""
        review = self._known.get((game.start_sfen, game.moves))
        if review is None or tuple(moves) != game.moves[: len(moves)]:
            return None
        return {one.ply: one for one in review.found}.get(len(moves))


def _doubtful(found: Sequence[Judged]) -> list[int]:
    """The positions before and after the mistakes; of too many mistakes, the worst ones."""
    mistakes = [one for one in found if (one.loss or 0) >= MISTAKE]
    plies: set[int] = set()
    for one in sorted(mistakes, key=lambda one: -(one.loss or 0)):
        more = plies | {one.ply - 1, one.ply}
        if len(more) * LEAST <= _more_nodes(len(found)):
            plies = more
    return sorted(plies)


def _more_nodes(positions: int) -> int:
    """For the second look at a game."""
    return MORE * max(positions, 40)


def judge(
    network: Network,
    record: GameRecord,
    plies: Sequence[int],
    nodes: int,
    stop: Callable[[], bool] | None = None,
) -> list[Judged]:
    """Search some positions of a game, together."""
    boards = {ply: record.game(ply) for ply in plies}
    # People play on where our rules end a game: only at the end of the moves is it over.
    last = len(record.moves)
    open_boards = {
        ply: board
        for ply, board in boards.items()
        if board.has_legal_move and not (ply == last and board.outcome)
    }
    thinker = Thinker(network.policy, curve=network.curve)
    reports = thinker.think_together(open_boards, Limit(nodes, stop=stop)) if open_boards else []
    found = dict(zip(open_boards, reports, strict=True))
    judged = []
    for ply, board in boards.items():
        report = found.get(ply)
        top = top_moves(board, thinker.ranked_moves(TOP, ply)) if report else []
        score = report.score if report else _result(board)
        judged.append(
            Judged(
                ply=ply,
                value=blacks_value(score),
                mate=score.seen_by("black").mate,
                best=report.move if report else None,
                line=line_names(board, report.line[:LINE]) if report else [],
                top=top,
                loss=None,
            )
        )
    return judged


def _result(board: ShogiGame) -> Score:
    score = observe(board).result
    return score or Score(other_side(board.turn), 1.0)  # no legal move: the mover has lost


def _with_loss(record: GameRecord, before: Judged | None, after: Judged) -> Judged:
    """The same, with what the move that led there gave away."""
    if before is None:
        return after
    if record.moves[before.ply] == before.best:
        return after.model_copy(update={"loss": 0.0})
    blacks_turn = (record.start_sfen.split()[1] == "b") == (before.ply % 2 == 0)
    loss = (before.value - after.value) / 2 * (1 if blacks_turn else -1)
    return after.model_copy(update={"loss": round(max(loss, 0.0), 4)})
