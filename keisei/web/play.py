"""Games between humans and networks: in memory, limited in number, judged by the rules."""

from __future__ import annotations

import logging
import random
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from keisei.errors import KeiseiError
from keisei.models import SHIPPED_PATH
from keisei.search import Limit, Report, Score, SearchSettings, Thinker
from keisei.shogi import IllegalActionError, Outcome, ShogiGame
from keisei.shogi.actions import Side, other_side
from keisei.shogi.records import GameRecord
from keisei.shogi.variations import GameTree
from keisei.web.clock import Clock
from keisei.web.kept import KeptGames, KeptRecord, record_file
from keisei.web.networks import TOP, Network, Networks, Opinion, observe
from keisei.web.opponents import AGENT, Opponent, find_opponent
from keisei.web.positions import blacks_value, playable, replay, top_moves
from keisei.web.runs import RunsFolder
from keisei.web.schema import Hint, NewGame, PlayedGame, Result
from keisei.web.threads import Busy, NotFound, WebError

log = logging.getLogger(__name__)

MAX_GAMES = 200  # each keeps a network in memory, besides those of `Networks`
FORGET_AFTER = 3600.0  # seconds without a request
THINK_SECONDS = 15.0  # for one move, at most
HINT_NODES = 100  # at least
HINT_SECONDS = 3.0
SEARCH = SearchSettings(leaves=8)  # as in matches, by which levels are rated
# In the opening, no two games should be the same: the policy draws more freely, and after a search,
# which noise leads to moves that the policy alone would not look at, one of the moves is drawn that
# are nearly as good as the best one.
OPENING = 16  # moves of both sides
OPENING_TEMPERATURE = 1.0  # at least
NOISE = 0.35  # share of noise in what the search looks at first
BREADTH = 2.5  # temperature of what the network makes it look at
AS_GOOD = 0.04  # of a value from -1 to 1: two percent of a chance to win
LOOKED_AT = 0.03  # share of the visits without which a move's value is a guess
# Trees are kept from move to move. A node takes about 10 kB, so one game's tree takes up to 100 MB,
# and all trees about 400 MB: beyond that, the games that have been idle longest lose theirs.
TREE_NODES = 10_000
ALL_NODES = 40_000


@dataclass
class _Game:
    """A game as data: boards are made by the thread that needs them, when it needs them."""

    id: str
    settings: NewGame
    opponent: Opponent
    network: Network  # kept: training removes old checkpoints while they are played against
    adviser: Network  # what hints and chances come from
    thinker: Thinker  # without boards between moves, so any thread may think next
    start: str
    moves: list[str] = field(default_factory=list)
    values: list[float | None] = field(default_factory=lambda: [None])
    result: Result | None = None
    clock: Clock | None = None
    kept: int | None = None  # its number among the games that are kept
    used: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)
    unwanted: threading.Event = field(default_factory=threading.Event)  # the move being thought of

    @property
    def turn(self) -> Side:
        return self.side_to_make(len(self.moves))

    def side_to_make(self, move: int) -> Side:
        first: Side = "black" if self.start.split()[1] == "b" else "white"
        return first if move % 2 == 0 else other_side(first)

    @property
    def varies(self) -> bool:
        """Is it the opening, in which no two games should be the same?"""
        return self.settings.start == "startpos" and len(self.moves) < OPENING

    @property
    def your_turn(self) -> bool:
        return self.turn == self.settings.side and self.result is None

    def board(self) -> ShogiGame:
        return ShogiGame.from_moves(self.start, self.moves)


class Table:
    """All games in progress against humans."""

    def __init__(
        self,
        runs: RunsFolder,
        networks: Networks,
        closing: Callable[[], bool] = lambda: False,
        kept: KeptGames | None = None,
        seed: int | None = None,
    ) -> None:
        self._runs, self._networks, self._kept = runs, networks, kept
        self._closing = closing
        self._games: dict[str, _Game] = {}
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    # -- a game ------------------------------------------------------------------------------------

    def begin(self, settings: NewGame) -> PlayedGame:
        """Begin a game, and load its network so that the first reply is quick."""
        opponent = find_opponent(self._runs, settings.player)
        if opponent.nodes is not None:
            settings = settings.model_copy(update={"nodes": opponent.nodes})
        start = playable(settings.start)
        network = self._networks.load(opponent.path)
        # A weak level still gives good advice; a run says what it thinks itself.
        adviser = network if opponent.nodes is None else self._networks.load(SHIPPED_PATH)
        mind = network if settings.nodes else adviser
        thinker = Thinker(mind.policy, SEARCH, curve=mind.curve, most_nodes=TREE_NODES)
        number = secrets.token_urlsafe(12)
        game = _Game(number, settings, opponent, network, adviser, thinker, start)
        if settings.clock and settings.clock.main + settings.clock.byoyomi > 0:
            game.clock = Clock(settings.clock)
        self._start_clock(game)
        with self._lock:
            self._make_room()
            self._games[game.id] = game
        return _show(game)

    def rematch(self, number: str) -> PlayedGame:
        """Another game like this one; from the usual start position, with sides changed."""
        settings = self._find(number).settings
        if settings.start == "startpos":
            settings = settings.model_copy(update={"side": other_side(settings.side)})
        return self.begin(settings)

    def _make_room(self) -> None:
        now = time.monotonic()
        for game in list(self._games.values()):
            if now - game.used > FORGET_AFTER:
                del self._games[game.id]
        if len(self._games) >= MAX_GAMES:
            raise Busy(f"{MAX_GAMES} games are already in progress here")

    def _find(self, number: str) -> _Game:
        with self._lock:
            game = self._games.get(number)
        if game is None:
            raise NotFound(
                f"unknown game {number!r}: games are closed after an hour without a move"
            )
        return game

    @contextmanager
    def _using(self, number: str, interrupt: bool = False) -> Iterator[_Game]:
        """A game that no other request can change meanwhile; `interrupt` stops the agent."""
        game = self._find(number)
        if interrupt:
            game.unwanted.set()
        if not game.lock.acquire(timeout=5.0 if interrupt else 1.0):
            raise WebError(409, "the agent is thinking about this game: wait for its move")
        game.unwanted.clear()
        try:
            game.used = time.monotonic()
            if game.clock and game.clock.has_fallen():
                self._end(game, other_side(game.turn), "time")
            yield game
        finally:
            game.lock.release()

    def show(self, number: str) -> PlayedGame:
        """The game as it stands, even while the agent is thinking."""
        game = self._find(number)
        if game.lock.locked():
            return _show(game)
        with self._using(number) as game:
            return _show(game)

    def move(self, number: str, usi: str) -> PlayedGame:
        """The human's move."""
        with self._using(number) as game:
            if game.result:
                return _show(game)  # the time ran out, or another window ended it
            if not game.your_turn:
                raise WebError(409, "it is not your turn")
            self._play(game, usi)
            return _show(game)

    def reply(self, number: str) -> PlayedGame:
        """Let the agent move; if it already has, the game as it stands."""
        with self._using(number) as game:
            if game.result or game.your_turn:
                return _show(game)
            seconds = THINK_SECONDS
            if game.clock:  # move well before the time is up
                game.clock.start(game.turn)
                seconds = min(seconds, max(game.clock.left(game.turn) / 10, 0.05))
            move, score = self._choose(game, seconds)
            if game.unwanted.is_set():  # the human resigns, or takes the last move back
                return _show(game)
            game.values[-1] = blacks_value(score)
            self._play(game, move)
            if game.result is None:
                game.values[-1] = blacks_value(_look(game).score)
            return _show(game)

    def _choose(self, game: _Game, seconds: float) -> tuple[str, Score]:
        """The agent's move, by search or (with 0 nodes) drawn from the policy alone."""
        if not game.settings.nodes:
            temperature = game.opponent.temperature
            if game.varies:
                temperature = max(temperature, OPENING_TEMPERATURE)
            observed = observe(game.board())
            move = game.network.draw(observed, temperature, seed=self._random.getrandbits(32))
            return move, game.adviser.look_at([observed])[0].score

        def stop() -> bool:
            return self._closing() or game.unwanted.is_set()

        limit = Limit(game.settings.nodes, seconds, stop)
        if game.varies:
            thinker = opening_thinker(game.network, self._random.getrandbits(32))
            report = thinker.think(game.board(), limit)
            return self._random.choice(nearly_best(thinker, report)), report.score
        report = game.thinker.think(game.board(), limit)
        self._bound_trees()
        return report.move, report.score

    def _bound_trees(self) -> None:
        """Drop the trees of the games that have been idle longest, until the rest fit in memory."""
        with self._lock:
            games = sorted(self._games.values(), key=lambda game: game.used, reverse=True)
        nodes = 0
        for game in games:
            nodes += game.thinker.nodes
            if nodes > ALL_NODES and game.lock.acquire(blocking=False):  # unless it is in use
                game.thinker.forget()
                game.lock.release()

    def undo(self, number: str) -> PlayedGame:
        """Go back to the human's previous turn."""
        with self._using(number, interrupt=True) as game:
            plies = range(len(game.moves))
            mine = [ply for ply in plies if game.side_to_make(ply) == game.settings.side]
            resigned = game.result is not None and game.result.reason in ("resignation", "time")
            if resigned and game.turn == game.settings.side:
                pass  # take back the end alone
            elif mine:
                del game.moves[mine[-1] :], game.values[mine[-1] + 1 :]
            else:
                raise WebError(409, "you have no move to take back")
            game.result = None
            self._start_clock(game)
            self._keep(game)
            return _show(game)

    def resign(self, number: str) -> PlayedGame:
        """The human resigns."""
        with self._using(number, interrupt=True) as game:
            if game.result is None:
                self._end(game, other_side(game.settings.side), "resignation")
            return _show(game)

    def hint(self, number: str) -> Hint:
        """What the agent would play in the human's place."""
        with self._using(number) as game:
            if not game.your_turn:
                raise WebError(409, "no hint now: it is not your turn")
            board = game.board()
            nodes = max(game.settings.nodes, HINT_NODES)
            report = game.thinker.think(board, Limit(nodes, HINT_SECONDS, stop=self._closing))
            self._bound_trees()
            top = top_moves(board, game.thinker.ranked_moves(TOP))
            return Hint(top=top, value=blacks_value(report.score))

    def record(self, number: str, suffix: str) -> tuple[str, bytes]:
        """The game as a file of this format: name and content."""
        with self._using(number) as game:
            return record_file(GameTree(_record(game)), f"keisei-{game.id}", suffix)

    # -- what happens in it ------------------------------------------------------------------------

    def _play(self, game: _Game, usi: str) -> None:
        board = game.board()
        try:
            board.push_usi(usi)
        except IllegalActionError as error:
            raise WebError(400, str(error)) from None
        if game.clock:
            game.clock.stop()
        game.moves.append(usi)
        game.values.append(None)
        if board.outcome:
            game.values[-1] = {"black": 1.0, "white": -1.0, None: 0.0}[board.outcome.winner]
            self._end(game, board.outcome.winner, board.outcome.reason)
        else:
            self._start_clock(game)
            self._keep(game)

    def _start_clock(self, game: _Game) -> None:
        """The human's clock always runs; the agent's runs only while it thinks."""
        if game.clock:
            game.clock.stop()
            if game.your_turn:
                game.clock.start(game.settings.side)

    def _end(self, game: _Game, winner: Side | None, reason: str) -> None:
        if game.clock:
            game.clock.stop()
        game.thinker.forget()
        text = _result_text(game.settings.side, winner, reason)
        game.result = Result(winner=winner, reason=reason, text=text)
        self._keep(game)

    def _keep(self, game: _Game) -> None:
        """Keep the game as it stands: it outlives this server."""
        if self._kept is None or not (game.moves or game.kept):
            return
        try:
            tree, end, result = GameTree(_record(game)), game.result, None
            if end and end.reason == "resignation":
                result = Outcome(end.winner, "resignation")
            kept = KeptRecord(tree, "played", game.settings.side, f"play/{game.id}", result)
            game.kept = self._kept.keep(kept)
        except KeiseiError as error:  # the game goes on
            log.warning("the game %s is not kept: %s", game.id, error)


def opening_thinker(network: Network, seed: int) -> Thinker:
    """Thinks about a move of the opening."""
    settings = replace(SEARCH, noise=NOISE, root_temperature=BREADTH, seed=seed)
    return Thinker(network.policy, settings, curve=network.curve)


def nearly_best(thinker: Thinker, report: Report, number: int = 0) -> list[str]:
    """The moves that a search found as good as its best one, or nearly so."""
    least, visits = report.score.value - AS_GOOD, LOOKED_AT * report.visits
    return [
        one.move
        for one in thinker.ranked_moves(TOP, number)
        if one.score and one.score.value >= least and one.visits >= visits
    ] or [report.move]


def _look(game: _Game) -> Opinion:
    return game.adviser.look_at([observe(game.board())])[0]


def _record(game: _Game) -> GameRecord:
    agent = game.opponent.label
    names = ("Human", agent) if game.settings.side == "black" else (agent, "Human")
    outcome, ending, comments = game.board().outcome, None, {}
    if game.result and game.result.reason == "resignation":
        if game.turn == game.settings.side:
            outcome = Outcome(game.result.winner, "resignation")
        else:  # the formats cannot express resigning before the other side has moved
            comments = {len(game.moves): "Human resigns."}
    elif game.result and game.result.reason == "time":
        ending = f"{game.result.winner}_WIN_BY_TIMEOUT".upper()
    return GameRecord(game.start, tuple(game.moves), *names, outcome, ending, comments)


def _result_text(side: Side, winner: Side | None, reason: str) -> str:
    if winner is None:
        return f"Draw: {reason}."
    if winner == side:
        why = {"time": f"{AGENT} ran out of time"}.get(reason, reason)
        return f"You win: {why}."
    why = {"resignation": "you resigned", "time": "your time is up"}.get(reason, reason)
    return f"{AGENT} wins: {why}."


def _show(game: _Game) -> PlayedGame:
    # A copy: the agent may be moving right now, and a move is added before its value.
    moves = list(game.moves)
    values = [*game.values, None][: len(moves) + 1]
    game = replace(game, moves=moves, values=values)
    positions, texts = replay(game.start, moves)
    return PlayedGame(
        id=game.id,
        player=game.settings.player,
        label=game.opponent.label,
        elo=game.opponent.elo,
        side=game.settings.side,
        nodes=game.settings.nodes,
        position=positions[-1],
        legal=game.board().legal_usi() if game.your_turn else [],
        moves=texts,
        positions=positions,
        values=values,
        your_turn=game.your_turn,
        result=game.result,
        clock=game.clock.state() if game.clock else None,
        kept=game.kept,
    )
